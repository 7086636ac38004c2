"""Where a store is: its path with all links followed, once it was found to be one that can be read or written safely.

Folders, devices and loops of links are refused in words. So is writing to a file that has several names (hard links):
SQLite keeps its log beside the name it was given, so that two writers under two names would undo each other's rows. And
so are links in the places of SQLite's helper files, which nobody but a person could have put there.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fewfire._errors import StoreError

HELPERS = ("-wal", "-shm", "-journal")


def store_place(path: Path, *, write: bool) -> Path:
    """The resolved path of a store, which need not exist if it is to be written."""
    try:
        found = path.stat()
    except FileNotFoundError:
        if not write:
            raise StoreError(f"there is no store {path}. Remedy: run a sweep into it first.") from None
        found = None
    except (OSError, ValueError) as error:  # a loop of links, a name too long or with a zero byte, no permission
        wrong = "embedded null byte" if "\0" in str(path) else _reason(error)  # which Python 3.13 words differently
        raise StoreError(f"{path} cannot be opened: {wrong}. Nothing was changed.") from None
    if found is not None:
        _check(path, found, write)
    place = Path(os.path.realpath(path))
    for helper in HELPERS:
        _check_helper(path, Path(f"{place}{helper}"))
    return place


def _check(path: Path, found: os.stat_result, write: bool) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise StoreError(f"{path} is a folder, not a store. Remedy: name a file inside it.")
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{path} is not a regular file, so it is no store. Remedy: name a file on a disk.")
    if write and found.st_nlink > 1:
        raise StoreError(
            f"{path} has {found.st_nlink} names (hard links), and a writer under another of them would not be noticed. "
            "Nothing was changed. Remedy: copy it (cp, not ln) and write to the copy."
        )


def _check_helper(path: Path, helper: Path) -> None:
    try:
        found = helper.lstat()
    except OSError:
        return
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        raise foreign(path, helper)


def foreign(path: Path, helper: Path) -> StoreError:
    """The error of a store that has something else where one of its helper files belongs."""
    return StoreError(
        f"{path} cannot be opened: {helper} is a link or another's file, and would be written to. "
        "Nothing was changed. Remedy: see what it is, and move it away."
    )


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)

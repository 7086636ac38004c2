"""Places that a command will write to, looked at before it computes: hours of work should not end in an error.

What is refused here would be refused by the system later; what passes can still fail (a disk that fills up), and that
is said in one line too.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from fewfire._errors import invalid


def check_file(option: str, path: Path | None) -> None:
    """Refuse a file that cannot be written: a folder, one in a folder that does not exist or may not be written to."""
    if path is None:
        return
    rule, folder = "must be a file that can be written", path.parent
    _check_name(option, rule, path)
    if path.is_dir():
        raise invalid(option, f"{rule} (Is a directory)", str(path), "name a file inside it")
    if path.exists():
        if not os.access(path, os.W_OK):
            raise invalid(option, f"{rule} (Permission denied)", str(path))
        if not path.is_file():  # a pipe, /dev/stdout: its folder does not matter
            return
    if not folder.is_dir():
        raise invalid(option, f"{rule} (there is no folder {folder})", str(path), f"make it with: mkdir -p {folder}")
    _try(option, rule, path, folder)


def check_folder(option: str, path: Path | None) -> None:
    """Refuse a folder that cannot be made or written to; nothing is made yet."""
    if path is None:
        return
    _check_name(option, "must be a folder that can be written to", path)
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise invalid(option, f"must be a folder that can be written to ({there} is a file)", str(path))
    _try(option, "must be a folder that can be written to", path, there)


def _try(option: str, rule: str, path: Path, folder: Path) -> None:
    """Write a nameless file into a folder: permissions say little about read-only disks, quotas and root."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise invalid(option, f"{rule} ({error.strerror or error} in {folder})", str(path)) from None


def _check_name(option: str, rule: str, path: Path) -> None:
    """Refuse names that the system does not take: too long, a loop of links, a zero byte."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        raise invalid(option, f"{rule} ({getattr(error, 'strerror', None) or error})", str(path)) from None


def in_words(error: OSError) -> str:
    """An error of the system in one line: where, and what."""
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return f"{where}{error.strerror or error}"

"""Safe files: an `.npz` archive with a format name and a version, never pickled, never larger than it looks.

A file has exactly the name it is given: NumPy's habit of adding `.npz` to other names is switched
off, so saving to "x" writes the file `x` and loading "x" reads it. Writing is atomic (`fewfire._atomic`).

Members are stored as they are, without compression, and read one by one: each is checked against its checksum, and the
shape in its header against its own size, before an array is made. So reading takes at most twice the memory that the
file has bytes, whatever is in it.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy

from fewfire import _atomic
from fewfire._errors import FileFormatError
from fewfire._types import AnyArray

MOST: Final = 2**31 - 1
"""The largest side of an array without entries, which takes no bytes that would bound it."""

_HEADER: Final = 70_000
"""No header of an array is longer."""


def write(path: str | os.PathLike[str], kind: str, version: int, arrays: dict[str, AnyArray]) -> None:
    """Write arrays to exactly this path, replacing what is there only once the new file is complete."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot save {target}: the folder {target.parent} does not exist. Remedy: create it.")
    if target.is_dir():
        raise IsADirectoryError(f"cannot save {target}: it is a folder. Remedy: name a file inside it.")
    named: dict[str, AnyArray] = {"format": np.array(kind), "version": np.array(version), **arrays}
    with _atomic.replacing(target) as handle:
        np.savez(handle, allow_pickle=False, **named)


def read(
    path: str | os.PathLike[str], kind: str, version: int, fields: Sequence[str], writer: str
) -> tuple[Path, dict[str, AnyArray]]:
    """The path and the arrays of these fields, after format name, version and sizes were found right.

    `writer` names the call that writes such files, for the errors.
    """
    source = Path(path)
    again = f"write it again with {writer}"
    try:
        found = source.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"cannot load {source}: there is no such file. Remedy: pass the name given to save."
        ) from None
    except (OSError, ValueError) as error:  # a loop of links, a name too long or with a zero byte
        wrong = str(getattr(error, "strerror", error))
        if "\0" in str(source):  # which Python 3.13 words differently
            wrong = "embedded null byte"
        raise unreadable(source, wrong, f"pass a file of {writer}") from None
    if not stat.S_ISREG(found.st_mode):
        wrong = "it is a folder" if stat.S_ISDIR(found.st_mode) else "it is not a regular file"
        raise unreadable(source, wrong, f"pass a file of {writer}")
    with source.open("rb") as handle:
        try:
            archive = ZipFile(handle)
            members = _members(archive, found.st_size)
            head = {name: _array(archive, members[name]) for name in ("format", "version") if name in members}
            number = head.get("version")
            of_kind = "format" in head and text(head["format"]) == kind
            written = int(number) if number is not None and number.dtype.kind in "iu" and number.shape == () else 0
        except Exception as error:  # damaged bytes surface as a dozen types from zipfile, zlib and numpy
            raise unreadable(source, "it is not a complete .npz archive", again) from error
        if not of_kind or written < 1:
            raise unreadable(source, f"it was not written by {writer}", f"pass a file of {writer}")
        if written > version:
            wrong = f"it has format version {written} and this fewfire reads up to {version}"
            raise unreadable(source, wrong, "upgrade fewfire")
        missing = [name for name in fields if name not in members]
        if missing:
            raise unreadable(source, f"it lacks {', '.join(missing)}", again)
        try:
            return source, {name: _array(archive, members[name]) for name in fields}
        except Exception as error:
            raise unreadable(source, "some of its arrays are damaged", again) from error


def text(array: AnyArray) -> str | None:
    """The text in an array of one; None when it holds none."""
    if array.dtype.kind != "U" or array.shape != ():
        return None
    try:
        return str(array)
    except (ValueError, SystemError):  # numbers that are no characters
        return None


def unreadable(source: Path, wrong: str, remedy: str) -> FileFormatError:
    """The error of a file that cannot be used."""
    return FileFormatError(f"cannot load {source}: {wrong}. Remedy: {remedy}.")


def _members(archive: ZipFile, size: int) -> dict[str, ZipInfo]:
    """The members by name: each once, none compressed, all together no larger than the file."""
    members: dict[str, ZipInfo] = {}
    for info in archive.infolist():
        if info.filename in members:
            raise ValueError(f"{info.filename} is there twice")
        if info.compress_type != ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
            raise ValueError(f"{info.filename} is compressed or encrypted")
        members[info.filename] = info
    if sum(info.file_size for info in members.values()) > size:
        raise ValueError("the members are larger than the file")
    return {name.removesuffix(".npy"): info for name, info in members.items()}


def _array(archive: ZipFile, info: ZipInfo) -> AnyArray:
    """One array of numbers or characters, in the order of C and this machine's bytes."""
    content = archive.read(info)  # whose checksum is right
    start = BytesIO(content[:_HEADER])
    major, _ = npy.read_magic(start)
    parse: Any = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    shape, fortran, dtype = parse(start)
    if dtype.kind not in "fiubU" or dtype.itemsize == 0 or fortran or any(not 0 <= side <= MOST for side in shape):
        raise ValueError(f"{info.filename} has dtype {dtype} and shape {shape}")
    if math.prod(shape) * dtype.itemsize != len(content) - start.tell():
        raise ValueError(f"{info.filename} has shape {shape} in {len(content)} bytes")
    array: AnyArray = np.ndarray(shape, dtype, content, start.tell())
    return array.astype(dtype.newbyteorder("="))

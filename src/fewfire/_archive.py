"""Safe files: an `.npz` archive with a format name and a version, never pickled.

A file has exactly the name it is given: NumPy's habit of adding `.npz` to other names is switched
off, so saving to "x" writes the file `x` and loading "x" reads it. Writing goes to a temporary file
in the same folder that replaces the target at the end, so a failed save leaves an old file as it was.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import FileFormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import AnyArray


def write(path: str | os.PathLike[str], kind: str, version: int, arrays: dict[str, AnyArray]) -> None:
    """Write arrays to exactly this path, replacing what is there only once the new file is complete."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot save {target}: the folder {target.parent} does not exist. Remedy: create it.")
    if target.is_dir():
        raise IsADirectoryError(f"cannot save {target}: it is a folder. Remedy: name a file inside it.")
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    named: dict[str, AnyArray] = {"format": np.array(kind), "version": np.array(version), **arrays}
    try:
        with partial.open("xb") as handle:
            np.savez(handle, allow_pickle=False, **named)
            handle.flush()
            os.fsync(handle.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def read(
    path: str | os.PathLike[str], kind: str, version: int, fields: Sequence[str], writer: str
) -> tuple[Path, dict[str, AnyArray]]:
    """The path and every array of the archive, after format name, version and fields were found right.

    `writer` names the call that writes such files, for the errors.
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"cannot load {source}: there is no such file. Remedy: pass the name given to save.")
    with source.open("rb") as handle:
        try:
            archive = np.load(handle, allow_pickle=False)
            names = set(archive.files)
            found = str(archive["format"]) if "format" in names else None
            written = int(archive["version"]) if "version" in names else None
        except Exception as error:  # damaged bytes surface as a dozen types from zipfile, zlib and numpy
            raise unreadable(source, "it is not a complete .npz archive", f"write it again with {writer}") from error
        if found != kind or written is None:
            package = kind.rpartition(".")[0]
            raise unreadable(source, f"it was not written by {package}.save", f"pass a file of {writer}")
        if written > version:
            wrong = f"it has format version {written} and this fewfire reads up to {version}"
            raise unreadable(source, wrong, "upgrade fewfire")
        try:
            arrays = {name: archive[name] for name in names}
        except Exception as error:
            raise unreadable(source, "some of its arrays are damaged", f"write it again with {writer}") from error
    missing = [name for name in fields if name not in arrays]
    if missing:
        raise unreadable(source, f"it lacks {', '.join(missing)}", f"write it again with {writer}")
    return source, arrays


def unreadable(source: Path, wrong: str, remedy: str) -> FileFormatError:
    """The error of a file that cannot be used."""
    return FileFormatError(f"cannot load {source}: {wrong}. Remedy: {remedy}.")

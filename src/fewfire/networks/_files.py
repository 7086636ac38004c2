"""Networks in files: an `.npz` archive with a format name and a version, never pickled.

A file has exactly the name it is given: NumPy's habit of adding `.npz` to other names is switched
off, so `save(net, "x")` writes the file `x` and `load("x")` reads it. Writing goes to a temporary file
in the same folder that replaces the target at the end, so a failed save leaves an old file as it was.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from fewfire._errors import FileFormatError, InvalidArgument
from fewfire.networks._two_layer import TwoLayer

if TYPE_CHECKING:
    from fewfire._types import AnyArray

FORMAT: Final = "fewfire.networks.TwoLayer"
VERSION: Final = 1
_FIELDS: Final = ("hidden", "bias", "output", "offset", "activation")


def save(net: TwoLayer, path: str | os.PathLike[str]) -> None:
    """Write a network to exactly this path, replacing what is there only once the new file is complete."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot save {target}: the folder {target.parent} does not exist. Remedy: create it.")
    if target.is_dir():
        raise IsADirectoryError(f"cannot save {target}: it is a folder. Remedy: name a file inside it.")
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with partial.open("xb") as handle:
            np.savez(
                handle,
                format=np.array(FORMAT),
                version=np.array(VERSION),
                hidden=net.hidden,
                bias=net.bias,
                output=net.output,
                offset=np.array(net.offset, dtype=net.dtype),
                activation=np.array(str(net.activation)),
            )
            handle.flush()
            os.fsync(handle.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> TwoLayer:
    """The network that `save` wrote to this path, equal in every bit.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    FileFormatError
        The file is damaged, was not written by fewfire, or comes from a newer version of it.
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"cannot load {source}: there is no such file. Remedy: pass the name given to save.")
    return _network(source, _arrays(source))


def _arrays(source: Path) -> dict[str, AnyArray]:
    """Every array of the archive, after the format name and the version were found right."""
    with source.open("rb") as handle:
        try:
            archive = np.load(handle, allow_pickle=False)
            names = set(archive.files)
            found = str(archive["format"]) if "format" in names else None
            version = int(archive["version"]) if "version" in names else None
        except Exception as error:  # damaged bytes surface as a dozen types from zipfile, zlib and numpy
            raise _unreadable(source, "it is not a complete .npz archive", "write it again with net.save") from error
        if found != FORMAT or version is None:
            raise _unreadable(source, "it was not written by fewfire.networks.save", "pass a file of net.save")
        if version > VERSION:
            wrong = f"it has format version {version} and this fewfire reads up to {VERSION}"
            raise _unreadable(source, wrong, "upgrade fewfire")
        try:
            return {name: archive[name] for name in names}
        except Exception as error:
            raise _unreadable(source, "some of its arrays are damaged", "write it again with net.save") from error


def _network(source: Path, arrays: dict[str, AnyArray]) -> TwoLayer:
    missing = [name for name in _FIELDS if name not in arrays]
    if missing:
        raise _unreadable(source, f"it lacks {', '.join(missing)}", "write it again with net.save")
    if arrays["hidden"].dtype.kind != "f" or arrays["offset"].shape != () or arrays["activation"].dtype.kind != "U":
        raise _unreadable(source, "its arrays have the wrong type", "write it again with net.save")
    try:
        return TwoLayer(
            arrays["hidden"], arrays["bias"], arrays["output"], float(arrays["offset"]), str(arrays["activation"])
        )
    except (InvalidArgument, TypeError, ValueError) as error:
        raise _unreadable(
            source, f"its arrays do not fit together ({error})", "write it again with net.save"
        ) from error


def _unreadable(source: Path, wrong: str, remedy: str) -> FileFormatError:
    return FileFormatError(f"cannot load {source}: {wrong}. Remedy: {remedy}.")

"""Indexes in files: a safe archive (`fewfire._archive`) of ids, points and offsets; trees are built when loading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fewfire import _archive
from fewfire._errors import InvalidArgument
from fewfire.halfspace._index import Index

if TYPE_CHECKING:
    import os

    from fewfire._types import AnyArray

FORMAT: Final = "fewfire.halfspace.Index"
VERSION: Final = 1
_FIELDS: Final = ("ids", "points", "offsets", "next_id", "method")
_AGAIN: Final = "write it again with index.save"


def load(path: str | os.PathLike[str], threads: int | None = None) -> Index:
    """The index that `Index.save` wrote to this path: same ids, points, offsets and method.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    FileFormatError
        The file is damaged, was not written by fewfire, or comes from a newer version of it.
    """
    source, arrays = _archive.read(path, FORMAT, VERSION, _FIELDS, "index.save")
    ids, points, offsets, next_id, method = (arrays[name] for name in _FIELDS)
    kinds = [array.dtype.str[1:] for array in (ids, points, offsets, next_id)]
    if kinds != ["i8", "f4", "f4", "i8"] or method.dtype.kind != "U" or next_id.shape != () or points.ndim != 2:
        raise _archive.unreadable(source, "its arrays have the wrong type", _AGAIN)
    if ids.shape != (len(points),) or (np.diff(ids) <= 0).any() or (len(ids) and not 0 <= ids[0] <= ids[-1] < next_id):
        raise _archive.unreadable(source, "its ids are not ascending and below next_id", _AGAIN)
    try:
        return Index._restored(ids, points, offsets, int(next_id), str(method), threads)
    except InvalidArgument as error:
        raise _archive.unreadable(source, f"its arrays do not fit together ({error})", _AGAIN) from error


def save(index: Index, path: str | os.PathLike[str]) -> None:
    """Write an index to exactly this path, replacing what is there only once the new file is complete."""
    ids, points, offsets, next_id = index._state()
    parts: dict[str, AnyArray] = {
        "ids": ids,
        "points": points,
        "offsets": offsets,
        "next_id": np.array(next_id, dtype=np.int64),
        "method": np.array(index.requested),
    }
    _archive.write(path, FORMAT, VERSION, parts)

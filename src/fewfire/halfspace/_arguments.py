"""Checks of what a user hands to an index; all of them before anything changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewfire._errors import invalid
from fewfire._types import IdArray
from fewfire._validate import check_finite


def check_rows(name: str, values: ArrayLike, dimension: int | None) -> NDArray[np.float32]:
    """A table of numbers finite in float32, C-contiguous; no rows are fine, no columns are not."""
    array = np.asarray(values)
    if array.ndim != 2 or array.shape[1] == 0 or (dimension is not None and array.shape[1] != dimension):
        columns = "d" if dimension is None else str(dimension)
        raise invalid(name, f"must be a table of shape (count, {columns})", f"shape {array.shape}", "one point per row")
    return _float32(name, array)


def check_column(name: str, values: ArrayLike, count: int) -> NDArray[np.float32]:
    """`count` numbers finite in float32; one number stands for all of them."""
    array = np.asarray(values)
    if array.ndim == 0:
        array = np.broadcast_to(array, (count,))
    if array.shape != (count,):
        raise invalid(name, f"must be a number or a vector of {count}", f"shape {array.shape}", "pass one per row")
    return _float32(name, array)


def check_vector(name: str, values: ArrayLike, dimension: int) -> NDArray[np.float32]:
    """A vector of numbers finite in float32."""
    array = np.asarray(values)
    if array.shape != (dimension,):
        raise invalid(
            name, f"must be a vector of {dimension} numbers", f"shape {array.shape}", "see query_batch for many"
        )
    return _float32(name, array)


def check_ids(name: str, values: ArrayLike) -> IdArray:
    """Distinct integers; one integer stands for a list of one."""
    array: Any = np.atleast_1d(np.asarray(values))
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise invalid(name, "must be a vector of integers", f"dtype {array.dtype} and shape {array.shape}")
    if array.dtype.kind == "u" and int(array.max()) > np.iinfo(np.int64).max:
        raise invalid(name, "must be in the index", int(array.max()))
    ids = np.ascontiguousarray(array, dtype=np.int64)
    ordered = np.sort(ids)
    same = ordered[1:] == ordered[:-1]
    if same.any():
        raise invalid(name, "must not repeat an id", int(ordered[1:][same][0]), "pass each id once")
    return ids


def _float32(name: str, array: NDArray[Any]) -> NDArray[np.float32]:
    if array.dtype.kind not in "biuf":
        raise invalid(name, "must hold numbers", f"dtype {array.dtype}", "encode every column as a number")
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(array, dtype=np.float32)
    if array.dtype.kind == "f" and array.dtype.itemsize > 4:
        lost = np.isinf(narrow) & np.isfinite(array)
        if lost.any():
            rule = "must fit into float32 (magnitudes below 3.4e38)"
            raise invalid(name, rule, float(array[lost][0]), "scale it down")
    check_finite(name, narrow)
    return narrow

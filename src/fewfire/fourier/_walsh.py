"""The Walsh–Hadamard transform: 2ⁿ values of a function on the cube to its 2ⁿ Fourier coefficients and back.

sparse-activations, section 2.1: f = Σ_S f̂(S) χ_S with f̂(S) = E[f χ_S]. Values are in the order of the cube (in row
i, coordinate j is −1 iff bit j of i is set), and the coefficient of S is at the number whose bits are the members of
S. n·2ⁿ additions in place; 2²⁸ float64 values take 2 GiB.

`walsh_reference` is the reference implementation of csrc/kernels/walsh.cpp. Both go through the levels in ascending
order, so their results agree bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewfire._errors import invalid
from fewfire._extension import core
from fewfire._threads import thread_count
from fewfire._types import AnyArray

_KINDS = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int32))

_INT32_MAX = 2**31 - 1

_LINE = 64
"""Bytes of a cache line: results begin at one."""


def transform(values: object, *, inplace: bool = False, normalise: bool = True, threads: int | None = None) -> AnyArray:
    """Fourier coefficients of a function given by its values on the cube.

    Parameters
    ----------
    values : array of shape (2ⁿ,)
        float32, float64 and int32 keep their type; other numbers become float64. int32 is exact, unnormalised.
    inplace : bool
        Overwrite `values`, a writable contiguous array of one of the three types, and return it.
    normalise : bool
        Divide by 2ⁿ, giving f̂(S) = E[f χ_S]; otherwise Σ_x f(x) χ_S(x).
    threads : int, optional
        All cores unless given. The result does not depend on it.

    Returns
    -------
    array of shape (2ⁿ,)
        The coefficient of S at the number Σ_{j ∈ S} 2ʲ.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.fourier.transform([1.0, -1.0, -1.0, 1.0]).tolist()  # x₀x₁: one coefficient, at the set {0, 1}
    [0.0, 0.0, 0.0, 1.0]
    """
    return _transform("values", values, inplace, normalise, threads)


def inverse(coefficients: object, *, threads: int | None = None) -> AnyArray:
    """Values on the cube of the function with given Fourier coefficients: f(x) = Σ_S f̂(S) χ_S(x).

    The sum is that of `transform` with normalise=False, which also does it in place.

    Parameters
    ----------
    coefficients : array of shape (2ⁿ,)
        f̂(S), as `transform` returns them.
    threads : int, optional
        All cores unless given.

    Returns
    -------
    array of shape (2ⁿ,)
        f at the rows of the cube.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.fourier.inverse([0.0, 0.0, 0.0, 1.0]).tolist()
    [1.0, -1.0, -1.0, 1.0]
    """
    return _transform("coefficients", coefficients, False, False, threads)


def aligned_empty(length: int, dtype: np.dtype[Any]) -> AnyArray:
    """An uninitialised array of shape (length,) that begins at a cache line."""
    raw = np.empty(length * dtype.itemsize + _LINE, dtype=np.uint8)
    skip = -raw.ctypes.data % _LINE
    return raw[skip : skip + length * dtype.itemsize].view(dtype)


def check_length(name: str, values: AnyArray) -> int:
    """The n of an array of shape (2ⁿ,)."""
    if values.ndim != 1 or len(values) == 0 or len(values) & (len(values) - 1):
        rule = "must be a vector of 2ⁿ numbers, one per point of the cube"
        raise invalid(name, rule, f"shape {values.shape}", "list f(x) for every x in the order of the cube")
    return len(values).bit_length() - 1


def walsh_reference(values: AnyArray, out: AnyArray, scale: float) -> None:
    """out[S] = scale · Σ_i values[i] (−1)^|i ∩ S|; `out` may be `values`. Arrays of shape (2ⁿ,)."""
    if out is not values:
        np.copyto(out, values)
    for level in range(len(values).bit_length() - 1):
        pairs = out.reshape(-1, 2, 2**level)
        low, high = pairs[:, 0], pairs[:, 1]
        difference = low - high
        low += high
        high[:] = difference
    if scale != 1:
        out *= scale


def _transform(name: str, values: object, inplace: bool, divide: bool, threads: int | None) -> AnyArray:
    workers = thread_count(threads)
    source = _check_inplace(name, values) if inplace else _as_values(name, values)
    check_length(name, source)
    if source.dtype == np.int32:
        if divide:
            remedy = "leave them unnormalised, or pass float64"
            raise invalid(name, "cannot be divided by 2ⁿ in integers", "dtype int32", remedy)
        _check_overflow(name, source)
    out = source if inplace else aligned_empty(len(source), source.dtype)
    scale = 1.0 / len(source) if divide else 1.0
    extension = core()
    if extension is None:
        walsh_reference(source, out, scale)
    else:
        extension.walsh(source, out, 1 if source.dtype == np.int32 else scale, workers)
    return out


def _as_values(name: str, values: object) -> AnyArray:
    array: AnyArray = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise invalid(name, "must hold real numbers", f"dtype {array.dtype}", "convert them to float64")
    dtype = array.dtype.newbyteorder("=")
    return np.require(array, dtype=dtype if dtype in _KINDS else np.float64, requirements=["C", "A"])


def _check_inplace(name: str, values: object) -> AnyArray:
    if not isinstance(values, np.ndarray):
        got = f"a {type(values).__name__}"
    elif values.dtype not in _KINDS or not values.dtype.isnative:
        got = f"dtype {values.dtype}"
    elif not (values.flags.c_contiguous and values.flags.aligned and values.flags.writeable):
        got = "an array that is strided, misaligned or read-only"
    else:
        return values
    rule = "must be a writable contiguous float32, float64 or int32 array to be overwritten"
    remedy = "leave inplace out, or pass numpy.ascontiguousarray(values, dtype='float64')"
    raise invalid(name, rule, got, remedy)


def _check_overflow(name: str, values: AnyArray) -> None:
    """Every sum of ±values is at most Σ|values|; blocks keep the int64 copies small."""
    blocks = (values[start : start + 2**20].astype(np.int64) for start in range(0, len(values), 2**20))
    total = sum(int(np.abs(block).sum()) for block in blocks)
    if total > _INT32_MAX:
        rule = f"may sum in magnitude to at most {_INT32_MAX}, or int32 coefficients overflow"
        raise invalid(name, rule, total, "pass float64, exact up to 2**53")

"""The Walsh–Hadamard butterfly in NumPy: the readable twin of csrc/kernels/walsh.cpp.

Both go through the levels in ascending order, so their results agree bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fewfire._types import AnyArray


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

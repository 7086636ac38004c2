"""The separator of parities, Lemma 10: output weights that make a parity of the features after one step.

Symbols: k bits in the parity, odd; z = Σ_{j∈A} √n x_j ∈ {−k, −k+2, …, k}; φ_r(z) = relu(−sign(r) z + |r|).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_integer

if TYPE_CHECKING:
    from fewfire._types import Float64Array


def separator_thresholds(k: int) -> Float64Array:
    """The values r ∈ {−k, −k+2, …, k} of Lemma 8, shape (k + 1,)."""
    k = check_integer("k", k, 1)
    if k % 2 == 0:
        raise invalid("k", "must be odd", k, "parities treats odd k only")
    return np.arange(-k, k + 1, 2, dtype=np.float64)


def separator_features(k: int, z: Float64Array) -> Float64Array:
    """φ_r(z) for every threshold r, shape (len(z), k + 1)."""
    r = separator_thresholds(k)
    return np.maximum(-np.sign(r) * np.asarray(z, dtype=np.float64)[:, None] + np.abs(r), 0.0)


def separator_coefficients(k: int) -> Float64Array:
    """Lemma 10, corrected: the v_r with Σ_r v_r φ_r(z) = f_A, in the order of `separator_thresholds`.

    The coefficients printed in the lemma do not give the parity (docs/errata.md, row 3). The k + 1 features
    are independent on the k + 1 values of z, so solving for them is exact: |v_r| = 2 inside, and 1.5
    (k ≡ 3 mod 4) or 0.5 (k ≡ 1 mod 4) at |r| = k, alternating and odd in r.
    """
    z = separator_thresholds(k)
    parity = (-1.0) ** ((k - z) / 2)
    return np.asarray(np.linalg.solve(separator_features(k, z), parity), dtype=np.float64)

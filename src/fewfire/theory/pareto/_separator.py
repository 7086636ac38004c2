"""The separator: output weights that make a parity of the features after one step (pareto, B.2.2).

Good neurons become σ(±z/(2k) + β_i), z = Σ_{j∈S} x_j ∈ {−k, −k+2, …, k}. Printed, i runs from 1 and there are k − 1
features for k + 1 values; with i = 0 … k/2 − 1 and the constant there are k + 1, and the system is solvable
(docs/errata.md, row 4). B_k is the norm of the solution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number

if TYPE_CHECKING:
    from fewfire._types import Float64Array


def over_sparse_biases(k: int, offset: float = 0.5) -> Float64Array:
    """β_i = (−k + 2i + offset)/(2k), i = 0 … k/2 − 1; shape (k/2,).

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> pareto.over_sparse_biases(4)
    array([-0.4375, -0.1875])
    """
    k = check_integer("k", k, 2)
    if k % 2:
        raise invalid("k", "must be even (pareto, Theorem 4)", k)
    offset = check_number("offset", offset, 0.0, 1.0, open_low=True, open_high=True)
    return np.asarray((2.0 * np.arange(k // 2) - k + offset) / (2 * k))


def separator_features(k: int, z: Float64Array, offset: float = 0.5) -> Float64Array:
    """1, σ(z/2k + β_i) and σ(−z/2k + β_i) for each value of z; shape (len(z), k + 1).

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> import numpy as np
    >>> pareto.separator_features(2, np.array([-2.0, 0.0, 2.0]))
    array([[1.   , 0.   , 0.125],
           [1.   , 0.   , 0.   ],
           [1.   , 0.125, 0.   ]])
    """
    biases = over_sparse_biases(k, offset)
    slope = np.asarray(z, dtype=np.float64)[:, None] / (2 * k)
    columns = [np.ones_like(slope), np.maximum(slope + biases, 0.0), np.maximum(-slope + biases, 0.0)]
    return np.concatenate(columns, axis=1)


def separator_coefficients(k: int, offset: float = 0.5) -> Float64Array:
    """ν with Σ ν·features = χ_S = (−1)^((k − z)/2) on all values of z; shape (k + 1,).

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> import numpy as np
    >>> z = np.array([-2.0, 0.0, 2.0])
    >>> (pareto.separator_features(2, z) @ pareto.separator_coefficients(2)).round(9)
    array([ 1., -1.,  1.])
    """
    z = np.arange(-k, k + 1, 2, dtype=np.float64)
    parity = (-1.0) ** ((k - z) / 2)
    return np.asarray(np.linalg.solve(separator_features(k, z, offset), parity))


def separator_norm(k: int, offset: float = 0.5) -> float:
    """B_k = ‖ν‖₂: 23, 231, 1205, 5059 for k = 2, 4, 6, 8; with the printed offset 1/16 1.2·10⁴ at 4, 2.3·10⁷ at 8.

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> [round(pareto.separator_norm(k)) for k in (2, 4, 6, 8)]
    [23, 231, 1205, 5059]
    """
    return float(np.linalg.norm(separator_coefficients(k, offset)))

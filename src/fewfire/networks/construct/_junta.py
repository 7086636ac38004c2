"""A function of p coordinates as a network with exactly one active neuron (proof of sparse-activations, Theorem 13).

One neuron for each of the 2^p patterns α of the coordinates: σ(⟨α, x_S⟩ − p + 1) is 1 when x_S = α and 0
otherwise, since one differing coordinate already costs 2. Its output weight is the value at α.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire._cube import MAX_EXACT, cube
from fewfire._errors import invalid
from fewfire._validate import check_finite, check_integer, check_support
from fewfire.networks._two_layer import TwoLayer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike


def junta(n: int, support: Sequence[int], table: ArrayLike) -> TwoLayer:
    """The network of width 2^p that computes a function of p of n coordinates, one neuron active on every input.

    Parameters
    ----------
    n : int
        How many coordinates an input has.
    support : sequence of p distinct coordinates
    table : array of shape (2^p,)
        The values: bit i of the index is set iff x[support[i]] = −1.

    Returns
    -------
    TwoLayer
        In float64, with W = √p·max|table| and B = |p − 1|·max|table|.
    """
    n = check_integer("n", n, 1)
    members = check_support("support", support, n)
    p = len(members)
    if p > MAX_EXACT:
        raise invalid("support", f"must have at most {MAX_EXACT} coordinates", p, "the network has 2**p neurons")
    values = np.asarray(table)
    if values.shape != (2**p,) or values.dtype.kind not in "biuf":
        rule = f"must hold {2**p} numbers, one for each pattern of the {p} coordinates of support"
        raise invalid("table", rule, f"shape {values.shape}, dtype {values.dtype}", "use the order of the index bits")
    hidden = np.zeros((2**p, n))
    hidden[:, members] = cube(p)
    return TwoLayer(hidden, np.full(2**p, 1.0 - p), check_finite("table", values.astype(np.float64)))

"""Parity as a 1-sparse network on lifted inputs (sparse-activations, section 4): the reason such networks are hard.

Printed there: χ_S is 1 when Σ_{i∈S} y_i is even, a sum over even a. But that sum has the parity of |S| for
every y. Counting −1s instead, an even number of them means Σ_{i∈S} y_i ≡ |S| (mod 4), so the centres are
the a ≡ |S| (mod 4) with |a| ≤ |S|; and the lifted weights are non-zero only at pairs inside S.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire._validate import check_integer, check_support
from fewfire.networks._two_layer import TwoLayer
from fewfire.networks.construct._lift import bumps

if TYPE_CHECKING:
    from collections.abc import Sequence


def lifted_parity(m: int, support: Sequence[int], signed: bool = False) -> TwoLayer:
    """The network on `lift(Y)` that tells whether y has an even number of −1s in the support.

    At most one of its ⌊|S|/2⌋ + 1 neurons fires on a lifted input; other points of the cube of m²
    coordinates may activate more.

    Parameters
    ----------
    m : int
        Coordinates of y; the network has m² inputs.
    support : sequence of distinct coordinates
        The set S.
    signed : bool
        False: values 1 (even) and 0, as printed. True: values +1 and −1, the product of y over S.
    """
    m = check_integer("m", m, 1)
    members = check_support("support", support, m)
    v = np.zeros(m)
    v[list(members)] = 1.0
    size = len(members)
    hidden, bias = bumps(v, np.arange(size, -size - 1, -4, dtype=np.float64))
    output = np.full(len(bias), 4.0 if signed else 2.0)
    return TwoLayer(hidden, bias, output, -1.0 if signed else 0.0)

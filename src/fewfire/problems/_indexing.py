"""The indexing function (sparse-activations, section 1): the first b bits number which of the other 2ᵇ is the label.

It depends on every input, but on each input x on b + 1 coordinates only, and a network of 2ᵇ neurons
computes it with one neuron active. The paper's value is the bit in {0, 1}; here it is ±1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewfire._cube import MAX_EXACT
from fewfire._types import SignArray
from fewfire._validate import check_integer
from fewfire.problems._base import SignProblem, assign, check_flip_probability, register_problem


@register_problem
@dataclass(frozen=True)
class Indexing(SignProblem):
    """The y_a of (x, y) ∈ {−1, 1}^(b + 2ᵇ), where a is the integer that x spells.

    Parameters
    ----------
    b : int in [1, 20]
        Number of address bits, which come first in X: most significant bit first, −1 stands for 0.
    noise : float in [0, 1/2]
        Probability that a label is flipped.

    Examples
    --------
    >>> int(Indexing(2).target([[1, -1, -1, -1, 1, -1]])[0])  # address (1, 0) is 2, the third of the last four
    1
    """

    name: ClassVar = "indexing"
    b: int
    noise: float = 0.0

    def __post_init__(self) -> None:
        remedy = f"X has b + 2**b columns; choose b between 1 and {MAX_EXACT}"
        b = check_integer("b", self.b, 1, MAX_EXACT, remedy)
        assign(self, b=b, noise=check_flip_probability(self.noise))

    @property
    def inputs(self) -> int:
        """The number of columns of X: b + 2**b."""
        return int(self.b + 2**self.b)

    def _values(self, X: SignArray) -> SignArray:
        weights = 2 ** np.arange(self.b - 1, -1, -1, dtype=np.int64)
        address = (X[:, : self.b] > 0) @ weights
        return X[np.arange(len(X)), self.b + address]

"""Juntas: functions of few of their inputs (sparse-activations, Theorem 13), given by a truth table.

The table is in cube order on the support: entry i is the value where support[j] is −1 iff bit j of i is set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fewfire._cube import MAX_EXACT, cube_index
from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._validate import check_integer, check_signs, check_support
from fewfire.problems._base import Given, SignProblem, assign, check_flip_probability, check_members, register_problem

if TYPE_CHECKING:
    from fewfire._types import SignArray


@register_problem
@dataclass(frozen=True, repr=False)
class Junta(SignProblem):
    """A ±1 function of p of n uniform ±1 inputs.

    Parameters
    ----------
    n : int
        Number of inputs.
    support : sequence of p ≤ 20 coordinates
        Kept in the order given, which is the order of the bits of the table's index.
    table : sequence of 2**p values ±1
        Kept as a tuple. p = 0 is a constant.
    noise : float in [0, 1/2]
        Probability that a label is flipped.

    Examples
    --------
    The AND of coordinates 4 and 2 (−1 is true) has the value −1 only where both bits are set:

    >>> Junta(n=6, support=(4, 2), table=(1, 1, 1, -1)).depends_on
    (2, 4)
    """

    name: ClassVar = "junta"
    n: int
    support: Given
    table: Given
    noise: float = 0.0

    def __post_init__(self) -> None:
        n = check_integer("n", self.n, 1)
        support = check_support("support", check_members("support", self.support), n)
        if len(support) > MAX_EXACT:
            raise invalid("support", f"must hold at most {MAX_EXACT} coordinates", len(support), "use fewer")
        size = 2 ** len(support)
        table = np.asarray(self.table)
        if table.shape != (size,):
            rule = f"must hold {size} values, one per setting of {len(support)} coordinates"
            raise invalid("table", rule, f"shape {table.shape}", "list them in cube order on the support")
        values = tuple(check_signs("table", table[None, :])[0].tolist())
        assign(self, n=n, support=support, table=values, noise=check_flip_probability(self.noise))

    @classmethod
    def random(cls, n: int, p: int, seed: int | Stream = 0, noise: float = 0.0) -> Junta:
        """A uniform choice of p sorted coordinates and of the 2**p values.

        It may depend on fewer than p of them (see `depends_on`), each with probability 2**−2**(p−1).
        """
        n = check_integer("n", n, 1)
        p = check_integer("p", p, 0, min(n, MAX_EXACT), f"choose p between 0 and {min(n, MAX_EXACT)}")
        stream = as_stream(seed, "target")
        support = np.sort(stream.child("support").subsets(1, n, p)[0])
        return cls(n, support.tolist(), stream.child("table").signs(2**p), noise)

    @property
    def inputs(self) -> int:
        """The number of columns of X: n."""
        return self.n

    @property
    def depends_on(self) -> tuple[int, ...]:
        """The coordinates that the table really depends on, sorted; all of the support iff it is a proper p-junta."""
        pairs = [self._lookup.reshape(-1, 2, 2**bit) for bit in range(len(self.support))]
        used = [bool((pair[:, 0] != pair[:, 1]).any()) for pair in pairs]
        return tuple(sorted(i for i, matters in zip(self.support, used, strict=True) if matters))

    @cached_property
    def _lookup(self) -> SignArray:
        return np.array(self.table, dtype=np.int8)

    def _values(self, X: SignArray) -> SignArray:
        return self._lookup[cube_index(X[:, list(self.support)])] if self.support else np.repeat(self._lookup, len(X))

    def __repr__(self) -> str:
        # A table can have a million entries; up to 16 the text rebuilds the junta.
        table = self.table if len(self.table) <= 16 else f"<{len(self.table)} values>"
        return f"Junta(n={self.n}, support={self.support}, table={table}, noise={self.noise})"

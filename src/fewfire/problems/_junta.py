"""Juntas, functions of few of their inputs (sparse-activations, Theorem 13), by table or name; half-spaces, by weights.

A table is in cube order on the support: entry i is the value where support[j] is −1 iff bit j of i is set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np

from fewfire._cube import MAX_EXACT, cube_index
from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._types import SignArray
from fewfire._validate import check_choice, check_integer, check_signs, check_support
from fewfire.problems._base import Given, SignProblem, assign, check_flip_probability, check_members, register_problem
from fewfire.problems._parity import SparseProblem

CUBE_ORDER = "entry i is the value where input support[j] is −1 exactly if bit j of i is set"


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
            raise invalid("table", rule, f"shape {table.shape}", CUBE_ORDER)
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


Function: TypeAlias = Literal["random", "and", "or", "majority"]


@register_problem
@dataclass(frozen=True)
class NamedJunta(SparseProblem):
    """A function of k of n uniform ±1 inputs by its name, or a random one by its seed; −1 is true.

    Parameters
    ----------
    n, k, support, noise
        As in `Parity`; the k of a majority is odd.
    function : "random", "and", "or" or "majority"
        "random" is uniform among those that depend on all k ≤ 20 inputs.
    seed : int
        Of the random function, whatever the seed of the examples.

    Examples
    --------
    >>> NamedJunta(n=6, k=3, function="majority").target([[-1, 1, -1, 1, 1, 1]]).tolist()
    [-1]
    """

    name: ClassVar = "named_junta"
    function: Function = "random"
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        function = check_choice("function", self.function, get_args(Function))
        assign(self, seed=check_integer("seed", self.seed, 0, 2**63 - 1))
        if function == "random":
            check_integer("k", self.k, 1, MAX_EXACT, "name a function, which needs no table")
        if function == "majority" and self.k % 2 == 0:
            raise invalid("k", "must be odd, so that there are no ties", self.k, "add or drop a coordinate")

    @cached_property
    def _lookup(self) -> SignArray:
        draws = (Stream(self.seed, "target").child(f"table/{i}").signs(2**self.k) for i in count())
        return next(table for table in draws if len(Junta(self.k, range(self.k), table).depends_on) == self.k)

    def _values(self, X: SignArray) -> SignArray:
        inputs = X[:, self.support]
        if self.function == "random":
            return self._lookup[cube_index(inputs)]
        true = {"and": self.k, "or": 1, "majority": self.k // 2 + 1}[self.function]  # when so many inputs are
        return np.where((inputs < 0).sum(axis=1) >= true, -1, 1).astype(np.int8)


@register_problem
@dataclass(frozen=True)
class HalfSpace(SignProblem):
    """The sign of ⟨w, x⟩ − t on n uniform ±1 inputs, −1 at 0.

    Parameters
    ----------
    n : int
        Number of inputs.
    weights : sequence of at most n integers
        Of the first inputs; the others have weight 0. Integers make sums exact, and describe every half-space.
    threshold : int
    noise : float in [0, 1/2]
        Probability that a label is flipped.

    Examples
    --------
    >>> HalfSpace(n=4, weights=[2, 1, 1]).target([[1, 1, -1, 1], [-1, 1, 1, 1]]).tolist()
    [1, -1]
    """

    name: ClassVar = "half_space"
    n: int
    weights: Given
    threshold: int = 0
    noise: float = 0.0

    def __post_init__(self) -> None:
        n, given = check_integer("n", self.n, 1), check_members("weights", self.weights)
        weights = tuple(check_integer(f"weights[{i}]", w, -(2**31), 2**31) for i, w in enumerate(given))
        if not weights or len(weights) > n:
            raise invalid("weights", f"must be 1 to n = {n} integers", weights, "the inputs left out have weight 0")
        threshold = check_integer("threshold", self.threshold, -(2**53), 2**53)
        assign(self, n=n, weights=weights, threshold=threshold, noise=check_flip_probability(self.noise))

    def _values(self, X: SignArray) -> SignArray:
        sums = X[:, : len(self.weights)] @ np.array(self.weights, dtype=np.int64)
        return np.where(sums > self.threshold, 1, -1).astype(np.int8)

"""Sparse parities y = χ_S(x) = ∏_{i ∈ S} x_i under uniform inputs (pareto, section 2.1), and with a support that leaks.

The distribution D_A of parities, section 2: half of the inputs are uniform; in the other half the bits of the support A
are all equal, to +1 or −1 with probability 1/2 each, and the rest uniform. So E[x_i y] is 1/2 on the support and 0 off
it, which gradient descent sees in one step, while linear methods on few fixed features fail. Inputs are ±1 here. The
paper scales them to ±1/√n: divide X by √n for its step sizes and biases.

Staircases are sums Σ_S c_S χ_S. Their leap is the least number such that the sets can be ordered with at most so many
new coordinates in each (Abbe, Boix-Adserà, Misiakiewicz 2023); leap 1 is the merged-staircase property (2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._types import Float64Array, SignArray
from fewfire._validate import check_integer, check_number, check_support
from fewfire.problems._base import (
    CubeProblem,
    DescribedProblem,
    Given,
    SignProblem,
    assign,
    check_flip_probability,
    check_members,
    parity,
    register_problem,
)


@dataclass(frozen=True)
class SparseProblem(SignProblem):
    """A ±1 function of k of n ±1 inputs: its fields, checked."""

    n: int
    k: int | Any = None
    support: Given = None
    noise: float = 0.0

    def __post_init__(self) -> None:
        n = check_integer("n", self.n, 1)
        support = resolve_support(n, self.k, self.support)
        assign(self, n=n, k=len(support), support=support, noise=check_flip_probability(self.noise))


@register_problem
@dataclass(frozen=True)
class Parity(SparseProblem):
    """The parity of k of n uniform ±1 inputs.

    Parameters
    ----------
    n : int
        Number of inputs.
    k : int
        Size of the support; may be left out when `support` is given, and must agree with it otherwise.
    support : sequence of k coordinates, optional
        Kept as a sorted tuple; range(k) unless given.
    noise : float in [0, 1/2]
        Probability that a label is flipped.

    Examples
    --------
    >>> X, y = Parity(n=20, k=3).sample(100, seed=1)
    >>> bool((y == X[:, 0] * X[:, 1] * X[:, 2]).all())
    True
    """

    name: ClassVar = "parity"

    def _values(self, X: SignArray) -> SignArray:
        return parity(X, self.support)


@register_problem
@dataclass(frozen=True)
class CorrelatedParity(Parity):
    """The parity of k of n inputs, whose support bits are all equal in half of the examples.

    Parameters
    ----------
    n, support, noise
        As in `Parity`.
    k : odd int of at least 3
        Size of the support; may be left out when `support` is given, and must agree with it otherwise.

    Examples
    --------
    >>> import fewfire as ff
    >>> problem = ff.problems.CorrelatedParity(n=20, k=3, support=[1, 4, 7])
    >>> X, y = problem.sample(1000, seed=0)
    >>> bool((y == X[:, [1, 4, 7]].prod(axis=1)).all())
    True
    >>> bool(abs((X[:, 1] * X[:, 4]).mean() - 0.5) < 0.1)  # bits of the support agree on half of the examples
    True
    """

    name: ClassVar = "correlated_parity"

    def __post_init__(self) -> None:
        check_integer("n", self.n, 3)
        super().__post_init__()
        if self.k % 2 == 0:
            why = "an even number of equal bits has parity +1 whatever their sign, so no bit correlates with the label"
            raise invalid("k", "must be odd and at least 3", self.k, f"add or drop a coordinate: {why}")
        if self.k == 1:
            why = "one bit is always equal to itself, so both halves are uniform"
            raise invalid("k", "must be odd and at least 3", 1, f"use Parity: {why}")

    def density(self, X: SignArray) -> Float64Array:
        """How much likelier than under uniform inputs each row of X (rows, n) is, shape (rows,): ½ or ½ + 2^{k−2}."""
        equal = np.abs(X[:, list(self.support)].sum(axis=1, dtype=np.int64)) == self.k
        return np.asarray(np.where(equal, 0.5 + 2.0 ** (self.k - 2), 0.5))

    def _draw(self, stream: Stream, m: int, start: int) -> SignArray:
        X = stream.sign_rows(m, self.n, start)
        # Columns: whether the support bits are equal, and to which sign.
        coins = stream.child("mixture").sign_rows(m, 2, start)
        equal = np.flatnonzero(coins[:, 0] < 0)
        X[np.ix_(equal, np.array(self.support))] = coins[equal, 1:]
        return X


@register_problem
@dataclass(frozen=True)
class Staircase(DescribedProblem, CubeProblem):
    """A sum of monomials of n uniform ±1 inputs; its labels are numbers, which take the loss "square" or "absolute".

    Parameters
    ----------
    n : int
        Number of inputs.
    k, leap : int, optional
        How many inputs the plain staircase x₀ + x₀x₁ + … + x₀⋯x_{k−1} has, and how many a step adds: 1 unless given.
    sets : sequence of sets of coordinates, optional
        The monomials, from which k and leap follow, instead of the plain staircase.
    coefficients : sequence of numbers, optional
        One for each set; all 1 unless given.
    noise : float
        Standard deviation of Gaussian noise added to labels.

    Examples
    --------
    >>> Staircase(n=10, k=6, leap=2).sets
    ((0, 1), (0, 1, 2, 3), (0, 1, 2, 3, 4, 5))
    >>> Staircase(n=10, sets=[[0, 1, 2], [1], [0, 3]]).leap  # x₁ first, then two new ones, then x₃
    2
    """

    name: ClassVar = "staircase"
    n: int
    k: int | Any = None
    leap: int | Any = None
    sets: Given = None
    coefficients: Given = None
    noise: float = 0.0

    def __post_init__(self) -> None:
        n, given = check_integer("n", self.n, 1), self.sets
        if given is None:
            k = check_integer("k", self.k, 1, n, f"choose k between 1 and n = {n}, or pass sets")
            given = [range(end) for end in range(k, 0, -check_integer("leap", self.leap or 1, 1, k))][::-1]
        members = [check_members(f"sets[{i}]", one) for i, one in enumerate(check_members("sets", given))]
        sets = tuple(tuple(sorted(check_support(f"sets[{i}]", one, n))) for i, one in enumerate(members))
        factors = check_members("coefficients", [1] * len(sets) if self.coefficients is None else self.coefficients)
        coefficients = tuple(check_number(f"coefficients[{i}]", factor) for i, factor in enumerate(factors))
        if not sets or len(set(sets)) < len(sets) or len(coefficients) != len(sets) or 0.0 in coefficients:
            rule = "must be one or more different sets, each with a coefficient other than 0"
            raise invalid("sets", rule, f"{sets} with {coefficients}", "leave out what is repeated or 0")
        for name, value in (("k", len(set().union(*sets))), ("leap", leap_of(sets))):
            if getattr(self, name) not in (None, value):
                raise invalid(name, f"must be {value}, as in the sets {sets}", getattr(self, name), "leave it out")
            assign(self, **{name: value})
        noise = check_number("noise", self.noise, 0.0, remedy="it is a standard deviation")
        assign(self, n=n, sets=sets, coefficients=coefficients, noise=noise)

    @property
    def support(self) -> tuple[int, ...]:
        """The inputs in some set, ascending."""
        return tuple(sorted(set().union(*self.sets)))

    def _values(self, X: SignArray) -> Float64Array:
        terms = (factor * parity(X, members) for factor, members in zip(self.coefficients, self.sets, strict=True))
        return np.asarray(sum(terms), dtype=np.float64)


def resolve_support(n: int, k: object, support: Given) -> tuple[int, ...]:
    """The sorted support that k, the support, or both ask for."""
    if support is None:
        return tuple(range(check_integer("k", k, 1, n, f"choose k between 1 and n = {n}, or pass a support")))
    members = tuple(sorted(check_support("support", check_members("support", support), n)))
    if not members:
        raise invalid("support", "must hold at least one coordinate", members, f"name some of range({n})")
    if k is not None and check_integer("k", k, 1, n, f"choose k between 1 and n = {n}") != len(members):
        rule = f"must be the size {len(members)} of the support {members}"
        raise invalid("k", rule, k, "leave k out or make them agree")
    return members


def leap_of(sets: tuple[tuple[int, ...], ...]) -> int:
    """The leap: the set of fewest new coordinates comes next, on which no order improves."""
    left, known, leap = {frozenset(members) for members in sets}, frozenset[int](), 0
    while left:
        chosen = min(left, key=lambda members: len(members - known))
        leap, known, left = max(leap, len(chosen - known)), known | chosen, left - {chosen}
    return leap

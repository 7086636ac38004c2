"""Sparse parities y = χ_S(x) = ∏_{i ∈ S} x_i under uniform inputs (pareto, section 2.1), and with a support that leaks.

The distribution D_A of parities, section 2: half of the inputs are uniform; in the other half the bits of the support A
are all equal, to +1 or −1 with probability 1/2 each, and the rest uniform. So E[x_i y] is 1/2 on the support and 0 off
it, which gradient descent sees in one step, while linear methods on few fixed features fail. Inputs are ±1 here. The
paper scales them to ±1/√n: divide X by √n for its step sizes and biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_support
from fewfire.problems._base import (
    Given,
    SignProblem,
    assign,
    check_flip_probability,
    check_members,
    parity,
    register_problem,
)

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import Float64Array, SignArray


@register_problem
@dataclass(frozen=True)
class Parity(SignProblem):
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
    n: int
    k: int | Any = None
    support: Given = None
    noise: float = 0.0

    def __post_init__(self) -> None:
        n = check_integer("n", self.n, 1)
        support = resolve_support(n, self.k, self.support)
        assign(self, n=n, k=len(support), support=support, noise=check_flip_probability(self.noise))

    @property
    def inputs(self) -> int:
        """The number of columns of X: n."""
        return self.n

    def _values(self, X: SignArray) -> SignArray:
        return parity(X, self.support)


@register_problem
@dataclass(frozen=True)
class CorrelatedParity(Parity):
    """The parity of k of n inputs, whose support bits are all equal in half of the examples.

    Parameters
    ----------
    n : int
        Number of inputs.
    k : odd int of at least 3
        Size of the support; may be left out when `support` is given, and must agree with it otherwise.
    support : sequence of k coordinates, optional
        Kept as a sorted tuple; range(k) unless given.
    noise : float in [0, 1/2]
        Probability that a label is flipped.

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
        n = check_integer("n", self.n, 3)
        support = resolve_support(n, self.k, self.support)
        if len(support) % 2 == 0:
            why = "an even number of equal bits has parity +1 whatever their sign, so no bit correlates with the label"
            raise invalid("k", "must be odd and at least 3", len(support), f"add or drop a coordinate: {why}")
        if len(support) == 1:
            why = "one bit is always equal to itself, so both halves are uniform"
            raise invalid("k", "must be odd and at least 3", 1, f"use Parity: {why}")
        super().__post_init__()

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

"""Sparse parities under uniform inputs (pareto, section 2.1): y = χ_S(x) = ∏_{i ∈ S} x_i."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

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
    from fewfire._types import SignArray


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

"""Parities from statistical queries, as slowly as Theorem 14 of sparse-activations says it must be.

A correlation y·χ_S(x) is 1 for the support and 0 for every other set, so the sets are tried one at a time:
2^n queries. "families" does better where the tolerance allows. A bent function β of g coordinates J (the product
of (−1)^(a·b) over pairs of bits) has all its 2^g coefficients equal to ±2^(−g/2): the query y·χ_A(x)·β(x_J) is
±2^(−g/2) for each of the 2^g supports that agree with A outside J, and 0 for all others. With 2^(−g/2) > 2τ such
an answer is told apart from 0, so about 2^n·(4τ)² queries find the part outside J, and a few more the rest.
That is the theorem's Ω(2^n τ²) up to a factor of 4 to 16.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from itertools import chain, combinations, islice
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from fewfire._random import Stream, as_stream
from fewfire._validate import check_choice, check_integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fewfire._types import AnyArray, SignArray
    from fewfire.learners.statistical_queries._oracle import Query, SQOracle

Strategy = Literal["exhaustive", "random", "families"]


@dataclass(frozen=True)
class QueriedParity:
    """What a learner of parities concluded.

    Parameters
    ----------
    support : tuple of int
        The set with the largest answer.
    certain : bool
        Whether an answer exceeded the oracle's resolution, which no other parity allows.
    queries : int
        How many were asked.
    """

    support: tuple[int, ...]
    certain: bool
    queries: int

    def predict(self, X: SignArray) -> SignArray:
        """The parity of each row of X, of shape (rows,)."""
        return character(X, self.support)


def character(X: SignArray, members: tuple[int, ...]) -> SignArray:
    """χ_S: the product of the columns in `members`, int8 of shape (rows,)."""
    return np.asarray(np.multiply.reduce(X[:, members], axis=1, dtype=np.int8))


def learn_parity(
    oracle: SQOracle,
    strategy: Strategy = "random",
    *,
    budget: int | None = None,
    max_size: int | None = None,
    seed: int | Stream = 0,
) -> QueriedParity:
    """Find the support of a parity by asking for correlations until an answer cannot come from 0.

    Parameters
    ----------
    oracle : SQOracle
    strategy : "exhaustive", "random" or "families"
        Sets by size, then lexicographically; all 2^n sets in random order; or many sets with one query.
    budget : int, optional
        Most queries to ask.
    max_size : int, optional
        For "exhaustive": the largest set tried.
    seed : int or Stream
        Of the random order (stream "strategy").

    Examples
    --------
    >>> from fewfire.learners.statistical_queries import SQOracle, learn_parity
    >>> from fewfire.problems import Parity
    >>> oracle = SQOracle(Parity(6, 2, support=[1, 3]), tolerance=0.1)
    >>> learn_parity(oracle).support
    (1, 3)
    """
    check_choice("strategy", strategy, get_args(Strategy))
    n = oracle.inputs
    limit = sys.maxsize if budget is None else check_integer("budget", budget, 0)
    if strategy == "families":
        return _by_families(oracle, limit)
    if strategy == "exhaustive":
        size = n if max_size is None else check_integer("max_size", max_size, 0, n)
        sets: Iterator[tuple[int, ...]] = chain.from_iterable(combinations(range(n), r) for r in range(size + 1))
    else:
        check_integer("the number of inputs", n, 1, 24, 'the order of all 2**n sets is drawn; use "exhaustive"')
        order = as_stream(seed, "strategy").permutation(2**n)
        sets = (tuple(j for j in range(n) if index >> j & 1) for index in order.tolist())
    best, asked = -math.inf, 0
    support: tuple[int, ...] = ()
    for members in islice(sets, limit):
        answer = oracle.query(_correlation(members))
        asked += 1
        if answer > best:
            best, support = answer, members
        if best > oracle.resolution:
            break
    return QueriedParity(support, best > oracle.resolution, asked)


def family_size(resolution: float, n: int) -> int:
    """g: the largest even number of coordinates, at most n, with 2^(−g/2) > 2·resolution; 0 if there is none."""
    g = 0
    while g + 2 <= n and 2.0 ** (-(g + 2) / 2) > 2 * resolution:
        g += 2
    return g


def _by_families(oracle: SQOracle, limit: int) -> QueriedParity:
    """First the part of the support outside J, then two coordinates of J after the other."""
    n, first = oracle.inputs, oracle.queries
    inside = tuple(range(n - family_size(oracle.resolution, n), n))
    known: tuple[int, ...] = ()
    unknown = tuple(range(n - len(inside)))
    while True:
        best, choice = -math.inf, known
        for index in range(2 ** len(unknown)):
            if oracle.queries - first >= limit:
                return QueriedParity(choice, False, oracle.queries - first)
            members = known + tuple(j for bit, j in enumerate(unknown) if index >> bit & 1)
            answer = oracle.query(_family(members, inside))
            magnitude = abs(answer) if inside else answer
            if magnitude > best:
                best, choice = magnitude, members
            if magnitude > oracle.resolution:
                break
        certain = best > oracle.resolution
        if not certain or not inside:
            return QueriedParity(choice, certain, oracle.queries - first)
        known, unknown, inside = choice, inside[:2], inside[2:]


def _correlation(members: tuple[int, ...]) -> Query:
    return lambda X, y: y * character(X, members)


def _family(members: tuple[int, ...], inside: tuple[int, ...]) -> Query:
    """y·χ_members(x)·β(x_inside), β the bent function that pairs neighbouring coordinates."""

    def phi(X: SignArray, y: AnyArray) -> AnyArray:
        values = y * character(X, members)
        for a, b in zip(inside[0::2], inside[1::2], strict=True):
            values = np.where((X[:, a] < 0) & (X[:, b] < 0), -values, values)
        return values

    return phi

"""Parities from statistical queries (sparse-activations, section 4): an oracle, and a learner that only asks it.

A query is a function φ of an example with values in [−1, 1]. The oracle never shows an example: it answers with any
number within the tolerance τ of E[φ(x, y)], x uniform on the cube.

Learning is as slow as Theorem 14 says it must be. A correlation y·χ_S(x) is 1 for the support and 0 for every other
set, so the sets are tried one at a time: 2^n queries. "families" does better where the tolerance allows. A bent
function β of g coordinates J (the product of (−1)^(a·b) over pairs of bits) has all its 2^g coefficients equal to
±2^(−g/2): the query y·χ_A(x)·β(x_J) is ±2^(−g/2) for each of the 2^g supports that agree with A outside J, and 0 for
all others. With 2^(−g/2) > 2τ such an answer cannot come from 0, so about 2^n·(4τ)² queries find the part outside J,
and a few more the rest. That is the theorem's Ω(2^n τ²) up to a factor of 4 to 16.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from fewfire._cube import cube
from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._types import AnyArray, SignArray
from fewfire._validate import check_choice, check_integer, check_number
from fewfire.problems import Parity

__all__ = ["SQOracle", "learn_parity"]

Query: TypeAlias = "Callable[[SignArray, AnyArray], AnyArray]"
"""φ: X of shape (rows, inputs) and y of shape (rows,) to values in [−1, 1] of shape (rows,)."""

Answers: TypeAlias = Literal["honest", "adversarial"]
"""Which of the admissible numbers the oracle answers with."""

MAX_EXACT = 16  # largest number of inputs: expectations are taken over the whole cube


class SQOracle:
    """Answers statistical queries about a parity, and counts them.

    Parameters
    ----------
    problem : fewfire.problems.Parity
        Of at most 16 inputs; its label noise counts.
    tolerance : float in [0, 1]
        τ: how far an answer may be off.
    answers : "honest" or "adversarial"
        The expectation itself; or the admissible number that gives least away: the one nearest to what the query would
        give if labels did not depend on inputs. For a correlation y·χ_S(x) the last is 0 unless τ < 1 and S is the
        support.

    Examples
    --------
    >>> from fewfire.papers.sparse_activations.statistical_queries import SQOracle
    >>> from fewfire.problems import Parity
    >>> oracle = SQOracle(Parity(8, 2, support=[1, 3]), tolerance=0.01)
    >>> round(oracle.query(lambda X, y: y * X[:, 1] * X[:, 3]))
    1
    """

    def __init__(self, problem: Parity, tolerance: float, answers: Answers = "honest") -> None:
        self.tolerance = check_number("tolerance", tolerance, 0.0, 1.0)
        self.answers = check_choice("answers", answers, get_args(Answers))
        self.inputs = check_integer("the number of inputs", problem.inputs, 1, MAX_EXACT)
        self._X, self._noise = cube(self.inputs), problem.noise
        self._y = problem.target(self._X)
        self.queries = 0

    @property
    def resolution(self) -> float:
        """An answer above this cannot come from an expectation of 0: the tolerance, and rounding."""
        return self.tolerance + 1e-9

    def query(self, phi: Query) -> float:
        """One answer within `tolerance` of E[φ(x, y)]; an invalid query is refused and not counted."""
        mean = self._mean(phi, self._y)
        if self._noise:
            mean += self._noise * (self._mean(phi, -self._y) - mean)
        if self.answers == "adversarial":
            # E[φ(x, y')] with y' drawn like the labels but independently of x.
            bias = (1 - 2 * self._noise) * float(self._y.mean())
            shares = {label: (1 + label * bias) / 2 for label in (-1, 1)}
            hidden = sum(part * self._mean(phi, np.full_like(self._y, label)) for label, part in shares.items())
            mean = min(max(hidden, mean - self.tolerance), mean + self.tolerance)
        self.queries += 1
        return mean

    def _mean(self, phi: Query, y: SignArray) -> float:
        values = np.asarray(phi(self._X, y))
        if values.shape != y.shape or values.dtype.kind not in "biuf":
            got = f"shape {values.shape}, dtype {values.dtype}"
            raise invalid("query", f"must give {len(y)} numbers for {len(y)} examples", got, "return one per row")
        largest = float(np.abs(values).max())
        if not largest <= 1 + 1e-9:
            raise invalid("query", "must have values in [−1, 1]", largest, "divide it by its largest absolute value")
        return float(values.mean())


Strategy: TypeAlias = Literal["random", "families"]


class QueriedParity(NamedTuple):
    """The set with the largest answer, whether no other parity allows that answer, and how many queries were asked."""

    support: tuple[int, ...]
    certain: bool
    queries: int


def learn_parity(oracle: SQOracle, strategy: Strategy = "random", *, seed: int | Stream = 0) -> QueriedParity:
    """Find the support of a parity by asking for correlations until an answer cannot come from 0.

    Parameters
    ----------
    oracle : SQOracle
    strategy : "random" or "families"
        All 2^n sets in random order; or many sets with one query.
    seed : int or Stream
        Of the random order (stream "strategy").

    Examples
    --------
    >>> from fewfire.papers.sparse_activations.statistical_queries import SQOracle, learn_parity
    >>> from fewfire.problems import Parity
    >>> oracle = SQOracle(Parity(6, 2, support=[1, 3]), tolerance=0.1)
    >>> learn_parity(oracle).support
    (1, 3)
    """
    check_choice("strategy", strategy, get_args(Strategy))
    n, first = oracle.inputs, oracle.queries
    shuffled = as_stream(seed, "strategy").permutation(2**n).tolist() if strategy == "random" else None
    # The part of the support outside J comes first, then two coordinates of J after the other.
    inside = tuple(range(n - (0 if shuffled else family_size(oracle.resolution, n)), n))
    known: tuple[int, ...] = ()
    unknown = tuple(range(n - len(inside)))
    while True:
        best, choice = -math.inf, known
        for index in shuffled or range(2 ** len(unknown)):
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


def family_size(resolution: float, n: int) -> int:
    """g: the largest even number of coordinates, at most n, with 2^(−g/2) > 2·resolution; 0 if there is none."""
    return max(g for g in range(0, n + 1, 2) if g == 0 or 2.0 ** (-g / 2) > 2 * resolution)


def _family(members: tuple[int, ...], inside: tuple[int, ...]) -> Query:
    """y·χ_members(x)·β(x_inside), β the bent function that pairs neighbouring coordinates."""

    def phi(X: SignArray, y: AnyArray) -> AnyArray:
        values = y * X[:, members].prod(axis=1, dtype=np.int8)
        for a, b in zip(inside[0::2], inside[1::2], strict=True):
            values = np.where((X[:, a] < 0) & (X[:, b] < 0), -values, values)
        return np.asarray(values)

    return phi

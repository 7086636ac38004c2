"""A statistical query oracle (Kearns; sparse-activations, section 4).

A query is a function φ of an example with values in [−1, 1]. The oracle never shows an example: it answers with any
number within the tolerance τ of E[φ(x, y)]. Which number is its choice, and the choice is the argument `answers`. The
expectation is taken over the whole cube, or over a large sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

import numpy as np

from fewfire._cube import cube
from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._validate import check_choice, check_integer, check_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire._types import AnyArray, Float64Array, SignArray


Query: TypeAlias = "Callable[[SignArray, AnyArray], AnyArray]"
"""φ: X of shape (rows, inputs) and y of shape (rows,) to values in [−1, 1] of shape (rows,)."""

Answers: TypeAlias = Literal["honest", "random", "adversarial"]
"""Which of the admissible numbers the oracle answers with."""


MAX_EXACT = 16
"""Largest number of inputs for which expectations are taken over the whole cube."""

FEW_LABELS = 16
"""With at most this many different labels, the labels independent of the inputs are averaged over exactly."""


class QueryTarget(Protocol):
    """What the oracle needs of a problem; every problem of ±1 inputs in `fewfire.problems` has it."""

    @property
    def inputs(self) -> int:
        """The number of columns of X."""

    def sample(self, m: int, seed: int | Stream = 0, start: int = 0, /) -> tuple[AnyArray, AnyArray]:
        """X of shape (m, inputs) and y of shape (m,)."""

    def target(self, X: SignArray, /) -> AnyArray:
        """The noiseless labels of the rows of X."""


class SQOracle:
    """Answers statistical queries about a problem, and counts them.

    Parameters
    ----------
    problem : object with `inputs`, `sample` and `target`, such as `fewfire.problems.Parity`
    tolerance : float in [0, 1]
        τ: how far an answer may be off.
    answers : "honest", "random" or "adversarial"
        The expectation itself; a uniform number within τ of it; or the admissible number that tells least: the one
        nearest to what the query would give if labels had nothing to do with inputs. For a correlation y·χ_S(x) with a
        parity the last is 0 unless τ < 1 and S is the support.
    seed : int or Stream
        Of random answers and of drawn examples (stream "queries").
    distribution : "uniform" or "drawn"
        Uniform inputs of at most 16 coordinates are averaged over exactly. Otherwise, and with "drawn" always, the
        expectation is the mean over `examples` of them, which is the distribution the oracle then stands for.
    examples : int
        How many are drawn when the expectation is not exact.

    Examples
    --------
    >>> from fewfire.learners.statistical_queries import SQOracle
    >>> from fewfire.problems import Parity
    >>> oracle = SQOracle(Parity(8, 2, support=[1, 3]), tolerance=0.01)
    >>> round(oracle.query(lambda X, y: y * X[:, 1] * X[:, 3]))
    1
    """

    def __init__(
        self,
        problem: QueryTarget,
        tolerance: float,
        answers: Answers = "honest",
        seed: int | Stream = 0,
        *,
        distribution: Literal["uniform", "drawn"] = "uniform",
        examples: int = 2**17,
    ) -> None:
        self.tolerance = check_number("tolerance", tolerance, 0.0, 1.0)
        self.answers = check_choice("answers", answers, get_args(Answers))
        examples = check_integer("examples", examples, 1)
        self._stream = as_stream(seed, "queries")
        exact = check_choice("distribution", distribution, ("uniform", "drawn")) == "uniform"
        cube = whole_cube(problem, self._stream) if exact and problem.inputs <= MAX_EXACT else None
        self._population: Population = drawn(problem, examples, self._stream) if cube is None else cube
        self.inputs = int(problem.inputs)
        self.queries = 0

    @property
    def exact(self) -> bool:
        """Whether expectations are taken over the whole cube."""
        return self._population.examples is None

    @property
    def expectation_error(self) -> float:
        """How far its own expectation is off, with probability 1 − 10⁻⁶ per query (Hoeffding); 0 when exact."""
        examples = self._population.examples
        return 0.0 if examples is None else math.sqrt(2 * math.log(2e6) / examples)

    @property
    def resolution(self) -> float:
        """An answer above this cannot come from an expectation of 0: tolerance, own error, and rounding."""
        return self.tolerance + self.expectation_error + 1e-9

    def query(self, phi: Query) -> float:
        """One answer within `tolerance` of E[φ(x, y)]; an invalid query is refused and not counted."""
        values = self._values(phi, self._population.y)
        mean = float(values @ self._population.weights)
        answer = self._answer(phi, mean)
        self.queries += 1
        return answer

    def _answer(self, phi: Query, mean: float) -> float:
        if self.answers == "honest":
            return mean
        if self.answers == "random":
            shift = float(self._stream.child(f"answer {self.queries}").uniform(1, -1.0, 1.0)[0])
            return mean + self.tolerance * shift
        return min(max(self._mean_without_labels(phi), mean - self.tolerance), mean + self.tolerance)

    def _mean_without_labels(self, phi: Query) -> float:
        """E[φ(x, y')] with y' drawn like the labels but independently of x."""
        return float(
            sum(
                share * (self._values(phi, labels) @ self._population.weights)
                for share, labels in self._population.independent
            )
        )

    def _values(self, phi: Query, y: AnyArray) -> Float64Array:
        values = np.asarray(phi(self._population.X, y))
        if values.shape != y.shape or values.dtype.kind not in "biuf":
            got = f"shape {values.shape}, dtype {values.dtype}"
            raise invalid("query", f"must give {len(y)} numbers for {len(y)} examples", got, "return one per row")
        largest = float(np.abs(values).max())
        if not largest <= 1 + 1e-9:
            raise invalid("query", "must have values in [−1, 1]", largest, "divide it by its largest absolute value")
        return values.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Population:
    """Weighted examples.

    Parameters
    ----------
    X : int8 array of shape (rows, inputs)
    y : array of shape (rows,)
    weights : float64 array of shape (rows,), of sum 1
    examples : int or None
        How many examples were drawn; None for the whole cube.
    independent : list of (share, labels)
        Labels of shape (rows,) that do not depend on X, and the probability of each such labelling.
    """

    X: SignArray
    y: AnyArray
    weights: Float64Array
    examples: int | None
    independent: list[tuple[float, AnyArray]]


def whole_cube(problem: Any, stream: Stream) -> Population | None:
    """Every input of the cube with its labels; None where the label noise leaves no finite list of examples."""
    _refuse_correlated(problem, stream)
    X = cube(problem.inputs)
    y = np.asarray(problem.target(X))
    weights = np.full(len(X), 1.0 / len(X))
    noise = float(getattr(problem, "noise", 0.0))
    if noise:
        if np.any(np.abs(y) != 1):
            return None
        X, y = np.concatenate([X, X]), np.concatenate([y, -y])
        weights = np.concatenate([(1 - noise) * weights, noise * weights])
    return Population(X, y, weights, None, _independent(y, weights, stream))


def drawn(problem: Any, examples: int, stream: Stream) -> Population:
    """So many examples of the problem, equally weighted."""
    X, y = problem.sample(examples, stream.child("examples"))
    weights = np.full(examples, 1.0 / examples)
    return Population(X, np.asarray(y), weights, examples, _independent(np.asarray(y), weights, stream))


def _independent(y: AnyArray, weights: Float64Array, stream: Stream) -> list[tuple[float, AnyArray]]:
    labels = np.unique(y)
    if len(labels) <= FEW_LABELS:
        return [(float(weights[y == label].sum()), np.full_like(y, label)) for label in labels]
    return [(1.0, y[stream.child("shuffle").permutation(len(y))])]


def _refuse_correlated(problem: Any, stream: Stream) -> None:
    """A sample of the problem must look uniform: means and correlations of coordinates within 6 standard errors."""
    rows = 4096
    X = problem.sample(rows, stream.child("check"))[0].astype(np.float64)
    moments = X.T @ X / rows
    np.fill_diagonal(moments, X.mean(axis=0))
    largest = float(np.abs(moments).max())
    if largest > 6 / rows**0.5:
        got = f"a mean or correlation of {largest:.2f} between coordinates"
        raise invalid("problem", "must have uniform inputs here", got, 'pass distribution="drawn"')

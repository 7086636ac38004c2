"""Trade-offs of pareto's Theorems 4 and 5: what a sparse start needs in width and in examples, run by run.

With f = 0 at the start the step treats every neuron by itself. So a network of width r is the first r neurons of a
wider one, a sample of m examples the first m of a longer one, and one pass gives the r, or the m, from which the run
succeeds; their median is where half of the runs succeed. Examples are tried on a grid, each √2 times the one before;
widths are exact, since between two neurons that come to fire nothing changes.

The second layer is fitted on the first 1000 rows of the sample at most.

Over-sparse (pareto, Theorem 4/16): the whole network is fitted, knowing nothing of the support. A run succeeds at test
error 10%. Under-sparse (Theorem 5/21): by the theorem a subnetwork exists, so only the neurons that start inside
the support are looked at, and a run succeeds at correlation ½ with the parity, test error 25%.

`fit_exponents` fits powers of n and s to the runs: least squares on logarithms, each run a point, with Student's
intervals. A width that luck decides is about exponentially distributed, so its logarithm has the same spread
everywhere; numbers of examples spread far less. Both make for an ordinary regression.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite, log, log1p, nan, sqrt

import numpy as np
from scipy import stats

from fewfire._random import Stream
from fewfire._types import Float64Array, IdArray
from fewfire._validate import check_integer
from fewfire.networks import TwoLayer, init
from fewfire.papers._second_layer import neurons, second_layer_error
from fewfire.papers.pareto import good_neuron_probability
from fewfire.papers.pareto.algorithms import StartStep, StepMethod, over_sparse_step, under_sparse_step
from fewfire.problems import Parity

__all__ = [
    "FittedPower",
    "NeededRun",
    "fit_exponents",
    "over_sparse_samples",
    "over_sparse_width",
    "under_sparse_samples",
    "under_sparse_width",
]

OVER_SPARSE_ERROR = 0.1
UNDER_SPARSE_ERROR = 0.25

GRID = sqrt(2.0)  # from one number of examples to the next
ROWS = 1000  # rows that the second layer is fitted on, of the same sample, and rows that it is tested on
FEWEST = 32.0  # examples that every run has: both labels occur
LONGEST = 64.0  # where a search for examples gives up, in units of log(width·n)/C², C the gradient on the support
MOST_GOOD = 16  # neurons inside the support, for each bias, after which a run gives up
PARTS = 40  # pieces, of two neurons to be expected around the support each, after which a run gives up
BLOCK, CACHED = 1 << 14, 1 << 18
"""Rows at a time, whose sums of signs are exact in float32; fewer where their scores would not stay in the cache."""


@dataclass(frozen=True)
class NeededRun:
    """The width or the examples (`value`) from which one run succeeded; infinite if it never did.

    `other` is what it had of the other resource: examples where width is looked for, width where examples are.
    """

    n: int
    k: int
    s: int
    value: float
    other: int


def over_sparse_samples(
    n: int, k: int, s: int, seed: int, *, good: float = 6.0, method: StepMethod = "practical"
) -> NeededRun:
    """The examples that one over-sparse run needs, at a width in proportion to the theorem's (n/s)^k.

    The start is good, as in the proof: every bias has a neuron around the support. Others are drawn again. `good` is
    how many such neurons are to be expected for each bias; the step is that of `over_sparse_step`.
    """
    step = over_sparse_step(k, s, method)
    pairs = ceil(good * (k // 2) / good_neuron_probability(n, k, s))
    draw = init.over_sparse(k, s, strict=False)
    starts = (draw(n, 2 * pairs, Stream(seed, f"init/{trial}" if trial else "init")) for trial in range(100))
    # Every bias has a neuron whose ones contain the support, the first k coordinates.
    good_biases = ((start, start.bias[(start.hidden[:, :k] == 1).all(axis=1)]) for start in starts)
    start = next(start for start, biases in good_biases if len(np.unique(biases)) == k // 2)
    return NeededRun(n, k, s, _samples(start, step, Parity(n, k), seed, OVER_SPARSE_ERROR), start.width)


def over_sparse_width(n: int, k: int, s: int, seed: int, *, ample: float = 3.0) -> NeededRun:
    """The width that one over-sparse run needs, given examples; the practical step.

    `ample` examples, in units of log(n/p)/C² for p the probability of a good neuron, leave luck alone to decide.
    """
    step = over_sparse_step(k, s)
    start = init.over_sparse(k, s, strict=False)
    pairs = ceil(2 / good_neuron_probability(n, k, s))
    networks = (
        (start(n, 2 * pairs, Stream(seed, f"init/{part}")), np.arange(part * pairs, (part + 1) * pairs) + 1)
        for part in range(PARTS)
    )
    examples = _examples(step, n, k, s, ample)
    return NeededRun(n, k, s, _width(networks, step, Parity(n, k), seed, OVER_SPARSE_ERROR, examples), examples)


def under_sparse_samples(n: int, k: int, s: int, seed: int, *, good: int = 6) -> NeededRun:
    """The examples from which the neurons that start inside the support have correlation ½ with the parity.

    Luck is granted: for each of the k biases `good` neurons start there.
    """
    epsilon = 1 / (2 * (n - s))
    step = under_sparse_step(n, k, s, epsilon)
    start = _inside(n, k, s, epsilon, check_integer("good", good, 1) * k, Stream(seed, "init"))
    return NeededRun(n, k, s, _samples(start, step, Parity(n, k), seed, UNDER_SPARSE_ERROR), start.width)


def under_sparse_width(n: int, k: int, s: int, seed: int, *, ample: float = 3.0) -> NeededRun:
    """The width from which neurons inside the support have correlation ½ with the parity, given `ample` examples."""
    epsilon, probability = 1 / (2 * (n - s)), good_neuron_probability(n, k, s)
    start = _inside(n, k, s, epsilon, MOST_GOOD * k, Stream(seed, "init"))
    # How many pairs are drawn up to one inside the support is geometric; those in between play no part.
    luck = Stream(seed, "luck").uniform(MOST_GOOD * k)
    drawn = np.cumsum(np.maximum(1, np.ceil(np.log(luck) / log1p(-probability)))).astype(np.int64)
    step = under_sparse_step(n, k, s, epsilon)
    examples = _examples(step, n, k, s, ample)
    width = _width([(start, drawn)], step, Parity(n, k), seed, UNDER_SPARSE_ERROR, examples)
    return NeededRun(n, k, s, width, examples)


def _examples(step: StartStep, n: int, k: int, s: int, ample: float) -> int:
    return ceil(ample * log(2 * n / good_neuron_probability(n, k, s)) / step.signal**2)


def _inside(n: int, k: int, s: int, epsilon: float, pairs: int, stream: Stream) -> TwoLayer:
    """Pairs of an under-sparse start of s ≤ k ones, given that these lie in the support, the first k coordinates."""
    start = init.under_sparse(k, s, epsilon, strict=False)(n, 2 * pairs, stream)
    ones = stream.child("inside").subsets(pairs, k, s)
    hidden = np.full((pairs, n), epsilon, dtype=np.float32)
    np.put_along_axis(hidden, ones, np.float32(1.0), axis=1)
    return start.with_parameters(hidden=np.concatenate([hidden, hidden]))


def _samples(start: TwoLayer, step: StartStep, problem: Parity, seed: int, error: float) -> float:
    """The examples from which a run succeeds."""
    scale, stream = log(start.hidden.size) / step.signal**2, Stream(seed, "data")
    half, test = _first_half(start), problem.sample(ROWS, Stream(seed, "test"))
    rows, labels = problem.sample(ROWS, stream)
    sums, seen = np.zeros(half.hidden.shape), 0

    def enough(sums: Float64Array, seen: int) -> bool:
        after = step.apply(start, np.concatenate([sums, sums]) / seen)
        known = min(seen, ROWS)
        return second_layer_error(after, step.moved(start, after), (rows[:known], labels[:known]), test) <= error

    numbers = [max(scale / 16, FEWEST)]
    while numbers[-1] * GRID <= LONGEST * scale:
        numbers.append(numbers[-1] * GRID)
    # A fit costs more than its sums: every other number is tried, and the one before the first that is enough.
    before: tuple[Float64Array, int] | None = None
    for index, number in enumerate(map(round, numbers)):
        sums, seen = sums + _sums(half, problem, stream, seen, number), number
        if before is None and index + 1 < len(numbers):
            before = sums, seen
        elif enough(sums, seen):
            return before[1] if before is not None and enough(*before) else seen
        else:
            before = None
    return inf


def _width(
    networks: Iterable[tuple[TwoLayer, IdArray]],
    step: StartStep,
    problem: Parity,
    seed: int,
    error: float,
    examples: int,
) -> float:
    """The width of a run, from networks with, for each of their pairs of neurons, how many had been drawn up to it."""
    stream = Stream(seed, "data")
    train, test = problem.sample(min(ROWS, examples), stream), problem.sample(ROWS, Stream(seed, "test"))
    kept: list[TwoLayer] = []
    for network, drawn in networks:
        half = _first_half(network)
        correlations = _sums(half, problem, stream, 0, examples) / examples
        after = step.apply(network, np.concatenate([correlations, correlations]))
        # A neuron that never fires changes nothing, whatever its output weight.
        fires = (after.features(train[0]) > 0).any(axis=0) & step.moved(network, after)
        for neuron in np.flatnonzero(fires[: half.width] | fires[half.width :]):
            kept.append(neurons(after, np.array([neuron, neuron + half.width])))
            names = ("hidden", "bias", "output")
            hidden, bias, output = (np.concatenate([getattr(one, name) for one in kept]) for name in names)
            together = after.with_parameters(hidden, bias, output)
            if second_layer_error(together, np.ones(together.width, dtype=bool), train, test) <= error:
                return 2.0 * float(drawn[neuron])
    return inf


def _sums(half: TwoLayer, problem: Parity, stream: Stream, first: int, last: int) -> Float64Array:
    """Σ y·1{fires}·x over examples first … last − 1: shape (neurons, n)."""
    total = np.zeros(half.hidden.shape)
    weights, bias = half.hidden.T.astype(np.float32), half.bias.astype(np.float32)
    block = min(BLOCK, max(256, CACHED // sum(half.hidden.shape)))
    for begin in range(first, last, block):
        X, y = problem.sample(min(block, last - begin), stream, begin)
        signs = X.astype(np.float32)
        scores = signs @ weights
        scores += bias
        fires = np.greater(scores, 0.0, out=scores, casting="unsafe")
        fewer = min(fires, signs, key=lambda table: table.shape[1])
        fewer *= y[:, None]
        total += fires.T @ signs
    return total


def _first_half(network: TwoLayer) -> TwoLayer:
    """The neurons without their mirrored copies, whose gradients are the same."""
    return neurons(network, np.arange(network.width // 2))


@dataclass(frozen=True)
class FittedPower:
    """The power with which what is needed grows in one quantity, its 95% interval and its standard error."""

    value: float
    low: float
    high: float
    error: float

    def farthest(self, claimed: float) -> float:
        """How far from the power that is claimed the interval reaches; NaN if a run never succeeded."""
        return nan if not isfinite(self.value) else max(self.high - claimed, claimed - self.low)

    def power(self, effect: float, allowed: float) -> float:
        """The probability that an exponent off by `effect` has an interval that reaches beyond ± `allowed`.

        The claim is that the whole interval lies within, so a wrong one passes only if both ends do.
        """
        half = self.high - self.value
        if self.error == 0.0 or not isfinite(half):
            return float(isfinite(half) and effect > allowed)
        ends = np.array([half - allowed, allowed - half])
        return float(1 - max(0.0, np.diff(stats.norm.cdf((ends - effect) / self.error)).item()))

    def power_above(self, effect: float) -> float:
        """The probability that an exponent which exceeds a bound by `effect` > 0 has its upper end above the bound."""
        half = self.high - self.value
        if self.error == 0.0 or not isfinite(half):
            return float(isfinite(half))
        return float(stats.norm.sf((-half - effect) / self.error))


def fit_exponents(needed: Sequence[float], quantities: Mapping[str, Sequence[float]]) -> dict[str, FittedPower]:
    """The power of each quantity, the others as they are, in what each run needed.

    A run that never succeeds (infinite) leaves every power undefined.
    """
    values = np.log(np.asarray(needed, dtype=np.float64))
    table = np.column_stack([np.ones(len(values)), *(np.log(np.asarray(column)) for column in quantities.values())])
    freedom = len(values) - table.shape[1]
    if not np.isfinite(values).all() or freedom < 1 or np.linalg.matrix_rank(table) < table.shape[1]:
        return dict.fromkeys(quantities, FittedPower(nan, -inf, inf, inf))
    powers = np.linalg.lstsq(table, values, rcond=None)[0]
    residuals = values - table @ powers
    errors = np.sqrt(np.diag(np.linalg.inv(table.T @ table)) * float(residuals @ residuals) / freedom)
    half = float(stats.t.ppf(0.975, freedom)) * errors
    return {
        name: FittedPower(float(value), float(value - ends), float(value + ends), float(error))
        for name, value, ends, error in zip(quantities, powers[1:], half[1:], errors[1:], strict=True)
    }

"""The Fourier picture of a function with too many inputs for the whole cube, from random points.

The same quantities as `Spectrum` (sparse-activations, section 2.1), each the mean of independent terms: a uniform
point x, and for the sensitivities a second point near it. Every answer is an interval, mean ± t · s/√m, with the
Student quantile t and the standard deviation s of the m terms. It needs no bound on f, only a finite variance, and
its coverage is the stated one as m grows; terms that are rarely non-zero (an AND of many inputs) need m well above
one over their probability. Intervals of several coordinates hold one by one, not all at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewfire._random import Stream, as_stream
from fewfire._types import Float64Array, SignArray
from fewfire._validate import check_integer, check_number, check_support
from fewfire.fourier._functions import Function, as_function

BLOCK_VALUES = 1 << 21
"""Signs drawn at a time."""


class Interval(NamedTuple):
    """An estimate and the ends of its confidence interval."""

    value: float
    low: float
    high: float

    def __contains__(self, number: object) -> bool:
        """Whether a number lies between the ends."""
        return isinstance(number, int | float | np.integer | np.floating) and self.low <= float(number) <= self.high


@dataclass(frozen=True)
class SampledSpectrum:
    """Estimates of Fourier quantities from `samples` random points each; nothing is evaluated before it is asked for.

    Asking twice gives the same answer: the points are fixed by the stream.
    """

    function: Function
    n: int
    samples: int
    stream: Stream
    confidence: float

    def norm_squared(self) -> Interval:
        """‖f‖² = E f(x)²; `samples` evaluations."""
        return self._interval(lambda points, _: self.function(points) ** 2, lowest=0.0)

    def coefficient(self, members: Sequence[int]) -> Interval:
        """f̂(S) = E f(x) χ_S(x); `samples` evaluations."""
        columns = list(check_support("members", members, self.n))
        return self._interval(lambda points, _: self.function(points) * points[:, columns].prod(axis=1))

    def average_sensitivity(self) -> Interval:
        """AS(f), from one random coordinate a point: n · ¼(f(x) − f(x^⊕i))²; 2 · `samples` evaluations."""

        def terms(points: SignArray, start: int) -> Float64Array:
            chosen = self.stream.child("coordinate").integers(self.n, len(points), start)
            return self.n * self._quarter_change(points, _flipped(points, chosen))

        return self._interval(terms, lowest=0.0)

    def influences(self) -> list[Interval]:
        """The influence of every coordinate; (n + 1) · `samples` evaluations."""
        sums, squares = np.zeros(self.n), np.zeros(self.n)
        for points, _ in self._blocks():
            here = self.function(points)
            for coordinate in range(self.n):
                change = 0.25 * (here - self.function(_flipped(points, coordinate))) ** 2
                sums[coordinate] += change.sum()
                squares[coordinate] += change @ change
        means = sums / self.samples
        deviations = np.sqrt(np.maximum(squares - sums * means, 0.0) / (self.samples - 1))
        return [self._around(float(mean), float(off), 0.0) for mean, off in zip(means, deviations, strict=True)]

    def noise_sensitivity(self, rho: float) -> Interval:
        """NS_ρ(f), −1 ≤ ρ ≤ 1; 2 · `samples` evaluations."""
        rho = check_number("rho", rho, -1.0, 1.0)
        threshold = round((1.0 - rho) / 2.0 * 2.0**32)  # a coordinate flips when its 32-bit word is below it

        def terms(points: SignArray, start: int) -> Float64Array:
            words = self.stream.child("noise").words(points.size, start * self.n).reshape(points.shape)
            near = np.where(words.astype(np.uint64) < threshold, -points, points).astype(np.int8, copy=False)
            return self._quarter_change(points, near)

        return self._interval(terms, lowest=0.0)

    def tail(self, degree: int, rho: float | None = None) -> Interval:
        """An upper bound on Σ_{|S| > degree} f̂(S)², from the noise sensitivity.

        sparse-activations, Claim 2.1, with d + 1 for d: the tail is at most 2 NS_ρ(f) / (1 − ρ^(degree + 1)), ρ ≥ 0.
        `value` is that bound at the estimated sensitivity and `high` at its upper end; `low` is 0.

        Parameters
        ----------
        degree : int
        rho : float in [0, 1), optional
            Any choice gives a bound; 1 − 1/(degree + 1) unless given.
        """
        degree = check_integer("degree", degree, 0, self.n)
        default = 1.0 - 1.0 / (degree + 1)
        rho = default if rho is None else check_number("rho", rho, 0.0, 1.0, open_high=True)
        if degree == self.n:
            return Interval(0.0, 0.0, 0.0)
        sensitivity = self.noise_sensitivity(rho)
        factor = 2.0 / (1.0 - rho ** (degree + 1))
        return Interval(factor * sensitivity.value, 0.0, factor * sensitivity.high)

    def _quarter_change(self, points: SignArray, others: SignArray) -> Float64Array:
        return 0.25 * (self.function(points) - self.function(others)) ** 2

    def _blocks(self) -> Iterator[tuple[SignArray, int]]:
        rows = max(1, BLOCK_VALUES // self.n)
        for start in range(0, self.samples, rows):
            count = min(rows, self.samples - start)
            yield self.stream.child("points").sign_rows(count, self.n, start), start

    def _interval(self, terms: Callable[[SignArray, int], Float64Array], lowest: float = -math.inf) -> Interval:
        values = np.concatenate([terms(points, start) for points, start in self._blocks()])
        return self._around(float(values.mean()), float(values.std(ddof=1)), lowest)

    def _around(self, mean: float, deviation: float, lowest: float) -> Interval:
        from scipy.special import stdtrit  # half of this package's import time, and only used here

        quantile = float(stdtrit(self.samples - 1, 0.5 + self.confidence / 2.0))
        reach = quantile * deviation / math.sqrt(self.samples)
        return Interval(mean, max(lowest, mean - reach), mean + reach)


def sampled(
    f: object, n: int | None = None, samples: int = 10_000, seed: int | Stream = 0, confidence: float = 0.95
) -> SampledSpectrum:
    """Fourier quantities of a function by sampling, for n beyond the reach of `spectrum`.

    Parameters
    ----------
    f : callable, network or problem
        As for `spectrum`.
    n : int, optional
        Number of inputs; needed with a plain callable.
    samples : int
        Random points behind each quantity, at least 2.
    seed : int or Stream
    confidence : float in (0, 1)
        Of each interval.

    Returns
    -------
    SampledSpectrum

    Examples
    --------
    >>> import fewfire as ff
    >>> parity = ff.problems.Parity(100, 5)
    >>> 0.0 in ff.fourier.sampled(parity).coefficient([1, 2])  # whether the 95% interval holds it
    True
    >>> ff.fourier.sampled(parity).coefficient([0, 1, 2, 3, 4]).value
    1.0
    """
    evaluate, inputs = as_function(f, n)
    samples = check_integer("samples", samples, 2, remedy="an interval needs two points at least")
    confidence = check_number("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)
    return SampledSpectrum(evaluate, inputs, samples, as_stream(seed, "spectrum"), confidence)


def _flipped(points: SignArray, coordinate: int | np.ndarray) -> SignArray:
    """A copy with one coordinate flipped, the same for all rows or one for each."""
    others = points.copy()
    rows = slice(None) if isinstance(coordinate, int) else np.arange(len(points))
    others[rows, coordinate] *= -1
    return others

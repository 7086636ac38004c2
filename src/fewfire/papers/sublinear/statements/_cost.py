"""Cost of one iteration of adversarial training (sublinear, Corollary 6.2 and Lemma 6.3); a dense one is m·n·d.

Corollary 6.2 hides constants that depend on d; they are 1 here, so its figures are shapes. The paper's own term for the
forward and backward pass counts Q₀ once where each of the n examples has its own: n·Q₀ stands here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fewfire._validate import check_integer, check_number
from fewfire.papers._numbers import power


@dataclass(frozen=True)
class ReportingTime:
    """Time of a half-space reporting structure, up to constants that depend on d: build, one query, one update."""

    build: float
    query: float
    update: float


@dataclass(frozen=True)
class IterationCost:
    """Multiply-adds of one iteration, and `dense`, the same work with every neuron.

    `query` finds the active neurons of every example, `forward` and `backward` are on these alone, `update` moves the
    touched weights in the structure, `attack` is the adversary's own work, which Lemma 6.3 leaves out.
    """

    query: float
    forward: float
    backward: float
    update: float
    attack: float
    dense: float

    @property
    def total(self) -> float:
        """All terms but the dense one."""
        return self.query + self.forward + self.backward + self.update + self.attack

    @property
    def speedup(self) -> float:
        """dense/total."""
        return self.dense / self.total


def reporting_small(points: int, d: int, reported: float) -> ReportingTime:
    """Corollary 6.2, part 1: build n log n, query n^(1 − 1/⌊d/2⌋) + k, update log² n, for d of at least 2.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> time = sublinear.reporting_small(points=10_000, d=4, reported=10.0)
    >>> time.query
    110.0
    """
    points, d, reported = _check(points, d, reported)
    log = math.log2(max(points, 2))
    return ReportingTime(points * log, power(points, 1 - 1 / (d // 2)) + reported, log**2)


def reporting_fast(points: int, d: int, reported: float, epsilon: float = 0.1) -> ReportingTime:
    """Corollary 6.2, part 2: build n^(⌊d/2⌋ + ε), query log n + k, update n^(⌊d/2⌋ − 1 + ε), for d of at least 2.

    The update is printed as n⌊d/2⌋ − 1; n updates have to cost what the structure costs to build.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> round(sublinear.reporting_fast(10_000, d=4, reported=100).query, 1)
    113.3
    """
    points, d, reported = _check(points, d, reported)
    epsilon = check_number("epsilon", epsilon, 0.0, open_low=True)
    build = power(points, d // 2 + epsilon)
    return ReportingTime(build, math.log2(max(points, 2)) + reported, power(points, d // 2 - 1 + epsilon))


def iteration_cost(width: int, n: int, d: int, active: float, attack_steps: int = 0) -> IterationCost:
    """Lemma 6.3 in multiply-adds, with part 1 of Corollary 6.2 as the structure.

    Parameters
    ----------
    width, n, d : int
        m neurons, n examples, d inputs.
    active : float
        Neurons active on one example on average, at most the width: `expected_active`, `reachable_active`, Q₀, or
        what was measured.
    attack_steps : int
        Gradient steps of the adversary for each example, each a query, a forward and a backward pass.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> cost = sublinear.iteration_cost(100_000, n=256, d=64, active=600)
    >>> cost.forward + cost.backward < cost.dense / 100
    True
    """
    width, n, d = check_integer("width", width, 1), check_integer("n", n, 1), check_integer("d", d, 2)
    active = check_number("active", active, 0.0, width)
    steps = check_integer("attack_steps", attack_steps, 0)
    structure = reporting_small(width, d, active)
    query, forward, backward = n * d * structure.query, n * active * (d + 1), n * active * d
    touched = min(float(width), n * active)
    update = touched * (d + 2 * reporting_small(2 * width, d, 0).update)  # one removal and one insertion each
    dense = n * width * (2 * d + 1) * (1 + steps) + width * d
    return IterationCost(query, forward, backward, update, steps * (query + forward + backward), dense)


def cost_exponent(d: int, activity_exponent: float, flip_exponent: float | None = 7 / 8) -> float:
    """The power of m in Lemma 6.3: the largest of 1 − 1/⌊d/2⌋ (queries), c for m^c active neurons, and 7/8 (changes).

    Parameters
    ----------
    d : int
        Inputs, at least 2.
    activity_exponent : float in [0, 1]
        c.
    flip_exponent : float or None
        Of the neurons that change side on an example; None leaves them out.

    Examples
    --------
    >>> from fewfire.papers import sublinear
    >>> sublinear.cost_exponent(d=4, activity_exponent=0.6)
    0.875
    """
    d = check_integer("d", d, 2)
    c = check_number("activity_exponent", activity_exponent, 0.0, 1.0)
    return max(1 - 1 / (d // 2), c, 0.0 if flip_exponent is None else check_number("flip_exponent", flip_exponent))


def _check(points: int, d: int, reported: float) -> tuple[int, int, float]:
    return check_integer("points", points, 1), check_integer("d", d, 2), check_number("reported", reported, 0.0)

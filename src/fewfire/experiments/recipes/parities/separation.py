"""The separation of parities, measured: dimensions of fixed features against √C(n, k), and neurons of a network.

Theorem 1, made explicit: features of which a linear classifier realises each (n, k)-parity with probability one half
number at least √(C(n, k)/2). Three measurements, several seeds each.

1. Dimensions. On D_A, exactly, over the whole cube: how many features of a family ("relu", "cosine", "galu",
   "monomials": see `_fixed_features`) a linear classifier needs for 95%, draw by draw. The theorem asks for every
   input, not for 95% of D_A, so features could do with fewer than its bound in half of the draws: this is judged, by
   the lower end of the median's interval. So is how the dimension grows with C(n, k), to which power at least 1/2;
   about 1 is seen.
2. Neurons. How many the network of Theorem 2 needs for 95% from a sample, in its practical mode: the first step, the
   support it shows, the second layer on it. Judged: fewer than √C(n, k), at every size and seed.
3. Accuracies at sizes where the two are far apart, from the same sample. Linear rivals have as many features as the
   network has neurons, and the penalty that does best *on the test set*, in their favour; one more is the best
   half-space of the inputs, which nobody had to find. The lead of the network over the best of them is judged. Methods
   that are not held to that dimension are told, of two seeds, and not judged: kernels, of infinite dimension or
   C(n + k, k), and `LowDegreeClassifier`, which picks its monomials by looking at the labels and learns the parity
   wherever the network does. So it is fixed features of few dimensions that fail, not every linear method.

The growth judged is that of the median dimension, since the theorem, for random features, asks for a share of draws:
2.5% of 2000 resamplings of the seeds lie below. The lead is the lower end of Student's 95% interval; a network that
stays at the best half-space in one seed of one size has lost what is asked for, and so has one that needs more neurons
than the bound in one fit.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import comb, log, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom, norm
from sklearn.utils.parallel import Parallel, delayed

from fewfire._cores import usable_cores
from fewfire._cube import cube
from fewfire._random import Stream
from fewfire.experiments.parities._fixed_features import FAMILIES, Family, dimension_needed, fit_linear
from fewfire.experiments.recipes import _effects
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Effect, Judgement, Power
from fewfire.experiments.recipes.parities._rivals import (
    ACCURACY,
    PENALTIES,
    TESTS,
    ComparisonSize,
    NetworkLearner,
    NeuronSize,
    compared,
    correlated_network,
    neurons_needed,
)
from fewfire.problems import CorrelatedParity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEAD, HALF = 0.1, 0.5
FULL, MORE, STUCK = 1.0, 0.1, 0.2
"""The power is for: growth like C(n, k) itself; a fit in ten that needs more neurons; a run in five that gets stuck."""
RESAMPLES = 2000
NORMAL = float(norm.ppf(0.975))


@dataclass(frozen=True)
class SeparationSettings:
    """Sizes (n, k) at which dimensions are counted, how often; sizes of the network, of the comparison, their seeds."""

    dimensions: tuple[tuple[int, int], ...]
    dimension_seeds: int
    neurons: tuple[NeuronSize, ...]
    comparisons: tuple[ComparisonSize, ...]
    seeds: int


def measure(
    settings: SeparationSettings,
    *,
    families: Mapping[str, Family] | None = None,
    network: NetworkLearner | None = None,
) -> RecipeOutcome:
    """Rows of dimensions needed, of neurons needed, and of accuracies; one process per core unless families are given.

    Parameters
    ----------
    settings : SeparationSettings
    families : mapping of Family, optional
        The fixed features; `FAMILIES` unless given.
    network : NetworkLearner, optional
        The network's training; `correlated_network` unless given.
    """
    learn, seeds = network or correlated_network, range(settings.seeds)
    features = FAMILIES if families is None else families
    draws = range(settings.dimension_seeds)
    cells = [(n, k, name, features[name], draws) for n, k in settings.dimensions for name in features]
    runs = [(size, features, learn, seed) for size in settings.comparisons for seed in seeds]
    with Parallel(n_jobs=usable_cores() if families is None and network is None else 1) as processes:
        dimensions = processes(delayed(_dimensions)(*cell) for cell in cells)
        neurons = processes(delayed(neurons_needed)(size, learn, seeds) for size in settings.neurons)
        rows = [row for found in processes(delayed(compared)(*run) for run in runs) for row in found]
    powers = {name: _growth([row for row in dimensions if row["family"] == name]) for name in features}
    leads = [_lead(rows, size, seeds) for size in settings.comparisons]
    return RecipeOutcome(
        parameters={
            "accuracy": ACCURACY,
            "dimension_seeds": settings.dimension_seeds,
            "seeds": settings.seeds,
            "penalties": list(PENALTIES),
            "tests": TESTS,
        },
        judgements=judge(dimensions, powers, neurons, leads),
        measured=[_told_powers(powers), *(_told(rows, size) for size in settings.comparisons)],
        data={
            "dimensions": dimensions,
            "neurons": neurons,
            "rows": rows,
            "powers": {name: [found.value, found.low] for name, found in powers.items()},
        },
    )


def judge(
    dimensions: Sequence[Mapping[str, Any]],
    powers: Mapping[str, Effect],
    neurons: Sequence[Mapping[str, Any]],
    leads: Sequence[Sequence[float]],
) -> list[Judgement]:
    """The claims on dimensions and neurons needed, on powers of C(n, k), and on leads by size and seed."""
    name = "median dimension over √(C(n, k)/2), the smallest"
    medians = [_effects.median(name, np.array(row["needed"]) / sqrt(row["monomials"] / 2)) for row in dimensions]
    fewest = min(medians, key=lambda found: found.low)
    draws = min(len(row["needed"]) for row in dimensions)
    slowest = min(powers.values(), key=lambda found: found.low)
    ratios = [needed / row["bound"] for row in neurons for needed in row["needed"]]
    means = [_effects.mean("mean lead over the best rival of the same dimension, the smallest", lead) for lead in leads]
    smallest = min(means, key=lambda found: found.low)
    runs = sum(len(lead) for lead in leads)
    return [
        Judgement(
            "with fewer than √(C(n, k)/2) fixed features no family reaches 95% in half of its draws",
            "smallest median dimension over √(C(n, k)/2), lower end of its interval",
            fewest.low,
            1.0,
            "at least",
            refuted_by="a family and size at which half of the draws may get by with fewer features",
            effect=fewest,
            power=Power("half of the draws of a family get by with fewer", _low_end_below(draws)),
        ),
        Judgement(
            "the dimension grows at least like √C(n, k)",
            "smallest power of C(n, k) of the median, lower end of its interval",
            slowest.low,
            HALF,
            "at least",
            refuted_by="a family whose dimension may grow more slowly, or is not reached",
            effect=slowest,
            power=Power("growth like C(n, k) in every family", _growth_seen(list(powers.values()))),
        ),
        Judgement(
            "the network needs fewer than √C(n, k) neurons for 95%",
            "largest neurons over √C(n, k), of all seeds",
            max(ratios),
            1.0,
            refuted_by="one size and seed at which it needs as many",
            effect=_effects.share("share of fits that need fewer", sum(ratio < 1 for ratio in ratios), len(ratios)),
            power=Power("a fit in ten needs as many", 1 - (1 - MORE) ** len(ratios)),
        ),
        Judgement(
            "with as many features as the network has neurons every family stays behind it",
            "smallest mean lead, lower end of its interval",
            smallest.low,
            LEAD,
            "at least",
            refuted_by="a family within 10 points, or a network that stays at the best half-space in one run",
            effect=smallest,
            power=Power("a run in five stays at the best half-space", 1 - (1 - STUCK) ** runs),
        ),
    ]


def _low_end_below(draws: int) -> float:
    """How often the median's lower end is below a bound that a draw is below with probability one half."""
    allowed = int(binom.ppf(0.025, draws, 0.5)) - 1  # as many may be below, and the end is not
    return float(binom.sf(allowed, draws, 0.5))


def _growth_seen(powers: Sequence[Effect]) -> float:
    """How often all lower ends are above the bound's power, when all true powers are FULL, with the spreads seen."""
    errors = [(found.high - found.low) / (2 * NORMAL) for found in powers]
    if not np.isfinite(errors).all():
        return 0.0
    missed = [norm.cdf(NORMAL - (FULL - HALF) / error) if error else 0.0 for error in errors]
    return float(max(0.0, 1 - sum(missed)))


def _dimensions(n: int, k: int, name: str, family: Family, seeds: range) -> dict[str, Any]:
    """For each seed the least number of features at which a linear classifier errs on at most 5% of D_A.

    A seed stands for the same random numbers at every size: chance, such as how late the support's own monomial comes,
    falls alike on all of them and leaves the growth alone.
    """
    X = cube(n)
    problem = CorrelatedParity(n, k)
    y, mass = problem.target(X).astype(np.float64), problem.density(X) / 2**n
    count = comb(n, k)
    largest = count if name == "monomials" else 2**n
    needed = []
    for seed in seeds:
        stream = Stream(seed, f"separation/{name}")

        def error(dimension: int, stream: Stream = stream) -> float:
            return fit_linear(family(X, k, dimension, stream), y, mass, goal=1 - ACCURACY)[1]

        needed.append(dimension_needed(error, 1 - ACCURACY, 2, largest))
    return {"n": n, "k": k, "family": name, "monomials": count, "needed": needed}


def _growth(rows: list[dict[str, Any]]) -> Effect:
    """The power of C(n, k) with which the median dimension grows, and the ends of its bootstrap interval.

    All are NaN where some median did not reach the accuracy.
    """
    name = "power of C(n, k) with which the median dimension grows, the smallest"
    places = [log(row["monomials"]) for row in rows]
    table = np.array([row["needed"] for row in rows])  # (sizes, seeds)
    seeds = table.shape[1]
    drawn = Stream(0, "separation/bootstrap").integers(seeds, (RESAMPLES, seeds))
    with np.errstate(invalid="ignore"):
        medians = np.log(np.vstack([np.median(table, axis=1), *np.median(table[:, drawn], axis=2).T]))
    if not np.isfinite(medians).all():
        return Effect(name, nan, nan, nan)
    slopes = np.polyfit(places, medians.T, 1)[0]
    return Effect(name, float(slopes[0]), *(float(end) for end in np.quantile(slopes[1:], (0.025, 0.975))))


def _of(rows: list[dict[str, Any]], size: ComparisonSize) -> list[dict[str, Any]]:
    return [row for row in rows if asdict(size).items() <= row.items()]


def _lead(rows: list[dict[str, Any]], size: ComparisonSize, seeds: range) -> list[float]:
    """For each seed the network's accuracy less that of the best rival of the same dimension."""
    found = []
    for seed in seeds:
        mine = [row for row in _of(rows, size) if row["seed"] == seed]
        network = next(row["accuracy"] for row in mine if row["method"] == "network")
        found.append(network - max(row["accuracy"] for row in mine if row["rival"]))
    return found


def _told_powers(powers: Mapping[str, Effect]) -> str:
    listed = ", ".join(f"{name} {found.value:.2f} (at least {found.low:.2f})" for name, found in powers.items())
    return f"the dimension grows like C(n, k) to the power: {listed}; 1/2 would be the bound's."


def _told(rows: list[dict[str, Any]], size: ComparisonSize) -> str:
    mine = _of(rows, size)
    means = {
        name: np.mean([row["accuracy"] for row in mine if row["method"] == name])
        for name in dict.fromkeys(row["method"] for row in mine)
    }
    listed = ", ".join(f"{name} {mean:.1%}" for name, mean in means.items())
    return f"({size.n}, {size.k}), {size.width} neurons or features, {size.samples} examples: {listed}."


NEURONS = (
    *(NeuronSize(n, 3, 3000) for n in (31, 61, 121, 201)),
    *(NeuronSize(n, 5, 5000) for n in (31, 61, 121)),
)

RECIPE = Recipe(
    name="parities/separation",
    title="Dimensions of fixed features against √C(n, k), neurons of a network, and accuracies at equal size, on D_A",
    seconds=24,
    expectation="features: C(n, k) to a power near 1; network: fewer than √C(n, k) neurons, and a lead of 10 points",
    figure="separation",
    scales={
        "quick": SeparationSettings(
            dimensions=((9, 3), (10, 3), (11, 3), (12, 3)),
            dimension_seeds=9,
            neurons=NEURONS,
            comparisons=(
                ComparisonSize(61, 3, 100, 3000),
                ComparisonSize(61, 5, 300, 3000),
                ComparisonSize(201, 3, 300, 3000),
            ),
            seeds=3,
        ),
        "paper": SeparationSettings(
            dimensions=((9, 3), (10, 3), (11, 3), (12, 3), (13, 3), (14, 3), (12, 5), (13, 5)),
            dimension_seeds=15,
            neurons=(
                *NEURONS,
                NeuronSize(31, 7, 10_000),
                NeuronSize(61, 7, 10_000),
                NeuronSize(501, 5, 10_000),
            ),
            comparisons=(
                ComparisonSize(61, 3, 100, 6000),
                ComparisonSize(101, 5, 500, 6000),
                ComparisonSize(201, 3, 300, 6000),
                ComparisonSize(301, 5, 1000, 10_000),
                ComparisonSize(501, 7, 1000, 20_000),
            ),
            seeds=11,
        ),
    },
    measure=measure,
    paper_seconds=2400,
    busy=2,
)

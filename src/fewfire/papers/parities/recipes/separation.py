"""The separation of parities, measured: dimensions of fixed features against √C(n, k), and neurons of a network.

Theorem 1, made explicit: features of which a linear classifier realises each (n, k)-parity with probability one half
number at least √(C(n, k)/2).

1. Dimensions. On D_A, exactly, over the whole cube: how many features of a family a linear classifier needs for 95%,
   draw by draw. Claims are on the median, and on its growth by the bootstrap over seeds.
2. Neurons. How many the network of Theorem 2 needs for 95% from a sample, in its practical mode.
3. Accuracies from the same sample. Linear rivals have as many features as the network has neurons, and the penalty
   that does best *on the test set*, in their favour; one more is the best half-space of the inputs. Methods without
   that limit are reported for two seeds: kernels, and `LowDegreeClassifier`, which looks at the labels.

A family draws N features without seeing labels or the support, nested: the first N of 2N are those of N. Families:

- "relu": σ(⟨w, x⟩/√n + b), w and b normal; what a wide network has before training;
- "cosine": cos(⟨w, x⟩/√n + b), w normal of deviation k/4, b uniform;
- "galu": 1[⟨w, x⟩/√n + b > 0] times each of 1, x_1, …, x_n, so n + 1 features per gate: gated linear units;
- "monomials": the products of k inputs, in random order; all C(n, k) of them hold every parity.

Deviations are near the best in a scan; without biases no number of the first or the third suffices.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from math import comb, inf, log, log2, nan, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit
from scipy.stats import binom, norm
from sklearn.svm import SVC
from sklearn.utils.parallel import Parallel, delayed

from fewfire._cube import cube
from fewfire._random import Stream
from fewfire._threads import usable_cores
from fewfire._types import AnyArray, Float64Array, SignArray
from fewfire.learners import LowDegreeClassifier
from fewfire.learners.baselines import TangentKernel
from fewfire.networks import init
from fewfire.papers import _effects
from fewfire.papers._claims import Effect, Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, grouped, rows_of
from fewfire.papers.parities import embedding_dimension, halfspace_accuracy
from fewfire.papers.parities.algorithms import CorrelatedParityClassifier
from fewfire.problems import CorrelatedParity
from fewfire.report._figure import SomeAxes, canvas, legend_below, marked

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PENALTY = 1e-7
"""Of the squared weights, as a share of the mean squared length of a feature: only to keep the equations regular."""

NEWTON_STEPS, TOO_FAR = 6, 0.12
"""Steps of Newton's method, and the error of the first, least squares, from which no later one came below 5%."""

STEPS_PER_DOUBLING = 4  # how finely dimensions are searched: by factors of 2^(1/4)


def relu_features(X: SignArray, k: int, dimension: int, stream: Stream) -> Float64Array:
    """Gaussian ReLU features with biases."""
    return np.asarray(np.maximum(_projections(X, dimension, stream) + stream.child("bias").normal(dimension), 0.0))


def cosine_features(X: SignArray, k: int, dimension: int, stream: Stream) -> Float64Array:
    """Random Fourier features."""
    phases = stream.child("bias").uniform(dimension, 0.0, 2 * pi)
    return np.asarray(np.cos(k / 4 * _projections(X, dimension, stream) + phases))


def galu_features(X: SignArray, k: int, dimension: int, stream: Stream) -> Float64Array:
    """Gated linear units: every gate passes 1 and all inputs; the last one perhaps not all."""
    rows, n = X.shape
    gates = -(-dimension // (n + 1))
    is_open = _projections(X, gates, stream) + stream.child("bias").normal(gates) > 0
    passed = np.hstack([np.ones((rows, 1)), X])
    return np.asarray((is_open[:, :, None] * passed[:, None, :]).reshape(rows, -1)[:, :dimension])


def monomial_features(X: SignArray, k: int, dimension: int, stream: Stream) -> Float64Array:
    """Products of k inputs in random order; at most C(n, k) of them."""
    n = X.shape[1]
    total = comb(n, k)
    if total > 10**6:  # too many to list; repetitions are rare
        chosen = stream.child("monomials").subsets(dimension, n, k)
    else:
        everything = np.array(list(combinations(range(n), k)))
        chosen = everything[stream.child("monomials").permutation(total)[:dimension]]
    return np.stack([X[:, monomial].prod(axis=1) for monomial in chosen], axis=1).astype(np.float64)


FAMILIES: dict[str, Callable[..., Float64Array]] = {
    "relu": relu_features,
    "cosine": cosine_features,
    "galu": galu_features,
    "monomials": monomial_features,
}
"""Functions of X (rows, n), k, dimension and stream: the first so many features, shape (rows, dimension)."""


def fit_linear(
    features: Float64Array, y: Float64Array, mass: Float64Array, *, goal: float = 0.0, penalty: float = PENALTY
) -> tuple[Float64Array, float]:
    """Weights of a linear classifier and the mass that it gets wrong: logistic regression by Newton's method."""
    weights = np.zeros(features.shape[1])
    best, least = weights, 1.0
    for _ in range(NEWTON_STEPS):
        margin = np.clip(y * (features @ weights), -30, 30)
        right = expit(margin)
        slope = features.T @ (mass * (1 - right) * y)
        curvature = np.maximum(mass * right * (1 - right), 1e-12 * mass)
        scaled = features * np.sqrt(curvature)[:, None]
        hessian = scaled.T @ scaled  # NumPy sees the symmetry, and computes half of it
        ridge = penalty * np.trace(hessian) / len(weights) + 1e-14
        hessian[np.diag_indices_from(hessian)] += ridge
        try:
            weights = weights + cho_solve(cho_factor(hessian, overwrite_a=True), slope - ridge * weights)
        except LinAlgError:
            break  # separated so well that nothing curves
        error = float(mass @ ((features @ weights > 0) != (y > 0)))
        if error < least:
            best, least = weights, error
        if least <= goal or (goal and least > TOO_FAR):
            break
    return best, least


def dimension_needed(error_at: Callable[[int], float], goal: float, start: int, largest: int) -> float:
    """The least dimension, to a factor 2^(1/4), at which the error is at most the goal; infinity above `largest`."""

    def size(exponent: int) -> int:
        return min(largest, round(start * 2 ** (exponent / STEPS_PER_DOUBLING)))

    def enough(exponent: int) -> bool:
        return error_at(size(exponent)) <= goal

    doublings = range(int(log2(max(largest / start, 1))) + 2)
    first = next((number for number in doublings if enough(STEPS_PER_DOUBLING * number)), None)
    if first is None:
        return float("inf")
    high = STEPS_PER_DOUBLING * first
    low = max(0, high - STEPS_PER_DOUBLING + 1)
    return float(size(bisect_left(range(high), True, low, high, key=enough)))


def _projections(X: SignArray, dimension: int, stream: Stream) -> Float64Array:
    directions = stream.child("directions").normal((dimension, X.shape[1]))
    return np.asarray(X.astype(np.float64) @ directions.T / sqrt(X.shape[1]))


ACCURACY = 0.95
PENALTIES = (1e-4, 1e-2, 1.0)
TESTS = 4000
REPORTED = 2  # seeds of the methods that are reported without a claim
WIDTHS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
LEAD, HALF = 0.1, 0.5
FULL, MORE, STUCK = 1.0, 0.1, 0.2
"""The power is for: growth like C(n, k) itself; a fit in ten that needs more neurons; a run in five that gets stuck."""
RESAMPLES = 2000
NORMAL = float(norm.ppf(0.975))


@dataclass(frozen=True)
class NeuronSize:
    """An (n, k)-parity that a network learns from a sample."""

    n: int
    k: int
    samples: int


@dataclass(frozen=True)
class ComparisonSize:
    """An (n, k)-parity, neurons of the network and features of each rival, examples."""

    n: int
    k: int
    width: int
    samples: int


@dataclass(frozen=True)
class SeparationSettings:
    """Sizes (n, k) at which dimensions are counted, how often; sizes of the network, of the comparison, their seeds."""

    dimensions: tuple[tuple[int, int], ...]
    dimension_seeds: int
    neurons: tuple[NeuronSize, ...]
    comparisons: tuple[ComparisonSize, ...]
    seeds: int


def measure(settings: SeparationSettings) -> RecipeOutcome:
    """Rows of dimensions needed, of neurons needed, and of accuracies; one process per core."""
    seeds, draws = range(settings.seeds), range(settings.dimension_seeds)
    cells = [(n, k, name, draws) for n, k in settings.dimensions for name in FAMILIES]
    with Parallel(n_jobs=usable_cores()) as processes:
        dimensions = processes(delayed(_dimensions)(*cell) for cell in cells)
        neurons = processes(delayed(neurons_needed)(size, seeds) for size in settings.neurons)
        compared = processes(delayed(_compare)(size, seed) for size in settings.comparisons for seed in seeds)
    rows = [row for found in compared for row in found]
    powers = {name: _growth([row for row in dimensions if row["family"] == name]) for name in FAMILIES}
    of_size = list(grouped(rows, "n", "k", "width", "samples").values())
    sentences = []
    for mine in of_size:
        accuracies = {
            name: np.mean([row["accuracy"] for row in same]) for name, same in grouped(mine, "method").items()
        }
        size = "({n}, {k}), {width} neurons or features, {samples} examples".format(**mine[0])
        sentences.append(f"{size}: {', '.join(f'{name} {mean:.1%}' for name, mean in accuracies.items())}.")
    listed = ", ".join(f"{name} {found.value:.2f} (at least {found.low:.2f})" for name, found in powers.items())
    return RecipeOutcome(
        parameters={
            "accuracy": ACCURACY,
            "dimension_seeds": settings.dimension_seeds,
            "seeds": settings.seeds,
            "penalties": list(PENALTIES),
            "tests": TESTS,
        },
        judgements=judge(dimensions, powers, neurons, [_lead(mine) for mine in of_size]),
        measured=[
            f"the dimension grows like C(n, k) to the power: {listed}; 1/2 would be the bound's.",
            *sentences,
        ],
        data={
            "dimensions": dimensions,
            "neurons": neurons,
            "rows": rows,
            "powers": {name: [found.value, found.low] for name, found in powers.items()},
        },
    )


def judge(
    dimensions: list[Row], powers: Mapping[str, Effect], neurons: list[Row], leads: Sequence[Sequence[float]]
) -> list[Judgement]:
    """The claims on dimensions and neurons needed, on powers of C(n, k), and on leads by size and seed."""
    name = "median dimension over √(C(n, k)/2), the smallest"
    medians = [_effects.median(name, np.array(row["needed"]) / sqrt(row["monomials"] / 2)) for row in dimensions]
    fewest = min(medians, key=lambda found: found.low)
    draws = min(len(row["needed"]) for row in dimensions)
    allowed = int(binom.ppf(0.025, draws, 0.5)) - 1  # as many may be below, and the median's lower end is not
    slowest = min(powers.values(), key=lambda found: found.low)
    # How often all lower ends are above the bound's power, when all true powers are FULL, with the spreads seen.
    errors = [(found.high - found.low) / (2 * NORMAL) for found in powers.values()]
    missed = [norm.cdf(NORMAL - (FULL - HALF) / error) if error else 0.0 for error in errors]
    growth = float(max(0.0, 1 - sum(missed))) if np.isfinite(errors).all() else 0.0
    ratios = [needed / row["bound"] for row in neurons for needed in row["needed"]]
    means = [_effects.mean("mean lead over the best rival of the same dimension, the smallest", lead) for lead in leads]
    smallest = min(means, key=lambda found: found.low)
    runs = sum(len(lead) for lead in leads)
    return [
        fewest.at_least(
            "with fewer than √(C(n, k)/2) fixed features no family reaches 95% in half of its draws",
            "smallest median dimension over √(C(n, k)/2), lower end of its interval",
            1.0,
            "a family and size at which half of the draws may get by with fewer features",
            Power("half of the draws of a family get by with fewer", float(binom.sf(allowed, draws, 0.5))),
        ),
        slowest.at_least(
            "the dimension grows at least like √C(n, k)",
            "smallest power of C(n, k) of the median, lower end of its interval",
            HALF,
            "a family whose dimension may grow more slowly, or is not reached",
            Power("growth like C(n, k) in every family", growth),
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
        smallest.at_least(
            "with as many features as the network has neurons every family stays behind it",
            "smallest mean lead, lower end of its interval",
            LEAD,
            "a family within 10 points, or a network that stays at the best half-space in one run",
            Power("a run in five stays at the best half-space", 1 - (1 - STUCK) ** runs),
        ),
    ]


def _dimensions(n: int, k: int, name: str, seeds: range) -> Row:
    """For each seed the least number of features at which a linear classifier errs on at most 5% of D_A."""
    X = cube(n)
    problem = CorrelatedParity(n, k)
    y, mass = problem.target(X).astype(np.float64), problem.density(X) / 2**n
    count = comb(n, k)
    largest = count if name == "monomials" else 2**n
    needed = []
    for seed in seeds:
        stream = Stream(seed, f"separation/{name}")

        def error(dimension: int, stream: Stream = stream) -> float:
            return fit_linear(FAMILIES[name](X, k, dimension, stream), y, mass, goal=1 - ACCURACY)[1]

        needed.append(dimension_needed(error, 1 - ACCURACY, 2, largest))
    return {"n": n, "k": k, "family": name, "monomials": count, "needed": needed}


def _growth(rows: list[Row]) -> Effect:
    """The power of C(n, k) with which the median dimension grows, and the ends of its bootstrap interval."""
    name = "power of C(n, k) with which the median dimension grows, the smallest"
    positions = [log(row["monomials"]) for row in rows]
    table = np.array([row["needed"] for row in rows])  # (sizes, seeds)
    seeds = table.shape[1]
    drawn = Stream(0, "separation/bootstrap").integers(seeds, (RESAMPLES, seeds))
    with np.errstate(invalid="ignore"):
        medians = np.log(np.vstack([np.median(table, axis=1), *np.median(table[:, drawn], axis=2).T]))
    if not np.isfinite(medians).all():
        return Effect(name, nan, nan, nan)
    slopes = np.polyfit(positions, medians.T, 1)[0]
    return Effect(name, float(slopes[0]), *(float(end) for end in np.quantile(slopes[1:], (0.025, 0.975))))


def _lead(rows: list[Row]) -> list[float]:
    """For each seed the network's accuracy less that of the best rival of the same dimension."""
    found = []
    for mine in grouped(rows, "seed").values():
        network = next(row["accuracy"] for row in mine if row["method"] == "network")
        found.append(network - max(row["accuracy"] for row in mine if row["rival"]))
    return found


def correlated_network(k: int, width: int, X: SignArray, y: SignArray, seed: int) -> Callable[[SignArray], AnyArray]:
    """Theorem 2's network in its practical mode, a function of ±1 rows: the first step, and the second layer on it."""
    return CorrelatedParityClassifier(k, width=width, random_state=seed).fit(X, y).predict


def neurons_needed(size: NeuronSize, seeds: range) -> Row:
    """For each seed the least width, a power of two, at which the network reaches 95% on the tests."""
    problem = CorrelatedParity(size.n, size.k)
    needed = []
    for seed in seeds:
        X, y, X_test, y_test = _draw(problem, size.samples, seed)
        scores = ((width, _accuracy(correlated_network(size.k, width, X, y, seed)(X_test), y_test)) for width in WIDTHS)
        needed.append(next((float(width) for width, score in scores if score >= ACCURACY), inf))
    bound = embedding_dimension(size.n, size.k)
    return {**asdict(size), "monomials": comb(size.n, size.k), "bound": bound, "needed": needed}


def _compare(size: ComparisonSize, seed: int) -> list[Row]:
    """One row per method: its accuracy, its dimension (None for a kernel), and whether that is limited to the width."""
    n, k, width = size.n, size.k, size.width
    X, y, X_test, y_test = _draw(CorrelatedParity(n, k), size.samples, seed)
    start = init.symmetric(k)(n, width, Stream(seed, "init"))
    tables: dict[str, Callable[[SignArray], Float64Array]] = {
        "inputs": lambda rows: np.hstack([rows, np.ones((len(rows), 1))]).astype(np.float64),
        "network's start": lambda rows: start.features(rows).astype(np.float64),
    }
    for name, family in FAMILIES.items():
        tables[name] = partial(family, k=k, dimension=width, stream=Stream(seed, f"separation/{name}"))
    found: list[tuple[str, float, int | None, bool]] = []
    found.append(("network", _accuracy(correlated_network(k, width, X, y, seed)(X_test), y_test), width, False))
    mass = np.full(len(y), 1 / len(y))
    for name, table in tables.items():
        features, tests = table(X), table(X_test)
        fits = [fit_linear(features, y.astype(np.float64), mass, penalty=penalty)[0] for penalty in PENALTIES]
        found.append((name, max(_accuracy(tests @ weights, y_test) for weights in fits), features.shape[1], True))
    if seed < REPORTED:
        for name, model, dimension in (
            ("polynomial kernel", SVC(kernel="poly", degree=k, gamma=1 / n, coef0=1.0, C=10.0), comb(n + k, k)),
            ("tangent kernel", TangentKernel(alpha=1e-2), None),
            ("low-degree learner", LowDegreeClassifier(random_state=seed), None),
        ):
            model.fit(X.astype(np.float32), y)
            found.append((name, _accuracy(model.predict(X_test.astype(np.float32)), y_test), dimension, False))
    found.append(("best half-space", halfspace_accuracy(k), n, True))
    keys = ("method", "accuracy", "dimension", "rival")
    return [{**asdict(size), "seed": seed, **dict(zip(keys, row, strict=True))} for row in found]


def _draw(problem: CorrelatedParity, samples: int, seed: int) -> tuple[SignArray, ...]:
    return (*problem.sample(samples, Stream(seed, "data")), *problem.sample(TESTS, Stream(seed, "test")))


def _accuracy(scores: AnyArray, y: SignArray) -> float:
    return float(np.mean((scores > 0) == (y > 0)))


NEURONS = (
    *(NeuronSize(n, 3, 3000) for n in (31, 61, 121, 201)),
    *(NeuronSize(n, 5, 5000) for n in (31, 61, 121)),
)


def plot_separation(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """parities/separation: dimensions and neurons needed against C(n, k), and the accuracy of every method."""
    dimensions, neurons, rows = rows_of(info, "dimensions", "neurons", "rows")
    figure, (left, right) = canvas(2, size=(9.2, 4.8), ax=ax)
    for index, (family, mine) in enumerate(grouped(dimensions, "family").items()):
        _draw_needed(left, mine, index, f"{family} features")
    _draw_needed(left, neurons, 6, "neurons of the network", linestyle="none")
    counts = sorted({row["monomials"] for row in (*dimensions, *neurons)})
    left.plot(counts, [count**0.5 for count in counts], color="black", linestyle="--", label="√C(n, k)")
    left.plot(counts, counts, color="black", linestyle=":", label="C(n, k)")
    left.set(xlabel="C(n, k)", ylabel="needed for 95% of D_A\n(median and range of seeds)")
    left.set(xscale="log", yscale="log", ylim=(4, 2e4))
    left.set_title("Dimension of fixed features, width of the network", fontsize=11)
    legend_below(left, ax, "left", ncols=2)
    # Every seed of every method, a marker per size; below the line, methods that may use more dimensions.
    sizes, methods = grouped(rows, "n", "k"), list(grouped(rows, "method"))
    limited = [name for name in methods if name == "network" or name in {row["method"] for row in rows if row["rival"]}]
    methods = [*limited, *(name for name in methods if name not in limited)]
    for index, (size, mine) in enumerate(sizes.items()):
        shift = 0.22 * (index - (len(sizes) - 1) / 2)
        heights = [methods.index(row["method"]) + shift for row in mine]
        style = marked(index, linestyle="none")
        label = f"({size[0]}, {size[1]}), {mine[0]['width']} neurons or features"
        right.plot([row["accuracy"] for row in mine], heights, **style, label=label, clip_on=False)
    right.axhline(len(limited) - 0.5, color="black", linewidth=0.8)
    right.set_yticks(range(len(methods)), methods, fontsize=8)
    right.invert_yaxis()
    right.set(xlim=(0.45, 1.0), xlabel="test accuracy of every seed\n(below the line: more dimensions)")
    right.set_title("At equal size, from the same examples", fontsize=11)
    legend_below(right, ax, "right")
    return figure


def _draw_needed(axis: Axes, rows: list[Row], index: int, label: str, linestyle: str = "-") -> None:
    """Median and range over seeds; what was not reached is left out."""
    reached = [row for row in rows if max(row["needed"]) < float("inf")]
    middles = [sorted(row["needed"])[len(row["needed"]) // 2] for row in reached]
    extremes = np.array([(min(row["needed"]), max(row["needed"])) for row in reached]).T
    ends = np.abs(extremes - middles) if reached else None
    style = marked(index, capsize=2, linestyle=linestyle)
    axis.errorbar([row["monomials"] for row in reached], middles, yerr=ends, label=label, **style)


RECIPE = Recipe(
    title="Dimensions of fixed features against √C(n, k), neurons of a network, and accuracies at equal size, on D_A",
    seconds=(24, 2400),
    expectation="features: C(n, k) to a power near 1; network: fewer than √C(n, k) neurons, and a lead of 10 points",
    figure=plot_separation,
    quick=SeparationSettings(
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
    paper=SeparationSettings(
        dimensions=((9, 3), (10, 3), (11, 3), (12, 3), (13, 3), (14, 3), (12, 5), (13, 5)),
        dimension_seeds=15,
        neurons=(*NEURONS, NeuronSize(31, 7, 10_000), NeuronSize(61, 7, 10_000), NeuronSize(501, 5, 10_000)),
        comparisons=(
            ComparisonSize(61, 3, 100, 6000),
            ComparisonSize(101, 5, 500, 6000),
            ComparisonSize(201, 3, 300, 6000),
            ComparisonSize(301, 5, 1000, 10_000),
            ComparisonSize(501, 7, 1000, 20_000),
        ),
        seeds=11,
    ),
    measure=measure,
    from_paper=("the dimension grows*", "the network needs*", "with as many features*"),
    busy=2,
)

"""Parities of handwritten digits: a ReLU network against gated linear units and fixed features.

The experiment of the authors of parities, on scikit-learn's 8×8 digits instead of MNIST: k images in a row, the label
is the parity of the sum of their digits. Every example is a random k-tuple of training or of test images. The network
and the gated linear network (GaLU: the same start, but its gates stay) see fresh tuples at every step, each at a rate
near the best of a scan. "relu" and "cosine" are `features` random features with ridge regression, "kernel" is ridge
regression with a Gaussian kernel, on one sample; penalties and bandwidths are those that do best *on the test set*, in
their favour. Claims are on ends of Student's 95% intervals over seeds of the network's lead over the best rival, and of
how much each further digit adds to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import sqrt
from typing import Literal, TypeAlias

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.datasets import load_digits
from sklearn.utils.parallel import Parallel, delayed

from fewfire._dense.optimisers import AdamW
from fewfire._random import Stream
from fewfire._threads import usable_cores
from fewfire._types import FloatArray
from fewfire._validate import counted
from fewfire.papers import _effects
from fewfire.papers._claims import Figure, Info, Judgement, Power, Recipe, RecipeOutcome, grouped, rows_of
from fewfire.papers._statistics import spread_power
from fewfire.report._figure import SomeAxes, canvas, colour, legend_below, marked

TEST_IMAGES, TESTS, BATCH_SIZE = 500, 4000, 128
RATES = {"network": 0.003, "galu": 0.01}
PENALTIES = (1e-4, 1e-2, 1.0)
BANDWIDTHS = (0.5, 1.0, 2.0)
CONTROL, LEADS, GAIN = 0.03, {2: 0.05, 3: 0.1}, 0.01
BEYOND, GROWTH, END = 0.05, 0.05, 0.025
"""The power is for leads five points beyond what is asked for and five points more per digit, at ends of this level."""
METHODS = {
    "network": "ReLU network",
    "galu": "gated linear units, the same gates",
    "relu": "fixed ReLU features",
    "cosine": "fixed cosine features",
    "kernel": "Gaussian kernel",
}
Gates: TypeAlias = Literal["learned", "fixed"]
Examples: TypeAlias = Callable[[int], tuple["FloatArray", "FloatArray"]]
"""step -> inputs of shape (batch, n) and labels ±1 of shape (batch,)."""


@dataclass(frozen=True)
class DigitParitySettings:
    """Numbers of digits, neurons, steps, fixed features, examples for these and for the kernel, seeds."""

    digits: tuple[int, ...]
    width: int
    steps: int
    features: int
    samples: int
    kernel_samples: int
    seeds: int


@dataclass(frozen=True)
class _Images:
    """Images in [−1, 1], shape (images, 64), and the signs of their digits' parities."""

    pixels: FloatArray
    signs: FloatArray

    def draw(self, k: int, rows: int, stream: Stream, start: int = 0) -> tuple[FloatArray, FloatArray]:
        """Examples and labels of random k-tuples of these images, from this draw of the stream on."""
        chosen = stream.integers(len(self.pixels), (rows, k), start=start)
        return self.pixels[chosen].reshape(rows, -1), self.signs[chosen].prod(axis=1)


def measure(settings: DigitParitySettings) -> RecipeOutcome:
    """Test accuracies by number of digits and method, one per seed; as many seeds at a time as there are cores."""
    found = Parallel(n_jobs=usable_cores())(delayed(_seed)(settings, seed) for seed in range(settings.seeds))
    table = {k: {name: [by_seed[k][name] for by_seed in found] for name in METHODS} for k in settings.digits}
    rows = [{"digits": k, "method": name, "accuracies": table[k][name]} for k in table for name in METHODS]
    means = (
        f"{counted(k, 'digit')}: " + ", ".join(f"{name} {np.mean(table[k][name]):.1%}" for name in METHODS) + "."
        for k in table
    )
    return RecipeOutcome(
        parameters={**asdict(settings), "rates": RATES, "tests": TESTS, "test_images": TEST_IMAGES},
        judgements=judge(table),
        measured=list(means),
        data={"rows": rows},
    )


def judge(table: Mapping[int, Mapping[str, Sequence[float]]]) -> list[Judgement]:
    """The claims on accuracies of shape digits × method × seed."""
    leads = {}
    for k, methods in sorted(table.items()):
        rivals = np.array([methods[name] for name in METHODS if name != "network"])
        leads[k] = np.array(methods["network"]) - rivals.max(axis=0)
    name = "mean lead of the network over the best rival"
    one = _effects.mean(name, leads[1])
    judgements = [
        one.at_most(
            "one digit: linear methods are as good, within 3 points",
            f"{name}, upper end",
            CONTROL,
            "a lead that may be above 3 points: the network is ahead where nothing has to be multiplied",
            # Noticed is a lead that is there: its upper end lies above what is allowed.
            Power("a lead of 8 points", spread_power(leads[1], BEYOND, 1 - END)),
        )
    ]
    for k, least in LEADS.items():
        found, points = _effects.mean(name, leads[k]), 100 * least
        judgements.append(
            found.at_least(
                f"{k} digits: the network leads by at least {points:.0f} points",
                f"{name}, lower end",
                least,
                f"a lead that may be below {points:.0f} points: a rival with fixed features keeps up",
                Power(f"a lead of {100 * (least + BEYOND):.0f} points", spread_power(leads[k], BEYOND, END)),
            )
        )
    steps = [leads[more] - leads[less] for less, more in pairwise(leads)]
    gains = [_effects.mean("what one more digit adds to the lead, the least", step) for step in steps]
    misses = [1 - spread_power(step, GROWTH - GAIN, END) for step in steps]
    least_gain = min(gains, key=lambda gain: gain.low)
    growth = least_gain.at_least(
        "the lead grows with every digit, by a point at least",
        "least mean gain from one number of digits to the next, lower end",
        GAIN,
        "a further digit that may add less than a point to the lead",
        Power("5 points more with every digit", max(0.0, 1 - sum(misses))),
    )
    return [*judgements, growth]


def _seed(settings: DigitParitySettings, seed: int) -> dict[int, dict[str, float]]:
    """Accuracies by number of digits and method."""
    train, test = _split(seed)
    return {k: _accuracies(settings, train, test, k, seed) for k in settings.digits}


def _split(seed: int) -> list[_Images]:
    """The images to train on, and those to test on."""
    pixels, digits = load_digits(return_X_y=True)
    order = Stream(seed, "digits/split").permutation(len(pixels))
    scaled, signs = (pixels / 8 - 1).astype(np.float32), np.where(digits % 2, -1.0, 1.0).astype(np.float32)
    return [_Images(scaled[ids], signs[ids]) for ids in (order[TEST_IMAGES:], order[:TEST_IMAGES])]


def _accuracies(settings: DigitParitySettings, train: _Images, test: _Images, k: int, seed: int) -> dict[str, float]:
    tests, truth = test.draw(k, TESTS, Stream(seed, f"digits/test {k}"))
    batches, found = Stream(seed, f"digits/batches {k}"), {}

    def fresh(step: int) -> tuple[FloatArray, FloatArray]:
        return train.draw(k, BATCH_SIZE, batches, step * BATCH_SIZE * k)

    for name, rate in RATES.items():
        gates: Gates = "learned" if name == "network" else "fixed"
        start = Stream(seed, "digits/init")
        network = train_gated(fresh, settings.width, settings.steps, gates=gates, learning_rate=rate, stream=start)
        found[name] = _accuracy(network(tests), truth)
    X, y = train.draw(k, settings.samples, Stream(seed, f"digits/data {k}"))
    stream = Stream(seed, f"digits/features {k}")
    # float32 throughout but for the solver: the smallest penalty is a thousand times its rounding.
    normal = stream.child("directions").normal((settings.features, X.shape[1]))
    directions = (normal / sqrt(X.shape[1])).astype(np.float32)
    biases = stream.child("bias").normal(settings.features).astype(np.float32)
    scores_of = [part @ directions.T for part in (X, tests)]

    def of_features(features: FloatArray, on_tests: FloatArray) -> float:
        gram = features.T @ features
        return _ridge(gram, np.trace(gram) / len(gram), features.T @ y, on_tests, truth)

    found["relu"] = of_features(*(np.maximum(scores + biases, 0) for scores in scores_of))
    found["cosine"] = max(
        of_features(*(np.cos(scores / np.float32(width) + 7 * biases) for scores in scores_of)) for width in BANDWIDTHS
    )
    few = slice(settings.kernel_samples)
    # The kernel exp(−‖x − x'‖²/(2 n width²)), of infinite dimension.
    found["kernel"] = max(
        _ridge(_gaussian(X[few], X[few], width), 1.0, y[few], _gaussian(tests, X[few], width), truth)
        for width in BANDWIDTHS
    )
    return found


def train_gated(
    examples: Examples, width: int, steps: int, *, gates: Gates, learning_rate: float, stream: Stream
) -> Callable[[FloatArray], FloatArray]:
    """Train Σ_j u_j g_j(x) (⟨v_j, x⟩ + c_j) by Adam on the logistic loss; the function from (rows, n) to scores."""
    n = examples(0)[0].shape[1]
    hidden = (stream.child("hidden").normal((n + 1, width)) * sqrt(2 / n)).astype(np.float32)
    hidden[-1] = 0
    output = (stream.child("output").signs(width) / sqrt(width)).astype(np.float32)
    start = hidden.copy()
    moving = [hidden.reshape(-1), output] if gates == "learned" else [hidden.reshape(-1)]
    descents = [AdamW(learning_rate, 0.0).start(part.size, 0) for part in moving]

    def forward(X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        rows = np.ones((len(X), n + 1), dtype=np.float32)
        rows[:, :n] = X
        scores = rows @ hidden
        gate = ((scores if gates == "learned" else rows @ start) > 0).astype(np.float32)
        scores *= gate
        return rows, gate, scores

    for step in range(steps):
        X, y = examples(step)
        rows, gate, passed = forward(X)
        slope = (-y / (1 + np.exp(np.clip(y * (passed @ output), -30, 30))) / len(y)).astype(np.float32)
        gate *= output
        gate *= slope[:, None]
        slopes = rows.T @ gate, slope @ passed
        for part, descent, gradient in zip(moving, descents, slopes, strict=False):
            descent.factor = 1 - step / steps
            descent.step(part, gradient.reshape(-1))
    return lambda X: np.asarray(forward(X)[2] @ output)


def _accuracy(scores: FloatArray, truth: FloatArray) -> float:
    return float(np.mean((scores > 0) == (truth > 0)))


def _ridge(gram: FloatArray, scale: float, target: FloatArray, tests: FloatArray, truth: FloatArray) -> float:
    """The accuracy of ridge regression at the best penalty, in units of the scale; `tests` are features of tests."""
    found = []
    for penalty in PENALTIES:
        shifted = gram.astype(np.float64)
        shifted[np.diag_indices_from(shifted)] += penalty * scale
        weights = np.asarray(cho_solve(cho_factor(shifted, overwrite_a=True), target))
        found.append(_accuracy(tests @ weights.astype(np.float32), truth))
    return max(found)


def _gaussian(rows: FloatArray, others: FloatArray, width: float) -> FloatArray:
    squares = np.sum(rows**2, axis=1)[:, None] + np.sum(others**2, axis=1) - 2 * rows @ others.T
    return np.asarray(np.exp(np.maximum(squares, 0) * np.float32(-0.5 / (rows.shape[1] * width**2))))


def plot_digit_parities(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """parities/digits: every seed's accuracy by number of digits, a line through the means of each method."""
    (rows,) = rows_of(info, "rows")
    figure, (axis,) = canvas(ax=ax)
    methods = grouped(rows, "method")
    for index, (method, mine) in enumerate(methods.items()):
        positions = [row["digits"] + 0.06 * (index - (len(methods) - 1) / 2) for row in mine]
        style = marked(index)
        for at, row in zip(positions, mine, strict=True):
            axis.plot([at] * len(row["accuracies"]), row["accuracies"], linestyle="none", **style)
        means = [sum(row["accuracies"]) / len(row["accuracies"]) for row in mine]
        axis.plot(positions, means, color=colour(index), linewidth=1.2)
        axis.plot([], [], **style, label=METHODS.get(method, method))
    axis.axhline(0.5, color="black", linestyle=":", label="guessing")
    axis.set(xlabel="digits side by side", ylabel="test accuracy, every seed")
    axis.set_xticks(sorted({row["digits"] for row in rows}))
    axis.set_title("Parity of the sum of handwritten digits", fontsize=11)
    legend_below(axis, ax, ncols=3)
    return figure


RECIPE = Recipe(
    title="Parity of k handwritten digits: a ReLU network against gated linear units, fixed features and a kernel",
    seconds=(27, 5000),
    expectation="one digit: all alike; two and three: the network leads by at least 5 and 10 points",
    figure=plot_digit_parities,
    quick=DigitParitySettings((1, 2, 3), 256, 2000, 1024, 10_000, 2000, seeds=5),
    paper=DigitParitySettings((1, 2, 3, 4), 512, 20_000, 4096, 40_000, 8000, seeds=10),
    measure=measure,
    busy=2,
)

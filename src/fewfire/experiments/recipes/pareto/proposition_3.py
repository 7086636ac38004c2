"""pareto, Lemma 6 and Proposition 3: gradients hardly depend on the parity, so a little noise hides it.

Gradient descent on the square loss against the zero function follows a path θ*_t that knows no target. At θ*_t the
gradient for the target χ_S differs from that path's own by c_i(S) = E[χ_S ∂h/∂θ_i] in coordinate i; noise of that
size keeps the iterates on the path. All c_i(S) are Fourier coefficients, so Walsh–Hadamard transforms give them for
every S at once, exact: nothing here is sampled but the starts.

Expect Lemma 6 to hold (the mean of c_i(S)² over the C(n, k) parities is at most 1/C(n, k), in
units of the largest slope |∂h/∂θ_i|), and the share of (start, S) that noise τ hides to stay above 1 − 4rT/(τ²C(n, k)),
the proposition with its constant: half of τ is left to the error of the sample, so ¼ stands for the printed ½. The
bound has room to spare, hundreds of times in τ: a ReLU network has little Fourier weight at high degree, and its
parameters do not ask for different parities. Only a model whose slopes are parities themselves attains Lemma 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._cube import cube
from fewfire.engines import Phase, Run, Schedule, get_engine
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement
from fewfire.fourier import transform
from fewfire.networks import init
from fewfire.theory import pareto as theory

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.networks import TwoLayer

CHANCES = (0.05, 0.1, 0.25, 0.5)
"""The probabilities δ at which the proposition is checked."""

FRACTION = 0.25
"""Of C(n, k): see `theory.pareto.frontier`."""

RATE = 0.1


@dataclass(frozen=True)
class HidingSettings:
    """Bits, neurons, steps of gradient descent, and starts drawn."""

    n: int
    width: int
    steps: int
    draws: int


def measure(settings: HidingSettings) -> RecipeOutcome:
    """For each k: shares hidden by noise τ, measured and bound, and the noise that hides one half."""
    n, width, steps = settings.n, settings.width, settings.steps
    parameters = width * (n + 2) + 1
    size = (cube(n) < 0).sum(axis=1)
    weights, peaks = [], []
    for seed in range(settings.draws):
        weight, peak = path(init.dense()(n, width, seed=seed), steps, size)
        weights.append(weight)
        peaks.append(peak)
    needed = 2 * np.stack(peaks)  # half of the noise is the sample's
    levels = {k: needed[:, size == k].ravel() for k in range(1, n // 2 + 1)}
    rows = [_row(n, k, parameters, steps, values) for k, values in levels.items()]
    hardest = rows[-1]
    return RecipeOutcome(
        parameters={
            "n": n,
            "width": width,
            "parameters": parameters,
            "steps": steps,
            "draws": settings.draws,
            "rate": RATE,
        },
        judgements=judge(float(np.max(weights)), rows),
        measured=[
            f"k = {hardest['k']}: noise {hardest['half']:.2g} hides half of the parities, the bound asks for "
            f"{hardest['half_bound']:.2g}, {hardest['half_bound'] / hardest['half']:.0f} times as much"
        ],
        data={"rows": rows},
    )


def judge(weight: float, rows: list[dict[str, Any]]) -> list[Judgement]:
    """The claims, from the largest C(n, k)·mean c² and the rows."""
    margins = [share - (1 - delta) for row in rows for delta, share in zip(CHANCES, row["hidden_at"], strict=True)]
    slope = np.polyfit(np.log([row["parities"] for row in rows]), np.log([row["half"] for row in rows]), 1)[0]
    return [
        Judgement("Lemma 6 holds", "largest C(n, k)·mean of c_i(S)², exact", weight, 1 + 1e-9),
        Judgement(
            "Proposition 3 holds", "smallest share hidden − (1 − δ), exact over S", min(margins), 0.0, "at least"
        ),
        Judgement(
            "hiding takes noise of order C(n, k)^(−1/2) at most", "slope of log noise over log C(n, k)", slope, -0.5
        ),
    ]


def path(network: TwoLayer, steps: int, size: AnyArray) -> tuple[Float64Array, Float64Array]:
    """Follow θ*_t for t < steps.

    Returns the largest Fourier weight Σ_{|S| = k} c_i(S)² by k, shape (n + 1,), and the largest |c_i(S)| by S, shape
    (2^n,), both over i and t and in units of the largest slope.
    """
    X = cube(network.inputs)
    schedule = Schedule((Phase(1, RATE, batch_size=None),), loss="square")
    engine, nothing = get_engine(), np.zeros(len(X))
    slope, weight, peak = 1.0, np.zeros(network.inputs + 1), np.zeros(len(X))
    for _ in range(steps):
        for found, steepest in correlations(network, X):
            slope = max(slope, steepest)
            weight = np.maximum(weight, np.bincount(size, found**2))
            peak = np.maximum(peak, np.abs(found))
        network = engine.train([Run(network, schedule, X, nothing)])[0].network
    return weight / slope**2, peak / slope


def correlations(network: TwoLayer, X: AnyArray) -> Any:
    """c_i(S) for every S, shape (2^n,), and the largest |∂h/∂θ_i|, one parameter after the other.

    The offset is left out: its slope is the constant 1, whose correlation with every parity is 0.
    """
    scores = network.preactivations(X)
    place = np.arange(len(X))
    for neuron, output in enumerate(network.output.astype(np.float64)):
        fires = transform(network.activation.slope(scores[:, neuron]).astype(np.float64))
        values = network.activation.value(scores[:, neuron]).astype(np.float64)
        yield transform(values), float(np.abs(values).max())
        yield output * fires, abs(float(output))
        for bit in range(network.inputs):  # x_j times a function moves its coefficient from S to S with j flipped
            yield output * fires[place ^ (1 << bit)], abs(float(output))


def _row(n: int, k: int, parameters: int, steps: int, needed: Float64Array) -> dict[str, Any]:
    bounds = [_noise(n, k, parameters, steps, delta) for delta in CHANCES]
    grid = np.geomspace(1e-4, 2.0, 40)
    return {
        "k": k,
        "parities": comb(n, k),
        "noise": grid.tolist(),
        "hidden": [_share(needed, tau) for tau in grid],
        "bound": [max(0.0, 1 - parameters * steps / (FRACTION * tau**2 * comb(n, k))) for tau in grid],
        "hidden_at": [_share(needed, tau) for tau in bounds],
        "half": float(np.median(needed)),
        "half_bound": _noise(n, k, parameters, steps, 0.5),
    }


def _noise(n: int, k: int, parameters: int, steps: int, delta: float) -> float:
    """The τ from which on the proposition excludes success with probability δ."""
    return theory.frontier(n, k, parameters, steps, 1.0, delta, fraction=FRACTION).thresholds()["tau"]


def _share(needed: Float64Array, tau: float) -> float:
    return float(np.mean(needed <= tau))


RECIPE = Recipe(
    name="pareto/proposition-3",
    title="Lemma 6 and Proposition 3: the noise that hides a parity from gradient descent, beside the bound",
    seconds=5,
    expectation="both hold at every k; the noise needed falls at least like C(n, k)^(−1/2)",
    figure="proposition_3",
    scales={
        "quick": HidingSettings(n=16, width=2, steps=4, draws=12),
        "paper": HidingSettings(n=20, width=4, steps=16, draws=8),
    },
    measure=measure,
    paper_seconds=500,
)

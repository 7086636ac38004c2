"""pareto, Lemma 6 and Proposition 3: gradients hardly depend on the parity, so a little noise hides it.

Gradient descent on the square loss against the zero function follows a path θ*_t that knows no target. At θ*_t the
gradient for the target χ_S differs from that path's own by c_i(S) = E[χ_S ∂h/∂θ_i] in coordinate i; noise of that
size keeps the iterates on the path. All c_i(S) are Fourier coefficients, so Walsh–Hadamard transforms give them for
every S at once, exact: nothing here is sampled but the starts.

Lemma 6: the mean of c_i(S)² over the C(n, k) parities is at most 1/C(n, k), in units of the largest slope |∂h/∂θ_i|.
Proposition 3: noise τ hides at least 1 − 4rT/(τ²C(n, k)) of all (start, S), for r parameters and T steps; half of τ is
left to the error of the sample, so ¼ stands for the printed ½ (docs/errata.md). ReLU networks come nowhere near either,
since they have little Fourier weight at high degree and their parameters' slopes overlap: on them alone no error of the
bounds would be noticed. So both are tested on a model that attains them as well, one whose slopes are parities
themselves. Networks show the power of C(n, k) in the noise that hides half of the parities.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from fewfire._cube import cube
from fewfire._types import AnyArray, Float64Array
from fewfire.engines import Phase, Run, Schedule, get_engine
from fewfire.fourier import transform
from fewfire.networks import TwoLayer, init
from fewfire.papers import _effects as effects
from fewfire.papers._claims import Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, rows_of
from fewfire.papers._statistics import spread_power
from fewfire.report._figure import SomeAxes, canvas, colour, label_axes, log_axis
from fewfire.theory import frontier

SUCCESS = (0.05, 0.1, 0.25, 0.5)  # the probabilities δ at which the proposition is checked
FEATURES = 4  # parameters of the model whose slopes are parities
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
    followed = (path(init.dense()(n, width, seed=seed), steps, size) for seed in range(settings.draws))
    weights, peaks = zip(*followed, strict=True)
    needed = 2 * np.stack(peaks)  # half of the noise is the sample's
    rows = [_row(n, k, parameters, steps, needed[:, size == k]) for k in range(1, n // 2 + 1)]
    attained = [parity_slopes(n, k, size) for k in range(1, n // 2 + 1)]
    hardest, tight = rows[-1], attained[-1]
    setting = {"n": n, "width": width, "parameters": parameters, "steps": steps, "draws": settings.draws}
    slack = effects.median(
        f"k = {hardest['k']}: noise of the bound over noise that hides half of the parities",
        hardest["half_bound"] / np.array(hardest["halves"]),
    )
    return RecipeOutcome(
        parameters={**setting, "rate": RATE, "features": FEATURES},
        judgements=judge(float(np.max(weights)), rows, attained),
        measured=[
            f"networks use {np.max(weights):.2g} of what Lemma 6 allows",
            str(slack),
            f"slopes that are parities, k = {tight['k']}: noise just below 2 hides all but {tight['left']:.2g} of the "
            f"parities, the bound leaves {tight['allowed']:.2g}; with ½, as printed, {tight['printed']:.2g}, too few",
        ],
        data={"rows": rows, "attained": attained},
    )


def judge(weight: float, rows: list[Row], attained: list[Row]) -> list[Judgement]:
    """The claims, from the largest C(n, k)·mean c² of the networks, their rows, and those of `parity_slopes`."""
    most = max(weight, *(row["weight"] for row in attained))
    # Shares left open: what the bound allows less what is left, the networks' first.
    margins = [share - (1 - delta) for row in rows for delta, share in zip(SUCCESS, row["hidden_at"], strict=True)]
    spare = min(*margins, *(row["allowed"] - row["left"] for row in attained))
    printed = min(row["printed"] - row["left"] for row in attained)
    tight = min(row["left"] / row["allowed"] for row in attained)
    slopes = exponents(rows)
    fall = effects.mean("power of C(n, k) in the noise that hides half of the parities", slopes)
    return [
        effects.exact("largest C(n, k)·mean of c_i(S)²", most).at_most(
            "Lemma 6 holds, for networks and for slopes that are parities",
            "largest C(n, k)·mean of c_i(S)²",
            1 + 1e-9,
            "any parameter, start or k with a larger mean",
            Power("a bound of ½/C(n, k) in place of 1/C(n, k)", float(most > 0.5)),
        ),
        effects.exact("least share to spare", spare).at_least(
            "Proposition 3 holds, for networks and for slopes that are parities",
            "least share of parities that the bound leaves open less share left, exact over S",
            -1e-6,
            "any k and τ at which noise hides fewer parities than the bound says",
            Power("the printed constant ½ in place of ¼", float(printed < -1e-6)),
        ),
        effects.exact("share left over share left open", tight).at_least(
            "and slopes that are parities attain it in one step",
            "least share left over share that the bound leaves open",
            1 - 1e-6,
            "room in the bound at any k: a constant above ¼ would do there",
            Power("a constant above ¼ by a millionth", 1.0),
        ),
        fall.at_most(
            "from networks noise of order C(n, k)^(−1/2) hides half of the parities",
            "slope of log noise in log C(n, k), mean over starts, upper end of 95%",
            -0.5,
            "a power of C(n, k) that is not surely below −1/2",
            Power("a power of −0.6", spread_power(slopes, 0.1, 0.025)),
        ),
    ]


def exponents(rows: list[Row]) -> list[float]:
    """The slope of log noise that hides half of the parities in log C(n, k), by start."""
    parities, halves = (np.log([row[key] for row in rows]) for key in ("parities", "halves"))
    return [float(np.polyfit(parities, start, 1)[0]) for start in halves.T]


def parity_slopes(n: int, k: int, size: AnyArray) -> Row:
    """The model h = Σ θ_i χ_{S_i} with sets of k neighbours, whatever θ: one step, and noise just below 2."""
    bits = cube(n)
    sets = [[(first + step) % n for step in range(k)] for first in range(FEATURES)]
    found = [transform(bits[:, chosen].prod(axis=1).astype(np.float64)) for chosen in sets]
    weight = max(float(np.bincount(size, table**2)[k]) for table in found)
    tau = 2 * (1 - 1e-9)
    needed = 2 * np.max(np.abs(found), axis=0)[size == k]
    return {
        "k": k,
        "weight": weight,
        "left": 1 - _share(needed, tau),
        "allowed": frontier(n, k, FEATURES, 1, tau).success_bound,
        "printed": frontier(n, k, FEATURES, 1, tau, fraction=0.5).success_bound,
    }


def path(network: TwoLayer, steps: int, size: AnyArray) -> tuple[Float64Array, Float64Array]:
    """Follow θ*_t for t < steps: the largest Fourier weight Σ_{|S| = k} c_i(S)² by k, and the largest |c_i(S)| by S."""
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
    """c_i(S) for every S, shape (2^n,), and the largest |∂h/∂θ_i|, by parameter but the offset: its slope is 1."""
    scores = network.preactivations(X)
    sets = np.arange(len(X))
    for neuron, output in enumerate(network.output.astype(np.float64)):
        fires = transform(network.activation.slope(scores[:, neuron]).astype(np.float64))
        values = network.activation.value(scores[:, neuron]).astype(np.float64)
        yield transform(values), float(np.abs(values).max())
        yield output * fires, abs(float(output))
        for bit in range(network.inputs):  # x_j times a function moves its coefficient from S to S with j flipped
            yield output * fires[sets ^ (1 << bit)], abs(float(output))


def _row(n: int, k: int, parameters: int, steps: int, needed: Float64Array) -> Row:
    """From the noise needed to hide each parity, shape (starts, C(n, k))."""

    def noise(delta: float) -> float:
        """The τ from which on the proposition excludes success with probability δ."""
        return frontier(n, k, parameters, steps, 1.0, delta).thresholds()["tau"]

    grid = np.geomspace(1e-4, 2.0, 40)
    return {
        "k": k,
        "parities": comb(n, k),
        "noise": grid.tolist(),
        "hidden": [_share(needed, tau) for tau in grid],
        "bound": [1 - frontier(n, k, parameters, steps, tau).success_bound for tau in grid],
        "hidden_at": [_share(needed, noise(delta)) for delta in SUCCESS],
        "half": float(np.median(needed)),
        "halves": [float(half) for half in np.median(needed, axis=1)],
        "half_bound": noise(0.5),
    }


def _share(needed: Float64Array, tau: float) -> float:
    return float(np.mean(needed <= tau))


def plot_proposition_3(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """pareto/proposition-3: the share of parities that noise hides, and the noise that hides one half, with bounds."""
    rows, setting = rows_of(info, "rows", "parameters")
    resources = f"{setting['parameters']} parameters, {setting['steps']} steps, {setting['draws']} starts"
    title = f"Proposition 3: n = {setting['n']}, {resources}"
    figure, (left, right) = canvas(2, size=(9.0, 3.9), ax=ax, title=title)
    for number, row in enumerate(row for row in rows if row["k"] % 2 == 0):
        left.plot(row["noise"], row["hidden"], color=colour(number), label=f"k = {row['k']}")
        left.plot(row["noise"], row["bound"], color=colour(number), linestyle="--", linewidth=1)
    left.plot([], [], color="black", label="measured")
    left.plot([], [], color="black", linestyle="--", linewidth=1, label="at least (Proposition 3)")
    log_axis(left, "x")
    label_axes(left, "noise τ, in units of the largest slope", "share of parities hidden", "which parities noise hides")
    parities = [row["parities"] for row in rows]
    right.plot(parities, [row["half"] for row in rows], color=colour(0), marker="o", label="measured")
    right.plot(parities, [row["half_bound"] for row in rows], color="black", linestyle="--", label="Proposition 3")
    log_axis(right, "x")
    log_axis(right, "y")
    which = f"parities C(n, k), k = {rows[0]['k']}…{rows[-1]['k']}"
    label_axes(right, which, "noise τ that hides one half", "how much noise it takes")
    return figure


RECIPE = Recipe(
    title="Lemma 6 and Proposition 3: the noise that hides a parity from gradient descent, and the bound",
    seconds=(1, 500),
    expectation="both hold and are attained by parities; networks need noise of order C(n, k)^(−0.9)",
    figure=plot_proposition_3,
    quick=HidingSettings(n=16, width=2, steps=4, draws=12),
    paper=HidingSettings(n=20, width=4, steps=16, draws=8),
    measure=measure,
    from_paper=("Lemma 6 holds*", "Proposition 3 holds*"),
)

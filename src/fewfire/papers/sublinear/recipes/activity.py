"""sublinear, section 5.12 and Remark 5.17: how many neurons fire on an example, at the start and during training.

At the start of Definition 3.1 the number of firing neurons on a given input is Binomial(m, p) with p = 1 − Φ(τ√(m/2)),
which is tested exactly over independent starts. Three thresholds: the theorem's τ = 1/m, Lemma 5.15's τ = K·m^(−3/5)
with K = 1, and the practical one for m^(3/4) firing neurons. Exponents are slopes of log counts in log m, one per start
or training, with Student's interval over these. The 0.1 that the powers of the lemma's bound and of the counts may
differ by was set knowing that by the formulas they differ by 0.08 at these widths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom, binomtest

from fewfire._random import Stream
from fewfire.learners import RobustClassifier
from fewfire.networks import init
from fewfire.papers import _effects as effects
from fewfire.papers import sublinear
from fewfire.papers._claims import Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, rows_of
from fewfire.papers._statistics import share_power, spread_power
from fewfire.papers.sublinear.recipes.cost import power_of_width, powers_by_seed
from fewfire.problems import SphereSlice
from fewfire.report._figure import SomeAxes, canvas, colour, label_axes, log_axis

EXPONENT, STARTS, TRAININGS = 0.75, 160, 5
THRESHOLDS = ("theorem", "lemma", "quantile")
OFF = 0.05  # an exponent, or an activity relative to the exact one, off by so much is to be noticed


@dataclass(frozen=True)
class ActivitySettings:
    """Widths, and iterations of a training."""

    widths: tuple[int, ...]
    iterations: int


def measure(settings: ActivitySettings) -> RecipeOutcome:
    """One row per width and threshold at the start; one per width and seed for the training."""
    widths, iterations = list(settings.widths), settings.iterations
    X, y = SphereSlice(40, 10, 0.6, "xor").sample(seed=0)
    starts = [_start(X, width, name, STARTS) for width in widths for name in THRESHOLDS]
    trained = [_train(X, y, width, iterations, seed) for seed in range(TRAININGS) for width in widths]
    judgements, measured = judge(starts, trained)
    parameters = {"n": 40, "d": 10, "separation": 0.6, "exponent": EXPONENT, "widths": widths}
    parameters |= {"starts": STARTS, "trainings": TRAININGS, "iterations": iterations}
    # Curves of the first training are drawn; the others give exponents.
    others = [{key: row[key] for key in ("seed", "width", "start", "end")} for row in trained[len(widths) :]]
    data = {"start": starts, "training": trained[: len(widths)], "trainings": others}
    return RecipeOutcome(parameters=parameters, judgements=judgements, measured=measured, data=data)


def judge(starts: list[Row], trained: list[Row]) -> tuple[list[Judgement], list[str]]:
    """The claims, from the rows of `_start` and `_train`."""
    of = {name: [row for row in starts if row["threshold"] == name] for name in THRESHOLDS}
    level = 0.01 / len(starts)
    furthest = max(starts, key=lambda row: abs(row["fired"] / (row["trials"] * row["probability"]) - 1))
    # Measured over exact activity of one input over all starts.
    name = f"activity over the exact one, furthest from 1, m = {furthest['width']}, {furthest['threshold']} threshold"
    half = min(of["theorem"], key=lambda row: row["fired"] / row["trials"])
    share = effects.share(f"share of active neurons, m = {half['width']}", half["fired"], half["trials"])
    bounded = [row for row in of["quantile"] if row["bound"] < row["width"]]
    largest = max((row["largest"] / row["bound"] for row in bounded), default=0.0)
    quantile, widths = of["quantile"], [row["width"] for row in of["quantile"]]
    lemma = power_of_width(widths, [row["bound"] for row in quantile])
    counts = zip(*(row["means"] for row in quantile), strict=True)  # those of one start at every width
    gaps = [lemma - power_of_width(widths, start) for start in counts]
    gap = effects.mean("power of the bound less that of the counts", gaps)
    judgements = [
        Judgement(
            "counts are binomial",
            "least p of the exact tests",
            min(row["pvalue"] for row in starts),
            level,
            "at least",
            refuted_by=f"a count whose exact test has p below 0.01/{len(starts)}",
            effect=effects.share(name, furthest["fired"], furthest["trials"]).map(
                lambda end: end / furthest["probability"]
            ),
            power=Power(f"an activity off by {OFF:.0%}, at any width", min(_notices(row, level) for row in starts)),
        ),
        effects.exact("largest count over the bound", largest).at_most(
            "Lemma 5.15 bounds them, where it is below m",
            "largest count over the bound",
            1.0,
            "any count above the bound",
            Power(f"counts {1 / largest:.1f} times as large" if largest else "nothing: no bound below m", 1.0),
        ),
        gap.at_most(
            "and its power of m is within 0.1 of the counts'",
            "slope of log bound less slope of log active in log m, upper end of 95%",
            0.1,
            "a bound whose power of m is above the counts' by more than 0.1",
            Power(f"a power {OFF} below that", spread_power(gaps, OFF, 0.025)),
        ),
        share.at_least(
            "τ = 1/m leaves half active",
            f"share of active neurons at m = {half['width']}, lower end of 95%",
            0.45,
            "a share whose lower end is below 0.45",
            Power("a share of 0.48", share_power(0.48, 0.45, half["trials"])),
        ),
        _sublinear("the quantile is sublinear at the start", powers_by_seed(trained, "start"), 0.8),
        _sublinear("and stays so in training", powers_by_seed(trained, "end"), 0.85),
    ]
    names = ", ".join(f"{row['bound'] / row['width']:.2f} at {row['width']}" for row in quantile)
    return judgements, [f"Lemma 5.15's bound over m, for the quantile: {names}; it says nothing from 1 on"]


def _sublinear(claim: str, powers: list[float], bound: float) -> Judgement:
    """The power of m in the mean activity over trainings is surely below the bound."""
    seen = effects.mean("power of m", powers)
    return seen.at_most(
        claim,
        "slope of log active in log m, upper end of 95%",
        bound,
        f"a power of m that is not surely below {bound}",
        Power(f"a power of {bound - OFF:.2f}", spread_power(powers, OFF, 0.025)),
    )


def _notices(row: Row, level: float) -> float:
    """The probability that an exact test of equal tails rejects when neurons fire more often by `OFF`."""
    trials, share = row["trials"], row["probability"]
    low, high = binom.ppf(level / 2, trials, share), binom.isf(level / 2, trials, share)
    more = min(1.0, share * (1 + OFF))
    return float(binom.cdf(low - 1, trials, more) + binom.sf(high, trials, more))


def _start(X: Any, width: int, name: str, repeats: int) -> Row:
    draw = {
        "theorem": init.ntk(threshold="1/m"),
        "lemma": init.ntk(threshold=width**-0.6),
        "quantile": init.ntk(exponent=EXPONENT),
    }[name]
    nets = [draw(X.shape[1], width, Stream(seed, "init")) for seed in range(repeats)]
    counts = np.array([net.activity(X).per_input for net in nets])
    tau = nets[0].activation.threshold
    share = sublinear.active_probability(width, tau)
    # One input: its counts over independent starts are independent, those of several inputs are not.
    fired = int(counts[:, 0].sum())
    test = binomtest(fired, repeats * width, share)
    return {
        "width": width,
        "threshold": name,
        "tau": tau,
        "probability": share,
        "fired": fired,
        "trials": repeats * width,
        "exact": share * width,
        "mean": float(counts.mean()),
        "means": [round(float(value), 3) for value in counts.mean(axis=1)],
        "share": float(counts.mean() / width),
        "largest": int(counts.max()),
        "bound": sublinear.activity_bound(width, tau * width**0.6),
        "pvalue": float(test.pvalue),
    }


def _train(X: Any, y: Any, width: int, iterations: int, seed: int = 0) -> Row:
    activity = width ** (EXPONENT - 1)
    model = RobustClassifier(
        width, activity, 0.2, adversary="fgm", domain="slice", iterations=iterations, random_state=seed
    ).fit(X, y)
    history = model.history_
    return {
        "width": width,
        "seed": seed,
        "start": float(history.mean_active[0]),
        "end": float(history.mean_active[-1]),
        "mean_active": [round(float(value), 2) for value in history.mean_active],
        "max_active": [int(value) for value in history.max_active],
        "robust_loss": [round(float(value), 4) for value in history.robust_loss],
        "drift": model.drift_,
    }


LABELS = {"theorem": "τ = 1/m", "lemma": "τ = $m^{-3/5}$", "quantile": "τ for $m^{3/4}$ active"}


def plot_activity(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """sublinear/activity: active neurons against the width at the start, and over the iterations of training."""
    start, training = rows_of(info, "start", "training")
    figure, (left, right) = canvas(2, size=(9.0, 3.9), ax=ax, title="Active neurons per example")
    for index, (name, label) in enumerate(LABELS.items()):
        rows = [row for row in start if row["threshold"] == name]
        widths = [row["width"] for row in rows]
        left.plot(widths, [row["exact"] for row in rows], color=colour(index), label=f"{label}, exact")
        left.plot(widths, [row["mean"] for row in rows], "o", color=colour(index), markersize=4)
        if name == "quantile":
            left.plot(widths, [row["bound"] for row in rows], "--", color=colour(index), label="Lemma 5.15 for it")
    left.plot(widths, widths, ":", color="black", label="all neurons")
    left.set_xscale("log", base=2)
    left.set_yscale("log", base=2)
    label_axes(left, "width m", "active neurons, mean", "at the start (dots: measured)")
    for index, row in enumerate(training):
        right.plot(row["mean_active"], color=colour(index), label=f"m = {row['width']}")
    log_axis(right, "y")
    label_axes(right, "iteration", "active neurons, mean", "in training, $m^{3/4}$ at the start")
    return figure


RECIPE = Recipe(
    title="Lemma 5.15, Remark 5.17: active neurons against the width",
    seconds=(8, 120),
    expectation="exactly binomial counts; half of the neurons at τ = 1/m; sublinear in m with τ from the quantile",
    figure=plot_activity,
    quick=ActivitySettings(widths=(2**8, 2**10, 2**12, 2**14), iterations=60),
    paper=ActivitySettings(widths=(2**8, 2**10, 2**12, 2**14, 2**16), iterations=200),
    measure=measure,
    from_paper=("Lemma 5.15*", "and stays so in training"),
)

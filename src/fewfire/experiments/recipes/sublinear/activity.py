"""sublinear, section 5.12 and Remark 5.17: how many neurons fire on an example, at the start and during training.

At the start of Definition 3.1 the number of firing neurons on a given input is Binomial(m, p) with p = 1 − Φ(τ√(m/2));
over independent starts the counts add up to one binomial, which is tested exactly. Three thresholds: the theorem's
τ = 1/m, Lemma 5.15's τ = K·m^(−3/5) with K = 1, and the practical one for m^(3/4) firing neurons. Lemma 5.15's bound
2m·exp(−τ²m/4) is above m, and so says nothing, for the first two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest

from fewfire._random import Stream
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement
from fewfire.learners import RobustClassifier
from fewfire.networks import init
from fewfire.problems import SphereSlice
from fewfire.theory import sublinear

EXPONENT = 0.75
THRESHOLDS = ("theorem", "lemma", "quantile")


@dataclass(frozen=True)
class ActivitySettings:
    """Widths, independent starts at each, and iterations of training."""

    widths: tuple[int, ...]
    starts: int
    iterations: int


def measure(settings: ActivitySettings) -> RecipeOutcome:
    """One row per width and threshold at the start; one per width for the training."""
    widths = list(settings.widths)
    problem = SphereSlice(40, 10, 0.6, "xor")
    X, y = problem.sample(seed=0)
    starts = [_start(X, width, name, settings.starts) for width in widths for name in THRESHOLDS]
    trained = [_train(X, y, width, settings.iterations) for width in widths]
    of = {name: [row for row in starts if row["threshold"] == name] for name in THRESHOLDS}
    least = min(row["pvalue"] for row in starts)
    excess = max(row["largest"] / row["bound"] for row in starts)
    first, last = (_slope(widths, [row[key] for row in trained]) for key in ("start", "end"))
    judgements = [
        Judgement("counts are binomial", "least p of the exact tests", least, 0.01 / len(starts), "at least"),
        Judgement("Lemma 5.15 bounds them", "largest count over the bound", excess, 1.0),
        Judgement(
            "τ = 1/m leaves half active", "least share", min(row["share"] for row in of["theorem"]), 0.45, "at least"
        ),
        Judgement("the quantile is sublinear at the start", "slope of log active on log m", first, 0.8),
        Judgement("and stays so in training", "slope of log active on log m", last, 0.85),
    ]
    parameters = {"n": 40, "d": 10, "separation": 0.6, "exponent": EXPONENT, "widths": widths}
    data = {"start": starts, "training": trained, "slopes": [first, last]}
    return RecipeOutcome(parameters=parameters, judgements=judgements, data=data)


def _start(X: Any, width: int, name: str, repeats: int) -> dict[str, Any]:
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
    test = binomtest(int(counts[:, 0].sum()), repeats * width, share)
    return {
        "width": width,
        "threshold": name,
        "tau": tau,
        "exact": share * width,
        "mean": float(counts.mean()),
        "share": float(counts.mean() / width),
        "largest": int(counts.max()),
        "bound": sublinear.activity_bound(width, tau * width**0.6),
        "pvalue": float(test.pvalue),
    }


def _train(X: Any, y: Any, width: int, iterations: int) -> dict[str, Any]:
    activity = width ** (EXPONENT - 1)
    model = RobustClassifier(
        width, activity, 0.2, adversary="fgm", domain="slice", iterations=iterations, random_state=0
    ).fit(X, y)
    history = model.history_
    return {
        "width": width,
        "start": float(history.mean_active[0]),
        "end": float(history.mean_active[-1]),
        "mean_active": [round(float(value), 2) for value in history.mean_active],
        "max_active": [int(value) for value in history.max_active],
        "robust_loss": [round(float(value), 4) for value in history.robust_loss],
        "drift": model.drift_,
    }


def _slope(widths: list[int], counts: list[float]) -> float:
    return float(np.polyfit(np.log(widths), np.log(counts), 1)[0])


RECIPE = Recipe(
    name="sublinear/activity",
    title="Lemma 5.15, Remark 5.17: active neurons against the width",
    seconds=10,
    expectation="exactly binomial counts; half of the neurons at τ = 1/m; sublinear in m with τ from the quantile",
    figure="activity",
    scales={
        "quick": ActivitySettings(widths=(2**8, 2**10, 2**12, 2**14), starts=20, iterations=60),
        "paper": ActivitySettings(widths=(2**8, 2**10, 2**12, 2**14, 2**16), starts=40, iterations=200),
    },
    measure=measure,
    paper_seconds=120,
)

"""Making neurons fire less, and what it costs: accuracy against activity on digits for four ways of doing it.

Two-layer networks of 512 neurons. From a trained GELU network: ReLUs shifted by τ instead, before and after a few
epochs of fine-tuning (`fewfire.torch.relufy`). From scratch with a ReLU: ℓ1 on activations, a target activity, and a
top-k teacher (`fewfire.torch.ActivityPenalty`). The verdict on a method is at its first setting that is sparse enough,
chosen by activity and not by what it costs; costs are compared seed by seed, with Student's intervals.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fewfire.papers import _effects
from fewfire.papers._claims import Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, grouped, rows_of
from fewfire.papers._statistics import spread_power
from fewfire.papers.sparse_activations.recipes._shared import falling, needs_torch
from fewfire.report._figure import SomeAxes, canvas, label_axes, log_axis, marked

WIDTH, SHARE = 512, 0.2
NOTHING, LITTLE, KEPT, LEVEL, END = 1.0, 1.5, 1.25, 0.01, 0.025
"""Points of accuracy that count as nothing and as little, the factor by which targets may be missed, levels."""
LOST, MISSED, FALL = 1.0, 1.5, 0.1
"""The power is for: a point more than is allowed; targets missed by this factor; ten points of activity per weight."""


@dataclass(frozen=True)
class InducingSettings:
    """Networks per point, epochs of training and of fine-tuning."""

    seeds: int
    epochs: int
    tuning: int


@needs_torch
def measure(settings: InducingSettings) -> RecipeOutcome:
    """Rows of method, setting, seed, activity and accuracy."""
    from fewfire.papers.sparse_activations.lazy_neurons._digits import measure_induced

    rows: list[Row] = []
    for seed in range(settings.seeds):
        rows += measure_induced(WIDTH, settings.epochs, settings.tuning, seed)
    parameters = {"width": WIDTH, **asdict(settings)}
    sentences = []
    for method in grouped(rows, "method"):
        points = _points(rows, method).items()
        parts = [f"{s:g}: {p['activity'].mean():.1%} fire, {p['accuracy'].mean():.1%} right" for s, p in points]
        sentences.append(f"{method}, {'; '.join(parts)}")
    return RecipeOutcome(parameters=parameters, judgements=judge(rows), measured=sentences, data={"rows": rows})


def judge(rows: list[Row]) -> list[Judgement]:
    """The claims on activities and accuracies by method, setting and seed."""
    plain, smooth, relued = (_points(rows, method)[0.0]["accuracy"] for method in ("l1", "gelu", "relufied"))
    activity = np.stack([point["activity"] for point in _points(rows, "l1").values()], axis=1)
    trend, change, noticed = falling(activity, FALL, LEVEL)
    aimed = [point["activity"] / target for target, point in _points(rows, "target").items()]
    targets = [(_effects.mean("activity over its target, the largest", values), values) for values in aimed]
    most, worst = max(targets, key=lambda pair: pair[0].high)
    judgements = [
        _cost("ReLUs in place of GELUs cost nothing after fine-tuning", smooth, relued, NOTHING),
        Judgement(
            "activity falls with the weight of ℓ1",
            "p of Page's trend test",
            trend,
            LEVEL,
            refuted_by="activities that do not fall from weight to weight",
            effect=_effects.mean("share that fires at the largest weight less that without", change),
            power=Power("ten points less at each weight", noticed),
        ),
        most.at_most(
            "targets are kept",
            "largest mean activity over its target, upper end",
            KEPT,
            "a target that may be missed by more than a quarter",
            Power(f"a target missed by a factor of {MISSED:g}", spread_power(worst, MISSED - KEPT, 1 - END)),
        ),
    ]
    few = SHARE * activity[:, 0].mean()
    for method in ("relufied", "l1", "target", "top-k"):
        sparse = next((p for p in _points(rows, method).values() if p["activity"].mean() <= few), None)
        after = sparse["accuracy"] if sparse else None
        judgements.append(_cost(f"a fifth of the activity, {method}, costs little", plain, after, LITTLE))
    return judgements


def _cost(claim: str, before: Any, after: Any, allowed: float) -> Judgement:
    """Points of accuracy lost, seed by seed; infinite where no setting is sparse enough."""
    if after is None:
        effect, power = _effects.exact("points of accuracy lost", np.inf), 1.0
    else:
        lost = 100 * (before - after)
        effect, power = _effects.mean("points of accuracy lost", lost), spread_power(lost, LOST, 1 - END)
    refuted_by = f"a loss that may be above {allowed:g} points, or no setting that is sparse enough"
    noticed = Power(f"{allowed + LOST:g} points lost", power)
    return effect.at_most(claim, "points of accuracy lost, upper end", allowed, refuted_by, noticed)


def _points(rows: list[Row], method: str) -> dict[float, Row]:
    """Activities and accuracies over seeds, by setting in the order measured."""
    mine = grouped(grouped(rows, "method")[method], "setting")
    return {
        setting: {key: np.array([row[key] for row in found]) for key in ("activity", "accuracy")}
        for setting, found in mine.items()
    }


def plot_inducing(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/inducing: accuracy against the share of neurons that fire, a line per method."""
    (rows,) = rows_of(info, "rows")
    figure, (axis,) = canvas(ax=ax)
    for place, method in enumerate(method for method in grouped(rows, "method") if method != "gelu"):
        points = _points(rows, method).values()
        activity, accuracy = ([np.mean(point[key]) for point in points] for key in ("activity", "accuracy"))
        errors = [1.96 * np.std(point["accuracy"]) / np.sqrt(len(point["accuracy"])) for point in points]
        axis.errorbar(activity, accuracy, yerr=errors, **marked(place, capsize=2), label=method)
    smooth = float(np.mean(_points(rows, "gelu")[0.0]["accuracy"]))
    axis.axhline(smooth, color="black", linestyle=":", label="GELU, all fire")
    log_axis(axis, "x")
    axis.set_ylim(0.85, 1.0)
    title = "Digits, 512 neurons: what fewer firing neurons cost"
    label_axes(axis, "share of neurons that fire", "test accuracy", title)
    return figure


RECIPE = Recipe(
    title="Accuracy against activity on digits: relufication, ℓ1, a target activity, a top-k teacher",
    seconds=(33, 500),
    expectation="a few percent of the neurons fire at about one point of accuracy",
    figure=plot_inducing,
    quick=InducingSettings(seeds=4, epochs=30, tuning=5),
    paper=InducingSettings(seeds=20, epochs=60, tuning=15),
    measure=measure,
)

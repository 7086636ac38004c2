"""Making neurons fire less, and what it costs: accuracy against activity on digits for four ways of doing it.

Two-layer networks of 512 neurons on scikit-learn's digits, several seeds each. From a trained GELU network: ReLUs
shifted by τ in its place, before and after a few epochs of fine-tuning (`fewfire.torch.relufy`). From scratch with a
ReLU: ℓ1 on activations, a target activity, and a top-k teacher (`fewfire.torch.ActivityPenalty`).

Expect relufication to cost nothing after fine-tuning, also at τ = 2, where one neuron in twenty fires, and the
penalties to reach a fifth of plain training's activity (a tenth of the neurons) for half a point. Refuted if activity
does not fall with the weight, if targets are missed, or if the loss cannot be told from 1.5 points. Each method is
judged at its first setting that is sparse enough, chosen by activity and not by what it costs; costs are compared seed
by seed, and intervals are Student's over seeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._optional import is_installed
from fewfire.experiments.recipes import _effects
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Effect, Judgement, Power
from fewfire.experiments.recipes._power import mean_power, rising_power
from fewfire.experiments.recipes._statistics import rising

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

WIDTH, SHARE = 512, 0.2
NOTHING, LITTLE, KEPT, LEVEL, END = 1.0, 1.5, 1.25, 0.01, 0.025
"""Points of accuracy that count as nothing and as little, the factor by which targets may be missed, levels."""
LOST, MISSED, FALL = 1.0, 1.5, 0.1
"""The power is for: a point more than is allowed; targets missed by this factor; ten points of activity per weight."""


@dataclass(frozen=True)
class InducingSettings:
    """Networks per point, epochs of training and of fine-tuning, and the points of each curve."""

    seeds: int
    epochs: int
    tuning: int
    thresholds: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0)
    weights: tuple[float, ...] = (0.0, 1.0, 10.0, 30.0)
    targets: tuple[float, ...] = (0.3, 0.2, 0.1, 0.05)
    kept: tuple[int, ...] = (64, 32, 16, 8)


def measure(settings: InducingSettings) -> RecipeOutcome:
    """Rows of method, setting, seed, activity and accuracy."""
    parameters = {"width": WIDTH, "seeds": settings.seeds, "epochs": settings.epochs, "tuning": settings.tuning}
    if not is_installed("torch"):
        reason = "PyTorch is not installed: pip install 'fewfire[torch]'"
        return RecipeOutcome(
            parameters=parameters, judgements=[], measured=[reason], data={"rows": [], "skipped": reason}
        )
    from fewfire.experiments.lazy_neurons import _induced, one_torch_thread

    rows: list[dict[str, Any]] = []
    with one_torch_thread():
        for seed in range(settings.seeds):
            for method, setting, activity, accuracy in _induced.measure_seed(settings, WIDTH, seed):
                found = {"activity": round(activity, 5), "accuracy": round(accuracy, 5)}
                rows.append({"method": method, "setting": setting, "seed": seed, **found})
    return RecipeOutcome(parameters=parameters, judgements=judge(rows), measured=_told(rows), data={"rows": rows})


def judge(rows: list[dict[str, Any]]) -> list[Judgement]:
    """The claims on activities and accuracies by method, setting and seed."""
    plain, smooth = _points(rows, "l1")[0.0], _points(rows, "gelu")[0.0]
    relued = _points(rows, "relufied")[0.0]
    activity = np.stack([point["activity"] for point in _points(rows, "l1").values()], axis=1)
    noise = float(np.sqrt(np.mean(np.var(activity, axis=0, ddof=1))))
    aimed = {target: point["activity"] / target for target, point in _points(rows, "target").items()}
    targets = {target: _effects.mean("activity over its target, the largest", aimed[target]) for target in aimed}
    worst = max(targets, key=lambda target: targets[target].high)
    judgements = [
        _cost(
            "ReLUs in place of GELUs cost nothing after fine-tuning", smooth["accuracy"], relued["accuracy"], NOTHING
        ),
        Judgement(
            "activity falls with the weight of ℓ1",
            "p of Page's trend test",
            rising(-activity),
            LEVEL,
            refuted_by="activities that do not fall from weight to weight",
            effect=_effects.mean(
                "share that fires at the largest weight less that without", activity[:, -1] - activity[:, 0]
            ),
            power=Power(
                "ten points less at each weight",
                rising_power([FALL * place for place in range(activity.shape[1])], noise, len(activity), LEVEL),
            ),
        ),
        Judgement(
            "targets are kept",
            "largest mean activity over its target, upper end",
            targets[worst].high,
            KEPT,
            refuted_by="a target that may be missed by more than a quarter",
            effect=targets[worst],
            power=Power(f"a target missed by a factor of {MISSED:g}", _mean_power(aimed[worst], MISSED - KEPT)),
        ),
    ]
    few = SHARE * plain["activity"].mean()
    for method in ("relufied", "l1", "target", "top-k"):
        sparse = next((p for p in _points(rows, method).values() if p["activity"].mean() <= few), None)
        claim = f"a fifth of the activity, {method}, costs little"
        judgements.append(_cost(claim, plain["accuracy"], sparse["accuracy"] if sparse else None, LITTLE))
    return judgements


def _cost(claim: str, before: Any, after: Any, allowed: float) -> Judgement:
    """Points of accuracy lost, seed by seed; no network that is sparse enough has lost everything."""
    lost = 100 * (before - after) if after is not None else np.array([np.inf])
    name = "points of accuracy lost"
    effect = _effects.mean(name, lost) if after is not None else Effect(name, np.inf, np.inf, np.inf)
    return Judgement(
        claim,
        "points of accuracy lost, upper end",
        effect.high,
        allowed,
        refuted_by=f"a loss that may be above {allowed:g} points, or no setting that is sparse enough",
        effect=effect,
        power=Power(f"{allowed + LOST:g} points lost", _mean_power(lost, LOST) if after is not None else 1.0),
    )


def _mean_power(values: ArrayLike, beyond: float) -> float:
    """How often an upper end is above what is allowed, when the mean is by `beyond`."""
    table: Sequence[float] = np.asarray(values).tolist()
    return mean_power(beyond, float(np.std(table, ddof=1)), len(table), 1 - END)


def _points(rows: list[dict[str, Any]], method: str) -> dict[float, dict[str, Any]]:
    """Activities and accuracies over seeds, by setting in the order measured."""
    mine = [row for row in rows if row["method"] == method]
    settings = dict.fromkeys(row["setting"] for row in mine)
    return {
        setting: {
            key: np.array([row[key] for row in mine if row["setting"] == setting]) for key in ("activity", "accuracy")
        }
        for setting in settings
    }


def _told(rows: list[dict[str, Any]]) -> list[str]:
    """One sentence per method."""
    sentences = []
    for method in dict.fromkeys(row["method"] for row in rows):
        points = _points(rows, method).items()
        parts = [f"{s:g}: {p['activity'].mean():.1%} fire, {p['accuracy'].mean():.1%} right" for s, p in points]
        sentences.append(f"{method}, {'; '.join(parts)}")
    return sentences


RECIPE = Recipe(
    name="sparse-activations/inducing",
    title="Accuracy against activity on digits: relufication, ℓ1, a target activity, a top-k teacher",
    seconds=33,
    expectation="a few percent of the neurons fire at about one point of accuracy",
    figure="inducing",
    scales={
        "quick": InducingSettings(seeds=4, epochs=30, tuning=5),
        "paper": InducingSettings(seeds=20, epochs=60, tuning=15),
    },
    measure=measure,
    paper_seconds=500,
)

"""Making neurons fire less, and what it costs: accuracy against activity on digits for four ways of doing it.

Two-layer networks of 512 neurons on scikit-learn's digits, several seeds each. From a trained GELU network: ReLUs
shifted by τ in its place, before and after a few epochs of fine-tuning (`fewfire.torch.relufy`). From scratch with a
ReLU: ℓ1 on activations, a target activity, and a top-k teacher (`fewfire.torch.ActivityPenalty`).

Expect relufication to cost nothing after fine-tuning, also at τ = 2, where one neuron in twenty fires, and the
penalties to reach a fifth of plain training's activity (a tenth of the neurons) for half a point. Refuted if activity
does not fall with the weight, if targets are missed, or if the loss cannot be told from 1.5 points: with 597 test
images and four seeds a method that loses 2.5 points passes with probability of about 1%.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewfire._optional import is_installed
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement
from fewfire.experiments.recipes._statistics import rising

WIDTH, SHARE = 512, 0.2


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
    from fewfire.experiments.lazy_neurons import _induced

    rows: list[dict[str, Any]] = []
    for seed in range(settings.seeds):
        for method, setting, activity, accuracy in _induced.measure_seed(settings, WIDTH, seed):
            found = {"activity": round(activity, 5), "accuracy": round(accuracy, 5)}
            rows.append({"method": method, "setting": setting, "seed": seed, **found})
    plain = _points(rows, "l1")[0.0]
    relued = _points(rows, "relufied")[0.0]["accuracy"] - _points(rows, "gelu")[0.0]["accuracy"]
    aimed = _points(rows, "target")
    few = SHARE * plain["activity"].mean()
    costs = {
        method: min(
            (
                _cost(plain["accuracy"], p["accuracy"])
                for p in _points(rows, method).values()
                if p["activity"].mean() <= few
            ),
            default=np.inf,
        )
        for method in ("relufied", "l1", "target", "top-k")
    }
    judgements = [
        Judgement(
            "ReLUs in place of GELUs cost nothing after fine-tuning",
            "points of accuracy lost, mean plus two standard errors",
            -100 * (relued.mean() - 2 * relued.std(ddof=1) / np.sqrt(len(relued))),
            1.0,
        ),
        Judgement(
            "activity falls with the weight of ℓ1",
            "p of Page's trend test",
            rising(-np.stack([point["activity"] for point in _points(rows, "l1").values()], axis=1)),
            0.01,
        ),
        Judgement(
            "targets are kept",
            "largest mean activity over its target",
            max(point["activity"].mean() / target for target, point in aimed.items()),
            1.25,
        ),
        *(
            Judgement(
                f"a fifth of the activity, {method}, costs little",
                "points of accuracy lost, mean plus two standard errors",
                100 * cost,
                1.5,
            )
            for method, cost in costs.items()
        ),
    ]
    return RecipeOutcome(parameters=parameters, judgements=judgements, measured=_told(rows), data={"rows": rows})


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


def _cost(plain: Any, sparse: Any) -> float:
    """Accuracy lost, seed by seed: mean plus two standard errors."""
    lost = plain - sparse
    return float(lost.mean() + 2 * lost.std(ddof=1) / np.sqrt(len(lost)))


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
    seconds=40,
    expectation="a few percent of the neurons fire at about one point of accuracy",
    figure="inducing",
    scales={
        "quick": InducingSettings(seeds=4, epochs=30, tuning=5),
        "paper": InducingSettings(seeds=20, epochs=60, tuning=15),
    },
    measure=measure,
    paper_seconds=500,
)

"""Fitting `ParityNetClassifier` on a parity and measuring it: what the recipes of the theorems share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fewfire.experiments.recipes._base import RecipeOutcome
from fewfire.learners import ParityNetClassifier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire.experiments.recipes._judgement import Judgement
    from fewfire.problems import Parity


@dataclass(frozen=True)
class FitSettings:
    """How many fits are made of each parity, with other data and other weights."""

    seeds: int


def fits(settings: FitSettings, problem: Parity, samples: int, **options: Any) -> list[dict[str, Any]]:
    """One row per seed; the options are those of `ParityNetClassifier`."""
    return [fit(problem, samples, seed, **options) for seed in range(settings.seeds)]


def fit(problem: Parity, samples: int, seed: int = 0, **options: Any) -> dict[str, Any]:
    """One row: the setting, the test error on 10,000 fresh examples, and whether the support was found."""
    X, y = problem.sample(samples, seed=2 * seed)
    model = ParityNetClassifier(k=problem.k, random_state=seed, **options).fit(X, y)
    error = 1 - model.score(*problem.sample(10_000, seed=2 * seed + 1))
    return {
        "n": problem.n,
        "k": problem.k,
        "samples": samples,
        "seed": seed,
        **options,
        "error": float(error),
        "support_found": model.support_ == problem.support,
        "lucky_neurons": len(model.lucky_neurons_),
    }


def outcome(judgements: Sequence[Judgement], rows: list[dict[str, Any]]) -> RecipeOutcome:
    """What a recipe of such fits returns."""
    return RecipeOutcome(parameters={"second_layer": "solver"}, judgements=judgements, data={"rows": rows})


def largest_error(rows: list[dict[str, Any]]) -> float:
    """Of all fits."""
    return max(float(row["error"]) for row in rows)

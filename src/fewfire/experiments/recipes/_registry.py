"""The list of recipes. A module is imported when its recipe is looked up."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fewfire._errors import invalid

if TYPE_CHECKING:
    from types import ModuleType

    from fewfire.experiments.recipes._base import Recipe

RECIPES = {
    "pareto/convergence-time": "pareto.convergence_time",
    "pareto/frontier": "pareto.frontier",
    "pareto/lottery-tickets": "pareto.lottery_tickets",
    "pareto/offline-parity": "pareto.offline_parity",
    "pareto/over-sparse": "pareto.over_sparse",
    "pareto/proposition-3": "pareto.proposition_3",
    "pareto/table2": "pareto.table2",
    "pareto/under-sparse": "pareto.under_sparse",
    "parities/separation": "parities.separation",
    "parities/theorem-2": "parities.theorem_2",
    "sparse-activations/bounds": "sparse_activations.bounds",
    "sparse-activations/learning-curves": "sparse_activations.learning_curves",
    "sparse-activations/learning-scaling": "sparse_activations.learning_scaling",
    "sparse-activations/rademacher": "sparse_activations.rademacher",
    "sparse-activations/statistical-queries": "sparse_activations.statistical_queries",
    "sublinear/activity": "sublinear.activity",
    "sublinear/cost": "sublinear.cost",
    "sublinear/digits": "sublinear.digits",
    "sublinear/robust-loss": "sublinear.robust_loss",
}
"""Name of each recipe, and its module below `fewfire.experiments.recipes`."""


def find(name: str) -> Recipe:
    """What a recipe shows, how long it takes and what to expect."""
    recipe: Recipe = _module(name).RECIPE
    return recipe


def run(name: str, scale: str = "quick", **options: Any) -> dict[str, Any]:
    """Run a recipe; "quick" takes about a minute at most, "paper" longer. Its `options` are those of `find(name)`."""
    find(name).check_options(options)
    result: dict[str, Any] = _module(name).run(scale, **options)
    return result


def _module(name: str) -> ModuleType:
    if name not in RECIPES:
        raise invalid("recipe", f"must be one of {', '.join(RECIPES)}", name)
    return importlib.import_module(f"fewfire.experiments.recipes.{RECIPES[name]}")

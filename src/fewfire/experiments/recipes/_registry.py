"""Which recipes there are: the modules below this folder. One is imported when its recipe is looked up."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewfire._validate import check_choice

if TYPE_CHECKING:
    from fewfire.experiments.recipes._base import Recipe, RecipeResult, Scale


def _modules() -> dict[str, str]:
    """The module of every recipe by its name: pareto/over_sparse.py holds the recipe "pareto/over-sparse"."""
    here = Path(__file__).parent
    found = [
        (paper.name, module.name)
        for paper in pkgutil.iter_modules([str(here)])
        if paper.ispkg
        for module in pkgutil.iter_modules([str(here / paper.name)])
        if not module.name.startswith("_")
    ]
    return {f"{paper}/{name}".replace("_", "-"): f"{__package__}.{paper}.{name}" for paper, name in sorted(found)}


_MODULES = _modules()

RECIPES = tuple(_MODULES)
"""The names of all recipes."""


def find(name: str) -> Recipe[Any]:
    """What a recipe shows, how long it takes, what to expect, and how to run it.

    Examples
    --------
    >>> from fewfire.experiments import recipes
    >>> recipes.find("pareto/frontier").title
    'Figures 1 and 4: success by width and samples, sparse start beside dense'
    """
    recipe: Recipe[Any] = importlib.import_module(_MODULES[check_choice("recipe", name, RECIPES)]).RECIPE
    return recipe


def run(name: str, scale: Scale = "quick", **options: Any) -> RecipeResult:
    """Run a recipe; "quick" takes about a minute at most, "paper" longer. Its `options` are those of `find(name)`.

    Examples
    --------
    >>> from fewfire.experiments import recipes
    >>> result = recipes.run("sparse-activations/statistical-queries")  # doctest: +SKIP
    >>> result.passed  # doctest: +SKIP
    True
    """
    return find(name).run(scale, **options)

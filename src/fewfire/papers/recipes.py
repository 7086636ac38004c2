"""Recipes: one per figure, table or claim of the papers. Each runs by itself and gives its own verdicts.

A recipe is one module in `papers/PAPER/recipes/`: the claim, the settings of both scales, `measure`, the judgements
and the name of its figure. Adding one is adding that file; it is imported when it is looked up.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewfire._atomic import replacing
from fewfire._errors import invalid
from fewfire._optional import require
from fewfire._validate import check_choice
from fewfire.papers._claims import Effect, Figure, Judgement, Power, Recipe, RecipeOutcome, RecipeResult, Scale

if TYPE_CHECKING:
    from fewfire.report._figure import SomeAxes  # a help text needs no report

__all__ = [
    "RECIPES",
    "Effect",
    "Judgement",
    "Power",
    "Recipe",
    "RecipeOutcome",
    "RecipeResult",
    "Scale",
    "find",
    "plot",
    "run",
    "save_figure",
]

DPI, COLOURS = 110, 64  # figures are small files


def _modules() -> dict[str, str]:
    """The module of every recipe by its name: pareto/recipes/over_sparse.py holds the recipe "pareto/over-sparse"."""
    here = Path(__file__).parent
    found = [
        (paper.name, module.name)
        for paper in pkgutil.iter_modules([str(here)])
        for module in pkgutil.iter_modules([str(here / paper.name / "recipes")])
        if not module.name.startswith("_")
    ]
    return {
        f"{paper}/{name}".replace("_", "-"): f"{__package__}.{paper}.recipes.{name}" for paper, name in sorted(found)
    }


_MODULES = _modules()

RECIPES = tuple(_MODULES)
"""The names of all recipes."""


def find(name: str) -> Recipe[Any]:
    """What a recipe shows, how long it takes, what to expect, and how to run it.

    Examples
    --------
    >>> from fewfire.papers import recipes
    >>> recipes.find("pareto/frontier").title
    'Figures 1 and 4: success by width and samples, sparse and dense starts'
    """
    recipe: Recipe[Any] = importlib.import_module(_MODULES[check_choice("recipe", name, RECIPES)]).RECIPE
    return recipe


def run(name: str, scale: Scale = "quick", **options: Any) -> RecipeResult:
    """Run a recipe; "quick" takes about a minute at most, "paper" longer. Its `options` are those of `find(name)`.

    Examples
    --------
    >>> from fewfire.papers import recipes
    >>> result = recipes.run("sparse-activations/statistical-queries")  # doctest: +SKIP
    >>> result.passed  # doctest: +SKIP
    True
    """
    return find(name).run(scale, **options)


def plot(info: RecipeResult | Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """Draw what a recipe returned, by the figure that the recipe names.

    A figure is at most 9.2 inches across, so that its text is readable at the width of a page.

    Parameters
    ----------
    info : RecipeResult or mapping
        The result of `fewfire.papers.recipes.run`, or the JSON that `fewfire reproduce -o` wrote.
    ax : axes of matplotlib, optional
        Draw into these instead, one per panel; their figure keeps its title.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import json
    >>> from fewfire.papers import recipes
    >>> with open("out/pareto-frontier.json") as file:  # written by: fewfire reproduce pareto/frontier -o out
    ...     result = json.load(file)
    >>> recipes.plot(result).get_suptitle()
    '(30, 3)-parity: share of 20 runs that succeed'
    """
    table = info.to_dict() if isinstance(info, RecipeResult) else info
    name = table.get("recipe")
    if name not in RECIPES:
        raise invalid("info", f"must be the result of one of {', '.join(RECIPES)}", name)
    return find(name).figure(table, ax=ax)


def save_figure(info: RecipeResult | Mapping[str, Any], path: Path) -> None:
    """Draw what a recipe returned into a file: a PDF, or a PNG of few colours.

    Few colours are a quarter of the size. The same result gives the same bytes.

    Examples
    --------
    >>> import json
    >>> from pathlib import Path
    >>> from fewfire.papers import recipes
    >>> result = json.loads(Path("out/pareto-frontier.json").read_text())  # by: fewfire reproduce -o out
    >>> recipes.save_figure(result, Path("frontier.pdf"))
    """
    drawn = BytesIO()
    if path.suffix == ".pdf":
        with replacing(path) as file:
            plot(info).savefig(file, format="pdf", metadata={"CreationDate": None})
        return
    plot(info).savefig(drawn, format="png", dpi=DPI)
    image = require("PIL.Image", "plot", "a figure").open(drawn).convert("RGB")
    with replacing(path) as file:
        image.quantize(COLOURS, dither=0).save(file, format="PNG", optimize=True)

"""Recipes: one a figure, table or claim of the papers. Each runs by itself and judges its own result.

A recipe is a module with `RECIPE`, which says what it shows, and `run(scale)`, which returns plain data that
`json.dumps` takes: parameters, sentences under "measured", rows, and under "judgement" the claim, the statistic used
and whether it passed; a "text" is printed as it is. `run` may take further keyword arguments, which `RECIPE.options`
lists. `fewfire.report.plot_recipe` draws the result.
"""

from fewfire.experiments.recipes._base import Recipe
from fewfire.experiments.recipes._registry import RECIPES, find, run

__all__ = ["RECIPES", "Recipe", "find", "run"]

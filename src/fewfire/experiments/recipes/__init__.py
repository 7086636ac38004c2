"""Recipes: one per figure, table or claim of the papers. Each runs by itself and judges its own result.

A recipe is one module in the folder of its paper: the claim, the settings of both scales, `measure`, the judgements
and the name of its figure (`fewfire.report.recipes` draws it). Adding one is adding that file.
"""

from fewfire.experiments.recipes._base import Recipe, RecipeOutcome, RecipeResult, Scale
from fewfire.experiments.recipes._judgement import Effect, Judgement, Power
from fewfire.experiments.recipes._registry import RECIPES, find, run

__all__ = ["RECIPES", "Effect", "Judgement", "Power", "Recipe", "RecipeOutcome", "RecipeResult", "Scale", "find", "run"]

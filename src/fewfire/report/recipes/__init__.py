"""A figure for every recipe, drawn from the plain data that the recipe returned: one file a kind of figure."""

from fewfire.report.recipes._figures import FIGURES, plot_recipe, save_recipe

__all__ = ["FIGURES", "plot_recipe", "save_recipe"]

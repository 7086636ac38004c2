"""Recipes of pareto: success frontiers, the two theorems, lottery tickets."""

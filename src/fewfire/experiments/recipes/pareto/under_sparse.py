"""pareto, Theorem 5/21: one truncated step from rows of s < k ones leaves a subnetwork that computes the parity.

The theorem promises correlation ½ − ε, an error of at most 25%. With the second layer fitted on the neurons that moved,
the error is near 0.
"""

from __future__ import annotations

from typing import Any

from fewfire.experiments.recipes._base import Recipe, check_scale, judgement, result
from fewfire.experiments.recipes.pareto._theorem import fit
from fewfire.problems import Parity

RECIPE = Recipe(
    name="pareto/under-sparse",
    title="Theorem 5: one truncated step from an under-sparse start",
    seconds=10,
    expectation="a subnetwork correlated with the (41, 4)-parity: test error at most 25%",
)


def run(scale: str = "quick") -> dict[str, Any]:
    """One row a fit."""
    seeds = range(5 if check_scale(scale) else 1)
    rows = [fit(Parity(41, 4), 50_000, seed, schedule="under_sparse", sparsity=2, width=3000) for seed in seeds]
    judgements = [judgement("a correlated subnetwork", "largest test error", max(row["error"] for row in rows), 0.25)]
    return result(RECIPE, scale, {"second_layer": "solver"}, judgements, rows=rows)

"""pareto, Theorem 4/16: one step from rows of s > 4k ones, then a convex problem, learns the parity.

The step is truncated between the gradients on and off the support, the practical setting of
`ParityNetClassifier(schedule="over_sparse")`. Expect errors near 0; without truncation the (30, 4)-parity stays above
10% even with two million examples.
"""

from __future__ import annotations

from typing import Any

from fewfire.experiments.recipes._base import Recipe, check_scale, judgement, result
from fewfire.experiments.recipes.pareto._theorem import fit
from fewfire.problems import Parity

RECIPE = Recipe(
    name="pareto/over-sparse",
    title="Theorem 4: one first-layer step from an over-sparse start, then the second layer",
    seconds=15,
    expectation="(50, 2) to at most 1% test error, (30, 4) to at most 10%",
)


def run(scale: str = "quick") -> dict[str, Any]:
    """One row a fit."""
    seeds = range(5 if check_scale(scale) else 1)
    two = [fit(Parity(50, 2), 20_000, seed, schedule="over_sparse", sparsity=9, width=400) for seed in seeds]
    four = [fit(Parity(30, 4), 500_000, seed, schedule="over_sparse", sparsity=17, width=800) for seed in seeds]
    judgements = [
        judgement("(50, 2) is learned", "largest test error", max(row["error"] for row in two), 0.01),
        judgement("(30, 4) is learned", "largest test error", max(row["error"] for row in four), 0.1),
    ]
    return result(RECIPE, scale, {"second_layer": "solver"}, judgements, rows=two + four)

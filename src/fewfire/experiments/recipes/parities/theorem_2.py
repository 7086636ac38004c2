"""parities, Theorem 2: on D_A, one step from the symmetric start gives features that hold the parity.

The first step is the theorem's; the second layer is then solved, where the theorem descends on both layers with rates
that need far wider networks. The rivals of the same width are in `parities/separation`.
"""

from __future__ import annotations

from typing import Any

from fewfire.experiments.recipes._base import Recipe, check_scale, judgement, result
from fewfire.experiments.recipes.pareto._theorem import fit
from fewfire.problems import CorrelatedParity

RECIPE = Recipe(
    name="parities/theorem-2",
    title="Theorem 2: the correlated parity is learned",
    seconds=20,
    expectation="at least 95% accuracy at (n, k) = (301, 5) and (501, 7)",
)


def run(scale: str = "quick") -> dict[str, Any]:
    """One row a fit."""
    seeds = range(5 if check_scale(scale) else 1)
    sizes = ((301, 5), (501, 7))
    rows, judgements = [], []
    for n, k in sizes:
        fits = [fit(CorrelatedParity(n, k), 100_000, seed, schedule="correlated", width=500) for seed in seeds]
        worst = max(row["error"] for row in fits)
        judgements.append(judgement(f"({n}, {k}) is learned", "largest test error", worst, 0.05))
        rows += fits
    return result(RECIPE, scale, {"second_layer": "solver"}, judgements, rows=rows)

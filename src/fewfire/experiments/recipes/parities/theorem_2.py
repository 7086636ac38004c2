"""parities, Theorem 2: on D_A, one step from the symmetric start gives features that hold the parity.

The first step is the theorem's; the second layer is then solved, where the theorem descends on both layers with rates
that need far wider networks. The rivals of the same width are in `parities/separation`.
"""

from __future__ import annotations

from typing import Any

from fewfire.experiments.recipes._base import Judgement, Recipe, RecipeOutcome
from fewfire.experiments.recipes._parity_fit import FitSettings, fits, largest_error, outcome
from fewfire.problems import CorrelatedParity

SIZES = ((301, 5), (501, 7))


def measure(settings: FitSettings) -> RecipeOutcome:
    """One row per fit."""
    rows: list[dict[str, Any]] = []
    judgements = []
    for n, k in SIZES:
        found = fits(settings, CorrelatedParity(n, k), 100_000, schedule="correlated", width=500)
        judgements.append(Judgement(f"({n}, {k}) is learned", "largest test error", largest_error(found), 0.05))
        rows += found
    return outcome(judgements, rows)


RECIPE = Recipe(
    name="parities/theorem-2",
    title="Theorem 2: the correlated parity is learned",
    seconds=20,
    expectation="at least 95% accuracy at (n, k) = (301, 5) and (501, 7)",
    figure="fits",
    scales={"quick": FitSettings(seeds=1), "paper": FitSettings(seeds=5)},
    measure=measure,
)

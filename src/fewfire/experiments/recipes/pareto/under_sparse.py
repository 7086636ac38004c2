"""pareto, Theorem 5/21: one truncated step from rows of s < k ones leaves a subnetwork that computes the parity.

The theorem promises correlation ½ − ε, an error of at most 25%. With the second layer fitted on the neurons that moved,
the error is near 0.
"""

from __future__ import annotations

from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement
from fewfire.experiments.recipes._parity_fit import FitSettings, fits, largest_error, outcome
from fewfire.problems import Parity


def measure(settings: FitSettings) -> RecipeOutcome:
    """One row per fit."""
    rows = fits(settings, Parity(41, 4), 50_000, schedule="under_sparse", sparsity=2, width=3000)
    return outcome([Judgement("a correlated subnetwork", "largest test error", largest_error(rows), 0.25)], rows)


RECIPE = Recipe(
    name="pareto/under-sparse",
    title="Theorem 5: one truncated step from an under-sparse start",
    seconds=10,
    expectation="a subnetwork correlated with the (41, 4)-parity: test error at most 25%",
    figure="fits",
    scales={"quick": FitSettings(seeds=1), "paper": FitSettings(seeds=5)},
    measure=measure,
    paper_seconds=50,
)

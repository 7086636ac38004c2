"""pareto, Theorem 4/16: one step from rows of s > 4k ones, then a convex problem, learns the parity.

The step is truncated between the gradients on and off the support, the practical setting of
`ParityNetClassifier(schedule="over_sparse")`. Expect errors near 0; without truncation the (30, 4)-parity stays above
10% even with two million examples.
"""

from __future__ import annotations

from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement
from fewfire.experiments.recipes._parity_fit import FitSettings, fits, largest_error, outcome
from fewfire.problems import Parity


def measure(settings: FitSettings) -> RecipeOutcome:
    """One row per fit."""
    two = fits(settings, Parity(50, 2), 20_000, schedule="over_sparse", sparsity=9, width=400)
    four = fits(settings, Parity(30, 4), 500_000, schedule="over_sparse", sparsity=17, width=800)
    judgements = [
        Judgement("(50, 2) is learned", "largest test error", largest_error(two), 0.01),
        Judgement("(30, 4) is learned", "largest test error", largest_error(four), 0.1),
    ]
    return outcome(judgements, two + four)


RECIPE = Recipe(
    name="pareto/over-sparse",
    title="Theorem 4: one first-layer step from an over-sparse start, then the second layer",
    seconds=15,
    expectation="(50, 2) to at most 1% test error, (30, 4) to at most 10%",
    figure="fits",
    scales={"quick": FitSettings(seeds=1), "paper": FitSettings(seeds=5)},
    measure=measure,
    paper_seconds=75,
)

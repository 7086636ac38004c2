"""Lower estimates of the Rademacher complexity of H(n, s, k) over s and over k, under the bounds of section 5.

Expect every estimate below Conjecture 20 with constant 1, close to it at s = k = 1 (about
0.9 of it), falling behind as s grows: addresses that keep neurons apart use up the scale W. Theorem 19 stands one to
two orders of magnitude above. An estimate is only ever from below, so it can refute a bound and not prove one.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewfire._random import Stream
from fewfire.experiments.recipes._base import Judgement, Recipe, RecipeOutcome
from fewfire.experiments.sparse_activations import rademacher_table


@dataclass(frozen=True)
class RademacherSettings:
    """Inputs and examples, the scales of the class, the largest width, and the effort of the search."""

    n: int
    m: int
    W: float
    B: float
    largest: int
    draws: int
    restarts: int
    steps: int


def measure(settings: RademacherSettings) -> RecipeOutcome:
    """Estimates and bounds over s at k = 1 ("over_s") and over k at the largest s ("over_k")."""
    search = {key: getattr(settings, key) for key in ("draws", "restarts", "steps")}
    largest = settings.largest
    X = Stream(0, "recipe/rademacher").sign_rows(settings.m, settings.n)
    table = rademacher_table(X, settings.W, settings.B, max_block=largest, **search)
    powers = [1 << power for power in range(largest.bit_length())]
    over_s = [table.row(s, 1) for s in powers]
    over_k = [table.row(largest, k) for k in powers]
    rows = over_s + over_k
    least = [(row, row["estimate"] - 3 * row["standard_error"]) for row in rows]
    judgements = [
        Judgement(
            "eq. (15) with every constant holds",
            "largest (estimate − 3 standard errors)/bound",
            max(value / row["explicit"] for row, value in least),
            1.0,
        ),
        Judgement(
            "no counterexample to Conjecture 20 with constant 1",
            "largest (estimate − 3 standard errors)/bound",
            max(value / row["conjecture_20"] for row, value in least),
            1.0,
        ),
    ]
    parameters = {"n": settings.n, "m": settings.m, "W": settings.W, "B": settings.B, **search}
    return RecipeOutcome(parameters=parameters, judgements=judgements, data={"over_s": over_s, "over_k": over_k})


RECIPE = Recipe(
    name="sparse-activations/rademacher",
    title="Rademacher complexity over s and k, under Theorem 19, Conjecture 20 and the classical bound",
    seconds=5,
    expectation="every estimate below the explicit form of eq. (15) and below Conjecture 20",
    figure="rademacher",
    scales={
        "quick": RademacherSettings(n=12, m=512, W=1.0, B=2.0, largest=64, draws=12, restarts=3, steps=50),
        "paper": RademacherSettings(n=12, m=2048, W=1.0, B=2.0, largest=256, draws=32, restarts=8, steps=100),
    },
    measure=measure,
)

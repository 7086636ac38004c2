"""Learning curves of the low-degree algorithm on networks with few active neurons (Lemma 7, Theorem 8).

Targets: a junta of 3 of 20 inputs, the indexing function, the network of Appendix A, and random members of
H(16, 16, 2). For each degree d, test error over variance against the number of samples m.

Expect each curve to fall to the share of the spectrum above d, from above, and with D monomials to be there by the
factor m/(m − D): what is missed acts like label noise. At the largest m this is judged to 5%, target by target and
degree by degree, where the factor is up to 1.5. Juntas and indexing are learned exactly once d reaches their degree (3
and b + 1) and m passes D.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._random import Stream
from fewfire.experiments.recipes import _effects
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Effect, Judgement, Power
from fewfire.experiments.recipes._power import mean_power
from fewfire.experiments.recipes.sparse_activations._learning import relative_error, relative_tail
from fewfire.fourier import monomial_count
from fewfire.networks import TwoLayer, construct

if TYPE_CHECKING:
    from collections.abc import Sequence

WITHIN, OFF, EXACT = 0.05, 0.1, 0.001
"""How near the error is to be, the deviation that the power is for, and what counts as no error."""
NONE = 1e-12
"""Tails below are none."""


@dataclass(frozen=True)
class CurvesSettings:
    """Sizes of the training sets, ascending, and draws at each."""

    samples: tuple[int, ...]
    seeds: int


def measure(settings: CurvesSettings) -> RecipeOutcome:
    """Rows of (target, degree, samples, mean error, errors, tail), errors and tail as shares of the variance."""
    samples, seeds = settings.samples, range(settings.seeds)
    rows: list[dict[str, Any]] = []
    for name, net in _targets().items():
        for degree in (1, 2, 3, 4):
            count, tail = monomial_count(net.inputs, degree), relative_tail(net, degree)
            for m in samples:
                if m < 1.5 * count:
                    continue  # fewer samples than monomials: ridge regression, another story
                errors = [relative_error(net, degree, m, seed) for seed in seeds]
                rows.append(
                    {
                        "target": name,
                        "degree": degree,
                        "monomials": count,
                        "samples": m,
                        "error": sum(errors) / len(errors),
                        "errors": errors,
                        "tail": tail,
                        "predicted": tail * m / (m - count),
                    }
                )
    parameters = {"samples": list(samples), "seeds": settings.seeds}
    return RecipeOutcome(parameters=parameters, judgements=judge(rows), data={"rows": rows})


def judge(rows: Sequence[dict[str, Any]]) -> list[Judgement]:
    """The claims on errors by target, degree and samples."""
    largest = [row for row in rows if row["samples"] == max(row["samples"] for row in rows)]
    missed = [np.log(np.array(row["errors"]) / row["predicted"]) for row in largest if row["tail"] >= NONE]
    ends = [_effects.mean("", logs) for logs in missed]
    worst = max(ends, key=_distance)
    spread = max(float(np.std(logs, ddof=1)) for logs in missed)
    exact = [error for row in rows if row["tail"] < NONE for error in row["errors"]]
    none = max(exact, default=float("nan"))
    return [
        Judgement(
            f"the error is the tail, times m/(m − D), within {WITHIN:.0%}",
            "largest distance from it of an end of the 95% intervals, at the largest m",
            exp(_distance(worst)) - 1,
            WITHIN,
            refuted_by="a target and degree at which the mean error may be 5% off",
            effect=Effect(
                "mean error over the tail times m/(m − D), where farthest",
                *(exp(end) for end in (worst.value, worst.low, worst.high)),
            ),
            # Found out is what is off already where it is least visible, in the cell that spreads most.
            power=Power(
                f"an error off by {OFF:.0%} in one cell",
                mean_power(log((1 + OFF) / (1 + WITHIN)), spread, len(missed[0]), 0.975),
            ),
        ),
        Judgement(
            "a target of degree at most d is learned exactly",
            f"largest error of {len(exact)} fits where the tail is 0",
            none,
            EXACT,
            refuted_by="one fit with an error above a thousandth of the variance",
            effect=_effects.exact("largest error over the variance", none),
            power=Power("any such fit: every one is checked", 1.0),
        ),
    ]


def _distance(found: Effect) -> float:
    return max(abs(found.low), abs(found.high))


def _targets() -> dict[str, TwoLayer]:
    table = Stream(3, "recipe/curves").signs(8)
    return {
        "junta of 3 of 20": construct.junta(20, [2, 7, 11], table),
        "indexing, b = 3": construct.indexing(3),
        "Appendix A, b = 2, q = 12": construct.dense_weights(2, 12, seed=0),
        "random dense member (16, 16, 2)": construct.random_member(16, 16, 2, 0),
        "random junta member (16, 16, 2)": construct.random_member(16, 16, 2, 0, "junta"),
    }


RECIPE = Recipe(
    name="sparse-activations/learning-curves",
    title="Low-degree learning curves on juntas, indexing, Appendix A networks and random members of H(n, s, k)",
    seconds=2,
    expectation="test error within 5% of the tail above the degree times m/(m − D); 0 where the tail is 0",
    figure="learning_curves",
    scales={
        "quick": CurvesSettings(samples=(500, 2000, 8000), seeds=8),
        "paper": CurvesSettings(samples=(250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000), seeds=8),
    },
    measure=measure,
    paper_seconds=150,
)

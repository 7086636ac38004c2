"""Learning curves of the low-degree algorithm on networks with few active neurons (Lemma 7, Theorem 8).

Targets: a junta of 3 of 20 inputs, the indexing function, the network of Appendix A, and random members of
H(16, 16, 2). For each degree d, test error over variance against the number of samples m.

Expect each curve to fall to the share of the spectrum above d, from above, and with D
monomials to be there by the factor m/(m − D): what is missed acts like label noise. Juntas and indexing are learned
exactly once d reaches their degree (3 and b + 1) and m passes D.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fewfire._random import Stream
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement
from fewfire.experiments.recipes.sparse_activations._learning import relative_error, relative_tail
from fewfire.fourier import monomial_count
from fewfire.networks import TwoLayer, construct


@dataclass(frozen=True)
class CurvesSettings:
    """Sizes of the training sets, ascending, and draws averaged at each."""

    samples: tuple[int, ...]
    seeds: int


def measure(settings: CurvesSettings) -> RecipeOutcome:
    """Rows of (target, degree, samples, error, tail), error and tail as shares of the variance."""
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
                        "tail": tail,
                        "predicted": tail * m / (m - count),
                    }
                )
    largest = [row for row in rows if row["samples"] == samples[-1]]
    judgements = [
        Judgement(
            "the error is the tail, times m/(m − D)",
            "largest |error − predicted| at the largest m",
            max(abs(row["error"] - row["predicted"]) for row in largest),
            0.05,
        ),
        Judgement(
            "a target of degree at most d is learned exactly",
            "largest error where the tail is 0",
            max(row["error"] for row in largest if row["tail"] < 1e-12),
            0.001,
        ),
    ]
    parameters = {"samples": list(samples), "seeds": settings.seeds}
    return RecipeOutcome(parameters=parameters, judgements=judgements, data={"rows": rows})


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
    seconds=5,
    expectation="test error falls to the spectrum's tail above the degree; to 0 where the tail is 0",
    figure="learning_curves",
    scales={
        "quick": CurvesSettings(samples=(500, 2000, 8000), seeds=1),
        "paper": CurvesSettings(samples=(250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000), seeds=5),
    },
    measure=measure,
    paper_seconds=150,
)

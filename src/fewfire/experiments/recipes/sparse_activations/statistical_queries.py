"""Theorem 14: parities from statistical queries take about 2^n τ² of them; Gaussian elimination takes n examples.

For random parities and an oracle that hides the target as well as it may, the share learned within q queries, for
single correlations in random order and for families of 1/(4τ²) to 1/(16τ²) parities a query.

Expect single correlations to need 2^n queries whatever the tolerance; families to need 4 to
16 times 2^n τ², and a few more; no success rate above (q/τ² + 9)/2^n, the theorem with its constant; elimination
never to fail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewfire._random import Stream
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement
from fewfire.learners.baselines import GaussianElimination
from fewfire.learners.statistical_queries import SQOracle, Strategy, learn_parity
from fewfire.problems import Parity
from fewfire.theory import sparse_activations as theory


@dataclass(frozen=True)
class QueriesSettings:
    """Bits, random parities, and tolerances of the oracle."""

    n: int
    targets: int
    tolerances: tuple[float, ...] = (0.4, 0.12, 0.06, 0.03)


def measure(settings: QueriesSettings) -> RecipeOutcome:
    """Rows of (strategy, tolerance, queries, success, largest possible success)."""
    n, targets, tolerances = settings.n, settings.targets, settings.tolerances
    problems = _random_parities(n, targets)
    rows: list[dict[str, Any]] = []
    excess, cost = [0.0], [0.0]
    strategies: tuple[Strategy, ...] = ("random", "families")
    for strategy in strategies:
        for tolerance in tolerances:
            needed = np.array([_queries_needed(p, tolerance, strategy, seed) for seed, p in enumerate(problems)])
            for queries in [2**j for j in range(n + 1)]:
                share = float(np.mean(needed <= queries))
                most = theory.parity_success_explicit(n, tolerance, queries)
                error = math.sqrt(max(most * (1 - most), 1e-12) / targets)
                excess.append((share - most) / error)
                rows.append(
                    {"strategy": strategy, "tolerance": tolerance, "queries": queries, "success": share, "most": most}
                )
            if strategy == "families" and tolerance < 0.25:
                cost.append(float(needed.max()) / theory.parity_queries(n, tolerance))
    elimination = _elimination(problems)
    judgements = [
        Judgement(
            "no learner beats Theorem 14", "largest excess over (q/τ² + 9)/2^n, in standard errors", max(excess), 4.0
        ),
        Judgement("families come within a constant of it", "largest queries/(2^n τ²)", max(cost), 32.0),
        Judgement("elimination learns every parity", "share of targets found", elimination["success"], 1.0, "at least"),
    ]
    parameters = {"n": n, "targets": targets, "tolerances": list(tolerances), "answers": "adversarial"}
    data = {"rows": rows, "elimination": elimination}
    return RecipeOutcome(parameters=parameters, judgements=judgements, data=data)


def _random_parities(n: int, count: int) -> list[Parity]:
    """Uniformly random non-empty supports."""
    signs = Stream(0, "recipe/queries").sign_rows(2 * count, n)
    supports = [np.flatnonzero(row < 0).tolist() for row in signs if (row < 0).any()]
    return [Parity(n, support=support) for support in supports[:count]]


def _queries_needed(problem: Parity, tolerance: float, strategy: Strategy, seed: int) -> float:
    """Queries until the support was found; infinite when it was not."""
    found = learn_parity(SQOracle(problem, tolerance, "adversarial", seed), strategy, seed=seed)
    return found.queries if tuple(sorted(found.support)) == problem.support else math.inf


def _elimination(problems: list[Parity]) -> dict[str, float]:
    """Share of parities found from n + 20 examples, and the most examples one of them needed."""
    fits = []
    for seed, problem in enumerate(problems):
        X, y = problem.sample(problem.n + 20, seed)
        fits.append((GaussianElimination().fit(X, y), problem.support))
    success = np.mean([fit.support_ == support for fit, support in fits])
    return {"success": float(success), "most_examples": max(float(fit.samples_used_) for fit, _ in fits)}


RECIPE = Recipe(
    name="sparse-activations/statistical-queries",
    title="Theorem 14: success against queries and tolerance for parities, Gaussian elimination beside it",
    seconds=10,
    expectation="success never above (q/τ² + 9)/2^n; families within 16 times the bound; elimination always right",
    figure="statistical_queries",
    scales={"quick": QueriesSettings(n=10, targets=60), "paper": QueriesSettings(n=12, targets=200)},
    measure=measure,
    paper_seconds=500,
)

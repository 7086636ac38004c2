"""Theorem 14: parities from statistical queries take about 2^n τ² of them; Gaussian elimination takes n examples.

For random parities and an oracle that hides the target as well as it may, the share learned within q queries, for
single correlations in random order and for families of 1/(4τ²) to 1/(16τ²) parities a query.

Expect single correlations to need 2^n queries whatever the tolerance; families no more than 16 times 2^n τ² and two for
each bit of a family of 2^g parities, an identity of the algorithm that is checked on every target; no success rate
above (q/τ² + 9)/2^n, the theorem with its constant; elimination never to fail. The theorem holds for every learner, so
a learner cannot refute it unless it is wrong: what the first claim would find out is an oracle that tells too much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom

from fewfire._random import Stream
from fewfire.experiments.recipes import _effects
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Effect, Judgement, Power
from fewfire.learners.baselines import GaussianElimination
from fewfire.learners.statistical_queries import SQOracle, Strategy, learn_parity
from fewfire.problems import Parity
from fewfire.theory import sparse_activations as theory

if TYPE_CHECKING:
    from collections.abc import Sequence

BEYOND, MISSED = 4.0, 0.05
"""Standard errors that chance is granted, and the share of parities missed that the power is for."""


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
    costs: list[dict[str, Any]] = []
    strategies: tuple[Strategy, ...] = ("random", "families")
    for strategy in strategies:
        for tolerance in tolerances:
            needed = np.array([_queries_needed(p, tolerance, strategy, seed) for seed, p in enumerate(problems)])
            for queries in [2**j for j in range(n + 1)]:
                share = float(np.mean(needed <= queries))
                most = theory.parity_success_explicit(n, tolerance, queries)
                rows.append(
                    {"strategy": strategy, "tolerance": tolerance, "queries": queries, "success": share, "most": most}
                )
            if strategy == "families":
                allowed = _families_allowed(n, tolerance)
                costs.append({"tolerance": tolerance, "most_queries": float(needed.max()), "allowed": allowed})
    elimination = _elimination(problems)
    parameters = {"n": n, "targets": targets, "tolerances": list(tolerances), "answers": "adversarial"}
    data = {"rows": rows, "families": costs, "elimination": elimination}
    silent = [tolerance for tolerance in tolerances if theory.parity_success_explicit(n, tolerance, 1) >= 1]
    told = f"(q/τ² + 9)/2^n says nothing, from the first query on, at the tolerances {silent}."
    return RecipeOutcome(
        parameters=parameters,
        judgements=judge(targets, rows, costs, elimination),
        measured=[told] if silent else [],
        data=data,
    )


def judge(
    targets: int,
    rows: Sequence[dict[str, Any]],
    families: Sequence[dict[str, Any]],
    elimination: dict[str, float],
) -> list[Judgement]:
    """The claims on success by strategy, tolerance and queries; on queries of families; on elimination."""
    telling = [row for row in rows if row["most"] < 1]
    nearest = max(telling, key=lambda row: _excess(row, targets))
    cost = max(row["most_queries"] / row["allowed"] for row in families)
    found = round(elimination["success"] * targets)
    beyond = _effects.share("", round(nearest["success"] * targets), targets)
    return [
        Judgement(
            "no learner beats Theorem 14",
            "largest excess over (q/τ² + 9)/2^n where this is below 1, in standard errors",
            _excess(nearest, targets),
            BEYOND,
            refuted_by="a number of queries at which more targets are found than the theorem allows, beyond chance",
            effect=Effect(
                "share found less the share allowed, where it is nearest",
                *(end - nearest["most"] for end in (beyond.value, beyond.low, beyond.high)),
            ),
            power=Power("a learner that finds twice as many as allowed", _twice_noticed(telling, targets)),
        ),
        Judgement(
            "families need at most 16·2^n τ² queries, and 2 for each bit of a family",
            f"largest queries over this of {targets} targets at {len(families)} tolerances",
            cost,
            1.0,
            refuted_by="one target that takes more",
            effect=_effects.exact("largest queries over what is allowed", cost),
            power=Power("any such target: every one is checked", 1.0),
        ),
        Judgement(
            "elimination learns every parity",
            "share of targets found",
            elimination["success"],
            1.0,
            "at least",
            refuted_by="one parity that is not found",
            effect=_effects.share("share of parities found", found, targets),
            power=Power("one parity in twenty is not found", 1 - (1 - MISSED) ** targets),
        ),
    ]


def _excess(row: dict[str, Any], targets: int) -> float:
    """The share found less that allowed, in standard errors of the latter."""
    error = math.sqrt(max(row["most"] * (1 - row["most"]), 1e-12) / targets)
    return float((row["success"] - row["most"]) / error)


def _twice_noticed(rows: Sequence[dict[str, Any]], targets: int) -> float:
    """How often a strategy and tolerance shows an excess at its most telling number of queries: the least of all."""
    counts = np.arange(targets + 1)
    best: dict[tuple[str, float], float] = {}
    for row in rows:
        beyond = [_excess({**row, "success": count / targets}, targets) > BEYOND for count in counts]
        seen = float(binom.pmf(counts, targets, min(1.0, 2 * row["most"])) @ np.array(beyond))
        key = (row["strategy"], row["tolerance"])
        best[key] = max(best.get(key, 0.0), seen)
    return min(best.values())


def _families_allowed(n: int, tolerance: float) -> float:
    """16·2^n τ² + 2g, or for lone parities 2^n: all families of 2^g, then four queries for each two bits inside.

    g is the largest even number with 2^(−g/2) > 2τ, so 2^(n − g) ≤ 16·2^n τ².
    """
    size = min(2 * max(math.ceil(-math.log2(2 * tolerance)) - 1, 0), n)
    return float(min(16 * tolerance**2, 1.0) * 2**n + 2 * size)


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
    seconds=6,
    expectation="success never above (q/τ² + 9)/2^n; families within 16·2^n τ² and a few; elimination always right",
    figure="statistical_queries",
    scales={"quick": QueriesSettings(n=10, targets=60), "paper": QueriesSettings(n=12, targets=200)},
    measure=measure,
    paper_seconds=500,
)

"""Fitting `ParityNetClassifier` on a parity and measuring it: what the recipes of the theorems share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire.learners import ParityNetClassifier

if TYPE_CHECKING:
    from fewfire.problems import CorrelatedParity, Parity


def fit(problem: Parity | CorrelatedParity, samples: int, seed: int = 0, **options: Any) -> dict[str, Any]:
    """One row: the setting, the test error on 10,000 fresh examples, and whether the support was found."""
    X, y = problem.sample(samples, seed=2 * seed)
    model = ParityNetClassifier(k=problem.k, random_state=seed, **options).fit(X, y)
    error = 1 - model.score(*problem.sample(10_000, seed=2 * seed + 1))
    return {
        "n": problem.n,
        "k": problem.k,
        "samples": samples,
        "seed": seed,
        **options,
        "error": float(error),
        "support_found": model.support_ == problem.support,
        "lucky_neurons": len(model.lucky_neurons_),
    }

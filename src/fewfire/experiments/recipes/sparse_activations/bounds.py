"""Sensitivities and degrees of random members of H(n, s, k), exact, beside Lemmas 9 and 10 and Theorem 8.

Expect every bound to hold: for random members the printed ones with constant 1 by a factor of
hundreds, the sharp ones AS ≤ 4k²W² and NS_ρ ≤ 2(1 − ρ)k²W² by a factor of ten to a hundred. Networks built for it
attain the first: twice a parity, k times over, has AS = 4k²W² exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewfire._cube import cube
from fewfire.experiments.recipes._base import Judgement, Recipe, RecipeOutcome
from fewfire.experiments.sparse_activations import compare_member
from fewfire.networks import TwoLayer, construct


def extremal_network(n: int, p: int, k: int) -> TwoLayer:
    """k copies of Σ_α χ(α) σ(⟨α, x⟩ − p + 2) over the patterns of the first p ≥ 2 of n inputs: 2k times their parity.

    At most k neurons fire, W² = p, and AS = 4k²W², the most there is.
    """
    patterns = cube(p).astype(np.float64)
    hidden = np.hstack([patterns, np.zeros((2**p, n - p))])
    return TwoLayer(
        np.tile(hidden, (k, 1)), np.full(k * 2**p, 2.0 - p), np.tile(patterns.prod(axis=1), k).astype(np.float64)
    )


@dataclass(frozen=True)
class BoundsSettings:
    """Inputs of the random members, how many are drawn of each size, and what the bounds are asked for."""

    inputs: tuple[int, ...]
    seeds: int
    epsilon: float = 0.1
    delta: float = 0.05
    rho: float = 0.9


def measure(settings: BoundsSettings) -> RecipeOutcome:
    """One row for each network and bound."""
    epsilon, delta, rho = settings.epsilon, settings.delta, settings.rho
    networks = [
        (f"{kind} {(n, s, k)} seed {seed}", k, construct.random_member(n, s, k, seed, kind))
        for kind in ("dense", "junta")
        for n in settings.inputs
        for s in (4, 16, 64)
        for k in (1, 2, 4)
        for seed in range(settings.seeds)
    ]
    networks += [(f"extremal p={p} k={k}", k, extremal_network(8, p, k)) for p in (2, 4, 6) for k in (1, 3)]
    rows: list[dict[str, Any]] = []
    for name, k, net in networks:
        for comparison in compare_member(net, k, epsilon, delta, rho=rho):
            if comparison.measured is not None:
                rows.append({"network": name} | comparison.as_dict())
    judgements = []
    for statement in ("Lemma 9", "4k²W² (sharp)", "Lemma 10", "2(1 − ρ)k²W² (sharp)", "Theorem 8", "4k²W²/ε (sharp)"):
        ratios = [_ratio(row) for row in rows if row["statement"] == statement]
        judgements.append(Judgement(f"{statement} holds", "largest measured/bound", max(ratios), 1 + 1e-9))
    attained = [_ratio(row) for row in rows if "extremal" in row["network"] and row["statement"] == "4k²W² (sharp)"]
    judgements.append(Judgement("4k²W² is attained", "smallest measured/bound", min(attained), 1 - 1e-9, "at least"))
    parameters = {"eps": epsilon, "delta": delta, "rho": rho}
    return RecipeOutcome(parameters=parameters, judgements=judgements, data={"rows": rows})


def _ratio(row: dict[str, Any]) -> float:
    return 0.0 if row["measured"] == 0 else float(row["measured"] / row["bound"])


RECIPE = Recipe(
    name="sparse-activations/bounds",
    title="Measured sensitivities and degrees beside Lemma 9, Lemma 10, Theorem 8 and their sharp forms",
    seconds=2,
    expectation="every bound holds; twice a parity attains the sharp average sensitivity",
    figure="bounds",
    scales={
        "quick": BoundsSettings(inputs=(8, 12), seeds=2),
        "paper": BoundsSettings(inputs=(8, 12, 16), seeds=5),
    },
    measure=measure,
)

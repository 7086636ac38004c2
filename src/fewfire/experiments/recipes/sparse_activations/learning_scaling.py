"""What the low-degree algorithm needs as n, s and k grow, on random members of H(n, s, k).

- n: samples until a 1-sparse junta of 8 neurons is learned to a tenth of its variance, at degree 3;
- s: the degree that holds nine tenths of the variance, at k = 1;
- k: test error over variance at degree 3 and 2000 samples, with 8 neurons for each active one.

Expect samples in proportion to C(n, ≤ 3), so n to a power between 2.5 and 3; a degree that
grows by 0.5 to 1 each time s doubles, the log s of Theorem 13; and an error that does not grow with k, where the
degree of Theorem 8 grows like k⁸.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewfire.experiments.recipes._base import Judgement, Recipe, RecipeOutcome
from fewfire.experiments.recipes.sparse_activations._learning import relative_error, variance
from fewfire.fourier import monomial_count, spectrum
from fewfire.networks import TwoLayer, construct
from fewfire.theory import sparse_activations as theory

DEGREE, GOAL = 3, 0.1


@dataclass(frozen=True)
class ScalingSettings:
    """Inputs at which samples are counted (on two members each), and members averaged for degrees and errors."""

    inputs: tuple[int, ...]
    seeds: int


def measure(settings: ScalingSettings) -> RecipeOutcome:
    """Rows over n, over s and over k."""
    seeds = range(settings.seeds)
    over_n = [_samples_needed(n, seeds[:2]) for n in settings.inputs]
    over_s = [_degree_needed(s, kind, seeds) for kind in ("dense", "junta") for s in (4, 8, 16, 32, 64, 128)]
    over_k = [_error(k, seeds) for k in (1, 2, 4, 8)]
    slopes = {kind: _slope([row for row in over_s if row["kind"] == kind]) for kind in ("dense", "junta")}
    ratios = [row["samples"] / row["monomials"] for row in over_n]
    spread, growth = max(ratios) / min(ratios), over_k[-1]["error"] / over_k[0]["error"]
    slope = "slope of the degree over log₂ s"
    judgements = [
        Judgement("samples follow C(n, ≤ d)", "largest over smallest samples/C(n, ≤ d)", spread, 2.0),
        Judgement("the degree grows with log s", f"smallest {slope}", min(slopes.values()), 0.4, "at least"),
        Judgement("the degree grows no faster than log s", f"largest {slope}", max(slopes.values()), 1.1),
        Judgement("k costs nothing here", "error at k = 8 over error at k = 1", growth, 1.5),
    ]
    return RecipeOutcome(
        parameters={"degree": DEGREE, "goal": GOAL, "seeds": settings.seeds},
        judgements=judgements,
        data={"over_n": over_n, "over_s": over_s, "over_k": over_k, "slopes": slopes},
    )


def _samples_needed(n: int, seeds: range) -> dict[str, Any]:
    """The fewest samples, in steps of a quarter of C(n, ≤ 3), at which the mean error reaches the goal."""
    count = monomial_count(n, DEGREE)
    nets = [_varying(n, 8, 1, seed, "junta") for seed in seeds]
    quarters = 1
    while np.mean([relative_error(net, DEGREE, count * quarters // 4, quarters) for net in nets]) > GOAL:
        quarters += 1
    return {"n": n, "monomials": count, "samples": count * quarters // 4}


def _degree_needed(s: int, kind: str, seeds: range) -> dict[str, Any]:
    """The mean degree that holds all but a tenth of the variance, and the sharp bound on it."""
    degrees, bounds = [], []
    for seed in seeds:
        net = _varying(14, s, 1, seed, kind)
        picture = spectrum(net)
        allowed = GOAL * variance(picture)
        degrees.append(picture.degree_for(allowed))
        bounds.append(theory.degree_sharp(1, net.norms().W, allowed))
    return {"kind": kind, "s": s, "degree": float(np.mean(degrees)), "bound": float(np.mean(bounds))}


def _error(k: int, seeds: range) -> dict[str, Any]:
    """The mean relative error at degree 3 from 2000 samples, for 8k neurons of which k are active."""
    errors = [relative_error(construct.random_member(14, 8 * k, k, seed), DEGREE, 2000, seed) for seed in seeds]
    return {"k": k, "s": 8 * k, "error": float(np.mean(errors))}


def _varying(n: int, s: int, k: int, seed: int, kind: str) -> TwoLayer:
    """A random member that is not constant: of a few neurons of kind "junta", some are."""
    while True:
        net = construct.random_member(n, s, k, seed, kind)
        if len(set(net.output.tolist())) > 1 or kind == "dense":
            return net
        seed += 1000


def _slope(rows: list[dict[str, Any]]) -> float:
    return float(np.polyfit([math.log2(row["s"]) for row in rows], [row["degree"] for row in rows], 1)[0])


RECIPE = Recipe(
    name="sparse-activations/learning-scaling",
    title="Samples against n, degree against s, error against k for random members of H(n, s, k)",
    seconds=10,
    expectation="samples like C(n, ≤ 3), degree like log s, error flat in k",
    figure="scaling",
    scales={
        "quick": ScalingSettings(inputs=(8, 12, 16, 24), seeds=4),
        "paper": ScalingSettings(inputs=(8, 12, 16, 24, 32, 40), seeds=8),
    },
    measure=measure,
)

"""What the low-degree algorithm needs as n, s and k grow, on random members of H(n, s, k).

- n: the degree that holds nine tenths of the variance, at s = 16 and k = 2, and the samples until a 1-sparse junta of 8
  neurons is learned to a tenth of its variance at degree 3;
- s: the same degree at k = 1;
- k: that degree, and test error over variance at degree 3 and 2000 samples, at s = 32 throughout.

Seen: a degree that n does not move (from n = 8 on, where the addresses of blocks have room), so samples in proportion
to C(n, ≤ 3), n to a power between 2.5 and 3; a degree that grows by 0.5 to 1 each time s doubles, the log s of Theorem
13; and, where Theorem 8 has a degree of order k⁸, members of more active neurons among as many that are *easier*: what
counts is about s/k, the patterns that the neurons of one block tell apart.

Each claim fails for some networks outside the class, which the tests hold it to: networks of s neurons for a parity of
s − 1 bits have a degree that grows with n and with s itself, are not learned from any multiple of C(n, ≤ 3) and do not
get easier; networks of random dense neurons have degree 2 whatever s and k are. Slopes are judged by the ends of
Student's 95% intervals over members, the fall with k by Page's test: one that is not there passes with probability
0.01. Where all members of six agree, as over n, one that moved by a degree would put the end at 0.3 or so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement
from fewfire.experiments.recipes._statistics import lower_end, rising, upper_end
from fewfire.experiments.recipes.sparse_activations._learning import relative_error, variance
from fewfire.fourier import monomial_count, spectrum
from fewfire.networks import TwoLayer, construct
from fewfire.theory import sparse_activations as theory

DEGREE, GOAL, SAMPLES = 3, 0.1, 2000
KINDS = ("dense", "junta")
INPUTS, NEURONS, MOST_QUARTERS = 14, 32, 16
"""Inputs where they do not vary, neurons where k does, and at most so many quarters of C(n, ≤ 3) samples."""

Draw: TypeAlias = Callable[[int, int, int, int, str], TwoLayer]
"""(n, s, k, seed, kind) -> a network."""


@dataclass(frozen=True)
class ScalingSettings:
    """Inputs at which samples are counted (on two members each) and degrees taken, and members of each cell."""

    inputs: tuple[int, ...]
    degree_inputs: tuple[int, ...]
    seeds: int


def measure(settings: ScalingSettings, *, draw: Draw | None = None) -> RecipeOutcome:
    """Rows over n, over s and over k.

    Parameters
    ----------
    settings : ScalingSettings
    draw : Draw, optional
        The networks; random members of the class unless given.
    """
    member, seeds = draw or varying_member, range(settings.seeds)
    samples = [_samples_needed(member, n, seeds[:2]) for n in settings.inputs]
    over_n = [_degrees(member, n, 16, 2, kind, seeds) for kind in KINDS for n in settings.degree_inputs]
    over_s = [_degrees(member, INPUTS, s, 1, kind, seeds) for kind in KINDS for s in (4, 8, 16, 32, 64, 128)]
    over_k = [_errors(member, k, kind, seeds) for kind in KINDS for k in (1, 2, 4, 8, 16)]
    slopes = {
        kind: {
            key: _slopes([row for row in rows if row["kind"] == kind], key)
            for key, rows in (("n", over_n), ("s", over_s))
        }
        for kind in KINDS
    }
    ratios = [row["samples"] / row["monomials"] for row in samples]
    falls = [rising(-np.array([row["errors"] for row in over_k if row["kind"] == kind]).T) for kind in KINDS]
    of_s = "of the degree over log₂ s"
    judgements = [
        Judgement(
            "the degree does not grow with n",
            "largest slope over log₂ n, upper end",
            max(upper_end(slopes[kind]["n"]) for kind in KINDS),
            0.25,
        ),
        Judgement(
            "so samples follow C(n, ≤ d)", "largest over smallest samples/C(n, ≤ d)", max(ratios) / min(ratios), 2.0
        ),
        Judgement(
            "the degree grows with log s",
            f"smallest slope {of_s}, lower end",
            min(lower_end(slopes[kind]["s"]) for kind in KINDS),
            0.4,
            "at least",
        ),
        Judgement(
            "the degree grows no faster than log s",
            f"largest slope {of_s}, upper end",
            max(upper_end(slopes[kind]["s"]) for kind in KINDS),
            1.1,
        ),
        Judgement(
            f"of {NEURONS} neurons, the more are active the easier the member",
            "Page's trend test over members, larger p of both kinds",
            max(falls),
            0.01,
        ),
    ]
    return RecipeOutcome(
        parameters={"degree": DEGREE, "goal": GOAL, "seeds": settings.seeds, "neurons": NEURONS},
        judgements=judgements,
        measured=[_told(over_k)],
        data={"samples": samples, "over_n": over_n, "over_s": over_s, "over_k": over_k, "slopes": slopes},
    )


def varying_member(n: int, s: int, k: int, seed: int, kind: str) -> TwoLayer:
    """A random member that is not constant: of a few neurons of kind "junta", some are."""
    while True:
        net = construct.random_member(n, s, k, seed, kind)
        if len(set(net.output.tolist())) > 1 or kind == "dense":
            return net
        seed += 1000


def _samples_needed(draw: Draw, n: int, seeds: range) -> dict[str, Any]:
    """The fewest samples, in steps of a quarter of C(n, ≤ 3), at which the mean error reaches the goal, or infinity."""
    count = monomial_count(n, DEGREE)
    nets = [draw(n, 8, 1, seed, "junta") for seed in seeds]
    for quarters in range(1, MOST_QUARTERS + 1):
        if np.mean([relative_error(net, DEGREE, count * quarters // 4, quarters) for net in nets]) <= GOAL:
            return {"n": n, "monomials": count, "samples": count * quarters // 4}
    return {"n": n, "monomials": count, "samples": math.inf}


def _degrees(draw: Draw, n: int, s: int, k: int, kind: str, seeds: range) -> dict[str, Any]:
    """The degree of each member that holds all but a tenth of its variance, and the mean of the sharp bound on it."""
    degrees, bounds = [], []
    for seed in seeds:
        net = draw(n, s, k, seed, kind)
        picture = spectrum(net)
        allowed = GOAL * variance(picture)
        degrees.append(picture.degree_for(allowed))
        bounds.append(theory.degree_sharp(k, net.norms().W, allowed))
    return {"kind": kind, "n": n, "s": s, "k": k, "degrees": degrees, "bound": float(np.mean(bounds))}


def _errors(draw: Draw, k: int, kind: str, seeds: range) -> dict[str, Any]:
    """`_degrees` at one number of neurons, and the relative error of each member at degree 3 from 2000 samples."""
    row = _degrees(draw, INPUTS, NEURONS, k, kind, seeds)
    nets = [draw(INPUTS, NEURONS, k, seed, kind) for seed in seeds]
    return row | {"errors": [relative_error(net, DEGREE, SAMPLES, seed) for seed, net in zip(seeds, nets, strict=True)]}


def _slopes(rows: list[dict[str, Any]], key: str) -> list[float]:
    """For each seed the slope of the degree over the logarithm of n or s."""
    places = [math.log2(row[key]) for row in rows]
    return [float(np.polyfit(places, degrees, 1)[0]) for degrees in np.array([row["degrees"] for row in rows]).T]


def _told(over_k: list[dict[str, Any]]) -> str:
    parts = []
    for kind in KINDS:
        mine = [row for row in over_k if row["kind"] == kind]
        degrees = ", ".join(f"{np.mean(row['degrees']):.1f}" for row in mine)
        bounds = ", ".join(f"{row['bound']:.0f}" for row in mine)
        parts.append(f"{kind} {degrees} (4k²W²/ε: {bounds})")
    ks = ", ".join(str(row["k"]) for row in over_k if row["kind"] == KINDS[0])
    return f"degree that holds 90% of the variance at k = {ks} of {NEURONS} neurons: {'; '.join(parts)}."


RECIPE = Recipe(
    name="sparse-activations/learning-scaling",
    title="Degree and samples against n, degree against s, error against k at fixed s, on random members of H(n, s, k)",
    seconds=15,
    expectation="degree flat in n, samples like C(n, ≤ 3), degree like log s, error falling with k at fixed s",
    figure="scaling",
    scales={
        "quick": ScalingSettings(inputs=(8, 12, 16, 24), degree_inputs=(8, 10, 12, 16), seeds=6),
        "paper": ScalingSettings(inputs=(8, 12, 16, 24, 32, 40), degree_inputs=(8, 10, 12, 16, 18), seeds=12),
    },
    measure=measure,
    paper_seconds=240,
)

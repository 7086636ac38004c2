"""What the low-degree algorithm needs as n, s and k grow, on random members of H(n, s, k).

- n: the degree that holds nine tenths of the variance, at s = 16 and k = 2, and for each member the samples until a
  1-sparse junta of 8 neurons is learned to a tenth of its variance at degree 3;
- s: the same degree at k = 1;
- k: that degree, and test error over variance at degree 3 and 2000 samples, at s = 32 throughout.

Seen: a degree that n does not move (from n = 8 on, where the addresses of blocks have room), so samples in proportion
to C(n, ≤ 3), n to a power between 2.5 and 3; a degree that grows by 0.5 to 1 each time s doubles, the log s of Theorem
13; and, where Theorem 8 has a degree of order k⁸, members of more active neurons among as many that are *easier*: what
counts is about s/k, the patterns that the neurons of one block tell apart.

Each claim fails for some networks outside the class, which the tests hold it to: networks of s neurons for a parity of
s − 1 bits have a degree that grows with n and with s itself, are not learned from any multiple of C(n, ≤ 3) and do not
get easier; networks of random dense neurons have degree 2 whatever s and k are. Slopes and exponents are judged by the
ends of Student's 95% intervals over members, the fall with k by Page's test: one that is not there passes with
probability 0.01. Samples are to follow C(n, ≤ 3) to within half a power of n, so to a power between 5/6 and 7/6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import binom

from fewfire.experiments.recipes import _effects
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement, Power
from fewfire.experiments.recipes._power import mean_power, rising_power
from fewfire.experiments.recipes._statistics import rising, upper_end
from fewfire.experiments.recipes.sparse_activations._learning import relative_error, variance
from fewfire.fourier import monomial_count, spectrum
from fewfire.networks import TwoLayer, construct
from fewfire.theory import sparse_activations as theory

DEGREE, GOAL, SAMPLES = 3, 0.1, 2000
KINDS = ("dense", "junta")
INPUTS, NEURONS, MOST_QUARTERS = 14, 32, 16
"""Inputs where they do not vary, neurons where k does, and at most so many quarters of C(n, ≤ 3) samples."""

FLAT, HALF_POWER, LEAST, MOST, LEVEL, END = 0.25, 1 / 6, 0.4, 1.1, 0.01, 0.025
"""What is asked for: slopes over log₂ n and log₂ s, the exponent's distance from 1, the level of Page's test."""
GROWS, OTHER_DEGREE, SLOPE, FAST, FALL = 1 / 3, 0.35, 0.5, 1.5, 0.05
"""The power is for: the share of members whose degree grows by one per doubling of n; an exponent as far from 1 as that
of C(n, ≤ 2) or C(n, ≤ 4); slopes over log₂ s; the fall of the error, over the variance, each time k doubles."""

Draw: TypeAlias = Callable[[int, int, int, int, str], TwoLayer]
"""(n, s, k, seed, kind) -> a network."""


@dataclass(frozen=True)
class ScalingSettings:
    """Inputs at which samples are counted and degrees taken, and members of each cell."""

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
    samples = [_samples_needed(member, n, seeds) for n in settings.inputs]
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
    return RecipeOutcome(
        parameters={"degree": DEGREE, "goal": GOAL, "seeds": settings.seeds, "neurons": NEURONS},
        judgements=judge(samples, slopes, over_k),
        measured=[_told(over_k)],
        data={"samples": samples, "over_n": over_n, "over_s": over_s, "over_k": over_k, "slopes": slopes},
    )


def judge(
    samples: Sequence[Mapping[str, Any]],
    slopes: Mapping[str, Mapping[str, Sequence[float]]],
    over_k: Sequence[Mapping[str, Any]],
) -> list[Judgement]:
    """The claims on samples by n, on slopes by kind over "n" and "s", and on errors by kind and k."""
    members = len(over_k[0]["errors"])
    over_n = [_effects.mean("slope of the degree over log₂ n, the largest", slopes[kind]["n"]) for kind in KINDS]
    over_s = [_effects.mean("slope of the degree over log₂ s", slopes[kind]["s"]) for kind in KINDS]
    steepest, flattest = max(over_n, key=lambda found: found.high), min(over_s, key=lambda found: found.low)
    fastest = max(over_s, key=lambda found: found.high)
    spread = max(float(np.std(slopes[kind]["s"], ddof=1)) for kind in KINDS)
    exponents = _exponents(samples)
    exponent = _effects.mean("power of C(n, ≤ 3) that samples grow with", exponents)
    tables = [np.array([row["errors"] for row in over_k if row["kind"] == kind]).T for kind in KINDS]
    falls = [rising(-table) for table in tables]
    hardest = tables[int(np.argmax(falls))]
    noise = max(float(np.sqrt(np.mean(np.var(table, axis=0, ddof=1)))) for table in tables)
    steps = [-FALL * place for place in range(hardest.shape[1])]
    return [
        Judgement(
            "the degree does not grow with n",
            "largest slope over log₂ n, upper end",
            steepest.high,
            FLAT,
            refuted_by="a kind of member whose degree may grow by a quarter each time n doubles",
            effect=steepest,
            power=Power("a degree more per doubling of n in one member of three", _growth_noticed(members)),
        ),
        Judgement(
            "so samples follow C(n, ≤ 3), to within half a power of n",
            "largest distance of an end of the exponent's interval from 1",
            max(abs(exponent.low - 1), abs(exponent.high - 1)),
            HALF_POWER,
            refuted_by="samples that may grow like n^2.5 or n^3.5, or a member that is not learned",
            effect=exponent,
            power=Power(
                "growth like C(n, ≤ 2) or C(n, ≤ 4)",
                mean_power(OTHER_DEGREE - HALF_POWER, float(np.std(exponents, ddof=1)), members, 1 - END),
            ),
        ),
        Judgement(
            "the degree grows with log s",
            "smallest slope of the degree over log₂ s, lower end",
            flattest.low,
            LEAST,
            "at least",
            refuted_by="a kind of member whose degree may grow by less than 0.4 each time s doubles",
            effect=flattest,
            power=Power(f"a slope of {SLOPE:g}", mean_power(SLOPE - LEAST, spread, members, END)),
        ),
        Judgement(
            "the degree grows no faster than log s",
            "largest slope of the degree over log₂ s, upper end",
            fastest.high,
            MOST,
            refuted_by="a kind of member whose degree may grow by more than 1.1 each time s doubles",
            effect=fastest,
            power=Power(f"a slope of {FAST:g}; √s has 1.8", mean_power(FAST - MOST, spread, members, 1 - END)),
        ),
        Judgement(
            f"of {NEURONS} neurons, the more are active the easier the member",
            "Page's trend test over members, larger p of both kinds",
            max(falls),
            LEVEL,
            refuted_by="errors that do not fall with k",
            effect=_effects.mean(
                "error over variance at the largest k less that at the least", hardest[:, -1] - hardest[:, 0]
            ),
            power=Power(
                "a fall by a twentieth of the variance each time k doubles",
                rising_power([-step for step in steps], noise, members, LEVEL),
            ),
        ),
    ]


def _growth_noticed(members: int) -> float:
    """How often the upper end is above what is allowed, when members have slope 1 with probability GROWS, or else 0."""
    counts = np.arange(members + 1)
    slopes = np.arange(members)[None, :] < counts[:, None]
    seen = [upper_end(row) > FLAT for row in slopes.astype(float)]
    return float(binom.pmf(counts, members, GROWS) @ np.array(seen))


def _exponents(samples: Sequence[Mapping[str, Any]]) -> list[float]:
    """For each member the slope of log samples over log C(n, ≤ 3); NaN where it is not learned at some n."""
    places = np.log([row["monomials"] for row in samples])
    needed = np.log([row["needed"] for row in samples])
    return [float(np.polyfit(places, column, 1)[0]) if np.isfinite(column).all() else math.nan for column in needed.T]


def varying_member(n: int, s: int, k: int, seed: int, kind: str) -> TwoLayer:
    """A random member that is not constant: of a few neurons of kind "junta", some are."""
    while True:
        net = construct.random_member(n, s, k, seed, kind)
        if len(set(net.output.tolist())) > 1 or kind == "dense":
            return net
        seed += 1000


def _samples_needed(draw: Draw, n: int, seeds: range) -> dict[str, Any]:
    """For each member the fewest samples at which its error reaches the goal, or infinity; "samples" is their median.

    Steps are a quarter of C(n, ≤ 3), with a line in the logarithm of the error between them.
    """
    count = monomial_count(n, DEGREE)
    needed = []
    for seed in seeds:
        net, before, found = draw(n, 8, 1, seed, "junta"), 1.0, math.inf
        for quarters in range(1, MOST_QUARTERS + 1):
            error = max(relative_error(net, DEGREE, count * quarters // 4, 100 * seed + quarters), 1e-12)
            if error <= GOAL:
                share = math.log(before / GOAL) / math.log(before / error)
                found = count * (quarters - 1 + share) / 4
                break
            before = error
        needed.append(found)
    return {"n": n, "monomials": count, "samples": float(np.median(needed)), "needed": needed}


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
    return [
        round(float(np.polyfit(places, degrees, 1)[0]), 12) for degrees in np.array([row["degrees"] for row in rows]).T
    ]


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
    seconds=5,
    expectation="degree flat in n, samples like C(n, ≤ 3), degree like log s, error falling with k at fixed s",
    figure="scaling",
    scales={
        "quick": ScalingSettings(inputs=(8, 12, 16, 24), degree_inputs=(8, 10, 12, 16), seeds=12),
        "paper": ScalingSettings(inputs=(8, 12, 16, 24, 32, 40), degree_inputs=(8, 10, 12, 16, 18), seeds=24),
    },
    measure=measure,
    paper_seconds=240,
)

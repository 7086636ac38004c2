"""What the low-degree algorithm needs as n, s and k grow, on random members of H(n, s, k).

- n: the degree that holds nine tenths of the variance, at s = 16 and k = 2, and for each member the samples until a
  1-sparse junta of 8 neurons is learned to a tenth of its variance at degree 3: like C(n, ≤ 3) to half a power of n;
- s: the same degree at k = 1, which grows like the log s of Theorem 13;
- k: that degree, and test error over variance at degree 3 and 2000 samples, at s = 32 throughout. Theorem 8 has a
  degree of order k⁸; members of more active neurons among as many are easier.

Each claim fails for some networks outside the class, which the tests check: parities of s − 1 bits, and random dense
neurons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from fewfire.fourier import monomial_count, spectrum
from fewfire.networks import TwoLayer, construct
from fewfire.papers import _effects
from fewfire.papers import sparse_activations as theory
from fewfire.papers._claims import Axes, Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, grouped, rows_of
from fewfire.papers._statistics import mean_power, spread_power
from fewfire.papers.sparse_activations.recipes._shared import falling, pooled_deviation, relative_error
from fewfire.report._figure import SomeAxes, canvas, colour, label_axes, log_axis, marked

DEGREE, GOAL, SAMPLES = 3, 0.1, 2000
KINDS = ("dense", "junta")
INPUTS, NEURONS, MOST_QUARTERS = 14, 32, 16
"""Inputs where they do not vary, neurons where k does, and at most so many quarters of C(n, ≤ 3) samples."""

FLAT, HALF_POWER, LEAST, MOST, LEVEL, END = 0.25, 1 / 6, 0.4, 1.1, 0.01, 0.025
"""What is required: slopes over log₂ n and log₂ s, the exponent's distance from 1, the level of Page's test."""
GROWS, OTHER_DEGREE, SLOPE, FAST, FALL = 1 / 3, 0.35, 0.5, 1.5, 0.05
"""The power is for: the share of members whose degree grows by one per doubling of n; an exponent as far from 1 as that
of C(n, ≤ 2) or C(n, ≤ 4); slopes over log₂ s; the fall of the error, over the variance, each time k doubles."""


@dataclass(frozen=True)
class ScalingSettings:
    """Inputs at which samples are counted and degrees taken, and members of each cell."""

    inputs: tuple[int, ...]
    degree_inputs: tuple[int, ...]
    seeds: int


def measure(settings: ScalingSettings) -> RecipeOutcome:
    """Rows over n, over s and over k."""
    seeds = range(settings.seeds)
    samples = [_samples_needed(n, seeds) for n in settings.inputs]
    over_n = [_degrees(n, 16, 2, kind, seeds) for kind in KINDS for n in settings.degree_inputs]
    over_s = [_degrees(INPUTS, s, 1, kind, seeds) for kind in KINDS for s in (4, 8, 16, 32, 64, 128)]
    over_k = [_degrees(INPUTS, NEURONS, k, kind, seeds) for kind in KINDS for k in (1, 2, 4, 8, 16)]
    for row in over_k:
        members = [(seed, varying_member(INPUTS, NEURONS, row["k"], seed, row["kind"])) for seed in seeds]
        row["errors"] = [relative_error(member, DEGREE, SAMPLES, seed) for seed, member in members]
    kinds = {"n": grouped(over_n, "kind"), "s": grouped(over_s, "kind")}
    slopes = {kind: {key: _slopes(rows[kind], key) for key, rows in kinds.items()} for kind in KINDS}
    parts = []
    for kind, mine in grouped(over_k, "kind").items():
        degrees = ", ".join(f"{np.mean(row['degrees']):.1f}" for row in mine)
        bounds = ", ".join(f"{row['bound']:.0f}" for row in mine)
        parts.append(f"{kind} {degrees} (4k²W²/ε: {bounds})")
    ks = ", ".join(map(str, grouped(over_k, "k")))
    sentence = f"degree that holds 90% of the variance at k = {ks} of {NEURONS} neurons: {'; '.join(parts)}."
    return RecipeOutcome(
        parameters={"degree": DEGREE, "goal": GOAL, "seeds": settings.seeds, "neurons": NEURONS},
        judgements=judge(samples, slopes, over_k),
        measured=[sentence],
        data={"samples": samples, "over_n": over_n, "over_s": over_s, "over_k": over_k, "slopes": slopes},
    )


def judge(samples: list[Row], slopes: Row, over_k: list[Row]) -> list[Judgement]:
    """The claims on samples by n, on slopes by kind over "n" and "s", and on errors by kind and k."""
    members = len(over_k[0]["errors"])
    over_n = [_effects.mean("slope of the degree over log₂ n, the largest", slopes[kind]["n"]) for kind in KINDS]
    over_s = [_effects.mean("slope of the degree over log₂ s", slopes[kind]["s"]) for kind in KINDS]
    steepest, flattest = max(over_n, key=lambda found: found.high), min(over_s, key=lambda found: found.low)
    fastest = max(over_s, key=lambda found: found.high)
    spread = max(float(np.std(slopes[kind]["s"], ddof=1)) for kind in KINDS)
    # For each member the slope of log samples over log C(n, ≤ 3); NaN where it is not learned at some n.
    places, needed = (np.log([row[key] for row in samples]) for key in ("monomials", "needed"))
    exponents = [np.polyfit(places, column, 1)[0] if np.isfinite(column).all() else math.nan for column in needed.T]
    noticed = spread_power(exponents, OTHER_DEGREE - HALF_POWER, 1 - END)
    exponent = _effects.mean("power of C(n, ≤ 3) that samples grow with", exponents)
    tables = [np.array([row["errors"] for row in mine]).T for mine in grouped(over_k, "kind").values()]
    noise = max(map(pooled_deviation, tables))
    trends = [falling(table, FALL, LEVEL, noise) for table in tables]
    trend, change, power = max(trends, key=lambda found: found[0])
    return [
        steepest.at_most(
            "the degree does not grow with n",
            "largest slope over log₂ n, upper end",
            FLAT,
            "a kind of member whose degree may grow by a quarter each time n doubles",
            Power("a degree more per doubling of n in one member of three", _growth_noticed(members)),
        ),
        Judgement(
            "so samples follow C(n, ≤ 3), to within half a power of n",
            "largest distance of an end of the exponent's interval from 1",
            max(abs(exponent.low - 1), abs(exponent.high - 1)),
            HALF_POWER,
            refuted_by="samples that may grow like n^2.5 or n^3.5, or a member that is not learned",
            effect=exponent,
            power=Power("growth like C(n, ≤ 2) or C(n, ≤ 4)", noticed),
        ),
        flattest.at_least(
            "the degree grows with log s",
            "smallest slope of the degree over log₂ s, lower end",
            LEAST,
            "a kind of member whose degree may grow by less than 0.4 each time s doubles",
            Power(f"a slope of {SLOPE:g}", mean_power(SLOPE - LEAST, spread, members, END)),
        ),
        fastest.at_most(
            "the degree grows no faster than log s",
            "largest slope of the degree over log₂ s, upper end",
            MOST,
            "a kind of member whose degree may grow by more than 1.1 each time s doubles",
            Power(f"a slope of {FAST:g}; √s has 1.8", mean_power(FAST - MOST, spread, members, 1 - END)),
        ),
        Judgement(
            f"of {NEURONS} neurons, the more are active the easier the member",
            "Page's trend test over members, larger p of both kinds",
            trend,
            LEVEL,
            refuted_by="errors that do not fall with k",
            effect=_effects.mean("error over variance at the largest k less that at the least", change),
            power=Power("a fall by a twentieth of the variance each time k doubles", power),
        ),
    ]


def _growth_noticed(members: int) -> float:
    """How often the upper end is above what is allowed, when members have slope 1 with probability GROWS, or else 0."""
    counts = np.arange(members + 1)
    slopes = np.arange(members)[None, :] < counts[:, None]
    seen = [_effects.mean("", row).high > FLAT for row in slopes]
    return float(binom.pmf(counts, members, GROWS) @ np.array(seen))


def varying_member(n: int, s: int, k: int, seed: int, kind: str) -> TwoLayer:
    """A random member that is not constant: of a few neurons of kind "junta", some are."""
    while True:
        net = construct.random_member(n, s, k, seed, kind)
        if len(set(net.output.tolist())) > 1 or kind == "dense":
            return net
        seed += 1000


def _samples_needed(n: int, seeds: range) -> Row:
    """The fewest samples of each member for the goal, or infinity, on a line in log error between quarters of them."""
    count = monomial_count(n, DEGREE)
    needed = []
    for seed in seeds:
        net, before, found = varying_member(n, 8, 1, seed, "junta"), 1.0, math.inf
        for quarters in range(1, MOST_QUARTERS + 1):
            error = max(relative_error(net, DEGREE, count * quarters // 4, 100 * seed + quarters), 1e-12)
            if error <= GOAL:
                share = math.log(before / GOAL) / math.log(before / error)
                found = count * (quarters - 1 + share) / 4
                break
            before = error
        needed.append(found)
    return {"n": n, "monomials": count, "samples": float(np.median(needed)), "needed": needed}


def _degrees(n: int, s: int, k: int, kind: str, seeds: range) -> Row:
    """The degree of each member that holds all but a tenth of its variance, and the mean of the sharp bound on it."""
    degrees, bounds = [], []
    for seed in seeds:
        net = varying_member(n, s, k, seed, kind)
        picture = spectrum(net)
        allowed = GOAL * picture.tail(0)
        degrees.append(picture.degree_for(allowed))
        bounds.append(theory.degree_sharp(k, net.norms().W, allowed))
    return {"kind": kind, "n": n, "s": s, "k": k, "degrees": degrees, "bound": float(np.mean(bounds))}


def _slopes(mine: list[Row], key: str) -> list[float]:
    """For each seed the slope of the degree over the logarithm of n or s."""
    slopes = np.polyfit(np.log2([row[key] for row in mine]), np.array([row["degrees"] for row in mine]), 1)[0]
    return [round(float(slope), 12) for slope in slopes]


def plot_scaling(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/learning-scaling: samples and degree over n, degree over s, error over k at fixed s."""
    samples, over_n, over_s, over_k = rows_of(info, "samples", "over_n", "over_s", "over_k")
    figure, axes = canvas(4, size=(9.0, 6.0), across=2, ax=ax, title="What the low-degree algorithm needs")
    places = [row["n"] for row in samples]
    axes[0].plot(places, [row["samples"] for row in samples], color=colour(0), marker="o", label="samples needed")
    axes[0].plot(places, [row["monomials"] for row in samples], color="black", linestyle="--", label="C(n, ≤ 3)")
    axes[0].set_xscale("log")
    log_axis(axes[0], "y")
    axes[0].set_xticks(places, [f"{n}" for n in places])
    axes[0].xaxis.minorticks_off()
    label_axes(axes[0], "inputs n, s = 8, k = 1", title="samples")
    degree = "degree for 90% of the variance"
    _draw_members(axes[1], over_n, "n", "degrees", f"inputs n, s = {over_n[0]['s']}, k = {over_n[0]['k']}", degree)
    _draw_members(axes[2], over_s, "s", "degrees", f"neurons s, n = {over_s[0]['n']}, k = 1", degree)
    _draw_members(axes[3], over_k, "k", "errors", f"active neurons k, s = {over_k[0]['s']}", "test error / variance")
    return figure


def _draw_members(axis: Axes, rows: list[Row], along: str, key: str, label: str, title: str) -> None:
    """Every member, and a line through the means of each kind."""
    for place, (kind, mine) in enumerate(grouped(rows, "kind").items()):
        for row in mine:
            axis.plot([row[along]] * len(row[key]), row[key], **marked(place, linestyle="none", alpha=0.5))
        means = [np.mean(row[key]) for row in mine]
        axis.plot([row[along] for row in mine], means, **marked(place), label=f"{kind} members")
    axis.set_xscale("log", base=2)
    axis.set_ylim(bottom=0)
    label_axes(axis, label, title=title)


RECIPE = Recipe(
    title="Degree and samples against n, degree against s, error against k at fixed s, on random members of H(n, s, k)",
    seconds=(5, 240),
    expectation="degree flat in n, samples like C(n, ≤ 3), degree like log s, error falling with k at fixed s",
    figure=plot_scaling,
    quick=ScalingSettings(inputs=(8, 12, 16, 24), degree_inputs=(8, 10, 12, 16), seeds=12),
    paper=ScalingSettings(inputs=(8, 12, 16, 24, 32, 40), degree_inputs=(8, 10, 12, 16, 18), seeds=24),
    measure=measure,
    from_paper=("so samples follow*", "the degree grows with log s"),
)

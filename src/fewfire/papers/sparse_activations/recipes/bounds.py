"""Sensitivities and degrees of members of H(n, s, k), exact, next to Lemmas 9 and 10 and Theorem 8.

The verdicts are on the sharp forms: AS ≤ 4k²W², NS_ρ ≤ 2(1 − ρ)k²W², and a degree of at most 4k²W²/ε for a tail of ε,
wherever that is below n. `extremal_network` comes up to all three, so a smaller constant would be refuted, and so is a
network with more than k active neurons. The forms as printed, with constant 1, are weaker than what every function
satisfies in all cases here but one; they cannot fail and are reported without a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._cube import cube
from fewfire.fourier import spectrum
from fewfire.networks import TwoLayer, construct
from fewfire.papers import _effects
from fewfire.papers import sparse_activations as theory
from fewfire.papers._claims import Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, grouped, rows_of
from fewfire.report._figure import SomeAxes, canvas, colour, legend_below

if TYPE_CHECKING:
    from collections.abc import Iterator

AVERAGE, NOISE, DEGREE = "4k²W² (sharp)", "2(1 − ρ)k²W² (sharp)", "4k²W²/ε (sharp)"
PRINTED = ("Lemma 9", "Lemma 10", "Theorem 8")
SHARES, RHOS = (0.5, 0.9), (0.9, 0.99)  # of the variance, those that a tail may have; correlations of the noise
ROUNDING, SMALLER = 1e-9, 0.99
TIGHT = ((AVERAGE, 1 - ROUNDING, ""), (NOISE, 0.95, ""), (DEGREE, 0.8, ", where below n"))
"""Each bound, how near to it some network is claimed to come, and where."""


def extremal_network(n: int, p: int, k: int) -> TwoLayer:
    """k copies of Σ_α χ(α) σ(⟨α, x⟩ − p + 2) over the patterns of the first p ≥ 2 inputs: W² = p and AS = 4k²W²."""
    patterns = cube(p).astype(np.float64)
    hidden = np.hstack([patterns, np.zeros((2**p, n - p))])
    return TwoLayer(np.tile(hidden, (k, 1)), np.full(k * 2**p, 2.0 - p), np.tile(patterns.prod(axis=1), k))


@dataclass(frozen=True)
class BoundsSettings:
    """Inputs of the random members, and how many are drawn of each size."""

    inputs: tuple[int, ...]
    seeds: int


def measure(settings: BoundsSettings) -> RecipeOutcome:
    """One row for each network and bound."""
    rows = [row for name, k, net in _networks(settings) for row in _rows(name, k, net)]
    of_statement = grouped(rows, "statement")
    useful = {name: sum(map(_is_useful, of_statement[name])) for name in (DEGREE, *PRINTED)}
    counts = ", ".join(f"{name} in {useful[name]}" for name in PRINTED)
    return RecipeOutcome(
        parameters={"shares": list(SHARES), "rhos": list(RHOS)},
        judgements=judge(rows),
        measured=[
            f"of {len(of_statement[DEGREE])} cases the degree 4k²W²/ε is below n in {useful[DEGREE]}; with constant 1, "
            f"as printed, bounds are below what every function satisfies: {counts}."
        ],
        data={"rows": rows},
    )


def judge(rows: list[Row]) -> list[Judgement]:
    """The claims on measured quantities and bounds, case by case; all are exact."""
    judgements = []
    for name, least, where in TIGHT:
        mine = [row for row in rows if row["statement"] == name and (name != DEGREE or _is_useful(row))]
        largest = max((_ratio(row) for row in mine), default=float("nan"))
        effect = _effects.exact("largest measured/bound", largest)
        statistic = f"{effect.name} of {len(mine)} cases"
        judgements += [
            effect.at_most(
                f"{name} holds{where}",
                statistic,
                1 + ROUNDING,
                "one member above its bound",
                # The networks that come up to the bound are above one that is smaller.
                Power("a constant smaller by 1%", float(largest / SMALLER > 1 + ROUNDING)),
            ),
            effect.at_least(
                f"{name} is tight{where}",
                statistic,
                least,
                f"no network at {least:.2g} of the bound or more",
                Power("bounds that are never near: every case is checked", 1.0),
            ),
        ]
    return judgements


def _networks(settings: BoundsSettings) -> list[tuple[str, int, TwoLayer]]:
    """Random members and extremal networks: a name, the k that is claimed, the network."""
    draws = product(("dense", "junta"), settings.inputs, (4, 16, 64), (1, 2, 4), range(settings.seeds))
    networks = [
        (f"{kind} {(n, s, k)} seed {seed}", k, construct.random_member(n, s, k, seed, kind))
        for kind, n, s, k, seed in draws
    ]
    n = settings.inputs[0]
    return networks + [(f"extremal p={p} k={k}", k, extremal_network(n, p, k)) for p, k in product((2, 4, 6), (1, 3))]


def _rows(name: str, k: int, net: TwoLayer) -> Iterator[Row]:
    """Each quantity with its bound, and with what every function of n inputs and this variance satisfies."""
    picture, (W, B), n, s = spectrum(net), net.norms(), net.inputs, net.width
    variance = picture.tail(0)
    if variance < ROUNDING:
        return  # a constant: nothing to bound
    average = picture.average_sensitivity()
    found = [
        ("Lemma 9", average, theory.average_sensitivity(n, s, k, W, B), n * variance),
        (AVERAGE, average, theory.average_sensitivity_sharp(k, W), n * variance),
    ]
    for rho in RHOS:
        noise, most = picture.noise_sensitivity(rho), (1 - rho**n) / 2 * variance
        found.append(("Lemma 10", noise, theory.noise_sensitivity(rho, n, s, k, W, B), most))
        found.append((NOISE, noise, theory.noise_sensitivity_sharp(rho, k, W), most))
    for share in SHARES:
        tail = share * variance
        degree = float(picture.degree_for(tail))
        found.append(("Theorem 8", degree, theory.degree(n, s, k, W, B, tail), float(n)))
        found.append((DEGREE, degree, theory.degree_sharp(k, W, tail), float(n)))
    for statement, measured, bound, trivial in found:
        numbers = {"measured": measured, "bound": bound, "trivial": trivial}
        yield {"network": name, "statement": statement, **numbers, "holds": measured <= bound * (1 + ROUNDING)}


def _is_useful(row: Row) -> bool:
    return bool(row["bound"] < row["trivial"])


def _ratio(row: Row) -> float:
    return 0.0 if row["measured"] == 0 else float(row["measured"] / row["bound"])


def plot_bounds(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/bounds: measured over bound for every network, a line per statement; 1 is the limit."""
    (rows,) = rows_of(info, "rows")
    upper = [row for row in rows if row["bound"] and row["measured"]]
    statements = grouped(upper, "statement")
    figure, (axis,) = canvas(size=(6.6, 4.0), ax=ax)
    for place, of_statement in enumerate(statements.values()):
        for kind, extremal in (("random network", False), ("extremal network", True)):
            mine = [row for row in of_statement if row["network"].startswith("extremal") == extremal]
            shift = 0.15 if extremal else -0.15
            style: dict[str, Any] = {"color": colour(int(extremal)), "markersize": 9}
            for useful, alpha in ((False, 0.25), (True, 1.0)):
                ratios = [_ratio(row) for row in mine if _is_useful(row) == useful]
                axis.plot(ratios, [place + shift] * len(ratios), "|", **style, alpha=alpha)
            axis.plot([], [], "|", **style, label=None if place else kind)
    axis.axvline(1, color="black", linestyle=":", label="the bound (pale: it says nothing)", zorder=0)
    axis.set(xscale="log", xlabel="measured / bound")
    axis.set_yticks(range(len(statements)), statements)
    axis.invert_yaxis()
    axis.set_title("Members of H(n, s, k): how near to each bound", fontsize=11)
    legend_below(axis, ax, ncols=3)
    return figure


RECIPE = Recipe(
    title="Measured sensitivities and degrees next to the sharp forms of Lemma 9, Lemma 10 and Theorem 8",
    seconds=(1, 170),
    expectation="every sharp bound holds and is tight: attained, within 5%, within 20%",
    figure=plot_bounds,
    quick=BoundsSettings(inputs=(8, 12), seeds=2),
    paper=BoundsSettings(inputs=(8, 12, 16), seeds=5),
    measure=measure,
)

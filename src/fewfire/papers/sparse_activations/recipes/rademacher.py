"""Lower estimates of the Rademacher complexity of H(n, s, k), under the bounds of section 5: is Conjecture 20 true?

Searched are networks that are k-sparse on the whole cube (`rademacher_table`), over s, over k, and over n on the points
of small cubes; and those that are k-sparse on the sample alone, where the input space is the sample (`sample_member`),
on orthogonal, random and repeated points. On orthogonal points the conjecture, printed without a constant, fails by up
to √2 at s = 2k; with the constant √2 nothing found is above it.

An estimate is only ever from below, so it can refute a bound and not prove one. Verdicts use estimates less three
standard errors, so one in 700 refutes falsely. The power says how far above a bound the networks that are found would
have to be to be noticed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import hadamard
from scipy.stats import norm

from fewfire._cube import cube
from fewfire._random import Stream
from fewfire.papers._claims import Effect, Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, grouped, rows_of
from fewfire.papers.sparse_activations.rademacher_table import rademacher_table, sample_row
from fewfire.report._figure import SomeAxes, canvas, colour, label_axes, marked

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INPUTS, W, B = 12, 1.0, 2.0  # inputs of the cube, and the scales of the class
ERRORS, GROWTH, FAILS = 3.0, 0.6, 1.2
"""Standard errors taken off; the growth of the conjecture that is to be seen; how far it is to fail."""
EXPLICIT, KEEPS, SMALL, THIRD = 3.0, 0.9, 1.3, 4 / 3
"""The power is for: eq. (15) three times smaller; nine tenths of the growth; estimates at these ratios."""


@dataclass(frozen=True)
class RademacherSettings:
    """Examples, the largest width, the effort of the search, and 2^power orthogonal and `points` random points."""

    m: int = 512
    largest: int = 64
    draws: int = 40
    restarts: int = 3
    steps: int = 50
    power: int = 8
    points: int = 64
    random_inputs: tuple[int, ...] = (128, 512, 2048)


def measure(settings: RademacherSettings) -> RecipeOutcome:
    """Estimates and bounds over s at k = 1 and over k at the largest s, on the cube and on samples."""
    search = {key: getattr(settings, key) for key in ("draws", "restarts", "steps")}
    largest = settings.largest
    X = Stream(0, "recipe/rademacher").sign_rows(settings.m, INPUTS)
    table = rademacher_table(X, W, B, max_block=largest, **search)
    powers = [1 << power for power in range(largest.bit_length())]
    over_s = [table.row(s, 1) for s in powers]
    over_k = [table.row(largest, k) for k in powers]
    # All points of small cubes, repeated, and as many neurons as points: there addresses cost least.
    over_n = []
    for n in (1, 2, 3, 4):
        points = np.tile(cube(n), (settings.m // 2**n, 1))
        # The weights ±W/√n of a neuron that fires at one point only leave it this bias, at n = 2 none.
        bias = W * max(abs(2 - n) / n**0.5, 1e-6)
        small = rademacher_table(points, W, bias, max_block=2**n, draws=settings.draws, restarts=1, steps=100)
        over_n.append({"n": n, **small.row(2**n, 1)})
    # Networks that are sparse on the sample, at the bias that serves s = 2 best.
    draws: Any = {"draws": settings.draws}
    orthogonal = hadamard(2**settings.power, dtype=np.int8)
    sizes = [(s, 1) for s in powers] + [(largest, k) for k in powers[1:]]
    on_sample = [{"points": "orthogonal", **sample_row(orthogonal, s, k, W, W, **draws)} for s, k in sizes]
    for n in settings.random_inputs:
        points = Stream(n, "recipe/rademacher").sign_rows(settings.points, n)
        bias = W * (n / settings.points) ** 0.5
        on_sample += [{"points": "random", **sample_row(points, s, 1, W, bias, **draws)} for s in (2, 8)]
    few = hadamard(2 ** (settings.power // 2 + 1), dtype=np.int8)
    repeated = np.tile(few, (len(orthogonal) // len(few), 1))
    bias = W * (len(few) / len(repeated)) ** 0.5
    on_sample += [{"points": "repeated", **sample_row(repeated, s, 1, W, bias, **draws)} for s in (2, 4, 8)]
    on_cube = over_s + over_k + over_n
    most = max(on_cube, key=lambda row: _ratio(row, 0))
    sentence = (
        f"on the cube the largest estimate is {_ratio(most, 0):.2f} of Conjecture 20 with constant 1, "
        f"{_ratio(most, 3):.2f} less three standard errors; on samples "
        f"{max(_ratio(row, 0) for row in on_sample):.2f} and {max(_ratio(row, 3) for row in on_sample):.2f}."
    )
    return RecipeOutcome(
        parameters={"n": INPUTS, "m": settings.m, "W": W, "B": B, **search},
        judgements=judge(on_cube, on_sample),
        measured=[sentence],
        data={"over_s": over_s, "over_k": over_k, "over_n": over_n, "on_sample": on_sample},
    )


def judge(on_cube: list[Row], on_sample: list[Row]) -> list[Judgement]:
    """The claims on rows of estimates by networks that are sparse on the whole cube, and on the sample."""
    everything = [*on_cube, *on_sample]
    line = [row for row in on_sample if row["points"] == "orthogonal" and row["k"] == 1]
    first, last = line[0], line[-1]
    # How much more the estimate grows than the bound.
    growth = (last["estimate"] / first["estimate"]) / (last["conjecture_20"] / first["conjecture_20"])
    error = growth * float(np.hypot(*(row["standard_error"] / row["estimate"] for row in (first, last))))
    explicit = max(everything, key=lambda row: _ratio(row, ERRORS, "explicit"))
    smaller = _noticed(_ratio(explicit, 0, "explicit"), 1 / EXPLICIT, _error(explicit, "explicit"))
    most_on_sample = max(on_sample, key=lambda row: _ratio(row, ERRORS))

    def keeps(claim: str, rows: list[Row], constant: float) -> Judgement:
        """Conjecture 20 with this constant; the power is at the estimate that is known least well."""
        most = max(rows, key=lambda row: _ratio(row, ERRORS))
        power = Power("an estimate a third above it", _noticed(THIRD * constant, constant, max(map(_error, rows))))
        refuted_by = "one network of the search above it, beyond chance"
        value, effect = _ratio(most, ERRORS), _estimate(most)
        return Judgement(claim, statistic, value, constant, refuted_by=refuted_by, effect=effect, power=power)

    grows = "growth of the estimate over that of the bound"
    statistic = "largest (estimate − 3 standard errors)/bound"
    return [
        Judgement(
            "eq. (15) with every constant holds",
            statistic,
            _ratio(explicit, ERRORS, "explicit"),
            1.0,
            refuted_by="one estimate above the bound, beyond chance",
            effect=_estimate(explicit, "explicit"),
            power=Power(f"a bound {EXPLICIT:g} times smaller", smaller),
        ),
        Judgement(
            "the search grows with s as Conjecture 20 does",
            f"{grows}, s = {first['s']} … {last['s']}, orthogonal points, less three standard errors",
            growth - ERRORS * error,
            GROWTH,
            "at least",
            refuted_by="estimates that may fall behind by more than two fifths",
            effect=_normal(grows, growth, error),
            power=Power(f"{KEEPS:g} of the growth", _noticed(KEEPS, GROWTH, error)),
        ),
        Judgement(
            "Conjecture 20 with constant 1 fails where the input space is the sample",
            statistic,
            _ratio(most_on_sample, ERRORS),
            FAILS,
            "at least",
            refuted_by="no network found that is a fifth above it, beyond chance",
            effect=_estimate(most_on_sample),
            power=Power(f"an estimate of {SMALL:g} times it", _noticed(SMALL, FAILS, _error(most_on_sample))),
        ),
        keeps("no counterexample to Conjecture 20 with constant 1 that is sparse on the whole cube", on_cube, 1.0),
        keeps("no counterexample to Conjecture 20 with constant √2", everything, 2**0.5),
    ]


def _estimate(row: Row, bound: str = "conjecture_20") -> Effect:
    return _normal("estimate over bound, the largest", _ratio(row, 0, bound), _error(row, bound))


def _normal(name: str, value: float, error: float) -> Effect:
    """The 95% interval of an estimate with this standard error."""
    half = float(norm.ppf(0.975)) * error
    return Effect(name, value, value - half, value + half)


def _noticed(ratio: float, bound: float, error: float) -> float:
    """How often a true ratio, estimated with this standard error, is above the bound less three standard errors."""
    return float(norm.cdf((ratio - bound) / error - ERRORS)) if error else float(ratio > bound)


def _error(row: Row, bound: str = "conjecture_20") -> float:
    return float(row["standard_error"] / row[bound])


def _ratio(row: Row, errors: float, bound: str = "conjecture_20") -> float:
    return float((row["estimate"] - errors * row["standard_error"]) / row[bound])


BOUNDS: dict[str, tuple[str, Any]] = {
    "theorem_19": ("Theorem 19, eq. (15)", "--"),
    "explicit": ("eq. (15), every constant", "-."),
    "conjecture_20": ("Conjecture 20", ":"),
    "classical": ("classical", (0, (5, 1))),
}
"""The label and the dashes of each bound."""


def plot_rademacher(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/rademacher: lower estimates and bounds over s and over k, and shares of Conjecture 20."""
    over_s, over_k, on_sample = rows_of(info, "over_s", "over_k", "on_sample")
    title = "Rademacher complexity of H(n, s, k): estimates from below, bounds from above"
    figure, panels = canvas(3, size=(9.0, 7.2), across=2, ax=ax, title=title)
    if ax is None:
        panels[1].sharey(panels[0])
    _draw_bounds(panels[0], over_s, "s", f"hidden neurons s, k = {over_s[0]['k']}")
    _draw_bounds(panels[1], over_k, "k", f"active neurons k, s = {over_k[0]['s']}")
    panels[0].set_ylabel("Rademacher complexity")
    panels[0].legend(fontsize="small")
    # Estimates over Conjecture 20 at k = 1, by kind of points; what is above 1 refutes the constant 1.
    lines = {"sparse on the whole cube": list(over_s)}
    for (points, n), mine in grouped((row for row in on_sample if row["k"] == 1), "points", "n").items():
        label = f"random points, n = {n // mine[0]['m']} m" if points == "random" else f"{points} points"
        lines[label] = mine
    for place, (label, mine) in enumerate(lines.items()):
        errors = [2 * _error(row) for row in mine]
        sizes, ratios = [row["s"] for row in mine], [_ratio(row, 0) for row in mine]
        panels[2].errorbar(sizes, ratios, yerr=errors, label=label, **marked(place, capsize=2))
    panels[2].axhline(1, color="black", linestyle=":")
    panels[2].axhline(2**0.5, color="black", linestyle="--", label="√2")
    panels[2].set_xscale("log", base=2)
    panels[2].set_ylim(0, 2.2)
    label_axes(panels[2], "hidden neurons s, k = 1", "estimate / Conjecture 20")
    return figure


def _draw_bounds(axes: Axes, rows: list[Row], along: str, label: str) -> None:
    places = [row[along] for row in rows]
    for place, (name, (title, dashes)) in enumerate(BOUNDS.items()):
        axes.plot(places, [row[name] for row in rows], label=title, color=colour(place), linestyle=dashes)
    values, errors = (np.array([row[key] for row in rows]) for key in ("estimate", "standard_error"))
    axes.errorbar(places, values, yerr=2 * errors, label="lower estimate", color="black", marker="o")
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel=label)


RECIPE = Recipe(
    title="Rademacher complexity over n, s and k, under Theorem 19 and the classical bound, against Conjecture 20",
    seconds=(23, 1150),
    expectation="all below the explicit eq. (15); on samples up to √2 times Conjecture 20, which has no constant",
    figure=plot_rademacher,
    quick=RademacherSettings(),
    paper=RademacherSettings(
        m=2048, largest=256, draws=80, restarts=8, steps=100, power=10, points=256, random_inputs=(512, 2048, 8192)
    ),
    measure=measure,
    from_paper=("eq. (15)*", "* as Conjecture 20 does", "no counterexample to * constant 1 *"),
)

"""Learning curves of the low-degree algorithm on networks with few active neurons (Lemma 7, Theorem 8).

Targets: a junta of 3 of 20 inputs, the indexing function, the network of Appendix A, and random members of
H(16, 16, 2). For each degree d, test error over variance against the number of samples m.

Expect each curve to fall to the share of the spectrum above d, from above, and with D monomials to be there by the
factor m/(m − D): what is missed acts like label noise. At the largest m the claim is within 5%, target by target and
degree by degree, where the factor is up to 1.5. Juntas and indexing are learned exactly once d reaches their degree (3
and b + 1) and m passes D.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np

from fewfire._random import Stream
from fewfire.fourier import monomial_count, spectrum
from fewfire.networks import construct
from fewfire.papers import _effects
from fewfire.papers._claims import Effect, Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, grouped, rows_of
from fewfire.papers._statistics import spread_power
from fewfire.papers.sparse_activations.recipes._shared import relative_error
from fewfire.report._figure import SomeAxes, canvas, colour, legend_below, marked

WITHIN, OFF, EXACT = 0.05, 0.1, 0.001
"""How near the error is to be, the deviation that the power is for, and what counts as no error."""
NONE = 1e-12  # tails below are none


@dataclass(frozen=True)
class CurvesSettings:
    """Sizes of the training sets, ascending, and draws at each."""

    samples: tuple[int, ...]
    seeds: int


def measure(settings: CurvesSettings) -> RecipeOutcome:
    """Rows of (target, degree, samples, mean error, errors, tail), errors and tail as shares of the variance."""
    rows: list[Row] = []
    targets = {
        "junta of 3 of 20": construct.junta(20, [2, 7, 11], Stream(3, "recipe/curves").signs(8)),
        "indexing, b = 3": construct.indexing(3),
        "Appendix A, b = 2, q = 12": construct.dense_weights(2, 12, seed=0),
        "random dense member (16, 16, 2)": construct.random_member(16, 16, 2, 0),
        "random junta member (16, 16, 2)": construct.random_member(16, 16, 2, 0, "junta"),
    }
    for name, net in targets.items():
        picture = spectrum(net)
        for degree in (1, 2, 3, 4):
            count, tail = monomial_count(net.inputs, degree), picture.tail(degree) / picture.tail(0)
            for m in settings.samples:
                if m < 1.5 * count:
                    continue  # with about as many samples as monomials the ridge decides
                errors = [relative_error(net, degree, m, seed) for seed in range(settings.seeds)]
                cell = {"target": name, "degree": degree, "monomials": count, "samples": m}
                seen = {"error": sum(errors) / len(errors), "errors": errors}
                rows.append({**cell, **seen, "tail": tail, "predicted": tail * m / (m - count)})
    parameters = {"samples": list(settings.samples), "seeds": settings.seeds}
    return RecipeOutcome(parameters=parameters, judgements=judge(rows), data={"rows": rows})


def judge(rows: list[Row]) -> list[Judgement]:
    """The claims on errors by target, degree and samples."""
    largest = [row for row in rows if row["samples"] == max(row["samples"] for row in rows)]
    missed = [np.log(np.array(row["errors"]) / row["predicted"]) for row in largest if row["tail"] >= NONE]
    worst = max((_effects.mean("", logs) for logs in missed), key=_distance)
    power = min(spread_power(logs, log((1 + OFF) / (1 + WITHIN)), 0.975) for logs in missed)
    exact = [error for row in rows if row["tail"] < NONE for error in row["errors"]]
    none = _effects.exact("largest error over the variance", max(exact, default=float("nan")))
    return [
        Judgement(
            f"the error is the tail, times m/(m − D), within {WITHIN:.0%}",
            "largest distance from it of an end of the 95% intervals, at the largest m",
            exp(_distance(worst)) - 1,
            WITHIN,
            refuted_by="a target and degree at which the mean error may be 5% off",
            effect=worst.map(exp, "mean error over the tail times m/(m − D), where farthest"),
            # In the cell that spreads most an error is least visible.
            power=Power(f"an error off by {OFF:.0%} in one cell", power),
        ),
        none.at_most(
            "a target of degree at most d is learned exactly",
            f"largest error of {len(exact)} fits where the tail is 0",
            EXACT,
            "one fit with an error above a thousandth of the variance",
            Power("any such fit: every one is checked", 1.0),
        ),
    ]


def _distance(found: Effect) -> float:
    return max(abs(found.low), abs(found.high))


def plot_learning_curves(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/learning-curves: error by samples, a panel per target; dashes are the spectrum's tails."""
    (rows,) = rows_of(info, "rows")
    targets = grouped(rows, "target")
    sizes = sorted({row["samples"] for row in rows})
    across = (len(targets) + 1) // 2
    size, title = (min(3.1 * across, 9.2), 5.2), "Low-degree learning curves (dashes: the spectrum above the degree)"
    figure, axes = canvas(len(targets), size=size, across=across, ax=ax, title=title, sharey=True)
    for axis, (target, mine) in zip(axes, targets.items(), strict=True):
        for degree, line in grouped(mine, "degree").items():
            places, errors = ([row[key] for row in line] for key in ("samples", "error"))
            axis.plot(places, errors, **marked(degree - 1, linewidth=1.3), label=f"degree {degree}")
            axis.axhline(line[0]["tail"], color=colour(degree - 1), linestyle="--", linewidth=0.8)
        axis.set_title(target, fontsize=9)
        axis.set(xlabel="samples", xscale="log")
        axis.set_xticks(sizes, [f"{m}" for m in sizes], fontsize=8)
        axis.minorticks_off()
    axes[0].set_ylim(-0.05, 1.25)
    known = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    legend_below(axes[0], ax, handles=dict(sorted(known.items())), ncols=len(known))
    for axis in axes[::across]:
        axis.set_ylabel("test error / variance")
    return figure


RECIPE = Recipe(
    title="Low-degree learning curves on juntas, indexing, Appendix A networks and random members of H(n, s, k)",
    seconds=(2, 150),
    expectation="test error within 5% of the tail above the degree times m/(m − D); 0 where the tail is 0",
    figure=plot_learning_curves,
    quick=CurvesSettings(samples=(500, 2000, 8000), seeds=8),
    paper=CurvesSettings(samples=(250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000), seeds=8),
    measure=measure,
)

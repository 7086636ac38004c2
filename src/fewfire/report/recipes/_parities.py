"""Figures of parities, and of every recipe that fits single parities: test errors beside what the claim allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire.report.recipes._canvas import MARKERS, canvas, colour, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

TITLES = {
    "pareto/over-sparse": "pareto, Theorem 4: one step from an over-sparse start",
    "pareto/under-sparse": "pareto, Theorem 5: one step from an under-sparse start",
    "parities/theorem-2": "parities, Theorem 2: the correlated parity",
}


def plot_fits(info: Mapping[str, Any]) -> Figure:
    """The test error of every fit, beside the most that the claim allows and what guessing gives."""
    rows, judgements, name = rows_of(info, "rows", "judgement", "recipe")
    sizes = list(dict.fromkeys((row["n"], row["k"]) for row in rows))
    figure, (axis,) = canvas(size=(6.2, 1.7 + 0.6 * len(sizes)))
    for place, (size, entry) in enumerate(zip(sizes, judgements, strict=True)):
        mine = [row for row in rows if (row["n"], row["k"]) == size]
        allowed = axis.barh(place, entry["threshold"], height=0.5, color="#cfe3ef", edgecolor=colour(0))
        points = axis.scatter(
            [row["error"] for row in mine], [place] * len(mine), color=colour(1), zorder=3, clip_on=False
        )
    guess = axis.axvline(0.5, color="black", linestyle=":")
    labels = [_label(next(row for row in rows if (row["n"], row["k"]) == size)) for size in sizes]
    axis.set_yticks(range(len(sizes)), labels)
    axis.set_ylim(len(sizes) - 0.5, -0.5)
    axis.set_xlim(0, 0.52)
    axis.set_xlabel("test error")
    axis.set_title(TITLES.get(name, name), fontsize=11)
    handles, names = [points, allowed.patches[0], guess], ["measured", "allowed by the claim", "guessing"]
    figure.legend(handles, names, ncols=3, loc="outside lower center", frameon=False, fontsize=9)
    return figure


def plot_separation(info: Mapping[str, Any]) -> Figure:
    """parities/separation: accuracy of every method, a marker per setting; dotted lines are the best half-spaces."""
    (rows,) = rows_of(info, "rows")
    settings = list(dict.fromkeys((row["n"], row["k"]) for row in rows))
    methods = [name for name in dict.fromkeys(row["method"] for row in rows) if name != "halfspace"]
    figure, (axis,) = canvas(size=(6.6, 4.0))
    for place, (n, k) in enumerate(settings):
        scores = {row["method"]: row["accuracy"] for row in rows if (row["n"], row["k"]) == (n, k)}
        shift = 0.14 * (place - (len(settings) - 1) / 2)
        heights = [at + shift for at in range(len(methods))]
        style: dict[str, Any] = {"linestyle": "none", "marker": MARKERS[place], "color": colour(place)}
        axis.plot([scores[name] for name in methods], heights, **style, label=f"(n, k) = ({n}, {k})")
        axis.axvline(scores["halfspace"], color=colour(place), linestyle=":", label=f"best half-space, k = {k}")
    axis.set_yticks(range(len(methods)), methods)
    axis.invert_yaxis()
    axis.set_xlabel("test accuracy")
    axis.set_title("Correlated parity: the network beside fixed features", fontsize=11)
    figure.legend(ncols=min(2, len(settings)), loc="outside lower center", frameon=False, fontsize=9)
    return figure


def _label(row: Mapping[str, Any]) -> str:
    return f"({row['n']}, {row['k']})-parity\nwidth {row['width']}\n{row['samples']:,} samples"

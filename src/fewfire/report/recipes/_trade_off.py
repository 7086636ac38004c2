"""The figure of pareto's Theorems 4 and 5: what half of the runs need, and the powers fitted beside the theorem's."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from fewfire.report.recipes._canvas import MARKERS, canvas, colour, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fewfire.report._figure import SomeAxes

TITLES = {
    "pareto/over-sparse": "Theorem 4, over-sparse starts",
    "pareto/under-sparse": "Theorem 5, under-sparse starts",
}


def plot_trade_off(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """pareto/over-sparse, /under-sparse: width by n, examples by s or n, and every power with its 95% interval."""
    cells, powers, name = rows_of(info, "cells", "powers", "recipe")
    figure, (left, middle, right) = canvas(3, size=(9.0, 8.0), across=2, ax=ax)
    by_s = name == "pareto/over-sparse"
    _draw_cells(left, [row for row in cells if row["resource"] == "width"], "n")
    _draw_cells(middle, [row for row in cells if row["resource"] == "examples"], "s" if by_s else "n")
    left.set_ylabel("width that half of the runs need")
    middle.set_ylabel("examples that half of the runs need")
    left.set_title(f"pareto, {TITLES.get(name, name)}: width", fontsize=10)
    middle.set_title("examples", fontsize=10)
    _draw_powers(right, powers)
    return figure


def _draw_cells(axis: Axes, rows: Sequence[Mapping[str, Any]], along: str) -> None:
    """A line per k, method and the other of n and s, with the 95% interval of every median."""
    other = "s" if along == "n" else "n"
    keys = list(
        dict.fromkeys((row["k"], row[other] if row["method"] != "s = k" else row["k"], row["method"]) for row in rows)
    )
    for place, key in enumerate(keys):
        mine = [
            row
            for row in rows
            if (row["k"], row[other] if row["method"] != "s = k" else row["k"], row["method"]) == key
            and isfinite(row["needed"])
        ]
        k, value, method = key
        label = f"k = {k}, {other} = {value}" + (", the theorem's step" if method == "theorem" else "")
        axis.errorbar(
            [row[along] for row in mine],
            [row["needed"] for row in mine],
            yerr=[
                [row["needed"] - row["low"] if isfinite(row["low"]) else 0.0 for row in mine],
                [row["high"] - row["needed"] if isfinite(row["high"]) else 0.0 for row in mine],
            ],
            color=colour(place),
            marker=MARKERS[place % len(MARKERS)],
            linestyle="--" if method == "theorem" else "-",
            capsize=2,
            markersize=4,
            label=label,
        )
    axis.set_xscale("log")
    axis.set_yscale("log")
    ticks = sorted({row[along] for row in rows})
    shown = [tick for i, tick in enumerate(ticks) if i == 0 or tick >= 1.15 * ticks[i - 1] or i == len(ticks) - 1]
    axis.set_xticks(shown, [str(tick) for tick in shown], fontsize=8)
    axis.minorticks_off()
    axis.set_xlabel("ones per neuron, s" if along == "s" else "inputs, n")
    axis.legend(frameon=False, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)


def _draw_powers(axis: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """One line per power; the theorem's is a bar, or the end of an arrow where it is an upper bound."""
    for place, row in enumerate(rows):
        shade = colour(0 if row["resource"] == "width" else 1)
        if isfinite(row["power"]):
            ends = [[row["power"] - row["low"]], [row["high"] - row["power"]]]
            axis.errorbar(row["power"], place, xerr=ends, color=shade, marker="o", capsize=3, markersize=5)
        exact = row["rule"] == "equal"
        axis.plot(row["theorem"], place, color="black", marker="|" if exact else "<", markersize=14 if exact else 7)
    axis.set_yticks(range(len(rows)), [_power_label(row) for row in rows], fontsize=8)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.grid(axis="x", alpha=0.3)
    axis.set_xlabel("power with 95% interval\nblack: the theorem's, ◂ at most", fontsize=9)
    axis.set_title("powers fitted to all runs", fontsize=10)


def _power_label(row: Mapping[str, Any]) -> str:
    start = f", s = {row['s']}" if "s" in row else (", s = k" if row["quantity"] == "C(n, k)" else "")
    step = ", theorem's step" if row["method"] == "theorem" else ""
    return f"k = {row['k']}{start}{step}:\n{row['resource']} in {row['quantity']}"

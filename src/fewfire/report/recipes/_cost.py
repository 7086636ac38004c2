"""The figure of sublinear/cost: work of an iteration against the width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire.report.recipes._canvas import MARKERS, canvas, colour, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure


def plot_cost(info: Mapping[str, Any]) -> Figure:
    """Multiply-adds of an iteration by width, a colour a dimension; dashed is the dense iteration."""
    rows, fits = rows_of(info, "rows", "fits")
    figure, (axis,) = canvas()
    for place, fit in enumerate(fits):
        mine = [row for row in rows if row["d"] == fit["d"]]
        widths = [row["width"] for row in mine]
        axis.plot(widths, [row["dense_multiply_adds"] for row in mine], color=colour(place), linestyle="--")
        label = f"d = {fit['d']}: m^{fit['lists']:.2f}"
        axis.plot(
            widths, [row["multiply_adds"] for row in mine], color=colour(place), marker=MARKERS[place], label=label
        )
    axis.plot([], [], color="black", linestyle="--", label="dense: m")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xlabel("width m")
    axis.set_ylabel("multiply-adds an iteration")
    axis.set_title("Robust training with m^0.6 active neurons: work by width", fontsize=11)
    figure.legend(ncols=3, loc="outside lower center", frameon=False, fontsize=9)
    return figure

"""Figures of lower bounds on queries and gradients: what cannot be seen through noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire.report.recipes._canvas import MARKERS, canvas, colour, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

TITLES = {"random": "one parity a query", "families": "a family of parities a query"}


def plot_statistical_queries(info: Mapping[str, Any]) -> Figure:
    """sparse-activations/statistical-queries: success against queries, a panel a strategy; dashes are Theorem 14."""
    (rows,) = rows_of(info, "rows")
    strategies = list(dict.fromkeys(row["strategy"] for row in rows))
    figure, axes = canvas(len(strategies), size=(4.3 * len(strategies), 3.9), sharey=True)
    for axis, strategy in zip(axes, strategies, strict=True):
        for place, tolerance in enumerate(dict.fromkeys(row["tolerance"] for row in rows)):
            mine = [row for row in rows if (row["strategy"], row["tolerance"]) == (strategy, tolerance)]
            queries = [row["queries"] for row in mine]
            axis.plot(queries, [row["success"] for row in mine], color=colour(place), marker=MARKERS[place],
                      markersize=4, linewidth=1.3, label=f"τ = {tolerance:g}")  # fmt: skip
            axis.plot(queries, [row["most"] for row in mine], color=colour(place), linestyle="--", linewidth=0.9)
        axis.set_xscale("log", base=2)
        axis.set_xlabel("queries")
        axis.set_title(TITLES.get(strategy, strategy), fontsize=10)
    axes[0].set_ylabel("share of parities found")
    figure.legend(*axes[0].get_legend_handles_labels(), ncols=4, loc="outside lower center", frameon=False, fontsize=9)
    figure.suptitle(
        f"Parities of {info['parameters']['n']} bits by statistical queries (dashed: Theorem 14)", fontsize=11
    )
    return figure


def plot_proposition_3(info: Mapping[str, Any]) -> Figure:
    """pareto/proposition-3: the share of parities that noise hides, and the noise that hides one half, with bounds."""
    rows, setting = rows_of(info, "rows", "parameters")
    figure, (left, right) = canvas(2, size=(9.0, 3.9))
    for place, row in enumerate(row for row in rows if row["k"] % 2 == 0):
        left.plot(row["noise"], row["hidden"], color=colour(place), label=f"k = {row['k']}")
        left.plot(row["noise"], row["bound"], color=colour(place), linestyle="--", linewidth=1)
    left.set_xscale("log")
    left.set_xlabel("noise τ, in units of the largest slope")
    left.set_ylabel("share of parities hidden")
    left.set_title("measured (solid), at least (dashed)", fontsize=10)
    left.legend(fontsize=8)
    parities = [row["parities"] for row in rows]
    right.plot(parities, [row["half"] for row in rows], color=colour(0), marker="o", label="measured")
    right.plot(parities, [row["half_bound"] for row in rows], color="black", linestyle="--", label="Proposition 3")
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xlabel(f"parities C(n, k), k = {rows[0]['k']}…{rows[-1]['k']}")
    right.set_ylabel("noise τ that hides one half")
    right.set_title("how much noise it takes", fontsize=10)
    right.legend(fontsize=8)
    resources = f"{setting['parameters']} parameters, {setting['steps']} steps, {setting['draws']} starts"
    figure.suptitle(f"Proposition 3: n = {setting['n']}, {resources}", fontsize=11)
    return figure

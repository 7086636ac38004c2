"""Figures of parities: errors beside what the claims allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire.report.recipes._canvas import MARKERS, canvas, colour, legend_below, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fewfire.report._figure import SomeAxes

DIGIT_METHODS = {
    "network": "ReLU network",
    "galu": "gated linear units, the same gates",
    "relu": "fixed ReLU features",
    "cosine": "fixed cosine features",
    "kernel": "Gaussian kernel",
}


def plot_theorem_2(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """parities/theorem-2: the held-out error of seed 0 by step, and the test error of every seed by size and mode."""
    rows, curves, judgements = rows_of(info, "rows", "curves", "judgement")
    figure, (left, right) = canvas(2, size=(9.2, 3.9), ax=ax)
    sizes = list(dict.fromkeys((curve["n"], curve["k"]) for curve in curves))
    for curve in curves:
        place = sizes.index((curve["n"], curve["k"]))
        own = curve["mode"] == "theorem"
        label = None if own else f"({curve['n']}, {curve['k']}), width {curve['width']}"
        left.plot(curve["step"], curve["held_out"], color=colour(place), linestyle=":" if own else "-", label=label)
    left.plot([], [], color="black", linestyle=":", label="the theorem's rate")
    left.set_xlabel("step t")
    left.set_ylabel("error on held-out rows, seed 0")
    left.set_ylim(bottom=0)
    left.set_title("Gradient descent on both layers", fontsize=11)
    left.legend(frameon=False, fontsize=8)
    groups = list(dict.fromkeys((row["mode"], row["n"], row["k"]) for row in rows))
    allowed = [1 - entry["threshold"] for entry in judgements]
    for place, group in enumerate(groups):
        mine = [row for row in rows if (row["mode"], row["n"], row["k"]) == group]
        if group[0] != "theorem":
            right.barh(place, allowed.pop(0), height=0.6, color="#cfe3ef", edgecolor=colour(0))
        errors = [row["error"] for row in mine]
        right.scatter(errors, [place] * len(mine), color=colour(1), zorder=3, s=14, clip_on=False)
    right.set_yticks(range(len(groups)), [f"{mode}\n({n}, {k})" for mode, n, k in groups], fontsize=8)
    right.set_ylim(len(groups) - 0.5, -0.5)
    right.set_xlim(left=0)
    right.set_xlabel("test error; bars: what the mean may be")
    right.set_title("Every seed, at its chosen iterate", fontsize=11)
    return figure


TERMS = {"separator_norm": "k¹⁰/q", "drift": "k⁸/√q", "initial_output": "qk/√n", "step_size": "k²√q/T"}


def plot_error_terms(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """parities/error-terms: every seed's error as one resource changes, above the four terms of the bound."""
    (rows,) = rows_of(info, "rows")
    resources = list(dict.fromkeys(row["resource"] for row in rows))
    title, across = "parities, Theorem 2: the error, and the terms that bound it", len(resources)
    figure, axes = canvas(2 * across, size=(9.2, 4.6), across=across, ax=ax, title=title, sharey="row")
    for place, resource in enumerate(resources):
        mine = [row for row in rows if row["resource"] == resource]
        values = [row[resource] for row in mine]
        above, below = axes[place], axes[len(resources) + place]
        for value, row in zip(values, mine, strict=True):
            above.scatter([value] * len(row["errors"]), row["errors"], color=colour(1), s=10, clip_on=False)
        above.plot(values, [sum(row["errors"]) / len(row["errors"]) for row in mine], color=colour(0), label="mean")
        for number, (name, label) in enumerate(TERMS.items()):
            below.plot(values, [row[name] for row in mine], color=colour(number), marker=MARKERS[number], label=label)
        above.set_xscale("log")
        below.set_xscale("log")
        for axis in (above, below):
            axis.set_xticks(values, [str(value) for value in values], fontsize=7)
            axis.minorticks_off()
            axis.set_xlabel(resource)
    axes[0].set_ylabel("test error")
    axes[0].set_ylim(bottom=0)
    axes[len(resources)].set_ylabel("terms of the bound")
    axes[len(resources)].set_yscale("log")
    legend_below(axes[across], ax, ncols=4)
    return figure


def plot_separation(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """parities/separation: dimensions and neurons needed against C(n, k), and the accuracy of every method."""
    dimensions, neurons, rows = rows_of(info, "dimensions", "neurons", "rows")
    figure, (left, right) = canvas(2, size=(9.2, 4.8), ax=ax)
    for place, family in enumerate(dict.fromkeys(row["family"] for row in dimensions)):
        _draw_needed(left, [row for row in dimensions if row["family"] == family], place, f"{family} features")
    _draw_needed(left, neurons, 6, "neurons of the network", linestyle="none")
    counts = sorted({row["monomials"] for row in (*dimensions, *neurons)})
    left.plot(counts, [count**0.5 for count in counts], color="black", linestyle="--", label="√C(n, k)")
    left.plot(counts, counts, color="black", linestyle=":", label="C(n, k)")
    left.set_xscale("log")
    left.set_yscale("log")
    left.set_ylim(4, 2e4)
    left.set_xlabel("C(n, k)")
    left.set_ylabel("needed for 95% of D_A\n(median and range of seeds)")
    left.set_title("Dimension of fixed features, width of the network", fontsize=11)
    legend_below(left, ax, "left", ncols=2)
    _draw_accuracies(right, rows)
    legend_below(right, ax, "right")
    return figure


def _draw_needed(axis: Axes, rows: list[Mapping[str, Any]], place: int, label: str, linestyle: str = "-") -> None:
    """Median and range over seeds; what was not reached is left out."""
    reached = [row for row in rows if max(row["needed"]) < float("inf")]
    middles = [sorted(row["needed"])[len(row["needed"]) // 2] for row in reached]
    ends = [
        [middle - min(row["needed"]) for middle, row in zip(middles, reached, strict=True)],
        [max(row["needed"]) - middle for middle, row in zip(middles, reached, strict=True)],
    ]
    style: dict[str, Any] = {"color": colour(place), "marker": MARKERS[place], "markersize": 5, "capsize": 2}
    axis.errorbar([row["monomials"] for row in reached], middles, yerr=ends, linestyle=linestyle, label=label, **style)


def _draw_accuracies(axis: Axes, rows: list[Mapping[str, Any]]) -> None:
    """Every seed of every method, a marker per size; below the line, methods that may use more dimensions."""
    sizes = list(dict.fromkeys((row["n"], row["k"]) for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    held = [name for name in methods if any(row["rival"] or name == "network" for row in rows if row["method"] == name)]
    methods = [*held, *(name for name in methods if name not in held)]
    for place, size in enumerate(sizes):
        mine = [row for row in rows if (row["n"], row["k"]) == size]
        shift = 0.22 * (place - (len(sizes) - 1) / 2)
        heights = [methods.index(row["method"]) + shift for row in mine]
        style: dict[str, Any] = {"linestyle": "none", "marker": MARKERS[place], "markersize": 4, "color": colour(place)}
        label = f"({size[0]}, {size[1]}), {mine[0]['width']} neurons or features"
        axis.plot([row["accuracy"] for row in mine], heights, **style, label=label, clip_on=False)
    axis.axhline(len(held) - 0.5, color="black", linewidth=0.8)
    axis.set_yticks(range(len(methods)), methods, fontsize=8)
    axis.invert_yaxis()
    axis.set_xlim(0.45, 1.0)
    axis.set_xlabel("test accuracy of every seed\n(below the line: more dimensions)")
    axis.set_title("At equal size, from the same examples", fontsize=11)


def plot_digit_parities(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """parities/digits: every seed's accuracy by number of digits, a line through the means of each method."""
    (rows,) = rows_of(info, "rows")
    figure, (axis,) = canvas(ax=ax)
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for place, method in enumerate(methods):
        mine = [row for row in rows if row["method"] == method]
        places = [row["digits"] + 0.06 * (place - (len(methods) - 1) / 2) for row in mine]
        style: dict[str, Any] = {"color": colour(place), "marker": MARKERS[place], "markersize": 4}
        for at, row in zip(places, mine, strict=True):
            axis.plot([at] * len(row["accuracies"]), row["accuracies"], linestyle="none", **style)
        means = [sum(row["accuracies"]) / len(row["accuracies"]) for row in mine]
        axis.plot(places, means, color=colour(place), linewidth=1.2)
        axis.plot([], [], **style, label=DIGIT_METHODS.get(method, method))
    axis.axhline(0.5, color="black", linestyle=":", label="guessing")
    axis.set_xticks(sorted({row["digits"] for row in rows}))
    axis.set_xlabel("digits side by side")
    axis.set_ylabel("test accuracy, every seed")
    axis.set_title("Parity of the sum of handwritten digits", fontsize=11)
    legend_below(axis, ax, ncols=3)
    return figure

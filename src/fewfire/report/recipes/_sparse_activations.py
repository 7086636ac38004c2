"""Figures of sparse-activations: sensitivities and Rademacher complexity beside bounds, learning curves, queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.report._axes import log_axis
from fewfire.report.recipes._canvas import MARKERS, canvas, colour, legend_below, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fewfire.report._figure import SomeAxes


BOUNDS = {
    "theorem_19": "Theorem 19, eq. (15)",
    "explicit": "eq. (15), every constant",
    "conjecture_20": "Conjecture 20",
    "classical": "classical",
}

STYLES = (("#0072B2", "--"), ("#D55E00", "-."), ("#009E73", ":"), ("#CC79A7", (0, (5, 1))))
"""Colour and dashes of each bound."""

STRATEGIES = {"random": "one parity per query", "families": "a family of parities per query"}


def plot_bounds(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/bounds: measured over bound for every network, a line per statement; 1 is the limit.

    Bounds above what every function satisfies are drawn pale: they say nothing.
    """
    (rows,) = rows_of(info, "rows")
    upper = [row for row in rows if row["bound"] and row["measured"]]
    statements = list(dict.fromkeys(row["statement"] for row in upper))
    figure, (axis,) = canvas(size=(6.6, 4.0), ax=ax)
    for place, statement in enumerate(statements):
        for kind, extremal in (("random network", False), ("extremal network", True)):
            mine = [row for row in upper if row["network"].startswith("extremal") == extremal]
            mine = [row for row in mine if row["statement"] == statement]
            shift = 0.15 if extremal else -0.15
            style: dict[str, Any] = {
                "linestyle": "none",
                "marker": "|",
                "markersize": 9,
                "color": colour(int(extremal)),
            }
            for tells in (False, True):
                ratios = [row["measured"] / row["bound"] for row in mine if (row["bound"] < row["trivial"]) == tells]
                alpha = 1.0 if tells else 0.25
                axis.plot(ratios, [place + shift] * len(ratios), **style, alpha=alpha)
            axis.plot([], [], **style, label=None if place else kind)
    axis.axvline(1, color="black", linestyle=":", label="the bound (pale: it says nothing)", zorder=0)
    axis.set_xscale("log")
    axis.set_yticks(range(len(statements)), statements)
    axis.invert_yaxis()
    axis.set_xlabel("measured / bound")
    axis.set_title("Members of H(n, s, k): how near to each bound", fontsize=11)
    legend_below(axis, ax, ncols=3)
    return figure


def plot_learning_curves(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/learning-curves: error by samples, a panel per target; dashes are the spectrum's tails."""
    (rows,) = rows_of(info, "rows")
    targets = list(dict.fromkeys(row["target"] for row in rows))
    sizes = sorted({row["samples"] for row in rows})
    across = (len(targets) + 1) // 2
    size, title = (min(3.1 * across, 9.2), 5.2), "Low-degree learning curves"
    figure, axes = canvas(2 * across, size=size, across=across, ax=ax, title=title, sharex=True, sharey=True)
    for axis, target in zip(axes, targets, strict=False):
        mine = [row for row in rows if row["target"] == target]
        for degree in sorted({row["degree"] for row in mine}):
            line = [row for row in mine if row["degree"] == degree]
            ink = colour(degree - 1)
            sizes_here, errors = ([row[key] for row in line] for key in ("samples", "error"))
            style: dict[str, Any] = {"marker": MARKERS[degree - 1], "markersize": 4, "linewidth": 1.3}
            axis.plot(sizes_here, errors, color=ink, **style, label=f"degree {degree}")
            axis.axhline(line[0]["tail"], color=ink, linestyle="--", linewidth=0.8)
        axis.set_title(target, fontsize=9)
        axis.set_xlabel("samples")
        axis.set_xscale("log")
        axis.set_xticks(sizes, [f"{m}" for m in sizes], fontsize=8)
        axis.minorticks_off()
    axes[0].set_ylim(-0.05, 1.25)
    for axis in axes[len(targets) :]:
        axis.axis("off")
    known = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    labels = sorted(known)
    axes[-1].legend(
        [known[label] for label in labels],
        labels,
        loc="center",
        title="dashes: the spectrum\nabove the degree",
        fontsize=9,
    )
    for axis in axes[::across]:
        axis.set_ylabel("test error / variance")
    return figure


def plot_scaling(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
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
    axes[0].set_xlabel("inputs n, s = 8, k = 1")
    axes[0].set_title("samples", fontsize=10)
    axes[0].legend(fontsize=8)
    held = "degree for 90% of the variance"
    _draw_members(axes[1], over_n, "n", "degrees", f"inputs n, s = {over_n[0]['s']}, k = {over_n[0]['k']}", held)
    _draw_members(axes[2], over_s, "s", "degrees", f"neurons s, n = {over_s[0]['n']}, k = 1", held)
    _draw_members(axes[3], over_k, "k", "errors", f"active neurons k, s = {over_k[0]['s']}", "test error / variance")
    return figure


def _draw_members(axis: Axes, rows: Sequence[Mapping[str, Any]], along: str, key: str, label: str, title: str) -> None:
    """Every member, and a line through the means of each kind."""
    for place, kind in enumerate(dict.fromkeys(row["kind"] for row in rows)):
        mine = [row for row in rows if row["kind"] == kind]
        style: dict[str, Any] = {"color": colour(place), "marker": MARKERS[place]}
        for row in mine:
            axis.plot([row[along]] * len(row[key]), row[key], linestyle="none", markersize=3, alpha=0.5, **style)
        axis.plot([row[along] for row in mine], [np.mean(row[key]) for row in mine], **style, label=kind)
    axis.set_xscale("log", base=2)
    axis.set_ylim(bottom=0)
    axis.set_xlabel(label)
    axis.set_title(title, fontsize=10)
    axis.legend(fontsize=8, title="members")


def plot_statistical_queries(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/statistical-queries: success against queries, a panel per strategy; dashes are Theorem 14."""
    (rows,) = rows_of(info, "rows")
    strategies = list(dict.fromkeys(row["strategy"] for row in rows))
    title, size = f"Parities of {info['parameters']['n']} bits by statistical queries", (4.3 * len(strategies), 3.9)
    figure, axes = canvas(len(strategies), size=size, ax=ax, title=title, sharey=True)
    for axis, strategy in zip(axes, strategies, strict=True):
        for place, tolerance in enumerate(dict.fromkeys(row["tolerance"] for row in rows)):
            mine = [row for row in rows if (row["strategy"], row["tolerance"]) == (strategy, tolerance)]
            queries = [row["queries"] for row in mine]
            ink = colour(place)
            style: dict[str, Any] = {"marker": MARKERS[place], "markersize": 4, "linewidth": 1.3}
            axis.plot(queries, [row["success"] for row in mine], color=ink, **style, label=f"τ = {tolerance:g}")
            axis.plot(queries, [row["most"] for row in mine], color=ink, linestyle="--", linewidth=0.9)
        axis.plot([], [], color="black", linestyle="--", linewidth=0.9, label="at most (Theorem 14)")
        axis.set_xscale("log", base=2)
        axis.set_xlabel("queries")
        axis.set_title(STRATEGIES.get(strategy, strategy), fontsize=10)
    axes[0].set_ylabel("share of parities found")
    legend_below(axes[0], ax, ncols=5)
    return figure


def plot_rademacher(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/rademacher: lower estimates and bounds over s and over k, and shares of Conjecture 20.

    Parameters
    ----------
    info : mapping with "over_s", "over_k" and "on_sample"
        Lists of rows with "s", "k", "estimate", "standard_error" and the bounds.

    Returns
    -------
    matplotlib.figure.Figure
        Of three panels; save it with its method `savefig`.

    Examples
    --------
    >>> import json
    >>> from fewfire import report
    >>> with open("out/sparse-activations-rademacher.json") as file:  # of: fewfire reproduce NAME -o out
    ...     figure = report.plot_rademacher(json.load(file))
    >>> len(figure.axes)
    3
    """
    over_s, over_k, on_sample = rows_of(info, "over_s", "over_k", "on_sample")
    title = "Rademacher complexity of H(n, s, k): estimates from below, bounds from above"
    figure, panels = canvas(3, size=(9.0, 7.2), across=2, ax=ax, title=title)
    if ax is None:
        panels[1].sharey(panels[0])
    _draw_bounds(panels[0], over_s, "s", f"hidden neurons s, k = {over_s[0]['k']}")
    _draw_bounds(panels[1], over_k, "k", f"active neurons k, s = {over_k[0]['s']}")
    panels[0].set_ylabel("Rademacher complexity")
    panels[0].legend(fontsize="small")
    _draw_shares(panels[2], over_s, on_sample)
    return figure


def _draw_shares(axis: Axes, over_s: Sequence[Mapping[str, Any]], on_sample: Sequence[Mapping[str, Any]]) -> None:
    """Estimates over Conjecture 20 at k = 1, by kind of points; what is above 1 refutes the constant 1."""
    lines = {"sparse on the whole cube": [(row, row["s"]) for row in over_s]}
    for row in on_sample:
        label = (
            f"random points, n = {row['n'] // row['m']} m" if row["points"] == "random" else f"{row['points']} points"
        )
        if row["k"] == 1:
            lines.setdefault(label, []).append((row, row["s"]))
    for place, (label, mine) in enumerate(lines.items()):
        values = [row["estimate"] / row["conjecture_20"] for row, _ in mine]
        errors = [2 * row["standard_error"] / row["conjecture_20"] for row, _ in mine]
        style: dict[str, Any] = {"color": colour(place), "marker": MARKERS[place], "markersize": 4, "capsize": 2}
        axis.errorbar([s for _, s in mine], values, yerr=errors, label=label, **style)
    axis.axhline(1, color="black", linestyle=":")
    axis.axhline(2**0.5, color="black", linestyle="--", label="√2")
    axis.set_xscale("log", base=2)
    axis.set_ylim(0, 2.2)
    axis.set_xlabel("hidden neurons s, k = 1")
    axis.set_ylabel("estimate / Conjecture 20")
    axis.legend(fontsize=7, loc="upper right")


def _draw_bounds(axes: Axes, rows: Sequence[Mapping[str, float]], along: str, label: str) -> None:
    places = [row[along] for row in rows]
    for (name, title), (ink, style) in zip(BOUNDS.items(), STYLES, strict=True):
        axes.plot(places, [row[name] for row in rows], label=title, color=ink, linestyle=style)
    errors = [2 * row["standard_error"] for row in rows]
    values = [row["estimate"] for row in rows]
    axes.errorbar(places, values, yerr=errors, label="lower estimate", color="black", marker="o")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel(label)


def plot_lazy_neurons(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/lazy-neurons: activity in training, on digits by width and depth, in transformers by layer."""
    digits, transformers = rows_of(info, "perceptrons", "transformers")
    text = list({row["width"]: row for row in reversed(transformers)}.values())[::-1]  # the first of each width
    title = "Neurons grow lazy in training (95% intervals)"
    figure, axes = canvas(1 + len(text), size=(9.0, 7.0), across=2, ax=ax, title=title, sharey=True)
    widths = sorted({row["width"] for row in digits})
    depths = sorted({row["depth"] for row in digits})
    for row in digits:
        values = np.array(row["activity"])
        errors = np.array(row["half_width"])[:, -1]
        style: dict[str, Any] = {
            "color": colour(widths.index(row["width"])),
            "linestyle": ("-", "--", ":", "-.")[depths.index(row["depth"]) % 4],
            "linewidth": 1.2,
        }
        label = f"width {row['width']}, depth {row['depth']}"
        places = np.array(row["epochs"]) + 1
        axes[0].errorbar(places, values[:, -1], yerr=errors, **style, capsize=2, label=label)
    axes[0].set_title("digits: last hidden layer", fontsize=10)
    axes[0].set_xlabel("epoch + 1")
    for axis, row in zip(axes[1:], text, strict=True):
        steps = np.array([entry["step"] for entry in row["curve"]]) + 1
        activity = np.array([entry["activity"] for entry in row["curve"]])
        halves = np.array([entry["half_width"] for entry in row["curve"]])
        for layer in range(activity.shape[1]):
            label = f"layer {layer + 1}"
            axis.errorbar(steps, activity[:, layer], yerr=halves[:, layer], color=colour(layer), capsize=2, label=label)
        axis.set_title(f"transformer, {row['parameters'] / 1e6:.1f} M, mlp of {row['width']}", fontsize=10)
        axis.set_xlabel("step + 1")
    for axis in axes:
        axis.set_xscale("log")
        axis.set_ylim(0, 1.05)
        axis.legend(fontsize=7, loc="upper left", ncols=2)
    for axis in axes[::2]:
        axis.set_ylabel("share of neurons that fire")
    return figure


def plot_inducing(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/inducing: accuracy against the share of neurons that fire, a line per method."""
    (rows,) = rows_of(info, "rows")
    figure, (axis,) = canvas(ax=ax)
    methods = [method for method in dict.fromkeys(row["method"] for row in rows) if method != "gelu"]
    for place, method in enumerate(methods):
        mine = [row for row in rows if row["method"] == method]
        points = [[row for row in mine if row["setting"] == s] for s in dict.fromkeys(row["setting"] for row in mine)]
        activity = [np.mean([row["activity"] for row in point]) for point in points]
        accuracy = [np.mean([row["accuracy"] for row in point]) for point in points]
        errors = [1.96 * np.std([row["accuracy"] for row in point]) / np.sqrt(len(point)) for point in points]
        style: dict[str, Any] = {"color": colour(place), "marker": MARKERS[place], "markersize": 4, "capsize": 2}
        axis.errorbar(activity, accuracy, yerr=errors, **style, label=method)
    smooth = np.mean([row["accuracy"] for row in rows if row["method"] == "gelu"])
    axis.axhline(float(smooth), color="black", linestyle=":", label="GELU, all fire")
    log_axis(axis, "x")
    axis.set_ylim(0.85, 1.0)
    axis.set_xlabel("share of neurons that fire")
    axis.set_ylabel("test accuracy")
    axis.set_title("Digits, 512 neurons: what fewer firing neurons cost", fontsize=11)
    axis.legend(fontsize=8, loc="lower right")
    return figure


def plot_learn_back(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/learn-back: error of learning each neuron against what degree and sensitivity say."""
    (rows,) = rows_of(info, "rows")
    title = "Neurons of a trained block, learned back from uniform examples"
    figure, (left, right) = canvas(2, size=(9.0, 3.9), ax=ax, title=title, sharey=True)
    for place, kind in enumerate(dict.fromkeys(row["block"] for row in rows)):
        mine = [row for row in rows if row["block"] == kind]
        errors = [row["error"] for row in mine]
        style: dict[str, Any] = {"linestyle": "none", "marker": MARKERS[place], "markersize": 4, "color": colour(place)}
        left.plot([row["predicted"] for row in mine], errors, **style, label=kind)
        right.plot([row["sensitivity"] for row in mine], errors, **style, label=kind)
    ends = [min(row["predicted"] for row in rows), max(row["predicted"] for row in rows)]
    left.plot(ends, ends, color="black", linestyle=":", zorder=0, label="as predicted")
    for axis, label in ((left, "tail above degree 3, times m/(m − D)"), (right, "average sensitivity / variance")):
        axis.set_xlabel(label)
        axis.legend(fontsize=8)
    log_axis(left, "y")  # of both panels: they share it
    log_axis(left, "x")
    left.set_ylabel("test error / variance")
    return figure

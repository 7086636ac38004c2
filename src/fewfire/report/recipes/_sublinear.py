"""Figures of sublinear, training against an adversary: active neurons, cost, robust losses, accuracy under attack."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from fewfire.report._axes import log_axis
from fewfire.report.recipes._canvas import MARKERS, canvas, colour, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fewfire.report._figure import SomeAxes

THRESHOLDS = {"theorem": "τ = 1/m", "lemma": "τ = $m^{-3/5}$", "quantile": "τ for $m^{3/4}$ active"}
RATES = {"theorem": "$m^{-3/5}/\\sqrt{T}$", "printed": "$m^{-1/5}/\\sqrt{T}$, as printed"}


def plot_activity(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """sublinear/activity: active neurons against the width at the start, and over the iterations of training."""
    start, training = rows_of(info, "start", "training")
    figure, (left, right) = canvas(2, size=(9.0, 3.9), ax=ax, title="Active neurons per example")
    for place, (name, label) in enumerate(THRESHOLDS.items()):
        rows = [row for row in start if row["threshold"] == name]
        widths = [row["width"] for row in rows]
        left.plot(widths, [row["exact"] for row in rows], color=colour(place), label=f"{label}, exact")
        left.plot(widths, [row["mean"] for row in rows], "o", color=colour(place), markersize=4)
        if name == "quantile":
            left.plot(widths, [row["bound"] for row in rows], "--", color=colour(place), label="Lemma 5.15 for it")
    left.plot(widths, widths, ":", color="black", label="all neurons")
    left.set_xscale("log", base=2)
    left.set_yscale("log", base=2)
    _label(left, "width m", "active neurons, mean", "at the start (dots: measured)")
    for place, row in enumerate(training):
        right.plot(row["mean_active"], color=colour(place), label=f"m = {row['width']}")
    log_axis(right, "y")
    _label(right, "iteration", "active neurons, mean", "in training, $m^{3/4}$ at the start")
    return figure


def plot_cost(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """sublinear/cost: multiply-adds with drift lists and what a search reads, by width; exponents against d."""
    rows, fits = rows_of(info, "rows", "fits")
    title = "Robust training with $m^{0.6}$ active neurons: work by width"
    figure, (left, middle, right) = canvas(3, size=(9.0, 7.2), across=2, ax=ax, title=title)
    for axis, method, what in ((left, "lists", "multiply_adds"), (middle, "tree", "search")):
        for place, fit in enumerate(fit for fit in fits if fit["method"] == method):
            mine = [row for row in rows if row["method"] == method and row["d"] == fit["d"]]
            widths = sorted({row["width"] for row in mine})
            means = [fmean(row[what] / row["d"] for row in mine if row["width"] == width) for width in widths]
            label = f"d = {fit['d']}: $m^{{{fit['exponent']:.2f}}}$"
            axis.plot(widths, means, color=colour(place), marker=MARKERS[place], markersize=4, label=label)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
    for axis, method, times, name in ((left, "lists", 5, "dense: m"), (middle, "tree", 2, "scan: m")):
        widths = sorted({row["width"] for row in rows if row["method"] == method})
        pairs = times * info["parameters"]["examples"][method]
        axis.plot(widths, [pairs * width for width in widths], "--", color="black", label=name)
    _label(left, "width m", "multiply-adds per iteration and input", "drift lists, a whole iteration")
    _label(middle, "width m", "neurons and bounds read per iteration", "half-space reporting by a ball tree, searches")
    for place, method in enumerate(("lists", "tree")):
        mine = sorted((fit for fit in fits if fit["method"] == method), key=lambda fit: int(fit["d"]))
        d, means = [fit["d"] for fit in mine], [fit["exponent"] for fit in mine]
        ends = [[fit["exponent"] - fit["low"] for fit in mine], [fit["high"] - fit["exponent"] for fit in mine]]
        name = {"lists": "drift lists, a whole iteration", "tree": "ball tree, searches, at the largest widths"}[method]
        right.errorbar(d, means, ends, color=colour(place), marker=MARKERS[place], markersize=4, capsize=3, label=name)
    mine = sorted((fit for fit in fits if fit["method"] == "tree"), key=lambda fit: int(fit["d"]))
    d = [fit["d"] for fit in mine]
    right.plot(d, [fit["paper"] for fit in mine], ":", color=colour(2), label="Corollary 6.2")
    right.axhline(1.0, color="black", linestyle="--", label="scan, dense")
    right.set_xscale("log", base=2)
    right.set_xticks([4, 8, 16, 64, 256], ["4", "8", "16", "64", "256"])
    right.set_ylim(0.4, 1.08)
    _label(right, "inputs d", "exponent of m, 95% over seeds", "how fast work grows")
    return figure


def plot_robust_loss(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """sublinear/robust-loss: the losses of every seed, and Theorem 5.12's average loss against the iterations."""
    iteration, rows, theorem = rows_of(info, "iteration", "rows", "theorem")
    title = f"Training against an adversary of radius {info['parameters']['rho']:g}"
    figure, (left, right) = canvas(2, size=(9.0, 3.9), ax=ax, title=title)
    for place, (key, label) in enumerate((("robust_loss", "at the adversary's points"), ("clean_loss", "at the data"))):
        for number, row in enumerate(rows):
            named = None if number else label
            left.plot(iteration, row["robust"][key], color=colour(place), linewidth=0.9, alpha=0.7, label=named)
    _label(left, "iteration", "logistic loss", "practical setting, a curve per seed")
    for place, (rate, label) in enumerate(RATES.items()):
        for number, averages in enumerate(theorem["average_robust_loss"][rate]):
            named = None if number else label
            right.plot(
                theorem["horizons"], averages, "o-", color=colour(place + 2), markersize=4, linewidth=0.9, label=named
            )
    right.axhline(1.0, color="black", linestyle=":", label="the zero function")
    log_axis(right, "x")
    _label(right, "iterations T", "average robust loss", "absolute loss, rates of Theorem 5.12")
    return figure


def plot_robust_accuracy(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """sublinear/digits: accuracy under attack and proved accuracy against the radius, a line per model."""
    radii, accuracy, certified = rows_of(info, "radii", "accuracy", "certified")
    title = "Digits: accuracy within a radius"
    figure, (left, right) = canvas(2, size=(9.0, 3.9), ax=ax, title=title, sharey=True)
    for axes, table, title in ((left, accuracy, "under attack"), (right, certified, "proved")):
        for place, (name, values) in enumerate(table.items()):
            axes.plot(radii, values, "o-", color=colour(place), markersize=4, label=name)
        axes.set_ylim(0, 1)
        _label(axes, "radius ρ, 2-norm", "accuracy", title)
    return figure


def _label(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=8)

"""Figures of sublinear, training against an adversary: active neurons, cost, robust losses, accuracy under attack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire.report._axes import log_axis
from fewfire.report.recipes._canvas import MARKERS, canvas, colour, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

THRESHOLDS = {"theorem": "τ = 1/m", "lemma": "τ = $m^{-3/5}$", "quantile": "τ for $m^{3/4}$ active"}
RATES = {"theorem": "$m^{-3/5}/\\sqrt{T}$", "printed": "$m^{-1/5}/\\sqrt{T}$, as printed"}


def plot_activity(info: Mapping[str, Any]) -> Figure:
    """sublinear/activity: active neurons against the width at the start, and over the iterations of training."""
    start, training = rows_of(info, "start", "training")
    figure, (left, right) = canvas(2, size=(9.0, 3.9))
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
    figure.suptitle("Active neurons per example", fontsize=11)
    return figure


def plot_cost(info: Mapping[str, Any]) -> Figure:
    """sublinear/cost: multiply-adds per iteration by width, a colour per dimension; dashed is the dense iteration."""
    rows, fits = rows_of(info, "rows", "fits")
    figure, (axis,) = canvas()
    for place, fit in enumerate(fits):
        mine = [row for row in rows if row["d"] == fit["d"]]
        widths = [row["width"] for row in mine]
        axis.plot(widths, [row["dense_multiply_adds"] for row in mine], color=colour(place), linestyle="--")
        label = f"d = {fit['d']}: $m^{{{fit['lists']:.2f}}}$"
        axis.plot(
            widths, [row["multiply_adds"] for row in mine], color=colour(place), marker=MARKERS[place], label=label
        )
    axis.plot([], [], color="black", linestyle="--", label="dense: m")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xlabel("width m")
    axis.set_ylabel("multiply-adds per iteration")
    axis.set_title("Robust training with $m^{0.6}$ active neurons: work by width", fontsize=11)
    figure.legend(ncols=3, loc="outside lower center", frameon=False, fontsize=9)
    return figure


def plot_robust_loss(info: Mapping[str, Any]) -> Figure:
    """sublinear/robust-loss: the losses of every seed, and Theorem 5.12's average loss against the iterations."""
    iteration, rows, theorem = rows_of(info, "iteration", "rows", "theorem")
    figure, (left, right) = canvas(2, size=(9.0, 3.9))
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
    log_axis(right, "x")
    _label(right, "iterations T", "average robust loss", "absolute loss, rates of Theorem 5.12")
    figure.suptitle(f"Training against an adversary of radius {info['parameters']['rho']:g}", fontsize=11)
    return figure


def plot_robust_accuracy(info: Mapping[str, Any]) -> Figure:
    """sublinear/digits: accuracy under attack and proved accuracy against the radius, a line per model."""
    radii, accuracy, certified = rows_of(info, "radii", "accuracy", "certified")
    figure, (left, right) = canvas(2, size=(9.0, 3.9), sharey=True)
    for axes, table, title in ((left, accuracy, "under attack"), (right, certified, "proved")):
        for place, (name, values) in enumerate(table.items()):
            axes.plot(radii, values, "o-", color=colour(place), markersize=4, label=name)
        axes.set_ylim(0, 1)
        _label(axes, "radius ρ, 2-norm", "accuracy", title)
    figure.suptitle("Digits: accuracy within a radius", fontsize=11)
    return figure


def _label(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=8)

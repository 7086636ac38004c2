"""Figures of learning inside H(n, s, k): samples beside dense networks, and how often more than k neurons fire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.report.recipes._canvas import MARKERS, canvas, colour, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fewfire.report._figure import SomeAxes


def plot_inside_the_class(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/inside-the-class: errors and gaps by samples, samples needed over s beside the theory."""
    rows, classes = rows_of(info, "rows", "classes")
    told = info["parameters"]
    n, s = (told[name][0] for name in ("n", "s"))
    title = "Learning inside H(n, s, k) beside dense networks (means over targets, standard errors)"
    figure, axes = canvas(3, size=(9.0, 6.4), across=2, ax=ax, title=title)
    common = [row for row in rows if (row["n"], row["s"]) == (n, s)]
    for place, key in enumerate(dict.fromkeys((row["k"], row["steps"]) for row in common)):
        mine = [row for row in common if (row["k"], row["steps"]) == key]
        label = (f"k = {key[0]}" if key[0] else "dense") + ("" if key[1] == told["steps"] else ", trained longer")
        style: dict[str, Any] = {"color": colour(place), "marker": MARKERS[place], "markersize": 4, "capsize": 2}
        sizes = [row["samples"] for row in mine]
        _spread(axes[0], sizes, [row["test"] for row in mine], style, label)
        _spread(axes[1], sizes, [np.subtract(row["test"], row["train"]) for row in mine], style, label)
        gaps = np.mean([np.subtract(row["test"], row["train"]) for row in mine], axis=1)
        bound = np.array([row["theorem_19"] for row in mine])
        axes[1].plot(sizes, bound * gaps[0] / bound[0], color=colour(place), linestyle=":", linewidth=0.9)
    axes[0].axhline(told["goal"], color="black", linestyle=":", linewidth=0.9)
    axes[0].set_title(f"test error / variance, n = {n}, s = {s}", fontsize=10)
    axes[1].set_title("gap (dots: shape of Theorem 19, classical)", fontsize=10)
    for axis in axes[:2]:
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("samples")
        ticks = sorted({row["samples"] for row in common})
        axis.set_xticks(ticks, [f"{m}" for m in ticks])
        axis.minorticks_off()
    axes[0].legend(fontsize=8)
    least = told["k"][0]
    for place, (side, law) in enumerate(((least, 1), (0, 2))):
        mine = [row for row in classes if (row["n"], row["k"], row["steps"]) == (n, side, told["steps"])]
        mine = sorted(mine, key=lambda row: row["s"])
        widths = [row["s"] for row in mine]
        style = {"color": colour(place), "marker": MARKERS[place], "markersize": 4, "capsize": 2}
        name = f"k = {side}" if side else "dense"
        _spread(axes[2], widths, [row["needed"] for row in mine], style, name)
        start = float(np.exp(np.mean(np.log(mine[0]["needed"]))))
        shape = [start * (width / widths[0]) ** law for width in widths]
        title = "Theorem 17: s" if side else "classical: s²"
        axes[2].plot(widths, shape, color=colour(place), linestyle="--", linewidth=0.9, label=title)
    axes[2].set_xscale("log", base=2)
    axes[2].set_yscale("log")
    axes[2].set_xlabel("neurons s")
    axes[2].set_title(f"samples for an error of {told['goal']:g}, n = {n}", fontsize=10)
    axes[2].legend(fontsize=8)
    return figure


def plot_mostly_sparse(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/mostly-sparse: Pr[more than k fire] on new digits over k, and on the cube over samples."""
    over_k, cube = rows_of(info, "over_k", "cube")
    figure, (left, right) = canvas(2, size=(8.6, 3.8), ax=ax, title="Remark 11: sparse on most inputs")
    mine = over_k[:-1]
    shares = np.array([sum(row["exceeding"]) / sum(row["images"]) for row in mine])
    ends = np.array([[min(row["low"]), max(row["high"])] for row in mine]).T
    errors = np.abs(ends - shares)
    left.errorbar([row["k"] for row in mine], shares, yerr=errors, color=colour(0), marker="o", capsize=3)
    left.set_xscale("log", base=2)
    left.set_xlabel("k, at most so many fire on training images")
    left.set_ylabel("Pr[more than k fire] on new images")
    left.set_title("digits, 64 neurons (widest 95% ends of all seeds)", fontsize=10)
    left.set_ylim(0, None)
    for place, k in enumerate(dict.fromkeys(row["k"] for row in cube)):
        of_k = [row for row in cube if row["k"] == k]
        style: dict[str, Any] = {"linestyle": "none", "marker": MARKERS[place], "markersize": 4, "color": colour(place)}
        right.plot([row["samples"] for row in of_k], [row["p"] for row in of_k], **style, label=f"k = {k}")
        right.axhline(of_k[0]["allowed"], color=colour(place), linestyle="--", linewidth=0.9, label=f"(k/s)², k = {k}")
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xlabel("samples")
    right.set_title("members learned on {−1, +1}¹², whole cube", fontsize=10)
    right.legend(fontsize=8)
    return figure


def _spread(axis: Axes, places: Sequence[float], values: Sequence[Any], style: Mapping[str, Any], label: str) -> None:
    """Geometric means where all are above 0, else means, with standard errors of the mean."""
    table = np.array(values, dtype=np.float64)
    mean, error = table.mean(axis=1), table.std(axis=1, ddof=1) / np.sqrt(table.shape[1])
    if (table > 0).all():
        logs = np.log(table)
        mean = np.exp(logs.mean(axis=1))
        error = mean * logs.std(axis=1, ddof=1) / np.sqrt(table.shape[1])
    axis.errorbar(places, mean, yerr=error, **style, linewidth=1.3, label=label)

"""Figures of pareto: frontier, convergence times with grokking, offline parity, lottery tickets, Proposition 3."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.report._axes import log_axis
from fewfire.report._frontier import Group, SuccessFrontier, even_odds, wilson_interval
from fewfire.report._plots import TEST, TRAIN, draw_widths, plot_frontier
from fewfire.report.recipes._canvas import MARKERS, canvas, colour, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from fewfire.report._figure import SomeAxes

STEPS = [digit * 10**power for power in range(2, 6) for digit in (1, 2, 5)]
NAMES = {"dense": "dense", "sparse": "2-sparse"}
LEARNED = 0.1
"""The test error of a run that has learned."""


def plot_success_frontier(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """pareto/frontier: a heat map of success per start, with the line of even odds."""
    group = group_of(info)
    return plot_frontier(
        replace(group, label=f"{group.label}: share of {info['parameters']['trials']} runs that succeed"), ax=ax
    )


def plot_convergence_time(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """pareto/convergence-time: median steps with quartiles against samples, and the errors of runs that grok."""
    curves, setting = rows_of(info, "curves", "parameters")
    group = group_of(info)
    figure, axes = canvas(len(group.frontiers) + 1, size=(9.0, 7.0), across=2, ax=ax, title=_problem(info))
    everything = np.stack([frontier.steps for frontier in group.frontiers])
    least, most = float(np.nanmin(everything)) / 1.25, float(np.nanmax(everything)) * 1.25
    for axis, frontier in zip(axes, group.frontiers, strict=False):
        low, middle, high = frontier.steps
        draw_widths(axis, group, middle, low, high)
        axis.set_xticks(axis.get_xticks(), [_thousands(m) for m in group.samples], fontsize=8)
        axis.set_xlabel("training examples (k: thousands)")
        axis.set_yscale("log")
        axis.set_ylim(least, most)  # the same for all starts, which are to be compared
        axis.set_yticks([at for at in STEPS if least <= at <= most], minor=False)
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.yaxis.minorticks_off()
        axis.set_title(f"{frontier.start} start: time to convergence", fontsize=10)
        axis.set_ylabel("steps, median and quartiles")
        axis.legend(title="width", fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=5)
    last = axes[-1]
    for place, curve in enumerate(curves):
        for key, ink, name in (("train_error", TRAIN, "training"), ("test_error", TEST, "test")):
            style = "--" if key == "train_error" else "-"
            last.plot(curve["step"], curve[key], style, color=ink, linewidth=1, label=None if place else name)
    last.set_xscale("symlog", linthresh=setting["evaluate"])
    last.set_title(f"grokking: width {setting['wide']}, {setting['edge']} samples", fontsize=10)
    last.set_xlabel("steps")
    last.set_ylabel("error")
    last.legend(fontsize=8)
    return figure


def plot_offline_parity(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """pareto/offline-parity: success against width with Wilson's 95% intervals, and under other settings."""
    rows, varied = rows_of(info, "rows", "variations")
    sizes = [row["samples"] for row in rows]
    samples = max(set(sizes), key=sizes.count)  # the paper's scale adds two ends
    title = f"{_problem(info)} from {samples} samples"
    figure, (axis, right) = canvas(2, size=(9.2, 4.0), ax=ax, title=title, width_ratios=(1.0, 1.15))
    for place, start in enumerate(("sparse", "dense")):
        mine = [row for row in rows if row["start"] == start and row["samples"] == samples]
        shifted = [row["width"] * 1.04 ** (2 * place - 1) for row in mine]  # or the intervals would hide each other
        share, reach = _shares(mine)
        label = f"{NAMES[start]} start"
        axis.errorbar(shifted, share, reach, color=colour(place), marker=MARKERS[place], capsize=3, label=label)
    axis.set_xscale("log")
    axis.set_xticks(sorted({row["width"] for row in rows}), [f"{w}" for w in sorted({row["width"] for row in rows})])
    axis.minorticks_off()
    axis.set_ylim(-0.03, 1.03)
    axis.set_xlabel("width")
    axis.set_ylabel("share of runs that succeed, 95% interval")
    axis.set_title("C.1's settings", fontsize=10)
    axis.legend()
    names = list(dict.fromkeys(row["variation"] for row in varied))
    widths = min(row["width"] for row in varied), max(row["width"] for row in varied)
    kinds = (("sparse", widths[1]), ("dense", widths[1]), ("sparse", widths[0]))
    for place, (start, width) in enumerate(kinds):
        mine = [row for row in varied if (row["start"], row["width"]) == (start, width)]
        share, reach = _shares(mine)
        at = [names.index(row["variation"]) + 0.18 * (place - 1) for row in mine]
        label = f"{NAMES[start]}, width {width}"
        right.errorbar(share, at, xerr=reach, color=colour(place), marker=MARKERS[place], linestyle="", label=label)
    right.set_yticks(range(len(names)), names)
    right.invert_yaxis()
    right.set_xlim(-0.03, 1.03)
    right.set_xlabel("share of runs that succeed, 95% interval")
    right.set_title("one setting changed", fontsize=10)
    right.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
    return figure


def _shares(rows: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Shares of success, and how far their intervals reach down and up."""
    won, runs = (np.array([row[key] for row in rows]) for key in ("successes", "trials"))
    low, high = wilson_interval(won, runs)
    return won / runs, [won / runs - low, high - won / runs]


def plot_lottery(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """pareto/lottery-tickets: test error against steps, a row of panels per parity: wide, rewound, redrawn.

    Parameters
    ----------
    info : mapping with "parities"
        One entry per parity: "k", "curves" (steps and errors of some networks) and "wide", "rewound" and "redrawn",
        steps until each had learned, None where it never did.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import json
    >>> from fewfire import report
    >>> with open("out/pareto-lottery-tickets.json") as file:  # of: fewfire reproduce pareto/lottery-tickets -o out
    ...     figure = report.plot_lottery(json.load(file))
    >>> len(figure.axes)
    6
    """
    (parities,) = rows_of(info, "parities")
    down = len(parities)
    title = "Lottery tickets: the neurons that end up large, alone; one line per wide network"
    size = (9.2, 0.5 + 2.6 * down)
    figure, panels = canvas(3 * down, size=size, across=3, ax=ax, title=title, sharey=True, sharex="row")
    titles = {"wide": "wide network", "rewound": "rewound neurons", "redrawn": "redrawn neurons"}
    for place, table in enumerate(parities):
        for axes, (kind, title) in zip(panels[3 * place :], titles.items(), strict=False):
            for curve in table["curves"][kind]:
                axes.plot(curve["step"], curve["error"], color=TEST, alpha=0.6, linewidth=1)
            learned = sum(step is not None for step in table[kind])
            axes.axhline(LEARNED, color="black", linestyle=":", linewidth=1)
            axes.set_title(f"k = {table['k']}, {title}: {learned} of {len(table[kind])} learn", fontsize=10)
            axes.set_xscale("symlog", linthresh=1000)
            axes.set_xticks([0, 1000, 10_000, 100_000], ["0", "1k", "10k", "100k"])
            axes.set_xlim(0, 1.2 * max(curve["step"][-1] for side in table["curves"].values() for curve in side))
            axes.set_xlabel("steps")
        panels[3 * place].set_ylabel("test error")
    return figure


def plot_proposition_3(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """pareto/proposition-3: the share of parities that noise hides, and the noise that hides one half, with bounds."""
    rows, setting = rows_of(info, "rows", "parameters")
    resources = f"{setting['parameters']} parameters, {setting['steps']} steps, {setting['draws']} starts"
    title = f"Proposition 3: n = {setting['n']}, {resources}"
    figure, (left, right) = canvas(2, size=(9.0, 3.9), ax=ax, title=title)
    for place, row in enumerate(row for row in rows if row["k"] % 2 == 0):
        left.plot(row["noise"], row["hidden"], color=colour(place), label=f"k = {row['k']}")
        left.plot(row["noise"], row["bound"], color=colour(place), linestyle="--", linewidth=1)
    left.plot([], [], color="black", label="measured")
    left.plot([], [], color="black", linestyle="--", linewidth=1, label="at least (Proposition 3)")
    log_axis(left, "x")
    left.set_xlabel("noise τ, in units of the largest slope")
    left.set_ylabel("share of parities hidden")
    left.set_title("which parities noise hides", fontsize=10)
    left.legend(fontsize=8)
    parities = [row["parities"] for row in rows]
    right.plot(parities, [row["half"] for row in rows], color=colour(0), marker="o", label="measured")
    right.plot(parities, [row["half_bound"] for row in rows], color="black", linestyle="--", label="Proposition 3")
    log_axis(right, "x")
    log_axis(right, "y")
    right.set_xlabel(f"parities C(n, k), k = {rows[0]['k']}…{rows[-1]['k']}")
    right.set_ylabel("noise τ that hides one half")
    right.set_title("how much noise it takes", fontsize=10)
    right.legend(fontsize=8)
    return figure


def group_of(info: Mapping[str, Any]) -> Group:
    """The rows of a grid as the report's drawings take them."""
    rows, parameters = rows_of(info, "rows", "parameters")
    widths = tuple(sorted({row["width"] for row in rows}))
    samples = tuple(sorted({row["samples"] for row in rows}, key=lambda m: np.inf if m is None else m))
    starts = dict.fromkeys(row["start"] for row in rows)
    frontiers = tuple(
        _frontier(NAMES[start], [r for r in rows if r["start"] == start], widths, samples) for start in starts
    )
    spec = {"problem": {"name": "parity", "n": parameters["n"], "k": parameters["k"]}}
    return Group(_problem(info), "", _problem(info), widths, samples, frontiers, spec)


def _frontier(
    start: str, rows: Sequence[Mapping[str, Any]], widths: Sequence[int], samples: tuple[int | None, ...]
) -> SuccessFrontier:
    shape = len(widths), len(samples)
    runs, successes, nothing = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    steps = np.full((3, *shape), np.nan)
    for row in rows:
        place = widths.index(row["width"]), samples.index(row["samples"])
        runs[place], successes[place] = row["trials"], row["successes"]
        # Runs that did not converge count as the longest: a quartile that falls among them is not drawn.
        times = sorted(np.inf if step is None else step for step in row["steps"])
        quartiles = np.quantile(times, [0.25, 0.5, 0.75], method="nearest")
        steps[(slice(None), *place)] = np.where(np.isfinite(quartiles), quartiles, np.nan)
    low, high = wilson_interval(successes, runs)
    half, interval = even_odds(runs, successes, samples)
    return SuccessFrontier(start, nothing, runs, successes, nothing, nothing, low, high, steps, half, interval)


def _thousands(samples: int | None) -> str:
    if samples is None:
        return "online"
    return f"{samples / 1000:g}k" if samples >= 1000 else f"{samples}"


def _problem(info: Mapping[str, Any]) -> str:
    return f"({info['parameters']['n']}, {info['parameters']['k']})-parity"

"""The report's figures for papers, drawn with matplotlib (extra `plot`): PNG, PDF, or a `Figure` to work on.

Each gives the figure, which a notebook shows; `ax` draws into axes of yours instead, one per panel.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._atomic import replacing
from fewfire._errors import invalid
from fewfire._optional import require
from fewfire.report._curves import curves_info
from fewfire.report._figure import canvas, legend_below, log_axis, nothing_here
from fewfire.report._frontier import frontier_info, theory_info
from fewfire.report._results import Results, read_results

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fewfire._types import AnyArray, Float64Array
    from fewfire.report._curves import CellCurves
    from fewfire.report._figure import SomeAxes
    from fewfire.report._frontier import Group
    from fewfire.sweeps import Store

RAMP = ("#ebf5f5", "#b2e6da", "#64c6ba", "#0b8389", "#1b558a", "#202463")
"""Share of successes from none to all, as on the page in daylight."""

NARROW, WIDE, TEST, TRAIN = "#8d7fd6", "#331e7d", "#c2410c", "#3b6ea5"
CROWDED = 12
"""Columns of a map above which its cells have no room for numbers, and the axis not for all of its own."""

BELOW = 0.3
"""How far below the middle of its row an interval is drawn, clear of the numbers."""

INCHES = (4.6, 3.4)
"""Of one panel; a figure has one per start."""


def plot_frontier(group: Group, *, theory: bool = False, ax: SomeAxes | None = None) -> Figure:
    """Heat maps of success by width and samples, with the line of even odds and its 95% intervals.

    `theory` adds the curve of equal cost. A frontier that is nowhere on a map is not drawn.

    Examples
    --------
    >>> from fewfire import report
    >>> from fewfire.sweeps import SqliteStore
    >>> (group,) = report.frontier_info(SqliteStore("grid.sqlite"))  # as the README's first sweep writes it
    >>> figure = report.plot_frontier(group, theory=True)  # a notebook shows it
    >>> figure.savefig("frontier.pdf")
    """
    figure, axes = _panels(group, ax)
    colours = require("matplotlib.colors", "plot", "a figure")
    ramp = colours.LinearSegmentedColormap.from_list("success", RAMP)
    stroke = require("matplotlib.patheffects", "plot", "a figure").withStroke
    overlay = theory_info(group) if theory else None
    for position, (axis, frontier) in enumerate(zip(axes, group.frontiers, strict=True)):
        image = axis.imshow(frontier.success, origin="lower", cmap=ramp, vmin=0, vmax=1, aspect="auto")
        crowded = len(group.samples) > CROWDED
        every = range(0, len(group.samples), -(-len(group.samples) // CROWDED))
        axis.set_xticks(every, [_samples(group.samples[m]) for m in every])
        axis.set_yticks(range(len(group.widths)), [f"{width}" for width in group.widths])
        for (row, column), value in np.ndenumerate(frontier.success):
            if not np.isnan(value) and not crowded:
                ink = "white" if value >= 0.6 else "black"
                halo = stroke(linewidth=4, foreground=ramp(value))  # the lines below are broken by the numbers
                style: dict[str, Any] = {"color": ink, "fontsize": 8, "path_effects": [halo]}
                axis.text(column, row, f"{value:.0%}", ha="center", va="center", zorder=3, **style)
        if overlay is not None:
            style = {"color": TEST, "linestyle": "--", "label": "equal cost (Proposition 3)"}
            _line(axis, group, overlay.equal_cost[position], **style)
        if inside(frontier.half).any():
            over: dict[str, Any] = {"color": "black", "path_effects": [stroke(linewidth=3.5, foreground="white")]}
            _line(axis, group, frontier.half, linestyle="-", label="half of the runs succeed", **over)
            _intervals(axis, group, frontier.interval, linewidth=1.2, label="95% interval of that", **over)
        axis.set_xlim(-0.5, len(group.samples) - 0.5)
        axis.set_ylim(-0.5, len(group.widths) - 0.5)
        axis.set_xlabel("training examples")
    axes[0].set_ylabel("width")
    figure.colorbar(image, ax=axes, label="success")
    if handles := _drawn(axes):
        legend_below(axes[0], ax, handles=handles, ncols=len(handles))
    return figure


def plot_even_odds(group: Group, *, ax: SomeAxes | None = None) -> Figure:
    """The samples at which half of the runs succeed against width, a line per start, with 95% intervals.

    An arrow stands for a frontier beyond the samples that were tried.

    Examples
    --------
    >>> from fewfire import report
    >>> from fewfire.sweeps import SqliteStore
    >>> (group,) = report.frontier_info(SqliteStore("grid.sqlite"))  # as the README's first sweep writes it
    >>> figure = report.plot_even_odds(group)  # a notebook shows it
    >>> figure.savefig("even_odds.pdf")
    """
    figure, (axis,) = canvas(size=INCHES, title=group.label, ax=ax)
    finite = [m for m in group.samples if m is not None] or [1]
    for frontier, colour in zip(group.frontiers, (TEST, TRAIN, WIDE, NARROW) * len(group.frontiers), strict=False):
        known = ~np.isnan(frontier.half)
        if not known.any():
            continue
        widths = np.array(group.widths, dtype=np.float64)
        middle = np.where(inside(frontier.half), frontier.half, np.nan)
        low, high = np.clip(frontier.interval, finite[0], finite[-1])
        reach = np.stack([np.fmax(middle - low, 0), np.fmax(high - middle, 0)])
        axis.errorbar(widths, middle, reach, color=colour, marker="o", capsize=3, label=frontier.title)
        for beyond, end, mark in ((frontier.half == 0, finite[0], "v"), (np.isinf(frontier.half), finite[-1], "^")):
            axis.plot(widths[beyond], np.full(beyond.sum(), end), mark, color=colour, markersize=9)
    axis.set(xlabel="width", ylabel="examples at which half succeed")
    if not axis.has_data():
        nothing_here(axis, "no finished runs on a training set")
        return figure
    log_axis(axis, "y")
    axis.set_xscale("log")
    axis.set_xticks(group.widths, [f"{width}" for width in group.widths])
    axis.minorticks_off()
    axis.legend(fontsize=8)
    return figure


def plot_success(group: Group, *, ax: SomeAxes | None = None) -> Figure:
    """Success against samples, a line per width, with Wilson's 95% intervals.

    Examples
    --------
    >>> from fewfire import report
    >>> from fewfire.sweeps import SqliteStore
    >>> (group,) = report.frontier_info(SqliteStore("grid.sqlite"))  # as the README's first sweep writes it
    >>> figure = report.plot_success(group)  # a notebook shows it
    >>> figure.savefig("success.pdf")
    """
    values = [(frontier.success, frontier.low, frontier.high) for frontier in group.frontiers]
    figure, axes = _by_width(group, ax, "runs that succeed", values, "no finished runs")
    for axis in axes:
        axis.set_ylim(-0.03, 1.03)
    return figure


def _by_width(
    group: Group, ax: SomeAxes | None, label: str, values: Sequence[Iterable[Float64Array]], empty: str
) -> tuple[Figure, list[Axes]]:
    """Middle, low and high values of each panel, a line per width; a legend next to the last panel names the widths."""
    figure, axes = _panels(group, ax)
    for axis, (middle, low, high) in zip(axes, values, strict=True):
        draw_widths(axis, group, middle, low, high)
        if np.isnan(middle).all():
            nothing_here(axis, empty)
    axes[0].set_ylabel(label)
    if drawn := _drawn(axes):
        location: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1)}
        axes[-1].legend(drawn.values(), drawn.keys(), title="width", fontsize=8, **location)
    return figure, axes


def _drawn(axes: Sequence[Axes]) -> dict[str, Any]:
    """What is drawn in any of the panels, by its label."""
    return {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}


def plot_convergence(group: Group, *, ax: SomeAxes | None = None) -> Figure:
    """Median time to convergence of the successful runs against samples, a line per width, with quartiles.

    Examples
    --------
    >>> from fewfire import report
    >>> from fewfire.sweeps import SqliteStore
    >>> (group,) = report.frontier_info(SqliteStore("grid.sqlite"))  # as the README's first sweep writes it
    >>> figure = report.plot_convergence(group)  # a notebook shows it
    >>> figure.savefig("convergence.pdf")
    """
    values = [frontier.steps[[1, 0, 2]] for frontier in group.frontiers]
    figure, axes = _by_width(group, ax, "steps to convergence", values, "no run succeeds")
    if any(frontier.successes.any() for frontier in group.frontiers):
        log_axis(axes[0], "y")  # of all panels: they share it
    else:
        axes[0].set_yticks([])
    return figure


def plot_curves(
    group: Group, cells: Sequence[CellCurves], width: int, samples: int | None, *, ax: SomeAxes | None = None
) -> Figure:
    """Training and test error against steps of the cell at this width and number of samples, a panel per start.

    Examples
    --------
    >>> from fewfire import report
    >>> from fewfire.sweeps import SqliteStore
    >>> store = SqliteStore("grid.sqlite")  # as the README's first sweep writes it
    >>> (group,) = report.frontier_info(store)
    >>> figure = report.plot_curves(group, report.curves_info(store), width=100, samples=600)
    >>> figure.get_suptitle()
    'parity(n=30, k=3), width 100, 600 examples'
    """
    figure, axes = _panels(group, ax, f"{group.problem}, width {width}, {_samples(samples)} examples")
    cell_index = group.widths.index(width), group.samples.index(samples)
    known = {cell.setting: cell for cell in cells}
    for axis, frontier in zip(axes, group.frontiers, strict=True):
        cell = known.get(int(frontier.setting[cell_index]))
        if cell is not None:
            for run in range(len(cell.trials)):
                for values, colour, style in ((cell.train_error, TRAIN, "--"), (cell.test_error, TEST, "-")):
                    seen = ~np.isnan(values[run])
                    axis.plot(cell.step[seen], values[run][seen], style, color=colour, linewidth=1.2, alpha=0.8)
            positive = cell.step[cell.step > 0]
            axis.set_xscale("symlog", linthresh=float(positive[0]) if len(positive) else 1.0)
        else:
            nothing_here(axis, "no training curves")
        axis.set_xlabel("steps")
    axes[0].set_ylabel("error (test: solid, training: dashed)")
    return figure


def _panels(group: Group, ax: SomeAxes | None, title: str | None = None) -> tuple[Figure, list[Axes]]:
    """A panel per start."""
    panels = len(group.frontiers)
    size = (INCHES[0] * panels, INCHES[1])
    figure, axes = canvas(panels, size=size, title=title or group.label, ax=ax, sharey=True)
    for axis, frontier in zip(axes, group.frontiers, strict=True):
        axis.set_title(frontier.title, fontsize=10)
    return figure, axes


def draw_widths(axis: Axes, group: Group, middle: Float64Array, low: Float64Array, high: Float64Array) -> None:
    """One line per width with error bars, online data one step after the largest number of samples."""
    finite = [m for m in group.samples if m is not None]
    last = finite[-1] * (finite[-1] / finite[-2] if len(finite) > 1 else 10) if finite else 1.0
    positions = np.array([last if m is None else m for m in group.samples], dtype=np.float64)
    ramp = require("matplotlib.colors", "plot", "a figure").LinearSegmentedColormap.from_list("width", (NARROW, WIDE))
    for row, width in enumerate(group.widths):
        seen = ~np.isnan(middle[row])
        if not seen.any():  # a width that this start was not measured at, or that never came so far
            continue
        reach = np.stack([middle[row] - low[row], high[row] - middle[row]])[:, seen]
        colour = ramp(row / max(1, len(group.widths) - 1))
        style: dict[str, Any] = {"fmt": "o-", "markersize": 4, "linewidth": 1.5, "elinewidth": 0.8, "capsize": 2}
        axis.errorbar(positions[seen], middle[row][seen], np.maximum(reach, 0), color=colour, label=f"{width}", **style)
    axis.set_xscale("log")
    axis.set_xticks(positions, [_samples(m) for m in group.samples])
    axis.minorticks_off()
    axis.set_xlabel("training examples")


def inside(samples: Float64Array) -> AnyArray:
    """Where a curve of samples by width is a number; 0 and infinity are beyond the map."""
    within: AnyArray = np.isfinite(samples) & (samples > 0)
    return within


def _line(axis: Axes, group: Group, samples: Float64Array, **style: Any) -> None:
    """A curve of samples by width on a map: to its edge next to a row beyond it, upright in a row that is alone."""
    x = _positions(group, np.where(inside(samples), samples, np.nan))
    if x is None or not inside(samples).any():
        return
    last = max(position for position, m in enumerate(group.samples) if m is not None)
    ends = np.where(samples == 0, -0.5, np.where(np.isinf(samples), last + 0.5, np.nan))
    near = np.convolve(inside(samples), [1, 0, 1], mode="same")[: len(samples)] > 0
    x = np.where(inside(samples), x, np.where(near, ends, np.nan))
    drawn = np.concatenate([[False], ~np.isnan(x), [False]])
    for row in np.flatnonzero(drawn[1:-1] & ~drawn[:-2] & ~drawn[2:]):
        axis.plot([x[row]] * 2, [row - BELOW, row + BELOW], linewidth=1.8, **style)
        x[row] = np.nan
    if not np.isnan(x).all():
        axis.plot(x, np.arange(len(x)), linewidth=1.8, **style)


def _intervals(axis: Axes, group: Group, interval: Float64Array, **style: Any) -> None:
    """A bar per width on a map, to its edge where the interval is open; none where both ends are."""
    for row, (low, high) in enumerate(interval.T):
        if np.isnan(low) or (low == 0 and np.isinf(high)):
            continue
        ends = _positions(group, np.array([low if low > 0 else np.nan, high if high < np.inf else np.nan]))
        if ends is not None:
            left, right = np.where(np.isnan(ends), [-0.5, len(group.samples) - 0.5], ends)
            axis.hlines(row - BELOW, left, right, **style)


def _positions(group: Group, samples: Float64Array) -> Float64Array | None:
    """Where samples lie on a map whose columns are not evenly spaced; None where it has fewer than two."""
    known = [(np.log(m), position) for position, m in enumerate(group.samples) if m is not None]
    if len(known) < 2:
        return None
    logs, positions = (np.array(values, dtype=np.float64) for values in zip(*known, strict=True))
    wanted = np.log(samples)
    left = np.clip(np.searchsorted(logs, wanted) - 1, 0, len(logs) - 2)  # beyond the columns as between the last two
    x: Float64Array = positions[left] + (positions[left + 1] - positions[left]) * (wanted - logs[left]) / (
        logs[left + 1] - logs[left]
    )
    return x


def _samples(samples: int | None) -> str:
    return "online" if samples is None else f"{samples}"


def save_figures(
    source: Store | Results, folder: str | Path, formats: Sequence[str] = ("png",), success_error: float | None = None
) -> list[Path]:
    """Write every figure of a store into a folder; several groups are numbered. Gives the files.

    Training curves are drawn for one cell per group: the one whose success is nearest to one half.

    Examples
    --------
    >>> from fewfire import report
    >>> from fewfire.sweeps import SqliteStore
    >>> store = SqliteStore("grid.sqlite")  # as the README's first sweep writes it
    >>> [path.name for path in report.save_figures(store, "figures", formats=["pdf"])]
    ['frontier.pdf', 'even-odds.pdf', 'success.pdf', 'convergence.pdf', 'curves.pdf']
    """
    results = read_results(source, success_error)
    groups, curves = frontier_info(results), curves_info(results)
    folder = Path(folder)
    require("matplotlib.figure", "plot", "a figure")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise invalid("folder", f"must be a folder that can be made ({error.strerror})", str(folder)) from None
    written = []
    for number, group in enumerate(groups, start=1):
        cells = [cell for one in group.frontiers for cell in np.ndenumerate(one.success)]
        known = [(abs(share - 0.5), -row, column) for (row, column), share in cells if not np.isnan(share)]
        _, row, column = min(known, default=(np.inf, 0, 0))  # the cell nearest to even odds, the widest of several
        figures = {
            "frontier": plot_frontier(group, theory=True),
            "even-odds": plot_even_odds(group),
            "success": plot_success(group),
            "convergence": plot_convergence(group),
            "curves": plot_curves(group, curves, group.widths[-row], group.samples[column]),
        }
        for name, figure in figures.items():
            for suffix in formats:
                path = folder / (f"{name}.{suffix}" if len(groups) == 1 else f"{name}-{number}.{suffix}")
                plain: dict[str, Any] = {"CreationDate": None} if suffix == "pdf" else {}
                try:
                    with replacing(path) as file:
                        figure.savefig(file, format=suffix, dpi=150, metadata=plain)
                except OSError as error:
                    rule = f"must be a folder that can be written to ({error.strerror})"
                    raise invalid("folder", rule, str(folder)) from None
                written.append(path)
    return written

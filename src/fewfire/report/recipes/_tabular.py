"""The figure of pareto/table2: a dot with its interval per model, a panel per data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire._errors import invalid
from fewfire._optional import require
from fewfire.report.recipes._canvas import MARKERS, colour

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 4
"""Panels side by side, at most."""

INCHES = (2.5, 0.26)
"""Width of a panel, and height of a model's line in it."""

SPREAD = 0.6
"""The part of its line that a model's dots fill when there are several shares of the rows."""

PRINTED = {"network": "paper's best network", "forest": "paper's best forest"}
QUOTED = {"network": "tuned network, all rows", "forest": "tuned forest, all rows"}


def plot_tabular(info: Mapping[str, Any]) -> Figure:
    """pareto/table2: median test errors with their intervals, a line per model and a colour per share of the rows.

    Crosses are what Table 2 prints for the paper's best network and best forest, where the data set is whole; dotted
    lines are the tuned network and forest of Grinsztajn et al. on the full data that it quotes.

    Parameters
    ----------
    info : mapping with "rows"
        As the recipe pareto/table2 returns them: "dataset", "fraction", "training_rows", "whole", "model",
        "published", "quoted", "median", "low", "high".

    Returns
    -------
    matplotlib.figure.Figure
        A panel per data set, models downwards in order of arrival, those of the paper last.
    """
    rows = [row for row in info.get("rows", ()) if "median" in row]
    if not rows:
        raise invalid("info", "must hold measured rows", "none", "pass what the recipe returned")
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    fractions = sorted({float(row["fraction"]) for row in rows})
    models = [*dict.fromkeys(row["model"] for row in rows), *PRINTED.values()]
    columns = min(COLUMNS, len(names))
    lines = -(-len(names) // columns)
    size = (1.6 + INCHES[0] * columns, (1.3 + INCHES[1] * len(models)) * lines + 0.4)
    figure: Figure = require("matplotlib.figure", "plot", "plot_tabular").Figure(figsize=size, layout="constrained")
    axes = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
    handles: dict[str, Any] = {}
    for axis, name in zip(axes, names, strict=False):
        here = [row for row in rows if row["dataset"] == name]
        for place, fraction in enumerate(fractions):
            mine = [row for row in here if float(row["fraction"]) == fraction]
            shift = SPREAD * ((place + 0.5) / len(fractions) - 0.5)
            handles |= _dots(axis, mine, models, shift, f"{fraction:.3g} of the rows", place)
        for (key, label), style in zip(QUOTED.items(), ("--", ":"), strict=True):
            handles[label] = axis.axvline(here[0]["quoted"][key], color="#625d57", linestyle=style, linewidth=1)
        sizes = sorted({row["training_rows"] for row in here})
        axis.set_title(f"{name} ({', '.join(f'{size:,}' for size in sizes)} rows)", fontsize=9)
        axis.set_yticks(range(len(models)), models, fontsize=8)
        axis.set_xlabel("test error in %", fontsize=8)
        axis.tick_params(axis="x", labelsize=8)
        axis.grid(axis="y", color="#e4dfd8", linewidth=0.8)
        axis.set_axisbelow(True)
    axes[0].set_ylim(len(models) - 0.4, -0.6)  # of all panels: they share it
    for axis in axes[len(names) :]:
        axis.axis("off")
    figure.suptitle("Median test errors with their 95% intervals", fontsize=11)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return figure


def _dots(
    axis: Axes, rows: Sequence[Mapping[str, Any]], models: Sequence[str], shift: float, label: str, place: int
) -> dict[str, Any]:
    """The dots of one share of the rows, and what Table 2 prints for it; gives what the legend needs."""
    if not rows:
        return {}
    middle = [100 * row["median"] for row in rows]
    reach = [[100 * abs(row[end] - row["median"]) for row in rows] for end in ("low", "high")]
    heights = [models.index(row["model"]) + shift for row in rows]
    style: dict[str, Any] = {"linestyle": "none", "color": colour(place), "markersize": 5, "capsize": 2}
    drawn = {label: axis.errorbar(middle, heights, xerr=reach, marker=MARKERS[place % len(MARKERS)], **style)}
    printed = next((row["published"] for row in rows if row["whole"] and row["published"]), None)
    if printed:
        at = [models.index(name) + shift for name in PRINTED.values()]
        axis.plot([printed[key] for key in PRINTED], at, "x", color=colour(place), markersize=6)
    return drawn

"""The figure of pareto/table2: a dot with its interval per model, a panel per data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire._errors import invalid
from fewfire.report.recipes._canvas import MARKERS, canvas, colour, legend_below

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fewfire.report._figure import SomeAxes

COLUMNS = 3
"""Panels side by side, at most."""

INCHES = (2.5, 0.22)
"""Width of a panel, and height of a model's line in it."""

SPREAD = 0.6
"""The part of its line that a model's dots fill when there are several shares of the rows."""

PRINTED = {"network": "paper's best network", "forest": "paper's best forest"}
QUOTED = {"network": "tuned network, all rows", "forest": "tuned forest, all rows"}


def plot_tabular(info: Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
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

    Examples
    --------
    >>> import json
    >>> from fewfire import report
    >>> with open("out/pareto-table2.json") as file:  # of: fewfire reproduce pareto/table2 -o out
    ...     figure = report.plot_tabular(json.load(file))
    >>> len(figure.axes)
    8
    """
    rows = [row for row in info.get("rows", ()) if "median" in row]
    if not rows:
        raise invalid("info", "must hold measured rows", "none", "pass what the recipe returned")
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    fractions = sorted({float(row["fraction"]) for row in rows})
    models = [*dict.fromkeys(row["model"] for row in rows), *PRINTED.values()]
    across = min(COLUMNS, len(names))
    down = -(-len(names) // across)
    size = (1.6 + INCHES[0] * across, (1.1 + INCHES[1] * len(models)) * down + 0.4)
    title = "Median test errors with their 95% intervals"
    figure, axes = canvas(len(names), size=size, across=across, ax=ax, title=title, sharey=True)
    handles: dict[str, Any] = {}
    for axis, name in zip(axes, names, strict=True):
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
        axis.set_ylim(len(models) - 0.4, -0.6)
    legend_below(axes[0], ax, handles=handles, ncols=3)
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

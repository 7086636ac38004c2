"""The figure of pareto/table2, as pareto, Figure 6: errors against rows, a column per data set, dense above sparse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire._errors import invalid
from fewfire._optional import require
from fewfire.report._plots import NARROW, TEST, TRAIN, WIDE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES = (3.0, 2.6)
OTHERS = {
    "fewfire": TEST,
    "forest": "#2f7d4f",
    "best of forest-grid": "#2f7d4f",
    "xgboost": TRAIN,
    "catboost": "#8a6d00",
    "mlp": "#555555",
}
"""Colours of the models that are no network of the paper; drawn dashed, in both rows."""


def plot_tabular(info: Mapping[str, Any]) -> Figure:
    """pareto/table2: median test errors with their intervals over the number of rows trained on.

    Crosses are what Table 2 prints for the paper's best network and best forest, where the data set is whole; dotted
    lines are the tuned network and forest of Grinsztajn et al. on the full data that it quotes.

    Parameters
    ----------
    info : mapping with "rows"
        As the recipe pareto/table2 returns them: "dataset", "fraction", "training_rows", "whole", "model",
        "family", "settings", "published", "quoted", "median", "low", "high".

    Returns
    -------
    matplotlib.figure.Figure
        A column per data set; above the paper's networks with dense starts, below with sparse ones, a line per width.
    """
    rows = [row for row in info.get("rows", ()) if "median" in row]
    if not rows:
        raise invalid("info", "must hold measured rows", "none", "pass what the recipe returned")
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    figures = require("matplotlib.figure", "plot", "plot_tabular")
    size = (INCHES[0] * len(names) + 1.8, INCHES[1] * 2)
    figure: Figure = figures.Figure(figsize=size, layout="constrained")
    axes = figure.subplots(2, len(names), sharex=True, sharey="col", squeeze=False)
    widths = sorted({row["settings"]["width"] for row in rows if row["family"] == "paper-network"})
    handles: dict[str, Any] = {}
    for column, name in enumerate(names):
        here = [row for row in rows if row["dataset"] == name]
        axes[0, column].set_title(name, fontsize=9)
        for place, kind in enumerate(("dense", "sparse")):
            axis = axes[place, column]
            axis.set_xscale("log")
            for number, width in enumerate(widths):
                colour = _ramp(number, len(widths))
                handles |= _draw(axis, here, f"{kind}-{width}", f"width {width}", color=colour, marker="o")
            for model, colour in OTHERS.items():
                handles |= _draw(axis, here, model, model, color=colour, linestyle="--", marker=".")
            handles |= _paper(axis, here)
            axis.tick_params(labelsize=8)
    sizes = [row["training_rows"] for row in rows]
    axes[0, 0].set_xlim(min(sizes) / 1.4, max(sizes) * 1.4)  # of all panels: they share it
    figure.supxlabel("training rows", fontsize=8)
    for place, kind in enumerate(("dense", "2-sparse")):
        axes[place, 0].set_ylabel(f"test error in %, {kind} start", fontsize=8)
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", fontsize=8)
    return figure


def _draw(axis: Axes, rows: Sequence[Mapping[str, Any]], model: str, label: str, **style: Any) -> dict[str, Any]:
    found = sorted((row for row in rows if row["model"] == model), key=lambda row: float(row["fraction"]))
    if not found:
        return {}
    middle = [100 * row["median"] for row in found]
    reach = [
        [100 * (row["median"] - row["low"]) for row in found],
        [100 * (row["high"] - row["median"]) for row in found],
    ]
    style = {"markersize": 3, "linewidth": 1.3, "elinewidth": 0.8, "capsize": 2} | style
    return {label: axis.errorbar([row["training_rows"] for row in found], middle, reach, **style)}


def _paper(axis: Axes, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    printed = {row["training_rows"]: row["published"] for row in rows if row["whole"] and row["published"]}
    for key, colour in (("network", WIDE), ("forest", OTHERS["forest"])):
        points = axis.plot(list(printed), [values[key] for values in printed.values()], "x", color=colour, markersize=6)
        line = axis.axhline(rows[0]["quoted"][key], color=colour, linestyle=":", linewidth=0.9)
        handles |= {f"paper's best {key}": points[0], f"tuned {key}, full data": line}
    return handles


def _ramp(place: int, count: int) -> Any:
    ramp = require("matplotlib.colors", "plot", "plot_tabular").LinearSegmentedColormap.from_list("w", (NARROW, WIDE))
    return ramp(place / max(1, count - 1))

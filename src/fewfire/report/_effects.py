"""The effects of columns on a tabular model's predictions, as `explain` found them: importances and curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_integer
from fewfire.report._figure import MUTED, canvas, colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fewfire.report._figure import SomeAxes
    from fewfire.tabular._effects import Effects

ACROSS = 3
"""Panels side by side: a page of two columns is some seven inches wide."""

PANEL = (2.3, 2.1)
"""Inches of one panel."""

LONGEST = 18
"""Letters of a name or a category that are written out."""

SIZE = "small"
"""Of all text: the panels are narrow."""


def plot_effects(
    effects: Effects | Any, X: object = None, y: object = None, *, columns: int = 5, ax: SomeAxes | None = None
) -> Figure:
    """Importances of the columns, and the curves of the most important ones.

    Parameters
    ----------
    effects : Effects, or a fitted TabularClassifier or TabularRegressor
        A model is explained on X and y first.
    X, y : rows and their targets
    columns : int
        How many bars and curves, at most.
    ax : 1 + columns axes of matplotlib, optional
        To draw into: one for the importances, then one per curve.

    Examples
    --------
    >>> import numpy as np
    >>> import fewfire as ff
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = ff.TabularRegressor(members=1, trees=False, random_state=0).fit(X, X[:, 0])
    >>> figure = ff.report.plot_effects(model, X, X[:, 0], columns=2)
    >>> len(figure.axes)  # the importances, and a curve per column
    3
    """
    found = _explained(effects, X, y)
    chosen = found.order()[: check_integer("columns", columns, 1)]
    panels = 1 + len(chosen)
    across = min(ACROSS, panels)
    figure, axes = canvas(panels, size=(PANEL[0] * across, PANEL[1] * -(-panels // across)), across=across, ax=ax)
    bars, positions = axes[0], range(len(chosen))
    bars.barh(positions, found.importance[chosen], color=colour(0), height=0.6)
    bars.hlines(positions, found.low[chosen], found.high[chosen], color="black", linewidth=1)
    bars.set_yticks(positions, [_short(found.names[index]) for index in chosen])
    bars.invert_yaxis()
    bars.axvline(0, color=MUTED, linewidth=0.8)
    bars.set_xlabel(f"lost without the column:\n{found.measure}", fontsize=SIZE)
    curves = [found.curves[index] for index in chosen]
    low, high = min(float(curve.low.min()) for curve in curves), max(float(curve.high.max()) for curve in curves)
    margin = 0.06 * (high - low) or 0.5
    for panel, curve in zip(axes[1:], curves, strict=False):
        _draw_curve(panel, found, curve)
        panel.set_ylim(low - margin, high + margin)  # one scale: a column without an effect looks like one
    if len(found.outputs) > 1:
        axes[panels - 1].legend(fontsize="x-small", framealpha=0.6)  # the least of the effects leaves most room
    for panel in axes[:panels]:
        panel.tick_params(labelsize=SIZE)
    return figure


def _explained(effects: Any, X: object, y: object) -> Effects:
    if _are_effects(effects):
        return cast("Effects", effects)
    if not hasattr(effects, "explain") or X is None:
        got = f"a {type(effects).__name__}" + (" without X" if hasattr(effects, "explain") else "")
        remedy = "pass model.explain(X, y), or the model with X and y"
        if hasattr(effects, "named_steps"):  # a Pipeline has no explain
            remedy = "pass pipeline[-1].explain(pipeline[:-1].transform(X), y)"
        raise invalid("effects", "must be Effects, or a model and the rows to explain it on", got, remedy)
    found = effects.explain(X, y)
    if not _are_effects(found):
        raise invalid("effects", "must be Effects, or a model whose explain gives them", f"a {type(effects).__name__}")
    return cast("Effects", found)


def _are_effects(found: object) -> bool:
    return all(hasattr(found, name) for name in ("importance", "curves", "outputs", "order"))


def _draw_curve(axes: Axes, effects: Effects, curve: Any) -> None:
    """A line with a band over numbers; points with bars for categories; a dotted line where the value is missing."""
    known = [index for index, value in enumerate(curve.values) if value is not None]
    numbers, shade = curve.kind == "number", 0.2 if len(effects.outputs) == 1 else 0.1
    positions = np.array([float(curve.values[index]) for index in known]) if numbers else np.arange(len(curve.values))
    shown = known if numbers else list(range(len(curve.values)))
    for output in range(len(effects.outputs)):
        drawn = colour(output)
        mean, low, high = (part[shown, output] for part in (curve.mean, curve.low, curve.high))
        if numbers:
            marker = "" if len(positions) > 1 else "o"
            axes.plot(positions, mean, color=drawn, label=_output_name(effects, output), marker=marker)
            axes.fill_between(positions, low, high, color=drawn, alpha=shade, linewidth=0)
            if len(known) < len(curve.values):
                axes.axhline(curve.mean[-1, output], color=drawn, linewidth=1, linestyle=":")
        else:
            axes.vlines(positions, low, high, color=drawn, alpha=2 * shade, linewidth=3)
            axes.plot(positions, mean, "o", color=drawn, label=_output_name(effects, output), markersize=4)
    if numbers:
        rug: dict[str, Any] = {"color": MUTED, "transform": axes.get_xaxis_transform(), "markersize": 6}
        axes.plot(positions, np.zeros(len(positions)), "|", **rug)
        if len(known) < len(curve.values):
            corner: dict[str, Any] = {"transform": axes.transAxes, "ha": "right", "va": "bottom"}
            axes.text(1.0, 1.0, "dotted: missing", fontsize="x-small", **corner)
    else:
        labels = ["missing" if value is None else _short(str(value)) for value in curve.values]
        slanted: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        axes.set_xticks(positions, labels, **(slanted if len("".join(labels)) > LONGEST else {}))
    axes.set_xlabel(_short(curve.name), fontsize=SIZE)
    several = "probability" if _are_classes(effects) else "prediction"
    axes.set_ylabel(_short(effects.outputs[0]) if len(effects.outputs) == 1 else several, fontsize=SIZE)


def _are_classes(effects: Effects) -> bool:
    return str(effects.measure) == "log loss"


def _output_name(effects: Effects, output: int) -> str:
    """A class without the words before it that name its probability, or a target."""
    name = str(effects.outputs[output])
    return name.partition(" of ")[2] or name if _are_classes(effects) else name


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"

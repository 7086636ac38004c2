"""Figures of matplotlib (extra `plot`) that a notebook shows, and axes that a caller passes.

Colours differ for readers who do not see red or green.

They are made without pyplot, so nothing is kept open and no display is needed; they
therefore define how a notebook shows them.

Logarithmic axes have numbers that can be read: matplotlib labels the powers of ten, of which an axis from 150 to 900
has none and one from 80 to 700 a single one.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from html import escape
from io import BytesIO
from math import floor, inf, log10
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from fewfire._errors import invalid
from fewfire._optional import require

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SomeAxes: TypeAlias = "Axes | Sequence[Axes]"
"""One axes, or several in the order of the panels."""

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""The colours of Okabe and Ito."""

MARKERS = "osD^vPX*"


def canvas(
    panels: int = 1,
    *,
    size: tuple[float, float] = (6.2, 4.0),
    across: int | None = None,
    ax: SomeAxes | None = None,
    title: str = "",
    **options: Any,
) -> tuple[Figure, list[Axes]]:
    """A figure and its panels, or the caller's axes and their figure, which keeps its title.

    Panels stand side by side, or `across` in a row; one alone in the last row has all of it. `options` go to
    `Figure.subplots`.
    """
    if ax is not None:
        axes: list[Axes] = list(np.ravel(np.asarray(ax, dtype=object)))
        if len(axes) != panels or not all(hasattr(one, "get_xlim") for one in axes):
            kind = f"{panels} axes of matplotlib, one per panel" if panels > 1 else "an axes of matplotlib"
            got = f"{len(axes)} of {type(axes[0]).__name__}" if axes else "none"
            raise invalid("ax", f"must be {kind}", got, f"make them by pyplot.subplots(1, {panels}), or leave ax out")
        return cast("Figure", axes[0].figure), axes
    figure: Figure = _figure_class()(figsize=size, layout="constrained")
    cast("Any", figure.get_layout_engine()).set(w_pad=0.08, h_pad=0.06)
    across = across or panels
    grid = figure.subplots(-(-panels // across), across, squeeze=False, **options)
    if panels % across == 1:
        grid[-1, 0].set_subplotspec(grid[-1, 0].get_gridspec()[-1, :])
    for spare in grid.ravel()[panels:]:
        spare.remove()
    if title:
        figure.suptitle(title, fontsize=11)
    return figure, list(grid.ravel()[:panels])


def legend_below(
    axes: Axes, ax: SomeAxes | None, side: str = "center", *, handles: Mapping[str, Any] | None = None, ncols: int = 1
) -> None:
    """A legend of these axes, or of handles by name: below the figure, or inside the axes where they are a caller's."""
    lines, labels = axes.get_legend_handles_labels() if handles is None else (list(handles.values()), list(handles))
    if ax is not None:
        axes.legend(lines, labels, fontsize=8)
    else:
        location: dict[str, Any] = {"loc": f"outside lower {side}", "ncols": ncols, "frameon": False}
        cast("Figure", axes.figure).legend(lines, labels, fontsize=8, **location)


def colour(index: int) -> str:
    """The colour of the line with this number."""
    return PALETTE[index % len(PALETTE)]


def marked(index: int, **style: Any) -> dict[str, Any]:
    """The colour and the marker of the line with this number, and what else its style has."""
    return {"color": colour(index), "marker": MARKERS[index % len(MARKERS)], "markersize": 4, **style}


def label_axes(axes: Axes, x: str = "", y: str = "", title: str = "") -> None:
    """Labels, title and legend of one panel; a legend only where lines have names."""
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title, fontsize=10)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)


def _figure_class() -> type[Figure]:
    return _shown(require("matplotlib.figure", "plot", "a figure").Figure)


@cache
def _shown(plain: type[Figure]) -> type[Figure]:
    """A subclass that a notebook shows as a picture; made when matplotlib is there."""

    class ShownFigure(plain):  # type: ignore[valid-type, misc]
        """A figure that a notebook shows."""

        def _repr_png_(self) -> bytes:
            drawn = BytesIO()
            self.savefig(drawn, format="png", dpi=100)
            return drawn.getvalue()

        def _repr_html_(self) -> str:
            titles = [self.get_suptitle(), *(axes.get_title() for axes in self.axes)]
            labels = [" by ".join(filter(None, (axes.get_ylabel(), axes.get_xlabel()))) for axes in self.axes]
            alt = escape(" ".join((", ".join(filter(None, titles if any(titles) else labels)) or "a figure").split()))
            return f'<img alt="{alt}" src="data:image/png;base64,{b64encode(self._repr_png_()).decode()}">'

        def __reduce__(self) -> tuple[object, ...]:
            return _blank, (), self.__getstate__()

    return ShownFigure


def _blank() -> Figure:
    """What unpickling fills."""
    chosen = _figure_class()
    return chosen.__new__(chosen)


MUTED = "#625d57"
PLAIN = (1e-3, 1e6)
"""Ticks between these are written out; beyond them powers of ten are clearer."""

FACTORS = ((0.8, (1, 2, 3, 4, 5, 7)), (1.7, (1, 2, 5)), (2.7, (1, 3)), (inf, (1,)))
"""Up to how many decades powers of ten are labelled times what."""


def log_axis(axes: Axes, which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, with at least two ticks at 1, 2 and 5 times powers of ten, more or fewer by its length.

    Call it after the data are drawn; it may widen the limits to the next tick. An axis without positive data stays
    linear, because it has no logarithm.
    """
    axis, ends = (axes.xaxis, axes.get_xlim) if which == "x" else (axes.yaxis, axes.get_ylim)
    limit, kind = (axes.set_xlim, axes.set_xscale) if which == "x" else (axes.set_ylim, axes.set_yscale)
    if not axes.has_data() or axis.get_data_interval()[1] <= 0:
        return
    kind("log")
    low, high = ends()
    if low < PLAIN[0] or high > PLAIN[1]:
        return
    decades = log10(high / low)
    factors = next(steps for most, steps in FACTORS if decades < most)
    powers = range(floor(log10(low)) - 1, floor(log10(high)) + 2)
    known = [factor * 10.0**power for power in powers for factor in factors]
    inside = [tick for tick in known if low <= tick <= high]
    if len(inside) < 2:
        low = max(tick for tick in known if tick <= low)
        high = min(tick for tick in known if tick >= high)
        inside = [tick for tick in known if low <= tick <= high]
        limit(low / 1.02, high * 1.02)
    axis.set_ticks(inside, [f"{tick:,.0f}" if tick >= 1 else f"{tick:g}" for tick in inside])
    axis.set_ticks([], minor=True)


def nothing_here(axes: Axes, text: str) -> None:
    """Write in the middle of a panel why it is empty."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=MUTED)

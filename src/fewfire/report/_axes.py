"""Axes of figures: logarithmic ones whose numbers can be read, and what stands in a panel that has nothing to draw.

matplotlib labels the powers of ten, of which an axis from 150 to 900 has none and one from 80 to 700 a single one.
"""

from __future__ import annotations

from math import floor, inf, log10
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    """Say in the middle of a panel why it is empty."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=MUTED)

"""Figures of matplotlib (extra `plot`) that show themselves in a notebook, and axes that a caller brings along.

They are made without pyplot, so nothing is kept open and no display is needed; a notebook therefore would not know how
to show them, and they say it themselves.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fewfire._errors import invalid
from fewfire._optional import require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    SomeAxes: TypeAlias = Axes | Sequence[Axes]
    """One axes, or several in the order of the panels."""


def new_figure(size: tuple[float, float]) -> Figure:
    """An empty figure of that many inches across and down."""
    figure: Figure = _figure_class()(figsize=size, layout="constrained")
    return figure


def given_axes(ax: SomeAxes, panels: int) -> list[Axes]:
    """The axes a caller brought, one per panel."""
    axes: list[Axes] = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(axes) != panels or not all(hasattr(one, "get_xlim") for one in axes):
        rule = f"must be {panels} axes of matplotlib, one per panel" if panels > 1 else "must be an axes of matplotlib"
        got = f"{len(axes)} of {type(axes[0]).__name__}" if axes else "none"
        raise invalid("ax", rule, got, f"make them by pyplot.subplots(1, {panels}), or leave ax out")
    return axes


def _figure_class() -> type[Figure]:
    return _shown(require("matplotlib.figure", "plot", "a figure").Figure)


@cache
def _shown(plain: type[Figure]) -> type[Figure]:
    """A subclass that knows how a notebook shows it; made when matplotlib is there."""

    class ShownFigure(plain):  # type: ignore[valid-type, misc]
        """A figure that a notebook shows."""

        def _repr_png_(self) -> bytes:
            drawn = BytesIO()
            self.savefig(drawn, format="png", dpi=100)
            return drawn.getvalue()

        def _repr_html_(self) -> str:
            titles = [self.get_suptitle(), *(axes.get_title() for axes in self.axes)]
            told = escape(", ".join(title for title in titles if title) or "a figure")
            return f'<img alt="{told}" src="data:image/png;base64,{b64encode(self._repr_png_()).decode()}">'

        def __reduce__(self) -> tuple[object, ...]:
            return _blank, (), self.__getstate__()

    return ShownFigure


def _blank() -> Figure:
    """What unpickling fills."""
    chosen = _figure_class()
    return chosen.__new__(chosen)

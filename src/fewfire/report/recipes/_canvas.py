"""What the figures of the recipes share: size, colours that are told apart without seeing red or green, small files."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from fewfire._errors import invalid
from fewfire._optional import require

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""The colours of Okabe and Ito."""

MARKERS = "osD^vPX*"
DPI, COLOURS = 110, 64


def canvas(panels: int = 1, *, size: tuple[float, float] = (6.2, 4.0), **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure with its panels side by side; `options` go to `Figure.subplots`."""
    figure = require("matplotlib.figure", "plot", "a figure").Figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06)
    grid = figure.subplots(options.pop("rows", 1), panels, squeeze=False, **options)
    return figure, list(grid.ravel())


def rows_of(info: Mapping[str, Any], *keys: str) -> list[Any]:
    """What the recipe returned under these keys; an error names the missing ones."""
    missing = [key for key in keys if not info.get(key)]
    if missing:
        wanted, absent = " and ".join(keys), ", ".join(missing)
        raise invalid("info", f"must hold {wanted}", f"a mapping without {absent}", "pass what the recipe returned")
    return [info[key] for key in keys]


def colour(place: int) -> str:
    """The colour of the line with this number."""
    return PALETTE[place % len(PALETTE)]


def save_png(figure: Figure, path: Path) -> None:
    """Write a PNG of few colours: a quarter of the size, and nothing that the eye would miss."""
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=DPI)
    image = require("PIL.Image", "plot", "a figure").open(drawn).convert("RGB")
    image.quantize(COLOURS, dither=0).save(path, optimize=True)

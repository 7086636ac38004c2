"""What the figures of the recipes share, and how that of a result is found, drawn and written.

Colours are told apart without seeing red or green; files are small.
"""

from __future__ import annotations

import importlib
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

from fewfire._atomic import replacing
from fewfire._errors import invalid
from fewfire._optional import require
from fewfire.experiments.recipes import RECIPES, RecipeResult, find
from fewfire.report._figure import given_axes, new_figure

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fewfire.report._figure import SomeAxes

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""The colours of Okabe and Ito."""

MARKERS = "osD^vPX*"
DPI, COLOURS = 110, 64


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
        axes = given_axes(ax, panels)
        return cast("Figure", axes[0].figure), axes
    figure = new_figure(size)
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
        place: dict[str, Any] = {"loc": f"outside lower {side}", "ncols": ncols, "frameon": False}
        cast("Figure", axes.figure).legend(lines, labels, fontsize=8, **place)


def rows_of(info: Mapping[str, Any], *keys: str) -> list[Any]:
    """What the recipe returned under these keys; an error names the missing ones."""
    missing = [key for key in keys if not info.get(key)]
    if missing:
        wanted, absent = " and ".join([", ".join(keys[:-1]), keys[-1]] if len(keys) > 1 else keys), ", ".join(missing)
        raise invalid("info", f"must hold {wanted}", f"a mapping without {absent}", "pass what the recipe returned")
    return [info[key] for key in keys]


def colour(place: int) -> str:
    """The colour of the line with this number."""
    return PALETTE[place % len(PALETTE)]


def plot_recipe(info: RecipeResult | Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """Draw what a recipe returned, by the figure that the recipe names.

    A figure is at most 9.2 inches across, so that at the width of a page its text is still read.

    Parameters
    ----------
    info : RecipeResult or mapping
        The result of `fewfire.experiments.recipes.run`, or the JSON that `fewfire reproduce -o` wrote.
    ax : axes of matplotlib, optional
        Draw into these instead, one per panel; their figure keeps its title.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import json
    >>> from fewfire import report
    >>> with open("out/pareto-frontier.json") as file:  # written by: fewfire reproduce pareto/frontier -o out
    ...     result = json.load(file)
    >>> report.plot_recipe(result).get_suptitle()
    '(30, 3)-parity: share of 20 runs that succeed'
    """
    table = info.to_dict() if isinstance(info, RecipeResult) else info
    name = table.get("recipe")
    if name not in RECIPES:
        raise invalid("info", f"must be the result of one of {', '.join(RECIPES)}", name)
    figures = importlib.import_module(__package__)  # which imports this module, so not above
    figure: Figure = getattr(figures, f"plot_{find(name).figure}")(table, ax=ax)
    return figure


def save_recipe(info: RecipeResult | Mapping[str, Any], path: Path) -> None:
    """Draw what a recipe returned into a file: a PDF, or a PNG of few colours.

    Few colours are a quarter of the size, and nothing is missed. The same result gives the same bytes.

    Examples
    --------
    >>> import json
    >>> from pathlib import Path
    >>> from fewfire import report
    >>> result = json.loads(Path("out/pareto-frontier.json").read_text())  # by: fewfire reproduce -o out
    >>> report.save_recipe(result, Path("frontier.pdf"))
    """
    drawn = BytesIO()
    if path.suffix == ".pdf":
        with replacing(path) as file:
            plot_recipe(info).savefig(file, format="pdf", metadata={"CreationDate": None})
        return
    plot_recipe(info).savefig(drawn, format="png", dpi=DPI)
    image = require("PIL.Image", "plot", "a figure").open(drawn).convert("RGB")
    with replacing(path) as file:
        image.quantize(COLOURS, dither=0).save(file, format="PNG", optimize=True)

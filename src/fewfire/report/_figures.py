"""All figures of a store as files, for papers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._optional import require
from fewfire.report._curves import curves_info
from fewfire.report._frontier import frontier_info
from fewfire.report._plots import plot_convergence, plot_curves, plot_frontier, plot_success
from fewfire.report._results import Results, read_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire.experiments import Store
    from fewfire.report._frontier import Group


def save_figures(
    source: Store | Results, folder: str | Path, formats: Sequence[str] = ("png",), success_error: float | None = None
) -> list[Path]:
    """Write every figure of a store into a folder; several groups are numbered. Gives the files.

    Training curves are drawn for one cell a group: the one whose success is nearest to one half.
    """
    results = read_results(source, success_error)
    groups, curves = frontier_info(results), curves_info(results)
    folder = Path(folder)
    require("matplotlib.figure", "plot", "a figure")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, group in enumerate(groups, start=1):
        figures = {
            "frontier": plot_frontier(group, theory=True),
            "success": plot_success(group),
            "convergence": plot_convergence(group),
            "curves": plot_curves(group, curves, *_telling(group)),
        }
        for name, figure in figures.items():
            for suffix in formats:
                path = folder / (f"{name}.{suffix}" if len(groups) == 1 else f"{name}-{number}.{suffix}")
                plain: dict[str, Any] = {"CreationDate": None} if suffix == "pdf" else {}
                figure.savefig(path, dpi=150, metadata=plain)
                written.append(path)
    return written


def _telling(group: Group) -> tuple[int, int | None]:
    """The width and samples of the cell nearest to even odds; the widest of several."""
    best = (np.inf, 0, 0)
    for frontier in group.frontiers:
        for (row, column), share in np.ndenumerate(frontier.success):
            if not np.isnan(share):
                best = min(best, (abs(share - 0.5), -row, column))
    return group.widths[-best[1]], group.samples[best[2]]

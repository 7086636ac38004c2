"""Which figure belongs to which recipe, and how it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire._errors import invalid
from fewfire.report._lottery import plot_lottery
from fewfire.report._rademacher import plot_rademacher
from fewfire.report._tabular import plot_tabular
from fewfire.report.recipes._canvas import save_png
from fewfire.report.recipes._cost import plot_cost
from fewfire.report.recipes._fits import plot_fits, plot_separation
from fewfire.report.recipes._grids import plot_convergence_time, plot_offline_parity, plot_success_frontier
from fewfire.report.recipes._hiding import plot_proposition_3, plot_statistical_queries
from fewfire.report.recipes._learning import plot_bounds, plot_learning_curves, plot_scaling
from fewfire.report.recipes._robust import plot_activity, plot_robust_accuracy, plot_robust_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from matplotlib.figure import Figure

FIGURES: dict[str, Callable[[Mapping[str, Any]], Figure]] = {
    "pareto/convergence-time": plot_convergence_time,
    "pareto/frontier": plot_success_frontier,
    "pareto/lottery-tickets": plot_lottery,
    "pareto/offline-parity": plot_offline_parity,
    "pareto/over-sparse": plot_fits,
    "pareto/proposition-3": plot_proposition_3,
    "pareto/table2": plot_tabular,
    "pareto/under-sparse": plot_fits,
    "parities/separation": plot_separation,
    "parities/theorem-2": plot_fits,
    "sparse-activations/bounds": plot_bounds,
    "sparse-activations/learning-curves": plot_learning_curves,
    "sparse-activations/learning-scaling": plot_scaling,
    "sparse-activations/rademacher": plot_rademacher,
    "sparse-activations/statistical-queries": plot_statistical_queries,
    "sublinear/activity": plot_activity,
    "sublinear/cost": plot_cost,
    "sublinear/digits": plot_robust_accuracy,
    "sublinear/robust-loss": plot_robust_loss,
}
"""The drawing of each recipe."""


def plot_recipe(info: Mapping[str, Any]) -> Figure:
    """Draw what a recipe returned.

    Parameters
    ----------
    info : mapping
        The result of `fewfire.experiments.recipes.run`, or the JSON that `fewfire reproduce -o` wrote.

    Returns
    -------
    matplotlib.figure.Figure
    """
    name = info.get("recipe")
    if name not in FIGURES:
        raise invalid("info", f"must be the result of one of {', '.join(FIGURES)}", name)
    return FIGURES[name](info)


def save_recipe(info: Mapping[str, Any], path: Path) -> None:
    """Draw what a recipe returned into a PNG file."""
    save_png(plot_recipe(info), path)

"""The figures of the recipes, drawn from the plain data that they returned: one file per paper.

A recipe names its figure; `plot_recipe` looks it up here.
"""

from fewfire.report.recipes._canvas import plot_recipe, save_recipe
from fewfire.report.recipes._members import plot_inside_the_class, plot_mostly_sparse
from fewfire.report.recipes._pareto import (
    plot_convergence_time,
    plot_lottery,
    plot_offline_parity,
    plot_proposition_3,
    plot_success_frontier,
)
from fewfire.report.recipes._parities import (
    plot_digit_parities,
    plot_error_terms,
    plot_separation,
    plot_theorem_2,
)
from fewfire.report.recipes._sparse_activations import (
    plot_bounds,
    plot_inducing,
    plot_lazy_neurons,
    plot_learn_back,
    plot_learning_curves,
    plot_rademacher,
    plot_scaling,
    plot_statistical_queries,
)
from fewfire.report.recipes._sublinear import plot_activity, plot_cost, plot_robust_accuracy, plot_robust_loss
from fewfire.report.recipes._tabular import plot_tabular
from fewfire.report.recipes._trade_off import plot_trade_off

__all__ = [
    "plot_activity",
    "plot_bounds",
    "plot_convergence_time",
    "plot_cost",
    "plot_digit_parities",
    "plot_error_terms",
    "plot_inducing",
    "plot_inside_the_class",
    "plot_lazy_neurons",
    "plot_learn_back",
    "plot_learning_curves",
    "plot_lottery",
    "plot_mostly_sparse",
    "plot_offline_parity",
    "plot_proposition_3",
    "plot_rademacher",
    "plot_recipe",
    "plot_robust_accuracy",
    "plot_robust_loss",
    "plot_scaling",
    "plot_separation",
    "plot_statistical_queries",
    "plot_success_frontier",
    "plot_tabular",
    "plot_theorem_2",
    "plot_trade_off",
    "save_recipe",
]

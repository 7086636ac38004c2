"""Learners: scikit-learn estimators (low-degree polynomials, networks that learn sparse parities, fire sparsely or
withstand an adversary, their classical rivals) and learners from statistical queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fewfire._lazy import SUBPACKAGES, lazy_names

if TYPE_CHECKING:
    from fewfire.learners import baselines, statistical_queries
    from fewfire.learners.low_degree import LowDegreeClassifier, LowDegreeRegressor
    from fewfire.learners.parity_net import (
        BestIterate,
        LotteryTickets,
        ParityNetClassifier,
        learn_correlated_parity,
        lottery_tickets,
    )
    from fewfire.learners.robust import EpochHistory, RobustClassifier, RobustHistory, RobustRegressor
    from fewfire.learners.sparse_activation import SparseActivationClassifier, SparseActivationRegressor

__all__ = [
    "BestIterate",
    "EpochHistory",
    "LotteryTickets",
    "LowDegreeClassifier",
    "LowDegreeRegressor",
    "ParityNetClassifier",
    "RobustClassifier",
    "RobustHistory",
    "RobustRegressor",
    "SparseActivationClassifier",
    "SparseActivationRegressor",
    "baselines",
    "learn_correlated_parity",
    "lottery_tickets",
    "statistical_queries",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            SUBPACKAGES: "baselines low_degree parity_net robust sparse_activation statistical_queries",
            "low_degree": "LowDegreeClassifier LowDegreeRegressor",
            "parity_net": "BestIterate LotteryTickets ParityNetClassifier learn_correlated_parity lottery_tickets",
            "robust": "EpochHistory RobustClassifier RobustHistory RobustRegressor",
            "sparse_activation": "SparseActivationClassifier SparseActivationRegressor",
        },
    )

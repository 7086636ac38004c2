"""Learners: scikit-learn estimators (low-degree polynomials, networks that learn sparse parities, fire sparsely or
withstand an adversary, their classical rivals) and learners from statistical queries."""

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

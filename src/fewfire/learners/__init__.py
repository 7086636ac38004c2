"""Learners: scikit-learn estimators (low-degree polynomials, networks that learn sparse parities, a classical rival)
and learners from statistical queries."""

from fewfire.learners import statistical_queries
from fewfire.learners._gaussian_elimination import GaussianElimination
from fewfire.learners._low_degree import LowDegreeClassifier, LowDegreeRegressor
from fewfire.learners.parity_net import LotteryTickets, ParityNetClassifier, lottery_tickets

__all__ = [
    "GaussianElimination",
    "LotteryTickets",
    "LowDegreeClassifier",
    "LowDegreeRegressor",
    "ParityNetClassifier",
    "lottery_tickets",
    "statistical_queries",
]

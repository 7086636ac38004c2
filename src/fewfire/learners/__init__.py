"""Learners: scikit-learn estimators (low-degree polynomials, networks that learn sparse parities or
withstand an adversary, their classical rivals), attacks and certificates, and learners from statistical queries."""

from fewfire.learners import baselines, statistical_queries
from fewfire.learners._low_degree import LowDegreeClassifier, LowDegreeRegressor
from fewfire.learners.parity_net import LotteryTickets, ParityNetClassifier, lottery_tickets
from fewfire.learners.robust import (
    PGD,
    AttackResult,
    Certificate,
    RobustClassifier,
    RobustHistory,
    RobustRegressor,
    attack,
    certify,
    robust_score,
)

__all__ = [
    "PGD",
    "AttackResult",
    "Certificate",
    "LotteryTickets",
    "LowDegreeClassifier",
    "LowDegreeRegressor",
    "ParityNetClassifier",
    "RobustClassifier",
    "RobustHistory",
    "RobustRegressor",
    "attack",
    "baselines",
    "certify",
    "lottery_tickets",
    "robust_score",
    "statistical_queries",
]

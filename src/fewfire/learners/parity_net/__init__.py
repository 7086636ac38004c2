"""Learning sparse parities with two-layer networks: the papers' schedules, one estimator over them, and instruments."""

from fewfire.learners.parity_net import _adapter  # noqa: F401  registers how the classifier is attacked
from fewfire.learners.parity_net._correlated import BestIterate, learn_correlated_parity
from fewfire.learners.parity_net._estimator import ParityNetClassifier
from fewfire.learners.parity_net._first_step import StartStep, over_sparse_step, under_sparse_step
from fewfire.learners.parity_net._lottery import LotteryTickets, lottery_tickets
from fewfire.learners.parity_net._proof import (
    Separator,
    bias_movement,
    drift_bound,
    good_mask,
    measured_drift,
    separator,
)
from fewfire.learners.parity_net._second_layer import solve_output

__all__ = [
    "BestIterate",
    "LotteryTickets",
    "ParityNetClassifier",
    "Separator",
    "StartStep",
    "bias_movement",
    "drift_bound",
    "good_mask",
    "learn_correlated_parity",
    "lottery_tickets",
    "measured_drift",
    "over_sparse_step",
    "separator",
    "solve_output",
    "under_sparse_step",
]

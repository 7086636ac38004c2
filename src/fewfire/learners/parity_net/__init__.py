"""Learning sparse parities with two-layer networks: the papers' schedules, and one estimator over them."""

from fewfire.learners.parity_net import _adapter  # noqa: F401  registers how the classifier is attacked
from fewfire.learners.parity_net._correlated import BestIterate, learn_correlated_parity
from fewfire.learners.parity_net._estimator import ParityNetClassifier
from fewfire.learners.parity_net._lottery import LotteryTickets, lottery_tickets

__all__ = ["BestIterate", "LotteryTickets", "ParityNetClassifier", "learn_correlated_parity", "lottery_tickets"]

"""scikit-learn estimators: low-degree polynomials and networks that learn sparse parities."""

from fewfire.learners._low_degree import LowDegreeClassifier, LowDegreeRegressor
from fewfire.learners.parity_net import LotteryTickets, ParityNetClassifier, lottery_tickets

__all__ = ["LotteryTickets", "LowDegreeClassifier", "LowDegreeRegressor", "ParityNetClassifier", "lottery_tickets"]

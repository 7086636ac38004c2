"""Networks trained against an adversary (sublinear); attacks and certificates, also for scikit-learn's networks."""

from fewfire.learners.robust._attack import AttackResult, attack, robust_score
from fewfire.learners.robust._balls import L2Ball, LinfBall
from fewfire.learners.robust._caps import SliceCap
from fewfire.learners.robust._certify import Certificate, certify
from fewfire.learners.robust._estimators import RobustClassifier, RobustRegressor
from fewfire.learners.robust._search import PGD
from fewfire.learners.robust._training import RobustHistory

__all__ = [
    "PGD",
    "AttackResult",
    "Certificate",
    "L2Ball",
    "LinfBall",
    "RobustClassifier",
    "RobustHistory",
    "RobustRegressor",
    "SliceCap",
    "attack",
    "certify",
    "robust_score",
]

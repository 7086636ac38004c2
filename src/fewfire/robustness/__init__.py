"""Can a model be fooled? Attacks, robust scores and certificates of any model, through registered adapters.

`attack` finds the worst points near each row and `robust_score` scores them; `certify` proves a margin that nobody can
go below; `minimal_radius` brackets how far a row must be moved. How a kind of model is seen is told by
`register_adapter`, once.
"""

from fewfire.robustness import adapters
from fewfire.robustness._adapter import ModelAdapter, PointSpace, register_adapter
from fewfire.robustness._attack import AttackResult, attack, robust_score
from fewfire.robustness._black_box import BlackBoxScores, black_box
from fewfire.robustness._bounds import ReluNetwork
from fewfire.robustness._certify import Certificate, certify
from fewfire.robustness._criteria import Criterion
from fewfire.robustness._features import FeatureBall
from fewfire.robustness._l1 import L1Ball
from fewfire.robustness._radius import AdversarialRadius, minimal_radius
from fewfire.robustness._score_function import Scores
from fewfire.robustness._scores import LayeredScores, TwoLayerScores
from fewfire.robustness._search import PGD
from fewfire.robustness._threats import L2Ball, LinfBall, SliceCap, Threat

__all__ = [
    "PGD",
    "AdversarialRadius",
    "AttackResult",
    "BlackBoxScores",
    "Certificate",
    "Criterion",
    "FeatureBall",
    "L1Ball",
    "L2Ball",
    "LayeredScores",
    "LinfBall",
    "ModelAdapter",
    "PointSpace",
    "ReluNetwork",
    "Scores",
    "SliceCap",
    "Threat",
    "TwoLayerScores",
    "adapters",
    "attack",
    "black_box",
    "certify",
    "minimal_radius",
    "register_adapter",
    "robust_score",
]

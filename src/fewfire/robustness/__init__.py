"""Can a model be fooled? Attacks, robust scores and certificates of any model, through registered adapters.

`attack` finds the worst points near each row and `robust_score` scores them; `certify` proves a margin that no
adversary can go below; `minimal_radius` brackets how far a row must be moved. `register_adapter` turns one more kind of
model into scores, with `Layers` where it has a formula.
"""

from fewfire.robustness import adapters as _adapters  # noqa: F401  (they register themselves)
from fewfire.robustness._adapter import ModelAdapter, register_adapter
from fewfire.robustness._attack import attack, robust_score
from fewfire.robustness._black_box import black_box
from fewfire.robustness._certify import certify
from fewfire.robustness._formula import Layers, Scores
from fewfire.robustness._gradient import PGD
from fewfire.robustness._radius import minimal_radius
from fewfire.robustness._threats import SliceCap, ball

__all__ = [
    "PGD",
    "Layers",
    "ModelAdapter",
    "Scores",
    "SliceCap",
    "attack",
    "ball",
    "black_box",
    "certify",
    "minimal_radius",
    "register_adapter",
    "robust_score",
]

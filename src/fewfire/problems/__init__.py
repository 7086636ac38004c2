"""Problems: target functions with the distributions they are learned under, each one a small frozen value."""

from fewfire.problems import tabular
from fewfire.problems._base import (
    PROBLEMS,
    CleanLabels,
    DescribedProblem,
    Problem,
    SignProblem,
    register_problem,
    unregister_problem,
)
from fewfire.problems._correlated_parity import CorrelatedParity
from fewfire.problems._indexing import Indexing
from fewfire.problems._junta import Junta
from fewfire.problems._learning_with_rounding import LearningWithRounding
from fewfire.problems._network_target import Network, NetworkTarget
from fewfire.problems._parity import Parity
from fewfire.problems._separation import gamma, is_separable, separation
from fewfire.problems._sphere_slice import SphereSlice

__all__ = [
    "PROBLEMS",
    "CleanLabels",
    "CorrelatedParity",
    "DescribedProblem",
    "Indexing",
    "Junta",
    "LearningWithRounding",
    "Network",
    "NetworkTarget",
    "Parity",
    "Problem",
    "SignProblem",
    "SphereSlice",
    "gamma",
    "is_separable",
    "register_problem",
    "separation",
    "tabular",
    "unregister_problem",
]

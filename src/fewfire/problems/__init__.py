"""Problems: target functions with the distributions they are learned under, each one a small frozen value."""

from fewfire.problems import tabular
from fewfire.problems._base import Problem, SignProblem, register_problem, unregister_problem
from fewfire.problems._indexing import Indexing
from fewfire.problems._junta import HalfSpace, Junta, NamedJunta
from fewfire.problems._learning_with_rounding import LearningWithRounding
from fewfire.problems._network_target import NetworkTarget
from fewfire.problems._parity import CorrelatedParity, Parity, Staircase
from fewfire.problems._sphere_slice import SphereSlice, gamma, separation
from fewfire.problems._table import TableFile

__all__ = [
    "CorrelatedParity",
    "HalfSpace",
    "Indexing",
    "Junta",
    "LearningWithRounding",
    "NamedJunta",
    "NetworkTarget",
    "Parity",
    "Problem",
    "SignProblem",
    "SphereSlice",
    "Staircase",
    "TableFile",
    "gamma",
    "register_problem",
    "separation",
    "tabular",
    "unregister_problem",
]

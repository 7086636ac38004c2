"""Two-layer networks: state, activations, initialisers, exact constructions, activity, files."""

from fewfire.networks import construct, init
from fewfire.networks._activations import Activation, activation, relu, relu6, shifted_relu
from fewfire.networks._active_sets import ActiveSets
from fewfire.networks._activity import Activity
from fewfire.networks._files import load, save
from fewfire.networks._norms import Norms
from fewfire.networks._relevance import Relevance, relevance
from fewfire.networks._sparsity import SparsityReport, check_sparsity
from fewfire.networks._two_layer import TwoLayer

__all__ = [
    "Activation",
    "ActiveSets",
    "Activity",
    "Norms",
    "Relevance",
    "SparsityReport",
    "TwoLayer",
    "activation",
    "check_sparsity",
    "construct",
    "init",
    "load",
    "relevance",
    "relu",
    "relu6",
    "save",
    "shifted_relu",
]

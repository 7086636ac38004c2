"""Two-layer networks: state, activations, initialisers, exact constructions, activity, files."""

from fewfire.networks import construct, init
from fewfire.networks._activations import Activation, activation, relu, relu6, shifted_relu
from fewfire.networks._activity import ActiveSets, Activity
from fewfire.networks._files import load, save
from fewfire.networks._indexed import IndexedTwoLayer
from fewfire.networks._sparsity import Exceedance, SparsityReport, check_sparsity
from fewfire.networks._two_layer import TwoLayer, check_single_output
from fewfire.networks._weights import Norms, Relevance, relevance

__all__ = [
    "Activation",
    "ActiveSets",
    "Activity",
    "Exceedance",
    "IndexedTwoLayer",
    "Norms",
    "Relevance",
    "SparsityReport",
    "TwoLayer",
    "activation",
    "check_single_output",
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

"""Networks: two-layer ones and those of any depth, activations, initialisers, exact constructions, activity, files."""

from fewfire.networks import construct, init
from fewfire.networks._activations import Activation, activation, relu, relu6, shifted_relu
from fewfire.networks._mlp import Mlp
from fewfire.networks._sparsity import check_sparsity
from fewfire.networks._two_layer import TwoLayer, load, relevance

__all__ = [
    "Activation",
    "Mlp",
    "TwoLayer",
    "activation",
    "check_sparsity",
    "construct",
    "init",
    "load",
    "relevance",
    "relu",
    "relu6",
    "shifted_relu",
]

"""Networks that compute known functions exactly, with a known number of active neurons; all in float64."""

from fewfire.networks.construct._dense_weights import dense_weights
from fewfire.networks.construct._indexing import indexing
from fewfire.networks.construct._integers import encode_integers
from fewfire.networks.construct._junta import junta
from fewfire.networks.construct._lift import lift
from fewfire.networks.construct._lifted_parity import lifted_parity
from fewfire.networks.construct._random_member import random_member
from fewfire.networks.construct._rounding import learning_with_rounding

__all__ = [
    "dense_weights",
    "encode_integers",
    "indexing",
    "junta",
    "learning_with_rounding",
    "lift",
    "lifted_parity",
    "random_member",
]

"""Networks that compute known functions exactly, with a known number of active neurons; all in float64."""

from fewfire.networks.construct._lifted import learning_with_rounding, lift, lifted_parity
from fewfire.networks.construct._patterns import dense_weights, indexing, junta, random_member

__all__ = [
    "dense_weights",
    "indexing",
    "junta",
    "learning_with_rounding",
    "lift",
    "lifted_parity",
    "random_member",
]

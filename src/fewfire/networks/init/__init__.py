"""Initialisers: frozen recipes, called as `initialiser(inputs, width, seed) -> TwoLayer`."""

from fewfire.networks.init._base import dense, from_parameters
from fewfire.networks.init._ntk import activity_threshold, ntk
from fewfire.networks.init._sparse import over_sparse, perturbed_sparse, sparse, under_sparse
from fewfire.networks.init._symmetric import symmetric

__all__ = [
    "activity_threshold",
    "dense",
    "from_parameters",
    "ntk",
    "over_sparse",
    "perturbed_sparse",
    "sparse",
    "symmetric",
    "under_sparse",
]

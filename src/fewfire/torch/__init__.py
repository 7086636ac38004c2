"""Tools for users' PyTorch models; PyTorch is loaded when one of them is called."""

from fewfire.torch._induce import ActivityPenalty, relufy
from fewfire.torch._sequential import from_sequential, to_sequential
from fewfire.torch._sparse_init import sparse_init_

__all__ = ["ActivityPenalty", "from_sequential", "relufy", "sparse_init_", "to_sequential"]

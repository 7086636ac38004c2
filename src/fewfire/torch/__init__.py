"""Tools for users' PyTorch models; PyTorch is loaded when one of them is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fewfire._lazy import lazy_names
from fewfire.torch._induce import ActivityPenalty
from fewfire.torch._networks import from_sequential, sparse_init_, to_sequential

if TYPE_CHECKING:
    from fewfire.torch._blocks import find_blocks
    from fewfire.torch._encoder import SparseEncoder
    from fewfire.torch._profile import profile
    from fewfire.torch._relufy import relufy
    from fewfire.torch._sparsify import densify, refresh, sparsify
    from fewfire.torch._train import SparseTrainingBlock

__all__ = [
    "ActivityPenalty",
    "SparseEncoder",
    "SparseTrainingBlock",
    "densify",
    "find_blocks",
    "from_sequential",
    "profile",
    "refresh",
    "relufy",
    "sparse_init_",
    "sparsify",
    "to_sequential",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "_blocks": "find_blocks",
            "_encoder": "SparseEncoder",
            "_profile": "profile",
            "_relufy": "relufy",
            "_sparsify": "densify refresh sparsify",
            "_train": "SparseTrainingBlock",
        },
    )

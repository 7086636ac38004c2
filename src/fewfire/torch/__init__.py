"""Tools for users' PyTorch models; PyTorch is loaded when one of them is called."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fewfire.torch._induce import ActivityPenalty, relufy
from fewfire.torch._sequential import from_sequential, to_sequential
from fewfire.torch._sparse_init import sparse_init_

if TYPE_CHECKING:
    from fewfire.torch._blocks import MlpBlock, find_blocks
    from fewfire.torch._profile import BlockProfile, ModelProfile, profile
    from fewfire.torch._sparsify import BlockReport, SparsifyReport, densify, refresh, sparsify
    from fewfire.torch._train import SparseTrainingBlock

__all__ = [
    "ActivityPenalty",
    "BlockProfile",
    "BlockReport",
    "MlpBlock",
    "ModelProfile",
    "SparseTrainingBlock",
    "SparsifyReport",
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

_HOMES = {
    **dict.fromkeys(("MlpBlock", "find_blocks"), "_blocks"),
    **dict.fromkeys(("BlockProfile", "ModelProfile", "profile"), "_profile"),
    **dict.fromkeys(("BlockReport", "SparsifyReport", "densify", "refresh", "sparsify"), "_sparsify"),
    "SparseTrainingBlock": "_train",
}


def __getattr__(name: str) -> Any:
    """Names whose modules need PyTorch are found when they are first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

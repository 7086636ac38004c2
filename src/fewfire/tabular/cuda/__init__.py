"""Tabular networks in training on a GPU by a kernel of their own: several epochs of all of them in one launch."""

from fewfire.tabular.cuda._epoch_kernel import EpochKernel, load_kernel
from fewfire.tabular.cuda._records import NetworkLoad

__all__ = ["EpochKernel", "NetworkLoad", "load_kernel"]

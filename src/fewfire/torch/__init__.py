"""Tools for users' PyTorch models; PyTorch is loaded when one of them is called."""

from fewfire.torch._sparse_init import sparse_init_

__all__ = ["sparse_init_"]

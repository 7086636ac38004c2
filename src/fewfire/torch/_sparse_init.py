"""The sparse start of pareto, section C.1, for a layer of a PyTorch model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fewfire._errors import invalid
from fewfire._optional import require
from fewfire._random import as_stream
from fewfire._validate import check_integer
from fewfire.networks import init

if TYPE_CHECKING:
    from fewfire._random import Stream


def sparse_init_(linear: Any, s: int, seed: int | Stream = 0) -> Any:
    """Start a `torch.nn.Linear` with exactly s inputs per neuron, in place, and return it.

    The weights are those of `fewfire.networks.init.sparse(s)` for the same seed: s ones per row, at places uniform over
    all subsets, the rest 0; the bias, if there is one, is uniform within one over the square root of the inputs. All
    weights stay trainable: sparsity is a start, not a constraint.

    Parameters
    ----------
    linear : torch.nn.Linear
    s : int
        At most the layer's inputs; pareto found 2 best for wide layers.
    seed : int or Stream
        PyTorch's own generator is not touched.

    Examples
    --------
    >>> import torch
    >>> import fewfire.torch as ft
    >>> layer = ft.sparse_init_(torch.nn.Linear(20, 1000), 2)
    >>> layer.weight.count_nonzero(dim=1).unique().tolist()
    [2]
    """
    torch: Any = require("torch", "torch", "fewfire.torch.sparse_init_")
    if not isinstance(linear, torch.nn.Linear):
        got = f"a {type(linear).__name__}"
        raise invalid("linear", "must be a torch.nn.Linear", got, "pass one layer of the model")
    width, inputs = linear.weight.shape
    check_integer("s", s, 1, inputs)
    start = init.sparse(s)(inputs, width, as_stream(seed, "init"))
    with torch.no_grad():
        linear.weight.copy_(torch.tensor(start.hidden))
        if linear.bias is not None:
            linear.bias.copy_(torch.tensor(start.bias))
    return linear

"""Two-layer networks as `torch.nn.Sequential` and back, bit by bit, and the sparse start of pareto, section C.1.

A `TwoLayer` is Linear, activation, Linear. The activations have names of their own in PyTorch: ReLU, ReLU6, and
Threshold(τ, 0), which is the shifted ReLU z·1[z > τ] (sublinear, section 3.2). A network whose output weights are a
vector gives one number per row; a last Flatten(0) keeps that apart from a matrix of a single column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fewfire._errors import InvalidArgument, invalid
from fewfire._optional import require
from fewfire._random import as_stream
from fewfire._validate import check_integer
from fewfire.networks import TwoLayer, init, relu, relu6, shifted_relu

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire.networks import Activation

_FORM: Final = "must be a torch.nn.Sequential of Linear, activation, Linear, with or without a last Flatten(0)"
_ACTIVATIONS: Final = "ReLU, ReLU6 or Threshold(τ, 0) with τ ≥ 0"


def to_sequential(network: TwoLayer) -> Any:
    """A `torch.nn.Sequential` with the weights of the network, on the CPU, trainable.

    Parameters
    ----------
    network : TwoLayer

    Returns
    -------
    torch.nn.Sequential
        Linear, ReLU or ReLU6 or Threshold, Linear, and Flatten(0) where the output weights are a vector. Its values are
        those of the network up to the order of summation; `from_sequential` gives the network again.

    Examples
    --------
    >>> import fewfire as ff, fewfire.torch as ft
    >>> network = ff.networks.construct.junta(10, [1, 4, 7], [1, 1, 1, -1, 1, -1, -1, -1])
    >>> ft.from_sequential(ft.to_sequential(network)).equals(network)
    True
    """
    torch: Any = require("torch", "torch", "fewfire.torch.to_sequential")
    kind = torch.float64 if network.dtype.itemsize == 8 else torch.float32
    first = torch.nn.utils.skip_init(torch.nn.Linear, network.inputs, network.width, dtype=kind)
    last = torch.nn.utils.skip_init(torch.nn.Linear, network.width, network.outputs, dtype=kind)
    with torch.no_grad():
        first.weight.copy_(torch.tensor(network.hidden))
        first.bias.copy_(torch.tensor(network.bias))
        last.weight.copy_(torch.tensor(network.output).reshape(network.width, -1).T)
        last.bias.copy_(torch.tensor(network.offset, dtype=kind))
    layers = [first, _module(torch, network.activation), last]
    return torch.nn.Sequential(*layers, *([torch.nn.Flatten(0)] if network.output.ndim == 1 else []))


def from_sequential(module: Any) -> TwoLayer:
    """The `TwoLayer` that a `torch.nn.Sequential` of two layers is; the module stays as it is.

    Parameters
    ----------
    module : torch.nn.Sequential
        Linear, then ReLU, ReLU6 or Threshold(τ, 0), then Linear; a last Flatten(0) makes the output weights a vector.
        Identity and Dropout are passed over, as in `eval()`. Linear layers may have no bias. Weights in half precision
        become float32, which holds them exactly; float64 stays.

    Examples
    --------
    >>> import torch
    >>> import fewfire.torch as ft
    >>> ft.from_sequential(torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)))
    TwoLayer(inputs=8, width=64, outputs=1, activation=relu, dtype=float32)
    """
    torch: Any = require("torch", "torch", "fewfire.torch.from_sequential")
    nn = torch.nn
    if not isinstance(module, nn.Sequential):
        raise invalid("module", _FORM, f"a {type(module).__name__}", "pass the block itself, such as model.mlp")
    parts = [part for part in module if not isinstance(part, nn.Identity | nn.Dropout)]
    flat = bool(parts) and isinstance(parts[-1], nn.Flatten) and (parts[-1].start_dim, parts[-1].end_dim) == (0, -1)
    layers = parts[:-1] if flat else parts
    if len(layers) != 3 or not isinstance(layers[0], nn.Linear) or not isinstance(layers[2], nn.Linear):
        raise invalid("module", _FORM, f"a Sequential of {', '.join(type(part).__name__ for part in module) or 'none'}")
    first, sigma, last = layers
    if flat and last.out_features != 1:
        raise invalid("module", "must have one output where it ends with Flatten(0)", last.out_features)
    if last.in_features != first.out_features:
        fit = f"must have a second layer of {first.out_features} inputs, one per neuron"
        raise invalid("module", fit, last.in_features)
    # All in one dtype: that of the first layer decides in TwoLayer.
    kind = torch.float64 if torch.float64 in (first.weight.dtype, last.weight.dtype) else torch.float32
    weights = [
        (torch.zeros(layer.out_features) if part is None else part).detach().to("cpu", kind).numpy()
        for layer in (first, last)
        for part in (layer.weight, layer.bias)
    ]
    hidden, bias, output, offset = weights
    if flat:
        return TwoLayer(hidden, bias, output[0], offset[0], _activation(nn, sigma))
    return TwoLayer(hidden, bias, output.T, offset, _activation(nn, sigma))


def sparse_init_(linear: Any, s: int, seed: int | Stream = 0) -> Any:
    """Start a `torch.nn.Linear` with exactly s inputs per neuron, in place, and return it.

    The weights are those of `fewfire.networks.init.sparse(s)` for the same seed: s ones per row, uniform over all
    subsets, the rest 0; the bias, if there is one, is uniform within one over the square root of the inputs. All
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


def _module(torch: Any, activation: Activation) -> Any:
    """The module of an activation."""
    if activation.name == "shifted_relu":
        return torch.nn.Threshold(activation.threshold, 0.0)
    return torch.nn.ReLU6() if activation == relu6 else torch.nn.ReLU()


def _activation(nn: Any, module: Any) -> Activation:
    """The activation of a module."""
    if isinstance(module, nn.ReLU6):  # a Hardtanh, and no ReLU
        return relu6
    if isinstance(module, nn.ReLU):
        return relu
    if isinstance(module, nn.Threshold) and module.value == 0:
        try:
            return shifted_relu(module.threshold)
        except InvalidArgument:
            pass  # a negative or infinite τ: the message below lists what may be given
    raise invalid("module", f"must have {_ACTIVATIONS} between its layers", f"a {module}")

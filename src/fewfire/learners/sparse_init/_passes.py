"""The passes of a training step between its matrix products: NumPy twins of csrc/kernels/mlp.hpp
and waves.hpp.

`passes()` gives the C++ module where it is installed, else this module; both offer the same six functions. Arrays are
float32, rows are examples, and what is written is allocated by the caller.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._extension import core

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]


def passes() -> ModuleType:
    """Whoever carries out the passes here."""
    return core() or sys.modules[__name__]


def adamw_step(
    parameters: Floats, gradient: Floats, mean: Floats, square: Floats, rate: float, decay: float, beta1: float,
    beta2: float, tiny: float,
) -> None:  # fmt: skip
    """One step of AdamW, all arrays of one length."""
    mean += (1 - beta1) * (gradient - mean)
    square += (1 - beta2) * (gradient * gradient - square)
    parameters *= 1 - decay
    parameters -= rate * mean / (np.sqrt(square) + tiny)


def bias_relu(hidden: Floats, bias: Floats) -> None:
    """hidden (rows, width) ← max(hidden + bias, 0)."""
    hidden += bias
    np.maximum(hidden, 0, out=hidden)


def relu_backward(back: Floats, hidden: Floats, bias_gradient: Floats) -> None:
    """back (rows, width) ← back where hidden > 0, else 0; its column sums to `bias_gradient`."""
    back *= hidden > 0
    np.sum(back, axis=0, out=bias_gradient)


def outer_relu_backward(
    errors: Floats, output: Floats, hidden: Floats, back: Floats, bias_gradient: Floats
) -> None:  # fmt: skip
    """`relu_backward` of the outer product of errors (rows,) and output (width,)."""
    np.multiply.outer(errors, output, out=back)
    relu_backward(back, hidden, bias_gradient)


def wave_values(
    x: Floats, mix: Floats, frequency: Floats, phase: Floats, bias: Floats, fed: Floats, cosines: Floats, sines: Floats
) -> None:
    """Fill fed (rows, 2·inputs) with [x, v], and cosines and sines (rows, inputs·waves) with those of every angle.

    Here `sines` may have no columns: then they are not computed.
    """
    inputs, count = mix.shape
    fed[:, :inputs] = x
    for j in range(inputs):
        angles, part = (
            2 * np.pi * np.multiply.outer(x[:, j], frequency[j]) + phase[j],
            slice(j * count, (j + 1) * count),
        )
        np.cos(angles, out=cosines[:, part])
        if sines.shape[1]:
            np.sin(angles, out=sines[:, part])
        fed[:, inputs + j] = cosines[:, part] @ mix[j] + bias[j]


def wave_gradients(
    x: Floats, back: Floats, cosines: Floats, sines: Floats, mix: Floats, of_mix: Floats, of_frequency: Floats,
    of_phase: Floats, of_bias: Floats,
) -> None:  # fmt: skip
    """Gradients of a loss whose derivative by v is back (rows, inputs)."""
    inputs, count = mix.shape
    sine = sines.reshape(len(x), inputs, count)
    np.einsum("ij,ijk->jk", back, cosines.reshape(sine.shape), out=of_mix)
    of_phase[:] = -mix * np.einsum("ij,ijk->jk", back, sine)
    of_frequency[:] = -2 * np.pi * mix * np.einsum("ij,ijk->jk", back * x, sine)
    np.sum(back, axis=0, out=of_bias)

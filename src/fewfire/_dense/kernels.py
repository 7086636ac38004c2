"""What networks do between their matrix products: the reference for csrc/kernels/mlp.hpp and periodic.hpp.

`kernels()` gives the C++ module where it is installed, else this module; both offer the same seven functions. Rows are
examples, and what is written is allocated by the caller. Training is in float32; prediction, in float64, needs only
`bias_relu` and `periodic_outputs`. The NumPy code takes either precision.
"""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np

from fewfire import _extension
from fewfire._types import FloatArray


def reference() -> ModuleType:
    """This module: the NumPy code."""
    return sys.modules[__name__]


def kernels() -> ModuleType:
    """The C++ module, or the NumPy code where it is missing."""
    return _extension.core() or reference()


def adamw_step(
    parameters: FloatArray,
    gradient: FloatArray,
    mean: FloatArray,
    square: FloatArray,
    rate: float,
    decay: float,
    beta1: float,
    beta2: float,
    tiny: float,
) -> None:
    """One step of AdamW, all arrays of one length."""
    mean += (1 - beta1) * (gradient - mean)
    square += (1 - beta2) * (gradient * gradient - square)
    parameters *= 1 - decay
    parameters -= rate * mean / (np.sqrt(square) + tiny)


def bias_relu(hidden: FloatArray, bias: FloatArray) -> None:
    """hidden (rows, width) ← max(hidden + bias, 0)."""
    hidden += bias
    np.maximum(hidden, 0, out=hidden)


def relu_backward(back: FloatArray, hidden: FloatArray, bias_gradient: FloatArray) -> None:
    """back (rows, width) ← back where hidden > 0, else 0; its column sums to `bias_gradient`."""
    back *= hidden > 0
    np.sum(back, axis=0, out=bias_gradient)


def outer_relu_backward(
    errors: FloatArray, output: FloatArray, hidden: FloatArray, back: FloatArray, bias_gradient: FloatArray
) -> None:
    """`relu_backward` of the outer product of errors (rows,) and output (width,)."""
    np.multiply.outer(errors, output, out=back)
    relu_backward(back, hidden, bias_gradient)


def periodic_values(
    x: FloatArray,
    mix: FloatArray,
    frequency: FloatArray,
    phase: FloatArray,
    bias: FloatArray,
    fed: FloatArray,
    cosines: FloatArray,
    sines: FloatArray,
) -> None:
    """Fill fed (rows, 2·inputs) with [x, v], and cosines and sines (rows, inputs·frequencies) with those of the angles.

    v_ij = bias_j + Σ_k mix_jk · cos(2π·frequency_jk·x_ij + phase_jk).
    """
    inputs, count = mix.shape
    fed[:, :inputs] = x
    for j in range(inputs):
        part = slice(j * count, (j + 1) * count)
        angles = 2 * np.pi * np.multiply.outer(x[:, j], frequency[j]) + phase[j]
        np.cos(angles, out=cosines[:, part])
        np.sin(angles, out=sines[:, part])
        fed[:, inputs + j] = cosines[:, part] @ mix[j] + bias[j]


def periodic_outputs(
    x: FloatArray, mix: FloatArray, frequency: FloatArray, phase: FloatArray, bias: FloatArray, fed: FloatArray
) -> None:
    """Fill fed (rows, 2·inputs) with [x, v], nothing kept for gradients."""
    inputs = len(mix)
    fed[:, :inputs] = x
    for j in range(inputs):
        angles = 2 * np.pi * np.multiply.outer(x[:, j], frequency[j]) + phase[j]
        fed[:, inputs + j] = np.cos(angles, out=angles) @ mix[j] + bias[j]


def periodic_gradients(
    x: FloatArray,
    back: FloatArray,
    cosines: FloatArray,
    sines: FloatArray,
    mix: FloatArray,
    of_mix: FloatArray,
    of_frequency: FloatArray,
    of_phase: FloatArray,
    of_bias: FloatArray,
) -> None:
    """Gradients of a loss whose derivative by v is back (rows, inputs)."""
    inputs, count = mix.shape
    sine = sines.reshape(len(x), inputs, count)
    np.einsum("ij,ijk->jk", back, cosines.reshape(sine.shape), out=of_mix)
    of_phase[:] = -mix * np.einsum("ij,ijk->jk", back, sine)
    of_frequency[:] = -2 * np.pi * mix * np.einsum("ij,ijk->jk", back * x, sine)
    np.sum(back, axis=0, out=of_bias)

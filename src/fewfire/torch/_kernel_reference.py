"""The obvious sparse block in NumPy: all neurons are scored, and those that do not fire are left out afterwards.

A block maps a row x to y = Σ_j h_j·v_j + c, where neuron j has the score z_j = ⟨w_j, x⟩ + b_j, fires where z_j > τ, and
gives then, else 0,

    relu, threshold: h = z        shifted: h = z − τ        relu2: h = z²        (τ = 0 for relu and relu2)

and with a gate, whose score g decides: reglu: h = a(g)·z, drelu: h = a(g)·a(z), a the activation. A score that is no
number counts as firing, so NaN reaches the output as it does in a dense block. This is what the C++ part is tested
against, and what serves where there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


def scores(x: Floats, weight: Floats, bias: Floats | None) -> Floats:
    """⟨w_j, x⟩ + b_j of each row and neuron: shape (batch, width)."""
    with np.errstate(all="ignore"):
        z = x @ weight.T
        return z if bias is None else z + bias


def fires(z: Floats, threshold: float) -> NDArray[np.bool_]:
    """Where a neuron fires; NaN does."""
    return ~(z <= np.float32(threshold))


def activate(z: Floats, activation: str, threshold: float) -> Floats:
    """What a neuron with this score gives."""
    with np.errstate(all="ignore"):
        given = z * z if activation == "relu2" else z - np.float32(threshold) if activation == "shifted" else z
    return np.where(fires(z, threshold), given, np.float32(0))


def resting(activation: str, threshold: float) -> float:
    """A score that the activation maps to 0; 0 itself where it can be."""
    return min(0.0, threshold) if activation == "shifted" else 0.0


def down(h: Floats, weight: Floats, bias: Floats | None) -> Floats:
    """Σ_j h_j·v_j + c of each row: shape (batch, outputs)."""
    with np.errstate(all="ignore"):
        y = h @ weight
        return y if bias is None else y + bias

"""Activations σ of the hidden neurons: ReLU, ReLU6 and the shifted ReLU.

All three are one formula with a threshold τ and a ceiling c: σ(z) = min(z·1[z > τ], c).

===============  =====  ====  ==========================================
name             τ      c     used by
===============  =====  ====  ==========================================
relu             0      ∞     sparse-activations, pareto
relu6            0      6     parities
shifted_relu(τ)  τ ≥ 0  ∞     sublinear, section 3.2
===============  =====  ====  ==========================================

The introduction of sublinear prints max{z, τ} for the shifted ReLU; its section 3.2 and every proof
use z·1[z > τ], which jumps at τ, and so does this module. A neuron *fires* when z > τ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fewfire._errors import invalid
from fewfire._types import FloatArray
from fewfire._validate import check_choice, check_number

_CEILINGS: Final = {"relu": math.inf, "relu6": 6.0, "shifted_relu": math.inf}
_CHOICES: Final = "must be 'relu', 'relu6', 'shifted_relu(τ)' with a number τ, or an Activation"


@dataclass(frozen=True)
class Activation:
    """An activation function, identified by `name` and `threshold`; `str()` of it is the form kept in files.

    Parameters
    ----------
    name : "relu", "relu6" or "shifted_relu"
    threshold : float
        τ: a neuron fires when its preactivation is above it; 0 unless the name is "shifted_relu".
    """

    name: str
    threshold: float = 0.0

    def __post_init__(self) -> None:
        check_choice("name", self.name, _CEILINGS)
        high = math.inf if self.name == "shifted_relu" else 0.0
        remedy = "" if high else f"{self.name} has the threshold 0; use shifted_relu(threshold) for another"
        object.__setattr__(self, "threshold", check_number("threshold", self.threshold, 0.0, high, remedy=remedy))

    @property
    def ceiling(self) -> float:
        """The largest value taken: 6 for relu6, infinite for the others."""
        return _CEILINGS[self.name]

    def value(self, z: FloatArray) -> FloatArray:
        """σ(z), of the shape and dtype of `z`; the threshold is rounded to that dtype first."""
        zero = z.dtype.type(0)
        if self.name == "relu6":
            return np.clip(z, zero, z.dtype.type(self.ceiling))
        positive = np.maximum(z, zero)
        # A product is several times faster than numpy.where, and as exact; z itself could be −∞, times 0 NaN.
        return positive if self.threshold == 0 else positive * (z > self.threshold)

    def slope(self, z: FloatArray) -> FloatArray:
        """σ′(z), of the shape and dtype of `z`; 0 at the kinks z = 0, z = 6 and z = τ."""
        return np.asarray((z > self.threshold) & (z < self.ceiling)).astype(z.dtype)

    def active(self, z: FloatArray) -> NDArray[np.bool_]:
        """Whether a neuron with preactivation z fires: z > threshold, also above the ceiling of relu6."""
        return np.asarray(z > self.threshold)

    def __str__(self) -> str:
        # repr of a float is read back to the same float, so files keep τ exactly.
        return f"shifted_relu({self.threshold!r})" if self.name == "shifted_relu" else self.name


relu: Final = Activation("relu")
"""max(z, 0)."""

relu6: Final = Activation("relu6")
"""min(max(z, 0), 6)."""


def shifted_relu(tau: float) -> Activation:
    """The shifted ReLU z·1[z > τ] for a threshold τ ≥ 0 (sublinear, section 3.2).

    Examples
    --------
    >>> import fewfire as ff
    >>> import numpy as np
    >>> ff.networks.shifted_relu(0.5).value(np.array([0.25, 0.5, 2.0])).tolist()
    [0.0, 0.0, 2.0]
    """
    return Activation("shifted_relu", check_number("tau", tau, 0.0))


def activation(choice: Any) -> Activation:
    """The activation itself, or the one a text such as "relu" or "shifted_relu(0.25)" names.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.networks.activation("shifted_relu(0.5)") == ff.networks.shifted_relu(0.5)
    True
    """
    if isinstance(choice, Activation):
        return choice
    if choice in ("relu", "relu6"):
        return Activation(choice)
    if isinstance(choice, str) and choice.startswith("shifted_relu(") and choice.endswith(")"):
        try:
            return shifted_relu(float(choice[len("shifted_relu(") : -1]))
        except ValueError:
            pass  # not a number, or not a threshold: the message below covers both
    raise invalid("activation", _CHOICES, choice, "write activation='relu'")

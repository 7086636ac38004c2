"""The start of parities, section 2: random signs and zeros, in mirrored pairs, so that the network is 0.

Printed there: the second half has −w, −b and −u, "so g ≡ 0"; but then g(x) = Σ u_i (σ(t_i) − σ(−t_i)),
which is not 0. With w and b copied and only u negated it is, and the halves separate at the first step.

The paper's inputs are ±1/√n, ours ±1. With v = w/√n the network on ±1 inputs is the paper's, and
training stays the paper's when the first layer's learning rate η becomes η/n (the gradient in v is √n
times that in w, and a step in v is worth √n in w) while its weight decay keeps the same shrink factor
1 − 2ηλ per step. Rates of bias and output are unchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._validate import check_integer
from fewfire.networks.init._base import Initialiser, check_condition, half_of, mirrored, named

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire.networks._two_layer import TwoLayer


@dataclass(frozen=True, repr=False)
class _Symmetric(Initialiser):
    name = "symmetric"
    k: int
    scaled: bool
    strict: bool

    def _draw(self, inputs: int, width: int, stream: Stream) -> TwoLayer:
        check_integer("k", self.k, 1, inputs, "a parity has at most as many bits as there are inputs")
        half = half_of(width)
        hidden = stream.child("hidden").integers(3, (half, inputs)) - 1.0
        if self.scaled:
            hidden /= math.sqrt(inputs)
        bias = np.full(half, 1 / (8 * self.k))
        bound = inputs / self.k
        return mirrored(hidden, bias, stream.child("output").uniform(half, -bound, bound), "relu6")


@named
def symmetric(k: int, scaled: bool = True, strict: bool = True) -> Initialiser:
    """Mirrored ReLU6 neurons w ∈ {−1, 0, 1}ⁿ, b = 1/(8k), u ~ U(±n/k): the zero function (parities, section 2).

    Parameters
    ----------
    k : int
        Bits of the parity to be learned; odd and at least 3 in the paper.
    scaled : bool
        True: weights are w/√n and the network acts on ±1 inputs; divide the paper's first-layer learning
        rates by n. False: weights are w, for inputs ±1/√n that the caller supplies, with the paper's rates.
    strict : bool
        Whether to refuse what the paper's theorem excludes.

    Examples
    --------
    >>> import fewfire as ff
    >>> network = ff.networks.init.symmetric(k=3)(20, width=100, seed=0)
    >>> X, _ = ff.problems.Parity(20, 3).sample(10, seed=0)
    >>> bool(abs(network(X)).max() < 1e-4)  # pairs of neurons cancel at the start
    True
    """
    k = check_integer("k", k, 1)
    check_condition(strict, k % 2 == 1 and k >= 3, "k", "must be odd and at least 3", k, "parities, section 2")
    return _Symmetric(k, bool(scaled), bool(strict))

"""Learning with rounding as a 1-sparse network on lifted inputs (sparse-activations, section 4, Definition 15).

f_w(y) = (⟨w, y⟩ mod q) mod p for y ∈ {0, …, q − 1}^m. With z the ±1 digits of y, the paper takes ⟨v, z⟩ = ⟨w, y⟩;
no v does that unless w = 0, because complementing z negates the left side while the right side stays
at least 0. What holds is ⟨v, z⟩ + c = ⟨w, y⟩ with v the place values times w/2 and c = Σ_i w_i (2^bits − 1)/2,
and the constant moves the centres a of the bumps to a − c. (The lifted weights are then reals, not signs.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_integer
from fewfire.networks._two_layer import TwoLayer
from fewfire.networks.construct._integers import bits_for
from fewfire.networks.construct._lift import bumps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import Float64Array


def integer_form(secret: Sequence[int], q: int) -> tuple[Float64Array, float]:
    """v and c with ⟨v, z(y)⟩ + c = ⟨secret, y⟩ for every y: shape (m·bits,) and a number."""
    halves = 0.5 * 2.0 ** np.arange(bits_for(q))
    v = np.outer(np.asarray(secret, dtype=np.float64), halves).ravel()
    return v, float(v.sum())


def learning_with_rounding(m: int, p: int, q: int, secret: Sequence[int]) -> TwoLayer:
    """The network on `lift(encode_integers(Y, q))` that computes (⟨secret, y⟩ mod q) mod p.

    Exactly one of its m(q − 1)² + 1 neurons fires on an encoded input: that of a = ⟨secret, y⟩.

    Parameters
    ----------
    m : int
        Integers in a vector y.
    p, q : int
        The moduli, 2 ≤ p ≤ q.
    secret : sequence of m integers in {0, …, q − 1}

    Returns
    -------
    TwoLayer
        In float64 with (m·⌈log₂ q⌉)² inputs; its weights are multiples of 1/4 and evaluation is exact.
    """
    m, q = check_integer("m", m, 1), check_integer("q", q, 2)
    p = check_integer("p", p, 2, q, "the outer modulus is at most the inner one")
    if len(secret) != m:
        raise invalid("secret", f"must hold m = {m} integers", f"a sequence of {len(secret)}")
    members = [check_integer(f"secret[{i}]", w, 0, q - 1, "reduce it modulo q") for i, w in enumerate(secret)]
    v, constant = integer_form(members, q)
    a = np.arange(m * (q - 1) ** 2 + 1)
    hidden, bias = bumps(v, a.astype(np.float64) - constant)
    return TwoLayer(hidden, bias, 2.0 * (a % q % p))

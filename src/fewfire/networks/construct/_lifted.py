"""Parity and learning with rounding as 1-sparse networks on lifted inputs (sparse-activations, section 4).

They are the reason such networks are hard to learn. The lift y ↦ x(y) makes squares of linear forms linear: it lists
x_ij = y_i·y_j for i ≠ j and x_ii = y_i. For signs y, a vector v and a centre a,

    1/2 − (⟨v, y⟩ − a)² = Σ_{i≠j} (−v_i v_j) x_ij + Σ_i 2a v_i x_ii + 1/2 − ‖v‖² − a²,

so a bump around the value a of ⟨v, y⟩ is one neuron. When ⟨v, y⟩ and the centres differ by integers, the
neuron is 1/2 at its centre and at most −1/2 elsewhere: at most one of them fires.

Parity. Printed: χ_S is 1 when Σ_{i∈S} y_i is even, a sum over even a. But that sum has the parity of |S| for every y.
Counting −1s instead, an even number of them means Σ_{i∈S} y_i ≡ |S| (mod 4), so the centres are the a ≡ |S| (mod 4)
with |a| ≤ |S|; and the lifted weights are non-zero only at pairs inside S.

Learning with rounding (Definition 15): f_w(y) = ⌊(p/q)·(⟨w, y⟩ mod q)⌋ for y ∈ {0, …, q − 1}^m. (Printed is "mod q,
then mod p", which rounds nothing: where p divides q it is linear, and easy to learn.) Integers become ±1 coordinates z,
least significant digit first, −1 for the digit 0 and +1 for the digit 1. The paper takes
⟨v, z⟩ = ⟨w, y⟩; no v does that unless w = 0, because complementing z negates the left side while the right side stays
at least 0. What holds is ⟨v, z⟩ + c = ⟨w, y⟩ with v the powers of two times w/2 and c = Σ_i w_i (2^bits − 1)/2,
and the constant moves the centres a of the bumps to a − c. (The lifted weights are then reals, not signs.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fewfire._errors import invalid
from fewfire._types import Float64Array, IdArray, SignArray
from fewfire._validate import check_choice, check_integer, check_signs, check_support
from fewfire.networks._two_layer import TwoLayer


def lift(Y: ArrayLike) -> SignArray:
    """The products x(y) of all pairs of coordinates, with y itself on the diagonal.

    Parameters
    ----------
    Y : array of ±1 of shape (rows, m)

    Returns
    -------
    int8 array of shape (rows, m²)
        Coordinate i·m + j is y_i·y_j, or y_i where i = j.

    Examples
    --------
    >>> from fewfire.networks.construct import lift
    >>> lift([[1, -1]]).tolist()
    [[1, -1, -1, -1]]
    """
    signs = check_signs("Y", Y)
    rows, m = signs.shape
    products = signs[:, :, None] * signs[:, None, :]
    diagonal = np.arange(m)
    products[:, diagonal, diagonal] = signs
    return products.reshape(rows, m * m)


def bumps(v: Float64Array, centres: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Lifted weights (width, m²) and biases of 1/2 − (⟨v, y⟩ − a)² for v (m,) and every centre a."""
    m = len(v)
    hidden = np.broadcast_to(-np.outer(v, v), (len(centres), m, m)).copy()
    diagonal = np.arange(m)
    hidden[:, diagonal, diagonal] = 2 * np.outer(centres, v)
    return hidden.reshape(len(centres), m * m), 0.5 - float(v @ v) - centres**2


def lifted_parity(m: int, support: Sequence[int], signed: bool = False) -> TwoLayer:
    """The network on `lift(Y)` for whether y has an even number of −1s in the support.

    At most one of its ⌊|S|/2⌋ + 1 neurons fires on a lifted input; other points of the cube of m²
    coordinates may activate more.

    Parameters
    ----------
    m : int
        Coordinates of y; the network has m² inputs.
    support : sequence of distinct coordinates
        The set S.
    signed : bool
        False: values 1 (even) and 0, as printed. True: values +1 and −1, the product of y over S.

    Examples
    --------
    >>> import fewfire as ff
    >>> network = ff.networks.construct.lifted_parity(m=4, support=[0, 2])
    >>> network.inputs, ff.networks.check_sparsity(network).max_active
    (16, 1)
    """
    m = check_integer("m", m, 1)
    members = check_support("support", support, m)
    v = np.zeros(m)
    v[list(members)] = 1.0
    size = len(members)
    hidden, bias = bumps(v, np.arange(size, -size - 1, -4, dtype=np.float64))
    output = np.full(len(bias), 4.0 if signed else 2.0)
    return TwoLayer(hidden, bias, output, -1.0 if signed else 0.0)


def digits(integers: IdArray, bits: int) -> SignArray:
    """The binary digits of non-negative integers: shape (rows, m) becomes (rows, m·bits)."""
    signs = 2 * ((integers[:, :, None] >> np.arange(bits)) & 1) - 1
    return signs.reshape(len(integers), -1).astype(np.int8)


def integer_form(secret: Sequence[int], q: int) -> tuple[Float64Array, float]:
    """v and c with ⟨v, z(y)⟩ + c = ⟨secret, y⟩ for every y: shape (m·bits,) and a number."""
    halves = 0.5 * 2.0 ** np.arange((q - 1).bit_length())
    v = np.outer(np.asarray(secret, dtype=np.float64), halves).ravel()
    return v, float(v.sum())


def learning_with_rounding(
    m: int, p: int, q: int, secret: Sequence[int], *, rounding: Literal["floor", "remainder"] = "floor"
) -> TwoLayer:
    """The network on lifted digits of y, `lift(problem.encode(Y))`, that computes ⌊(p/q)·(⟨secret, y⟩ mod q)⌋.

    Exactly one of its m(q − 1)² + 1 neurons fires on an encoded input: that of a = ⟨secret, y⟩.

    Parameters
    ----------
    m : int
        Integers in a vector y.
    p, q : int
        The moduli, 2 ≤ p ≤ q.
    secret : sequence of m integers in {0, …, q − 1}
    rounding : "floor" or "remainder"
        With "remainder" it computes (⟨secret, y⟩ mod q) mod p, as printed.

    Returns
    -------
    TwoLayer
        In float64 with (m·⌈log₂ q⌉)² inputs; its weights are multiples of 1/4 and evaluation is exact.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.networks.construct.learning_with_rounding(m=3, p=2, q=4, secret=[1, 0, 3])
    TwoLayer(inputs=36, width=28, activation=relu, dtype=float64)
    """
    m, q = check_integer("m", m, 1), check_integer("q", q, 2)
    p = check_integer("p", p, 2, q, "the outer modulus is at most the inner one")
    check_choice("rounding", rounding, ("floor", "remainder"))
    if len(secret) != m:
        raise invalid("secret", f"must hold m = {m} integers", f"a sequence of {len(secret)}")
    members = [check_integer(f"secret[{i}]", w, 0, q - 1, "reduce it modulo q") for i, w in enumerate(secret)]
    v, constant = integer_form(members, q)
    a = np.arange(m * (q - 1) ** 2 + 1)
    hidden, bias = bumps(v, a.astype(np.float64) - constant)
    return TwoLayer(hidden, bias, 2.0 * (a % q * p // q if rounding == "floor" else a % q % p))

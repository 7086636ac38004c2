"""The lift y ↦ x(y) that makes squares of linear forms linear (sparse-activations, section 4).

x(y) lists x_ij = y_i·y_j for i ≠ j and x_ii = y_i. For signs y, a vector v and a centre a,

    1/2 − (⟨v, y⟩ − a)² = Σ_{i≠j} (−v_i v_j) x_ij + Σ_i 2a v_i x_ii + 1/2 − ‖v‖² − a²,

so a bump around the value a of ⟨v, y⟩ is one neuron. When ⟨v, y⟩ and the centres differ by integers, the
neuron is 1/2 at its centre and at most −1/2 elsewhere: at most one of them fires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire._validate import check_signs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire._types import Float64Array, SignArray


def lift(Y: ArrayLike) -> SignArray:
    """The products x(y) of all pairs of coordinates, with y itself on the diagonal.

    Parameters
    ----------
    Y : array of ±1 of shape (rows, m)

    Returns
    -------
    int8 array of shape (rows, m²)
        Coordinate i·m + j is y_i·y_j, or y_i where i = j.
    """
    signs = check_signs("Y", Y)
    rows, m = signs.shape
    products = signs[:, :, None] * signs[:, None, :]
    diagonal = np.arange(m)
    products[:, diagonal, diagonal] = signs
    return products.reshape(rows, m * m)


def bumps(v: Float64Array, centres: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Lifted weights and biases of 1/2 − (⟨v, y⟩ − a)² for every centre a.

    Parameters
    ----------
    v : array of shape (m,)
    centres : array of shape (width,)

    Returns
    -------
    hidden of shape (width, m²) and bias of shape (width,)
    """
    m = len(v)
    hidden = np.broadcast_to(-np.outer(v, v), (len(centres), m, m)).copy()
    diagonal = np.arange(m)
    hidden[:, diagonal, diagonal] = 2 * np.outer(centres, v)
    return hidden.reshape(len(centres), m * m), 0.5 - float(v @ v) - centres**2

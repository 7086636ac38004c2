"""The separator of parities, Lemmas 8 to 10: output weights that make a parity of the features after one step.

Symbols: k bits in the parity, odd; z = Σ_{j∈A} √n x_j ∈ {−k, −k+2, …, k}; φ_r(z) = relu(−sign(r) z + |r|). After the
first step a good neuron is σ(αuz/n + b), b = 1/(8k), u uniform in ±n/k. Lemma 7 prints α = φ(w, b) between 1/4 and 1;
it is half of that, because E[√n x_j f_A] is ½ on D_A (and not 1): between 1/8 and 1/2.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number

if TYPE_CHECKING:
    from fewfire._types import Float64Array


def check_odd(k: int, low: int = 1) -> int:
    """A number of bits that parities treats."""
    k = check_integer("k", k, low)
    if k % 2 == 0:
        raise invalid("k", "must be odd", k, "parities treats odd k only")
    return k


def feature_probability(k: int, epsilon: float) -> float:
    """Lemma 8: u is such that a good neuron is φ_r within ε with probability at least ε/(8k²).

    φ_r must be the plain ReLU of −sign(r) z + |r|, which reaches 2k; printed, it is cut at 6. It holds for α in
    [1/8, 1] and ε of at most k|r|: at α = 1/8 and |r| = 1 half of the interval of u lies outside the range of u, and
    the other half is as long as the lemma asks for.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> 0 < parities.feature_probability(3, epsilon=0.1) < 1
    True
    """
    k = check_integer("k", k, 1)
    return check_number("epsilon", epsilon, 0.0, k * k, open_low=True) / (8 * k * k)


def lemma_9(k: int, epsilon: float) -> float:
    """ε/(112k^{2.5}): a neuron is, after one step, within 2ε of ψ_r with at least this probability over w and u.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> round(1 / parities.lemma_9(k=3, epsilon=0.1))
    17459
    """
    k = check_integer("k", k, 1)
    return check_number("epsilon", epsilon, 0.0, k * k, open_low=True) / (112 * k * k * sqrt(k))


def separator_margin(k: int, epsilon: float) -> float:
    """1 − 2ε Σ_r |v_r|: the margin of Lemma 10's separator on features that are within 2ε of φ_r.

    Lemma 9 leaves 2ε, where the proof of Lemma 10 goes on with ε = 1/(10k), and the margin is then above 1/2 and not
    above 1, as printed: u* has to be doubled.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> parities.separator_margin(3, epsilon=0.0)
    1.0
    """
    return float(1 - 2 * check_number("epsilon", epsilon, 0.0) * np.abs(separator_coefficients(k)).sum())


def separator_norm(k: int, pairs: int) -> float:
    """64k²√((k + 1)/(2pq)), p = 1/(1120k^{3.5}): the bound of Lemma 10 on ‖u*‖, of order k^{4.25}/√q.

    Each of the k + 1 values of r has pq/2 neurons with weights |v_r||r|·2/(pqb) of at most 32k²/(pq), all doubled for a
    margin of 1.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> round(parities.separator_norm(3, pairs=1_000_000))
    186
    """
    k, q = check_integer("k", k, 1), check_integer("pairs", pairs, 1)
    p = 1 / (1120 * k**3 * sqrt(k))
    return sqrt((k + 1) * p * q / 2) * 64 * k**2 / (p * q)


def separator_thresholds(k: int) -> Float64Array:
    """The values r ∈ {−k, −k+2, …, k} of Lemma 8, shape (k + 1,).

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> parities.separator_thresholds(3)
    array([-3., -1.,  1.,  3.])
    """
    return np.arange(-check_odd(k), k + 1, 2, dtype=np.float64)


def separator_features(k: int, z: Float64Array) -> Float64Array:
    """φ_r(z) for every threshold r, shape (len(z), k + 1).

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> parities.separator_features(3, parities.separator_thresholds(3)).shape
    (4, 4)
    """
    r = separator_thresholds(k)
    return np.maximum(-np.sign(r) * np.asarray(z, dtype=np.float64)[:, None] + np.abs(r), 0.0)


def separator_coefficients(k: int) -> Float64Array:
    """Lemma 10, corrected: the v_r with Σ_r v_r φ_r(z) = f_A, in the order of `separator_thresholds`.

    The coefficients printed in the lemma do not give the parity (docs/errata.md, row 3). The k + 1 features
    are independent on the k + 1 values of z, so solving for them is exact: |v_r| = 2 inside, and 1.5
    (k ≡ 3 mod 4) or 0.5 (k ≡ 1 mod 4) at |r| = k, alternating and odd in r.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> z = parities.separator_thresholds(3)
    >>> (parities.separator_features(3, z) @ parities.separator_coefficients(3)).round(9)
    array([-1.,  1., -1.,  1.])
    """
    z = separator_thresholds(k)
    parity = (-1.0) ** ((k - z) / 2)
    return np.asarray(np.linalg.solve(separator_features(k, z), parity), dtype=np.float64)

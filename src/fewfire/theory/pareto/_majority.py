"""Fourier coefficients of Maj and Half in closed form (pareto, Lemma 17), and the gradients at the start they give.

Maj(x) = sign(Σ x_i) with sign(0) = −1, as pareto section B.3 defines it, and Half(x) = 1 if Σ x_i = 0 else 0. Both are
symmetric, so a coefficient depends on the size of its set alone. Lemma 17 covers Half at even length and Maj at odd
length; the rest follows. Half at odd length is 0. At even length n a tie of Maj is broken half to each side by a
further coordinate, so Maj_n is Maj_{n+1} averaged over it, minus Half_n.

Population gradients at the start, of one ReLU neuron against a parity (Lemmas 8 and 20): a neuron is *good* when its s
ones contain the support (over-sparse, s > k) or lie in it (under-sparse, s < k). Its gradient E[∂h_w/∂w_i · χ_S] then
takes one value on the relevant coordinates still to be told apart and another on the irrelevant ones; their gap is what
a sample must resolve.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, pi

from fewfire._errors import invalid
from fewfire._validate import check_integer


def half_coefficient(n: int, size: int) -> float:
    """The coefficient of Half, the indicator of Σ x_i = 0 on {±1}ⁿ, at a set of `size` coordinates.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.fourier.half_coefficient(4, 2)
    -0.125
    """
    n = check_integer("n", n, 0)
    size = check_integer("size", size, 0, n)
    if n % 2 or size % 2:
        return 0.0
    m, j = n // 2, size // 2
    # Python divides integers of any length with one rounding.
    magnitude = comb(m, j) * comb(2 * m, m) / (comb(2 * m, 2 * j) << 2 * m)
    return -magnitude if j % 2 else magnitude


def majority_coefficient(n: int, size: int) -> float:
    """The coefficient of Maj = sign(Σ x_i) on {±1}ⁿ, sign(0) = −1, at a set of `size` coordinates.

    For odd n there are no ties, and sets of even size have coefficient 0.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.fourier.majority_coefficient(3, 1), ff.fourier.majority_coefficient(3, 3)
    (0.5, -0.5)
    """
    n = check_integer("n", n, 1)
    size = check_integer("size", size, 0, n)
    if size % 2 == 0:
        return -half_coefficient(n, size) if n % 2 == 0 else 0.0
    return half_coefficient(n - 1 if n % 2 else n, size - 1)


def majority_weight(length: int, size: int) -> float:
    """Σ of the squared coefficients of Maj at all sets of `size`; falls to `limit_weight` as the length grows.

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> [round(pareto.majority_weight(length, 3), 4) for length in (7, 101, 10_001)]
    [0.1367, 0.1077, 0.1061]
    """
    return comb(length, size) * majority_coefficient(length, size) ** 2


def limit_weight(size: int) -> float:
    """ρ(v) = 4 C(v−1, (v−1)/2) / (π v 2^v) for odd v: ρ ≤ `majority_weight` ≤ 2ρ for v < length/2.

    The proof of Lemma 8 prints half of this, for which the upper bound fails at every length.

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> round(pareto.limit_weight(3), 4)
    0.1061
    """
    size = check_integer("size", size, 1)
    if size % 2 == 0:
        raise invalid("size", "must be odd", size, "Maj has no weight on even sizes")
    return 4 * comb(size - 1, (size - 1) // 2) / (pi * size * float(2**size))


@dataclass(frozen=True)
class FourierGap:
    """The gradient of a good neuron on relevant and on irrelevant coordinates."""

    relevant: float
    irrelevant: float

    @property
    def ratio(self) -> float:
        """|relevant| / |irrelevant|."""
        return abs(self.relevant) / abs(self.irrelevant)

    @property
    def precision(self) -> float:
        """Half the distance of the magnitudes: a gradient known this well tells the coordinates apart."""
        return (abs(self.relevant) - abs(self.irrelevant)) / 2


def over_sparse_gap(k: int, s: int) -> FourierGap:
    """Lemma 8: C_{k,s} = ½ Maj_s(k−1) on the support, c_{k,s} = ½ Maj_s(k+1) on the neuron's other s − k ones.

    Coordinates where the neuron has no weight get 0 (the proof has S∖w for w∖S: docs/errata.md, row 47). The ratio
    |c/C| is exactly (k − 1)/(s − k), below the lemma's 4k/s. A bias in (−1, 1) changes nothing, because the sum of s
    signs is odd.

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> pareto.over_sparse_gap(k=2, s=9)
    FourierGap(relevant=0.13671875, irrelevant=-0.01953125)
    """
    k, s = check_integer("k", k, 2), check_integer("s", s, 3)
    if k % 2:
        raise invalid("k", "must be even (pareto, Lemma 8)", k, "the coefficients of Maj at odd k vanish")
    if s % 2 == 0 or s < k + 1:
        raise invalid("s", f"must be odd and above k = {k} (pareto, Lemma 8)", s, "choose an odd sparsity")
    return FourierGap(majority_coefficient(s, k - 1) / 2, majority_coefficient(s, k + 1) / 2)


def under_sparse_gap(n: int, k: int, s: int) -> FourierGap:
    """Lemma 20: ½ Half_s(s) Maj_{n−s}(k−s−1) on the rest of the support, ½ Half_s(s) Maj_{n−s}(k−s+1) off it.

    The neuron has weight 1 on s coordinates of the support, where its gradient is 0, and less than 1/(n − s)
    elsewhere. The ratio is exactly (n − k)/(k − s − 1).

    Examples
    --------
    >>> from fewfire.theory import pareto
    >>> gap = pareto.under_sparse_gap(n=31, k=6, s=2)
    >>> abs(gap.relevant) > abs(gap.irrelevant)
    True
    """
    k = check_integer("k", k, 2)
    n = check_integer("n", n, k + 1)
    s = check_integer("s", s, 0, k - 1, "in the under-sparse case s < k")
    if k % 2 or s % 2:
        raise invalid(
            "k and s", "must be even (pareto, Lemma 20)", (k, s), "the coefficients of Half at odd sets vanish"
        )
    if n % 2 == 0:
        raise invalid("n", "must be odd, so that n − s is (pareto, Lemma 17)", n, "ties break the closed form")
    common = half_coefficient(s, s) / 2
    return FourierGap(common * majority_coefficient(n - s, k - s - 1), common * majority_coefficient(n - s, k - s + 1))

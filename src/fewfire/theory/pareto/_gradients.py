"""Population gradients at the start, of one ReLU neuron against a parity (pareto, Lemmas 8 and 20).

A neuron is *good* when its s ones contain the support (over-sparse, s > k) or lie in it (under-sparse, s < k). Its
gradient E[∂h_w/∂w_i · χ_S] then takes one value on the relevant coordinates still to be told apart and another on the
irrelevant ones; their gap is what a sample must resolve.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewfire._errors import invalid
from fewfire._validate import check_integer
from fewfire.theory.pareto._majority import half_coefficient, majority_coefficient


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

    Coordinates where the neuron has no weight get 0. The ratio |c/C| is exactly (k − 1)/(s − k), below the lemma's
    4k/s. A bias in (−1, 1) changes nothing, because the sum of s signs is odd.
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

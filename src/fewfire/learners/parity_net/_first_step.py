"""The one step on the first layer that pareto's Theorems 4/16 and 5/21 take from their sparse starts.

With f = 0 at the start the gradient of neuron j is −u_j·g, g = E[y σ′(⟨w_j, x⟩ + b_j) x], and the step is
w ← kept·w − η·trunc(−u_j g, γ). Two methods differ in γ, the level up to which entries of the gradient are zeroed:

- over-sparse, s ≥ k ones that contain the support in a *good* neuron: g is C on the support, c on the neuron's other
  ones (Lemma 8) and 0 off the ones. η = 1/(2k|C|) with total decay leaves ±Σ_{j∈S} x_j/(2k) in a good neuron.
  "theorem" truncates nothing: each of the other ones of a good neuron keeps c/C of a weight, ≈ k/s, and every entry
  keeps its noise, which the theorem makes harmless by s in the thousands and n² times as many examples. "practical"
  zeroes what is below (|C| + |c|)/2: good neurons then hold the support alone.
- under-sparse, s < k ones inside the support and ε elsewhere: g is ξ on the missing bits, 0 on the ones and
  ξ·(k − s − 1)/(n − k) elsewhere (Lemma 20). The step keeps the share ε/(2k) of the old weights and adds ±ε/(2k) on the
  missing bits, so that the neuron becomes ε/(2k)·Σ_{j∈S} x_j. "theorem" truncates at the gradient off the support, as
  printed: about half of those entries then survive, however many examples there are, at (k − s − 1)/(n − k) of a
  weight. "practical" truncates halfway between the two gradients.

Beyond the theorems (strict=False). At s = k the two starts meet: all k gradients of a good neuron are on its ones, and
nothing else of an over-sparse one has any. There, and for s > k, an under-sparse neuron forgets its start too, since
the gradient brings the whole support. Where n − s is even the bias decides ties, half of them to each side, which
leaves every coefficient of odd size as it is. An odd s < k has a gradient only at k = s + 1. Odd k have none anywhere:
which neurons fire is, ties aside, an odd function of x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_choice, check_integer
from fewfire.engines import PerLayer, Phase
from fewfire.theory.pareto import FourierGap, half_coefficient, majority_coefficient

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._types import AnyArray
    from fewfire.networks import TwoLayer

StepMethod: TypeAlias = Literal["practical", "theorem"]
"""Truncation halfway between the gradients on and off the support, or what the proof does."""

METHODS: tuple[StepMethod, ...] = ("practical", "theorem")


@dataclass(frozen=True)
class StartStep:
    """One full-batch step on the first layer's weights.

    Parameters
    ----------
    rate : float
        η.
    kept : float
        The share of the old weights that decay leaves.
    truncation : float
        γ; gradients up to it count as 0.
    signal: float
        The size of a good neuron's gradient on the bits that the step is to bring.
    """

    rate: float
    kept: float
    truncation: float
    signal: float

    def phase(self) -> Phase:
        """The step as engines carry it out."""
        return Phase(
            1,
            PerLayer(hidden=self.rate),
            weight_decay=PerLayer(hidden=1 - self.kept),
            truncation=PerLayer(hidden=self.truncation),
            decay="direct",
            batch_size=None,
        )

    def apply(self, initial: TwoLayer, correlations: AnyArray) -> TwoLayer:
        """The network after the step, given g of shape (width, inputs), from a sample or from all inputs.

        The start must have f = 0, as mirrored pairs have.
        """
        gradient = -initial.output[:, None].astype(np.float64) * correlations
        moved = np.where(np.abs(gradient) > self.truncation, gradient, 0.0)
        return initial.with_parameters(hidden=(self.kept * initial.hidden - self.rate * moved).astype(initial.dtype))

    def moved(self, initial: TwoLayer, after: TwoLayer) -> NDArray[np.bool_]:
        """The neurons that a gradient reached, shape (width,)."""
        change = np.abs(after.hidden - self.kept * initial.hidden)
        # A gradient that passes moves a weight by η·γ at least; a neuron without one is off by rounding alone.
        return np.asarray(np.any(change > self.rate * self.truncation / 2, axis=1))


def over_sparse_step(k: int, s: int, method: StepMethod = "practical") -> StartStep:
    """The step from rows of s ones (Theorem 4/16).

    Parameters
    ----------
    k : int
        Bits of the parity, even: the gradient of an odd parity is 0.
    s : int
        Ones per row; from k on the theorem's mechanism is there, above 4k and odd the theorem.
    method : "practical" or "theorem"
        With truncation, or without.
    """
    k, s = check_integer("k", k, 2), check_integer("s", s, 1)
    check_choice("method", method, METHODS)
    _check_even(k, "Theorem 4")
    ones = max(s, k)  # fewer contain no support: nothing is learned, whatever the step
    relevant = abs(majority_coefficient(ones, k - 1)) / 2
    other = abs(majority_coefficient(ones, k + 1)) / 2 if ones > k else 0.0
    truncation = (relevant + other) / 2 if method == "practical" else 0.0
    return StartStep(1 / (2 * k * relevant), 0.0, truncation, relevant)


def under_sparse_step(n: int, k: int, s: int, epsilon: float, method: StepMethod = "practical") -> StartStep:
    """The step from rows of s ones and ε elsewhere (Theorem 5/21).

    Parameters
    ----------
    n, k, s : int
        Inputs, bits of the parity and ones per row.
    epsilon : float
        ε, below 1/(n − s).
    method : "practical" or "theorem"
        Truncation halfway between the gradients, or at that off the support.
    """
    check_choice("method", method, METHODS)
    _check_even(k, "Theorem 21")
    gap = good_neuron_gap(n, k, s)
    size, other = abs(gap.relevant), abs(gap.irrelevant)
    if size == 0:
        rule = f"must be even, or k − 1 = {k - 1}, or from k on: the gradient of other neurons is exactly 0"
        raise invalid("sparsity", rule, s, f"use {s + 1}")
    kept = epsilon / (2 * k) if s < k else 0.0
    truncation = (size + other) / 2 if method == "practical" else other
    return StartStep(epsilon / (2 * k * size), kept, truncation, size)


def good_neuron_gap(n: int, k: int, s: int) -> FourierGap:
    """Lemma 20 for any n, k and s: the gradient of a good neuron of an under-sparse start on the bits it brings.

    For s < k those are the missing bits, for s ≥ k the support. Irrelevant is the largest gradient off the support.
    Averaged over the sign of the bias, which decides ties.
    """
    k, s = check_integer("k", k, 1), check_integer("s", s, 1)
    n = check_integer("n", n, max(k, s + 1))
    if s < k:
        return FourierGap(_coefficient(n, s, s, k - s - 1), _coefficient(n, s, s, k - s + 1) if n > k else 0.0)
    inside = _coefficient(n, s, k + 1, 0) if s > k else 0.0
    outside = _coefficient(n, s, k, 1)
    return FourierGap(_coefficient(n, s, k - 1, 0), max(inside, outside, key=abs))


def _check_even(k: int, statement: str) -> None:
    if k % 2:
        raise invalid("k", f"must be even (pareto, {statement})", k, 'use schedule="sgd" for odd parities')


def _coefficient(n: int, s: int, ones: int, rest: int) -> float:
    """E[1{fires}·χ_T] for T with so many coordinates among the s ones and among the n − s others.

    The neuron fires where the ones have a positive sum, or a sum of 0 while the others' is positive.
    """
    if (ones + rest) % 2 == 0:
        return 0.0  # with ties half to each side, firing less one half is an odd function
    if rest == 0:
        return majority_coefficient(s, ones) / 2
    return half_coefficient(s, ones) * majority_coefficient(n - s, rest) / 2 if rest % 2 else 0.0

"""pareto's Theorems 4/16 and 5/21 as estimators: one step on a sparsely started first layer, a convex second layer.

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

from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._types import AnyArray
from fewfire._validate import check_choice, check_integer, check_number
from fewfire.engines import PerLayer, Phase, Result, Schedule
from fewfire.learners._parity_net import ParityNetwork, SignedRows
from fewfire.learners._signs import Binarize
from fewfire.networks import TwoLayer, init
from fewfire.papers._second_layer import SecondLayer, descend_output, solve_output
from fewfire.papers.pareto.statements._lemmas import (
    FourierGap,
    check_even,
    half_coefficient,
    majority_coefficient,
    separator_norm,
)

__all__ = [
    "OverSparseParityClassifier",
    "StartStep",
    "UnderSparseParityClassifier",
    "over_sparse_step",
    "under_sparse_step",
]

ODD = "use ParityNetClassifier for odd parities"

StepMethod: TypeAlias = Literal["practical", "theorem"]
"""Truncation halfway between the gradients on and off the support, or what the proof does."""


@dataclass(frozen=True)
class StartStep:
    """One full-batch step on the first layer's weights: rate η, share of the old weights that decay leaves, γ.

    Gradients up to γ (`truncation`) count as 0. `signal` is the size of a good neuron's gradient on the bits that the
    step is to bring.
    """

    rate: float
    kept: float
    truncation: float
    signal: float

    def phase(self) -> Phase:
        """The step as a phase of training."""
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
    """The step from rows of s ones (Theorem 4/16), with truncation ("practical") or without ("theorem").

    k is even: the gradient of an odd parity is 0. From s = k on the theorem's mechanism is there, above 4k and odd the
    theorem.
    """
    k, s = check_integer("k", k, 2), check_integer("s", s, 1)
    check_choice("method", method, get_args(StepMethod))
    check_even("k", k, "pareto, Theorem 4", ODD)
    ones = max(s, k)  # fewer contain no support: nothing is learned, whatever the step
    relevant = abs(majority_coefficient(ones, k - 1)) / 2
    other = abs(majority_coefficient(ones, k + 1)) / 2 if ones > k else 0.0
    truncation = (relevant + other) / 2 if method == "practical" else 0.0
    return StartStep(1 / (2 * k * relevant), 0.0, truncation, relevant)


def under_sparse_step(n: int, k: int, s: int, epsilon: float, method: StepMethod = "practical") -> StartStep:
    """The step from rows of s ones and ε < 1/(n − s) elsewhere (Theorem 5/21).

    Gradients are truncated halfway between those on and off the support ("practical"), or at that off it ("theorem").
    """
    check_choice("method", method, get_args(StepMethod))
    check_even("k", k, "pareto, Theorem 21", ODD)
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


def _coefficient(n: int, s: int, ones: int, rest: int) -> float:
    """E[1{fires}·χ_T], T of so many among the s ones and the others, which decide the sign where the ones' sum is 0."""
    if (ones + rest) % 2 == 0:
        return 0.0  # with ties half to each side, firing less one half is an odd function
    if rest == 0:
        return majority_coefficient(s, ones) / 2
    return half_coefficient(s, ones) * majority_coefficient(n - s, rest) / 2 if rest % 2 else 0.0


@dataclass(eq=False, repr=False)
class _OneStepClassifier(ParityNetwork):
    """One step on the first layer, and the second layer fitted on what it leaves."""

    k: int
    _: KW_ONLY
    width: int = 1000
    method: StepMethod = "practical"
    second_layer: SecondLayer = "solver"
    max_steps: int = 10_000
    strict: bool = True
    binarize: Binarize | None = None
    engine: str = "auto"
    random_state: int | np.random.RandomState | None = None

    def _take_step(
        self, rows: SignedRows, initial: TwoLayer, step: StartStep, regularisation: float | None = None
    ) -> tuple[TwoLayer, TwoLayer, Result]:
        """The solver fits the neurons that the step moved, as in the theorems; descent all, as Lemma 14."""
        check_choice("second_layer", self.second_layer, get_args(SecondLayer))
        steps = check_integer("max_steps", self.max_steps, 1)
        result = rows.train(initial, Schedule((step.phase(),)))
        after = result.network
        if self.second_layer == "solver":
            return initial, solve_output(after, rows.X, rows.y, step.moved(initial, after)), result
        network = descend_output(after, rows.X, rows.y, steps, rows.engine, rows.seed, regularisation=regularisation)
        return initial, network, result


@dataclass(eq=False, repr=False, kw_only=True)
class OverSparseParityClassifier(_OneStepClassifier):
    """Theorem 4/16 as an estimator: neurons start with more ones than the parity has bits, and one step finds those.

    Columns, attributes, `predict_proba` and `explain` are those of `ParityNetClassifier`; probabilities are fitted on
    the training rows.

    Parameters
    ----------
    k : int
        Bits of the parity, even.
    sparsity : int, optional
        Ones a neuron starts with: odd, above 4k and below the number of inputs; 4k + 1 unless given.
    width : int
        Hidden neurons, even.
    method : {"practical", "theorem"}
        "practical" zeroes gradients below the middle between those on and off the support. "theorem" truncates nothing,
        as the proof, and its "descent" is Lemma 14's, on the whole sample with λ = `epsilon`/B_k².
    second_layer : {"solver", "descent"}
        Solve the convex second layer, or descend on it for `max_steps`.
    max_steps : int
    epsilon : float in (0, 1/2)
        The loss that Lemma 14 aims at.
    strict : bool
        Refuse what the theorem excludes. Without, anything is carried out for which the first step has a gradient.
    binarize, engine, random_state
        As of `ParityNetClassifier`.

    Examples
    --------
    >>> from fewfire.papers.pareto.algorithms import OverSparseParityClassifier
    >>> from fewfire.problems import Parity
    >>> X, y = Parity(n=20, k=2, support=[4, 11]).sample(10_000, seed=0)
    >>> OverSparseParityClassifier(k=2, width=400, random_state=0).fit(X, y).support_
    (4, 11)
    """

    sparsity: int | None = None
    epsilon: float = 0.1

    def _train(self, rows: SignedRows) -> tuple[TwoLayer, TwoLayer, Result]:
        n = rows.inputs
        k = check_integer("k", self.k, 1, n)
        smallest = 4 * k + 1
        s = smallest if self.sparsity is None else check_integer("sparsity", self.sparsity, 1)
        epsilon = check_number("epsilon", self.epsilon, 0.0, 0.5, open_low=True, open_high=True)
        step = over_sparse_step(k, s, self.method)
        if self.strict and (s % 2 == 0 or not smallest <= s < n):
            rule = f"must be odd, above 4k = {4 * k} and below the {n} inputs (pareto, Lemma 8)"
            remedy = f"use {smallest}, or pass strict=False" if smallest < n else "pass a smaller one and strict=False"
            raise invalid("sparsity", rule, s, remedy)
        initial = init.over_sparse(k, s, strict=False)(n, self.width, Stream(rows.seed, "init"))
        # Lemma 14's λ is for features that are those of Lemma 11, which truncation only makes cleaner.
        regularisation = epsilon / separator_norm(k) ** 2 if self.method == "theorem" else None
        return self._take_step(rows, initial, step, regularisation)


@dataclass(eq=False, repr=False, kw_only=True)
class UnderSparseParityClassifier(_OneStepClassifier):
    """Theorem 5/21 as an estimator: neurons start with fewer ones than the parity has bits, and one step adds the rest.

    The theorem ends with the existence of a subnetwork; the second layer is fitted on top. Columns, attributes,
    `predict_proba` and `explain` are those of `ParityNetClassifier`; probabilities are fitted on the training rows.

    Parameters
    ----------
    k : int
        Bits of the parity, even and at least 4.
    sparsity : int
        Ones a neuron starts with, even and below `k`; an odd number of columns is left.
    width : int
        Hidden neurons, even.
    method : {"practical", "theorem"}
        Gradients are truncated halfway between those on and off the support, or at that off it, as in the proof.
    second_layer : {"solver", "descent"}
        Solve the convex second layer, or descend on it for `max_steps`.
    max_steps : int
    strict : bool
        Refuse what the theorem excludes. Without, s ≥ k and an even number of other columns are carried out as well;
        `k` is even throughout.
    binarize, engine, random_state
        As of `ParityNetClassifier`.

    Examples
    --------
    >>> from fewfire.papers.pareto.algorithms import UnderSparseParityClassifier
    >>> from fewfire.problems import Parity
    >>> X, y = Parity(n=15, k=4).sample(10_000, seed=0)
    >>> UnderSparseParityClassifier(k=4, random_state=0).fit(X, y).support_
    (0, 1, 2, 3)
    """

    sparsity: int = 2

    def _train(self, rows: SignedRows) -> tuple[TwoLayer, TwoLayer, Result]:
        n = rows.inputs
        k, s = check_integer("k", self.k, 1, n), check_integer("sparsity", self.sparsity, 1)
        if self.strict and (k % 2 or k < 4):
            rule = "must be even, and at least 4 for an even sparsity to be below it (pareto, Theorem 21)"
            raise invalid("k", rule, k, ODD if k % 2 else "pass strict=False")
        if self.strict and (s % 2 or not 0 < s < k):
            rule = f"must be even, above 0 and below k = {k} (pareto, Theorem 21)"
            raise invalid("sparsity", rule, s, "use 2, or pass strict=False")
        if self.strict and (n - s) % 2 == 0:
            rule = f"must have an odd number of columns besides the {s} of a neuron (pareto, Lemmas 18 to 20)"
            raise invalid("X", rule, f"shape {rows.X.shape}", "append or drop a column, or pass strict=False")
        if s >= n:
            raise invalid("sparsity", f"must be below the {n} inputs", s, "leave some weights small")
        epsilon = 1 / (2 * (n - s))
        step = under_sparse_step(n, k, s, epsilon, self.method)
        initial = init.under_sparse(k, s, epsilon, strict=False)(n, self.width, Stream(rows.seed, "init"))
        return self._take_step(rows, initial, step)

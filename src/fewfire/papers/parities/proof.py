"""The proof of parities, Theorem 2, on networks: its lemmas as instruments, each compared with what is measured.

How far a sample's first step moves the biases of good neurons (Lemma 7), the separator u* (Lemmas 9 and 10), and how
far descent carries a network from where the first step left it (Lemma 13). A neuron after the first step is looked at
on the 2^k patterns of the bits of A; the other inputs can move its value by at most the sum of its weights there, which
margins have subtracted. Constants that the paper leaves open are 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from fewfire._cube import cube
from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._types import AnyArray, Float64Array
from fewfire._validate import check_choice, check_integer, check_support
from fewfire.networks import TwoLayer
from fewfire.papers import parities
from fewfire.papers.correlations import sample_correlations
from fewfire.papers.parities.algorithms import BestIterate, good_mask, learn_correlated_parity, signs_of
from fewfire.problems import CorrelatedParity

TESTS = 10_000
SeparatorMethod: TypeAlias = Literal["lemma", "least"]
"""Lemma 10's choice of weights, or those of least norm."""

MOST_BITS = 12


@dataclass(frozen=True, eq=False)
class Separator:
    """u* (width,), which makes the parity of features after the first step, with ‖u*‖, ‖u*‖₀ and the least g*f_A."""

    output: Float64Array
    norm: float
    neurons: int
    margin: float  # of u* as it is: norm/margin is the norm at margin 1; not positive where the network is too narrow
    deviation: float  # under "lemma" the largest distance of a chosen neuron from its feature φ_r


def bias_movement(initial: TwoLayer, X: AnyArray, y: AnyArray, support: Sequence[int]) -> float:
    """How far the first step on a sample moves the biases of good neurons, root mean square; to compare with 1/(8k)."""
    good = good_mask(initial, support)
    moved = initial.output * sample_correlations(initial, X, y).bias
    return float(np.sqrt(np.mean(moved[good] ** 2))) if good.any() else 0.0


def separator(
    initial: TwoLayer, first: TwoLayer, support: Sequence[int], method: SeparatorMethod = "lemma"
) -> Separator:
    """u* on the good neurons by their features φ_r (Lemma 10), or of least norm, with norm, support and margin."""
    members = list(check_support("support", support, first.inputs))
    check_choice("method", method, get_args(SeparatorMethod))
    k = len(members)
    if k > MOST_BITS:
        raise invalid("support", f"must have at most {MOST_BITS} inputs to visit all their patterns", k)
    good = np.flatnonzero(good_mask(initial, members))
    if not len(good):
        return Separator(np.zeros(first.width), 0.0, 0, -np.inf, np.inf)
    bits = cube(k).astype(np.float64)
    hidden = first.hidden[good].astype(np.float64)
    values = np.clip(bits @ hidden[:, members].T + first.bias[good], 0.0, first.activation.ceiling)
    rest = np.abs(np.delete(hidden, members, axis=1)).sum(axis=1)
    labels, weights, deviation = bits.prod(axis=1), np.zeros(len(good)), 0.0
    if method == "least":
        weights = np.linalg.lstsq(values, labels, rcond=1e-10)[0]
    else:
        deviation = _lemma_10(weights, values, rest, bits.sum(axis=1))
    margin = float((labels * (values @ weights)).min() - np.abs(weights) @ rest)
    output = np.zeros(first.width)
    output[good] = weights
    return Separator(output, float(np.linalg.norm(weights)), int(np.count_nonzero(weights)), margin, deviation)


def measured_drift(best: BestIterate) -> parities.Drift:
    """Largest |u_i|, ‖w_i − w_i⁽¹⁾‖ and |b_i − b_i⁽¹⁾| of the best iterate, in the units of Lemma 13."""
    net, first = best.network, best.first
    moved = np.linalg.norm((net.hidden - first.hidden).astype(np.float64), axis=1)
    return parities.Drift(
        float(np.abs(net.output).max()),
        float(sqrt(net.inputs) * moved.max()),
        float(np.abs(net.bias - first.bias).max()),
    )


def drift_bound(best: BestIterate, k: int) -> parities.Drift:
    """Lemma 13 without λ for the steps taken: rates enter by their sum, so that they may fall."""
    later = best.step - 1
    mean = float(best.rates[:later].mean()) if later else 0.0
    return parities.lemma_13(best.network.inputs, k, mean, 0.0, max(later, 1))


def _lemma_10(weights: Float64Array, values: Float64Array, rest: Float64Array, z: Float64Array) -> float:
    """Fill in the weights of the neurons chosen for each φ_r; the largest distance of one from its feature."""
    k = int(z.max())
    bias, allowed = 1 / (8 * k), 1 / (5 * k)
    thresholds, coefficients = parities.separator_thresholds(k), parities.separator_coefficients(k)
    features = parities.separator_features(k, z)
    largest = 0.0
    for index, r in enumerate(thresholds):
        scale = abs(r) / bias
        distance = np.abs(scale * values - features[:, index : index + 1]).max(axis=0) + scale * rest
        chosen = np.flatnonzero(distance <= allowed)
        if not len(chosen):
            chosen = np.array([np.argmin(distance)])
        weights[chosen] += coefficients[index] * scale / len(chosen)
        largest = max(largest, float(distance[chosen].max()))
    return largest


class ProofRow(NamedTuple):
    """A quantity, its value on the network, the bound and the statement that gives it."""

    quantity: str
    measured: float
    bound: float
    statement: str
    rule: Literal["at most", "at least"] | None = "at most"

    @property
    def holds(self) -> bool | None:
        """Whether the value keeps to the bound; None where there is none."""
        if self.rule is None:
            return None
        return self.measured <= self.bound if self.rule == "at most" else self.measured >= self.bound


def compare_proof(
    n: int, k: int, width: int, steps: int, *, examples: int = 100_000, learning_rate: float = 0.5, seed: int = 0
) -> list[ProofRow]:
    """The lemmas of Theorem 2 on one network, in the order of the proof; its first step on a sample of `examples`."""
    problem = CorrelatedParity(n, k)
    check_integer("examples", examples, 1)
    (best,) = learn_correlated_parity(
        problem, problem.support, width=width, steps=steps, learning_rate=learning_rate, seeds=[seed]
    )
    bound, error = parities.theorem_2(n, k, width // 2, steps), best.error(problem, TESTS, seed)
    return [
        *_first_step_rows(best, problem, examples, seed),
        *_separator_rows(best, problem, seed),
        ProofRow("error of the best iterate", error, bound.error, "Theorem 2: the sum of"),
        ProofRow("", error, bound.separator_norm, "  k¹⁰/q", None),
        ProofRow("", error, bound.drift, "  k⁸/√q", None),
        ProofRow("", error, bound.initial_output, "  qk/√n", None),
        ProofRow("", error, bound.step_size, "  k²√q/T", None),
    ]


def _first_step_rows(best: BestIterate, problem: CorrelatedParity, examples: int, seed: int) -> Iterator[ProofRow]:
    n, k, bias = problem.n, problem.k, 1 / (8 * problem.k)
    start, support = best.initial, problem.support
    signs, members = signs_of(start)[: start.width // 2], list(support)  # the other half has the same weights
    uniform = parities.first_step(signs, support, bias, "uniform")
    correlated = parities.first_step(signs, support, bias, "correlated")
    both = parities.first_step(signs, support, bias)
    off = np.delete(np.arange(n), members)
    yield ProofRow("mean |E[f σ']|, uniform half", np.abs(uniform.bias).mean(), parities.lemma_3(n, k, 1), "Lemma 3")
    largest = np.maximum(np.abs(uniform.weights[:, off]).max(axis=1), np.abs(uniform.bias))
    yield ProofRow("largest off A or in b, median", np.median(largest), parities.lemma_4(n, k, 2), "Lemma 4, C = 2")
    balanced = signs[:, members].sum(axis=1) == 0
    gradient = np.column_stack([correlated.weights[:, off], correlated.bias])[balanced]
    # Rounding of sums of about n terms of size 1.
    rounding = 1e-15 * n
    yield ProofRow("the same, other half, Σ_A w = 0", np.abs(gradient).max(initial=0), rounding, "Lemma 5: 0, rounded")
    share = parities.firing_share(signs, support, bias)
    free = int(np.count_nonzero(signs[:, off], axis=1).min())
    distance = np.abs(both.weights[:, members] - share[:, None] / 2).max()
    yield ProofRow("largest |E[x_j f σ'] − φ/2| on A", distance, parities.lemma_6(k, free), "Lemma 6")
    good = parities.good_start(signs, support, bias)
    yield ProofRow("share of good neurons", good.mean(), parities.good_neuron_bound(k), "Lemma 7", "at least")
    yield ProofRow("  by luck", good.mean(), parities.balanced_probability(k), "exactly Pr[Σ_A w = 0]", None)
    yield ProofRow("smallest α of them", share[good].min(initial=1) / 2, 1 / 8, "Lemma 7", "at least")
    moved = bias_movement(start, *problem.sample(examples, Stream(seed, "data")), support)
    yield ProofRow(f"biases move, {examples:,} examples", moved, bias, "Lemma 7 with a sample: b")
    yield ProofRow("  by sampling noise", moved, parities.bias_noise(n, k, examples), "rms of u/√(2m)", None)
    yield ProofRow("largest |u⁽¹⁾|", np.abs(best.first.output).max(), parities.lemma_12(n, k), "Lemma 12")


def _separator_rows(best: BestIterate, problem: CorrelatedParity, seed: int) -> Iterator[ProofRow]:
    k, pairs = problem.k, best.network.width // 2
    found = separator(best.initial, best.first, problem.support)
    yield ProofRow("farthest feature of u*", found.deviation, 1 / (5 * k), "Lemma 9, ε = 1/(10k)")
    yield ProofRow("margin of u*", found.margin, 0.5, "Lemma 10, not doubled", "at least")
    least = separator(best.initial, best.first, problem.support, "least")
    norms = [part.norm / part.margin if part.margin > 0 else np.inf for part in (found, least)]
    yield ProofRow("‖u*‖ at margin 1", norms[0], parities.separator_norm(k, pairs), "Lemma 10")
    yield ProofRow("  the least there is", norms[1], norms[0], "u*")
    yield ProofRow("neurons in u*", found.neurons, 2.0 * pairs / k**2.5, "Lemma 10: of order q/k^2.5", None)
    measured, bound = measured_drift(best), drift_bound(best, k)
    yield ProofRow(f"largest |u| at t = {best.step}", measured.output, bound.output, "Lemma 13")
    yield ProofRow("largest ‖w − w⁽¹⁾‖", measured.hidden, bound.hidden, "Lemma 13")
    yield ProofRow("largest |b − b⁽¹⁾|", measured.bias, bound.bias, "Lemma 13")
    X, _ = problem.sample(TESTS, Stream(seed, "test"))
    before, after = (
        network.astype(np.float64).with_parameters(output=found.output)(X) for network in (best.first, best.network)
    )
    bound_on_change = parities.lemma_14(found.norm, found.neurons, measured)
    yield ProofRow("u* moves, at most", np.abs(after - before).max(), bound_on_change, "Lemma 14, drift as measured")

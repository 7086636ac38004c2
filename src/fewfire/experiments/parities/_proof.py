"""Every lemma on the way to parities, Theorem 2, beside what is measured: one row per quantity.

One network is drawn, takes the first step over the whole of D_A, exactly, and descends at practical rates. Lemmas 3 to
7 and 12 are read off its start and first step, 9 and 10 off its good neurons, 13 and 14 off the iterate that did best
on held-out rows, and the four terms of the theorem stand beside that iterate's error on 10,000 other rows. Constants
that the paper leaves open are 1.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from fewfire._random import Stream
from fewfire._validate import check_integer
from fewfire.learners.parity_net import bias_movement, drift_bound, learn_correlated_parity, measured_drift, separator
from fewfire.problems import CorrelatedParity
from fewfire.theory import parities

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fewfire.learners import BestIterate
    from fewfire.networks import TwoLayer

TESTS = 10_000


class ProofRow(NamedTuple):
    """A quantity, its value on the network, the bound and the statement that gives it.

    `rule` is "at most", "at least", or None where the two are only to be compared.
    """

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
    """The lemmas of Theorem 2 on one network, in the order of the proof.

    Parameters
    ----------
    n, k, width, steps : int
        The (n, k)-parity on D_A, neurons, and steps T after the first.
    examples : int
        Rows of the sample whose first step is compared with the exact one.
    learning_rate : float
        Of the practical rates, which fall from it to 0.
    seed : int
        Changes weights and examples.
    """
    problem = CorrelatedParity(n, k)
    check_integer("examples", examples, 1)
    options = {"width": width, "steps": steps, "learning_rate": learning_rate}
    (best,) = learn_correlated_parity(problem, problem.support, seeds=[seed], **options)  # type: ignore[arg-type]
    return [
        *_first_step_rows(best, problem, examples, seed),
        *_separator_rows(best, problem, seed),
        *_theorem_rows(best, problem, steps, seed),
    ]


def _first_step_rows(best: BestIterate, problem: CorrelatedParity, examples: int, seed: int) -> Iterator[ProofRow]:
    n, k, bias = problem.n, problem.k, 1 / (8 * problem.k)
    start, support = best.initial, problem.support
    half = start.width // 2  # the other half has the same weights
    signs = np.rint(start.hidden[:half].astype(np.float64) * sqrt(n))
    members = list(support)
    uniform, correlated, both = (parities.first_step(signs, support, bias, part) for part in _HALVES)
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
    norm = found.norm / found.margin if found.margin > 0 else np.inf
    yield ProofRow("‖u*‖ at margin 1", norm, parities.separator_norm(k, pairs), "Lemma 10")
    least = separator(best.initial, best.first, problem.support, "least")
    yield ProofRow("  the least there is", least.norm / least.margin if least.margin > 0 else np.inf, norm, "u*")
    yield ProofRow("neurons in u*", found.neurons, 2.0 * pairs / k**2.5, "Lemma 10: of order q/k^2.5", None)
    measured, bound = measured_drift(best), drift_bound(best, k)
    yield ProofRow(f"largest |u| at t = {best.step}", measured.output, bound.output, "Lemma 13")
    yield ProofRow("largest ‖w − w⁽¹⁾‖", measured.hidden, bound.hidden, "Lemma 13")
    yield ProofRow("largest |b − b⁽¹⁾|", measured.bias, bound.bias, "Lemma 13")
    X, _ = problem.sample(TESTS, Stream(seed, "test"))
    outputs = [_with_output(network, found.output)(X) for network in (best.first, best.network)]
    change = float(np.abs(outputs[1] - outputs[0]).max())
    yield ProofRow(
        "u* moves, at most",
        change,
        parities.lemma_14(found.norm, found.neurons, measured),
        "Lemma 14, drift as measured",
    )


def _theorem_rows(best: BestIterate, problem: CorrelatedParity, steps: int, seed: int) -> Iterator[ProofRow]:
    bound = parities.theorem_2(problem.n, problem.k, best.network.width // 2, steps)
    X, y = problem.sample(TESTS, Stream(seed, "test"))
    error = float(np.mean((best.network(X) > 0) != (y > 0)))
    yield ProofRow("error of the best iterate", error, bound.error, "Theorem 2: the sum of")
    terms = {
        "k¹⁰/q": bound.separator_norm,
        "k⁸/√q": bound.drift,
        "qk/√n": bound.initial_output,
        "k²√q/T": bound.step_size,
    }
    for name, value in terms.items():
        yield ProofRow("", error, value, f"  {name}", None)


def _with_output(network: TwoLayer, output: np.ndarray) -> TwoLayer:
    return network.astype(np.float64).with_parameters(output=output)


_HALVES: tuple[parities.Half, ...] = ("uniform", "correlated", "both")

"""Gradients at the start, per neuron: over the whole distribution, over a sample, and the gap between them.

With f = 0 at the start (mirrored pairs) and the hinge loss, the gradient in w_j is −u_j·E[y σ'(⟨w_j, x⟩ + b_j) x]:
pareto's Lemmas 8 and 18 to 20 and parities' Lemmas 3 to 6 are about the vector E[y σ' x] computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from fewfire._cube import MAX_EXACT, cube_blocks
from fewfire._errors import invalid
from fewfire._types import AnyArray, Float64Array
from fewfire._validate import check_inputs, check_labels, check_support
from fewfire.networks import TwoLayer

__all__ = ["Correlations", "fourier_gap", "population_correlations", "sample_correlations"]


class Correlations(NamedTuple):
    """E[y σ'(⟨w_j, x⟩ + b_j) x] of shape (width, inputs), and E[y σ'(⟨w_j, x⟩ + b_j)] of shape (width,)."""

    weights: Float64Array
    bias: Float64Array


def sample_correlations(network: TwoLayer, X: AnyArray, y: AnyArray, rows: int = 1 << 13) -> Correlations:
    """The mean over the rows of X (samples, inputs) and y (samples,).

    Examples
    --------
    >>> import fewfire as ff
    >>> from fewfire.papers import correlations
    >>> X, y = ff.problems.Parity(8, 2).sample(1000, seed=0)
    >>> correlations.sample_correlations(ff.networks.init.sparse(2)(8, width=20, seed=0), X, y).weights.shape
    (20, 8)
    """
    X = check_inputs("X", X, network.inputs, network.dtype)
    labels = check_labels("y", y, len(X)).astype(np.float64, copy=False)
    blocks = ((X[i : i + rows], labels[i : i + rows]) for i in range(0, len(X), rows))
    return _mean(network, blocks)


def population_correlations(
    network: TwoLayer, target: Callable[[AnyArray], AnyArray], density: Callable[[AnyArray], AnyArray] | None = None
) -> Correlations:
    """The expectation over the whole distribution, exact, by visiting the whole cube (at most 20 inputs).

    For any number of inputs, on D_A and at its own start: `parities.first_step`.

    Parameters
    ----------
    network : TwoLayer
    target : callable
        The labels of a ±1 table of shape (rows, inputs), such as `problem.target`.
    density : callable, optional
        How much likelier than under uniform inputs each row of such a table is, such as `CorrelatedParity.density`;
        uniform inputs without it.

    Examples
    --------
    >>> import fewfire as ff
    >>> from fewfire.papers import correlations
    >>> network = ff.networks.init.sparse(2)(8, width=20, seed=0)
    >>> correlations.population_correlations(network, ff.problems.Parity(8, 2).target).weights.shape
    (20, 8)
    """
    if network.inputs > MAX_EXACT:
        rule = f"must have at most {MAX_EXACT} inputs to visit the whole cube"
        raise invalid("network", rule, network.inputs, "use sample_correlations on a large sample")

    blocks = ((block, 1.0 if density is None else density(block)) for block in cube_blocks(network.inputs))
    return _mean(network, ((block, np.asarray(target(block) * mass, dtype=np.float64)) for block, mass in blocks))


def fourier_gap(correlations: AnyArray, support: Sequence[int]) -> Float64Array:
    """For each neuron, the smallest |gradient| inside the support minus the largest outside, shape (width,).

    A positive gap means that the support can be read off the neuron's gradient (pareto, proof of Theorem 4).

    Examples
    --------
    >>> from fewfire.papers import correlations
    >>> correlations.fourier_gap([[0.5, 0.5, 0.1, 0.0]], support=[0, 1]).tolist()
    [0.4]
    """
    size = np.abs(np.asarray(correlations, dtype=np.float64))
    members = list(check_support("support", support, size.shape[1]))
    outside = np.delete(size, members, axis=1)
    return np.asarray(size[:, members].min(axis=1) - outside.max(axis=1, initial=0.0))


def _mean(network: TwoLayer, blocks: Iterable[tuple[AnyArray, Float64Array]]) -> Correlations:
    weights, bias, count = np.zeros(network.hidden.shape), np.zeros(network.width), 0
    for X, y in blocks:
        inputs = X.astype(np.float64)
        # Scores in the network's own precision, as training computes them: ties decide which neurons fire.
        weighted = y[:, None] * network.activation.slope(network.preactivations(X))
        weights += weighted.T @ inputs
        bias += weighted.sum(axis=0)
        count += len(X)
    return Correlations(weights / count, bias / count)

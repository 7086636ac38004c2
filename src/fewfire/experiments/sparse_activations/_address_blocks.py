"""Blocks of neurons of which at most one fires on any input of the cube, fitted to random signs.

A block of 2^b neurons reads b address coordinates. The neuron of the pattern α computes
u σ(⟨v, y⟩ + c + Γ(⟨x, α⟩ − b)), x the address and y the other coordinates, with Γ = (‖v‖₁ + c)/2: wherever x ≠ α it
loses at least 2Γ and is silent, for every y (the idea of sparse-activations, Appendix A). On the samples with x = α
it is u σ(⟨v, y⟩ + c), so the correlation of the block with signs ζ is a sum over neurons, each fitted by itself.

The scales are ‖w‖ = √(‖v‖² + bΓ²) and |bias| = |c − bΓ|. Everything is homogeneous in (v, c), so a neuron is fitted by
ascent on (correlation)/(gauge), where the gauge is the factor by which W and B are exceeded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._cube import cube, cube_index

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import Float64Array, IdArray, SignArray

SLACK = 1e-9
"""Weights stay this far inside their constraints, so that rounding cannot leave them."""

STARTS = 3
"""Starting points of the ascent for each neuron and sign: along the mean of ζ_i x_i, and two random ones."""


@dataclass(frozen=True, eq=False)
class Block:
    """Weights of 2^b neurons of which at most one fires on any input, and Σ_i ζ_i block(x_i)/m.

    Parameters
    ----------
    value : float
    hidden : array of shape (2^b, n)
    bias : array of shape (2^b,)
    output : array of shape (2^b,)
        0 for a neuron that gained nothing.
    """

    value: float
    hidden: Float64Array
    bias: Float64Array
    output: Float64Array


def fit_block(
    X: SignArray, zeta: SignArray, b: int, W: float, B: float, stream: Stream, restarts: int, steps: int
) -> Block:
    """The best block of 2^b neurons found for the signs ζ, over random choices of the address coordinates.

    Parameters
    ----------
    X : int8 array of ±1, shape (m, n)
    zeta : int8 array of ±1, shape (m,)
    b : int, at most n
    W, B : float
        Largest ‖w_j‖ and |bias_j|; output weights are ±1.
    stream : Stream
        Of addresses and starting points.
    restarts : int
        Choices of address coordinates.
    steps : int
        Of the ascent.
    """
    n = X.shape[1]
    addresses = stream.child("addresses").subsets(restarts, n, b)
    found: list[Block] = []
    for restart, address in enumerate(addresses):
        examples = X.astype(np.float64)
        examples[:, address] = 0.0
        groups = _groups(cube_index(X[:, address]), 2**b)
        padded = np.vstack([examples, np.zeros((1, n))])[groups]  # (2^b, largest group, n)
        signs = np.append(zeta, 0).astype(np.float64)[groups]
        starts = _starts(stream.child(f"starts {restart}"), padded, signs, address)
        v, c, gain = _ascend(padded, signs, starts, b, W, B, steps)
        found.append(_assemble(v, c, gain, address, W, B, X, zeta))
    return max(found, key=lambda block: block.value)


def _groups(codes: IdArray, count: int) -> IdArray:
    """The rows with each code, shape (count, largest group), padded with the row number past the end."""
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes, minlength=count)
    groups = np.full((count, int(sizes.max())), len(codes), dtype=np.int64)
    place = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    groups[codes[order], place] = order
    return groups


def _starts(stream: Stream, padded: Float64Array, signs: Float64Array, address: IdArray) -> Float64Array:
    """Starting points (v, c), shape (2^b, 2·STARTS, n + 1); the first half is for output +1, the second for −1."""
    neurons, _, n = padded.shape
    mean = np.einsum("gln,gl->gn", padded, signs)
    random = stream.normal((neurons, 2 * STARTS, n + 1))
    random[:, :, address] = 0.0
    mean /= np.linalg.norm(mean, axis=1, keepdims=True) + 1e-12
    random[:, 0, :n] = mean
    random[:, STARTS, :n] = -mean
    return random


def _ascend(
    padded: Float64Array, signs: Float64Array, starts: Float64Array, b: int, W: float, B: float, steps: int
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Ascend correlation/gauge from every start; the best (v, c) of each neuron and its signed correlation."""
    neurons, tries, _ = starts.shape
    output = np.repeat([1.0, -1.0], tries // 2)
    padded = np.concatenate([padded, np.where(signs, 1.0, 0.0)[:, :, None]], axis=2)  # a last column for c
    theta, transposed = starts.copy(), padded.transpose(0, 2, 1)
    best, kept = np.zeros((neurons, tries)), starts.copy()
    for step in range(steps + 1):
        if B == 0:
            theta[:, :, -1] = 0.0  # the only c with a bias of 0 where there is no address
        size_of, slope_of = _gauge(theta, b, W, B)
        theta /= size_of[:, :, None]
        scores = padded @ theta.transpose(0, 2, 1)  # (2^b, group, tries)
        firing = (scores > 0) * signs[:, :, None]
        value = output * np.einsum("glt,glt->gt", firing, scores)
        better = value > best
        best[better], kept[better] = value[better], theta[better]
        slope = output[:, None] * (transposed @ firing).transpose(0, 2, 1) - value[:, :, None] * slope_of
        length = np.linalg.norm(slope, axis=2, keepdims=True)
        reach = 0.5 * 0.02 ** (step / max(steps, 1))
        theta += reach * np.linalg.norm(theta, axis=2, keepdims=True) * slope / np.maximum(length, 1e-300)
    chosen = best.argmax(axis=1)
    everyone = np.arange(neurons)
    point = kept[everyone, chosen]
    return point[:, :-1], point[:, -1], output[chosen] * best[everyone, chosen]


def _gauge(theta: Float64Array, b: int, W: float, B: float) -> tuple[Float64Array, Float64Array]:
    """The factor by which (v, c) exceeds W or B, and its gradient at the point divided by that factor."""
    v, c = theta[..., :-1], theta[..., -1]
    gamma = _gamma(v, c, b)
    lengths = np.sqrt(np.einsum("...n,...n->...", v, v) + b * gamma**2)
    bias = c - b * gamma
    by_length = lengths / W
    with np.errstate(divide="ignore", invalid="ignore"):
        by_bias = np.where(bias == 0, 0.0, np.abs(bias) / B)
    active = (gamma > 0)[..., None] * 0.5 * np.concatenate([np.sign(v), np.ones_like(c)[..., None]], axis=-1)
    unit = np.zeros_like(theta)
    unit[..., -1] = 1.0
    slope_length = np.concatenate([v, np.zeros_like(c)[..., None]], axis=-1) + b * gamma[..., None] * active
    slope_length /= np.maximum(lengths, 1e-300)[..., None] * W
    slope_bias = np.sign(bias)[..., None] * (unit - b * active) / max(B, 1e-300)
    larger = by_length >= by_bias
    gauge = np.maximum(np.where(larger, by_length, by_bias), 1e-300)
    return gauge, np.where(larger[..., None], slope_length, slope_bias)


def _gamma(v: Float64Array, c: Float64Array, b: int) -> Float64Array:
    """Γ: the least that silences a neuron away from its address; 0 without an address."""
    if b == 0:
        return np.zeros_like(c)
    return np.asarray(np.maximum(np.abs(v).sum(axis=-1) + c, 0.0) / 2)


def _assemble(
    v: Float64Array,
    c: Float64Array,
    gain: Float64Array,
    address: IdArray,
    W: float,
    B: float,
    X: SignArray,
    zeta: SignArray,
) -> Block:
    """The block as weights, a little inside W, B and the silence away from the address, and what it attains."""
    b = len(address)
    scale = np.where(gain != 0, 1.0, 0.0)
    v, c = v * scale[:, None], c * scale
    gamma = _gamma(v, c, b) * (1 + SLACK)
    hidden = v.copy()
    hidden[:, address] = gamma[:, None] * cube(b)
    bias, output = c - b * gamma, np.sign(gain)
    with np.errstate(divide="ignore", invalid="ignore"):
        exceeded = np.maximum(np.linalg.norm(hidden, axis=1) / W, np.where(bias == 0, 0.0, np.abs(bias) / B))
    shrink = (1 - SLACK) / np.maximum(exceeded, 1.0)
    hidden, bias = hidden * shrink[:, None], bias * shrink
    values = np.maximum(X @ hidden.T + bias, 0.0) @ output
    return Block(float(zeta @ values) / len(X), hidden, bias, output)

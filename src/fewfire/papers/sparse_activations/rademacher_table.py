"""The empirical Rademacher complexity of H(n, s, k) on a sample, from below (sparse-activations, section 5).

𝓡(S) = E_ζ max_h (1/m) Σ_i ζ_i h(x_i) over the networks h of scales W and B. Searched are networks of k' ≤ k copies of
one block of 2^b neurons, k'·2^b ≤ s, of which at most one fires on any input of the cube; without an address, b = 0, a
block is one unrestricted neuron. Blocks do not depend on s and k, so one search serves a whole table.

A block of 2^b neurons reads b address coordinates. The neuron of the pattern α computes
u σ(⟨v, y⟩ + c + Γ(⟨x, α⟩ − b)), x the address and y the other coordinates, with Γ = (‖v‖₁ + c)/2: wherever x ≠ α it
is silent, for every y (the idea of Appendix A), and where x = α it is u σ(⟨v, y⟩ + c), so each neuron is fitted by
itself. The scales are ‖w‖ = √(‖v‖² + bΓ²) and |bias| = |c − bΓ|. Everything is homogeneous in (v, c), so a neuron is
fitted by ascent on (correlation)/(gauge), where the gauge is the factor by which W and B are exceeded.

Section 5 allows any input space, the sample too (`sample_member`). On points whose directions are independent a neuron
can be silent on all but a chosen set: w is then μ·P(heights on the set) − b·P(1), with P the pseudo-inverse of the
distinct points, and scores are heights·μ + b on the set and 0 off it. Sets are made of points whose signs add up to one
sign, so all of a neuron's sum counts.

For m orthogonal points of length R, s neurons at k = 1 reach WR √(s/m) without a bias, which is Conjecture 20 with
constant 1 and B = 0, and √(s/(s − 1)) times that with b = WR/√(m(s − 1)): at s = 2 the conjecture's constant must be
at least 2/(√2 (1 + 1/√m)), which tends to √2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fewfire._cube import cube, cube_index
from fewfire._random import Stream, as_stream
from fewfire._types import AnyArray, Float64Array, IdArray, SignArray
from fewfire._validate import check_integer, check_number, check_signs
from fewfire.networks import TwoLayer
from fewfire.papers import sparse_activations as bounds

SLACK = 1e-9  # weights and scores stay this share inside their constraints, so that rounding cannot leave them
BIASES = 65  # biases tried for each neuron of `sample_member`, from 0 to B
STARTS = 3  # starting points of the ascent for each neuron and sign: along the mean of ζ_i x_i, and two random ones


class Block(NamedTuple):
    """Σ_i ζ_i block(x_i)/m and the weights of 2^b neurons; one that gained nothing has output 0."""

    value: float
    hidden: Float64Array
    bias: Float64Array
    output: Float64Array


@dataclass(frozen=True, eq=False)
class RademacherTable:
    """Lower estimates of the Rademacher complexity of H(n, s, k) for any s and k on one sample."""

    X: SignArray  # (m, n)
    zeta: SignArray  # (draws, m)
    W: float
    B: float
    blocks: list[list[Block]]  # for each draw of ζ the best found of 1, 2, 4, … neurons

    def values(self, s: int, k: int) -> Float64Array:
        """For each draw of ζ the largest correlation found, shape (draws,)."""
        return np.array([copies * block.value for copies, block in self.chosen(s, k)])

    def row(self, s: int, k: int) -> dict[str, Any]:
        """The estimate, eq. (15), its explicit form, Conjecture 20 and the classical bound, as plain numbers."""
        (m, n), (W, B) = self.X.shape, (self.W, self.B)
        return {
            "s": s,
            "k": k,
            **mean_with_error(self.values(s, k)),
            "theorem_19": bounds.rademacher(n, s, k, W, B, m),
            "explicit": bounds.rademacher_explicit(n, s, k, W, B, m),
            "conjecture_20": bounds.rademacher_conjectured(n, s, k, W, B, m),
            "classical": bounds.rademacher_classical(n, s, W, B, m),
        }

    def chosen(self, s: int, k: int) -> list[tuple[int, Block]]:
        """For each draw, how many copies of which block are best."""
        s = check_integer("s", s, 1, remedy="a network has at least one neuron")
        k = check_integer("k", k, 1, s, "no more neurons can fire than there are")
        fits = [[(min(k, s >> b), block) for b, block in enumerate(found) if s >> b] for found in self.blocks]
        return [max(pairs, key=lambda pair: pair[0] * pair[1].value) for pairs in fits]


def mean_with_error(values: Float64Array) -> dict[str, float]:
    """The mean over the draws of ζ and its standard error."""
    error = values.std(ddof=1) / math.sqrt(len(values))
    return {"estimate": float(values.mean()), "standard_error": float(error)}


def rademacher_table(
    X: AnyArray,
    W: float,
    B: float,
    *,
    max_block: int,
    draws: int = 8,
    restarts: int = 4,
    steps: int = 60,
    seed: int | Stream = 0,
) -> RademacherTable:
    """Search blocks of 1, 2, 4, … neurons that correlate with random signs on a sample X of shape (m, n)."""
    signs = check_signs("X", X)
    m, n = signs.shape
    W, B = check_number("W", W, 0.0, open_low=True), check_number("B", B, 0.0)
    sizes = range(check_integer("max_block", max_block, 1, 2**n).bit_length())
    draws = check_integer("draws", draws, 2, remedy="a standard error needs two draws")
    check_integer("restarts", restarts, 1)
    check_integer("steps", steps, 0)
    stream = as_stream(seed, "rademacher")
    zeta = stream.child("zeta").sign_rows(draws, m)
    blocks = []
    for draw, row in enumerate(zeta):
        search = stream.child(f"draw {draw}")
        blocks.append([_fit_block(signs, row, b, W, B, search.child(f"block {b}"), restarts, steps) for b in sizes])
    return RademacherTable(signs, zeta, W, B, blocks)


def _fit_block(
    X: SignArray, zeta: SignArray, b: int, W: float, B: float, stream: Stream, restarts: int, steps: int
) -> Block:
    """The best block of 2^b neurons found for the signs ζ, over random choices of the address coordinates."""
    n = X.shape[1]
    addresses = stream.child("addresses").subsets(restarts if b else 1, n, b)
    found: list[Block] = []
    for restart, address in enumerate(addresses):
        examples = X.astype(np.float64)
        examples[:, address] = 0.0
        groups = _groups(cube_index(X[:, address]), 2**b)
        padded = np.vstack([examples, np.zeros((1, n))])[groups]  # (2^b, largest group, n)
        signs = np.append(zeta, 0).astype(np.float64)[groups]
        starts = _starts(stream.child(f"starts {restart}"), padded, signs, address)
        v, c, gain = _ascend(padded, signs, starts, b, W, B, steps)
        # As weights, a little inside W, B and the silence away from the address.
        gamma = _gamma(v, c, b) * (1 + SLACK)
        hidden, bias, output = v.copy(), c - b * gamma, np.sign(gain)
        hidden[:, address] = gamma[:, None] * cube(b)
        with np.errstate(divide="ignore", invalid="ignore"):
            exceeded = np.maximum(np.linalg.norm(hidden, axis=1) / W, np.where(bias == 0, 0.0, np.abs(bias) / B))
        shrink = (1 - SLACK) / np.maximum(exceeded, 1.0)
        hidden, bias = hidden * shrink[:, None], bias * shrink
        values = np.maximum(X @ hidden.T + bias, 0.0) @ output
        found.append(Block(float(zeta @ values) / len(X), hidden, bias, output))
    return max(found, key=lambda block: block.value)


def _groups(codes: IdArray, count: int) -> IdArray:
    """The rows with each code, shape (count, largest group), padded with the row number past the end."""
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes, minlength=count)
    groups = np.full((count, int(sizes.max())), len(codes), dtype=np.int64)
    groups[np.arange(groups.shape[1]) < sizes[:, None]] = order
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
    indices = np.arange(neurons)
    gain = output[chosen] * best[indices, chosen]
    point = kept[indices, chosen] * (gain != 0)[:, None]
    return point[:, :-1], point[:, -1], gain


def _gauge(theta: Float64Array, b: int, W: float, B: float) -> tuple[Float64Array, Float64Array]:
    """The factor by which (v, c) exceeds W or B, and its gradient at the point divided by that factor."""
    v, c = theta[..., :-1], theta[..., -1]
    gamma = _gamma(v, c, b)
    lengths = np.sqrt(np.einsum("...n,...n->...", v, v) + b * gamma**2)
    bias = c - b * gamma
    by_length = lengths / W
    with np.errstate(divide="ignore", invalid="ignore"):
        by_bias = np.where(bias == 0, 0.0, np.abs(bias) / B)
    unit = np.arange(theta.shape[-1]) == v.shape[-1]
    active = (gamma > 0)[..., None] * 0.5 * np.where(unit, 1.0, np.sign(theta))
    slope_length = np.where(unit, 0.0, theta) + b * gamma[..., None] * active
    slope_length /= np.maximum(lengths, 1e-300)[..., None] * W
    slope_bias = np.sign(bias)[..., None] * (unit - b * active) / max(B, 1e-300)
    larger = by_length >= by_bias
    gauge = np.maximum(np.where(larger, by_length, by_bias), 1e-300)
    return gauge, np.where(larger[..., None], slope_length, slope_bias)


def _gamma(v: Float64Array, c: Float64Array, b: int) -> Float64Array:
    """Γ: the least that silences a neuron away from its address; 0 without an address."""
    return np.asarray((b > 0) * np.maximum(np.abs(v).sum(axis=-1) + c, 0.0) / 2)


def sample_member(X: AnyArray, zeta: AnyArray, s: int, W: float, B: float) -> TwoLayer:
    """A network of s neurons, at most one active on any row of X, with a large Σ_i ζ_i h(x_i)."""
    signs = check_signs("X", X)
    s = check_integer("s", s, 1)
    W, B = check_number("W", W, 0.0, open_low=True), check_number("B", B, 0.0)
    points, place = np.unique(signs, axis=0, return_inverse=True)
    sums = np.bincount(place.ravel(), weights=zeta).astype(np.float64)
    inverse = np.linalg.pinv(points.astype(np.float64))  # (n, points)
    cancel = inverse.sum(axis=1)
    hidden, bias, output = np.zeros((s, signs.shape[1])), np.zeros(s), np.zeros(s)
    for neuron, (chosen, sign) in enumerate(_sets(sums, s)):
        heights = np.where(chosen, np.abs(sums), 0.0)
        w, b = _best_neuron(inverse @ heights, cancel, heights, W, B)
        fires = points @ w + b > 0
        if not (fires & ~chosen).any():  # or points are dependent, and the neuron stays silent
            hidden[neuron], bias[neuron], output[neuron] = w, b, sign
    return TwoLayer(hidden, bias, output)


def sample_row(X: SignArray, s: int, k: int, W: float, B: float, *, draws: int) -> dict[str, Any]:
    """The mean correlation of k copies of such networks of s/k neurons with random signs, next to Conjecture 20."""
    m, n = X.shape
    zeta = Stream(0, "rademacher").child("zeta").sign_rows(draws, m)
    values = np.array([k * float(row @ sample_member(X, row, s // k, W, B)(X)) / m for row in zeta])
    bound = {"explicit": bounds.rademacher_explicit, "conjecture_20": bounds.rademacher_conjectured}
    found = {"n": n, "m": m, "s": s, "k": k, "W": W, "B": B, **mean_with_error(values)}
    return found | {name: value(n, s, k, W, B, m) for name, value in bound.items()}


def _sets(sums: Float64Array, s: int) -> list[tuple[AnyArray, float]]:
    """At most s sets of points of one sign, with shares of each sign's weight, dealt out by size; and their signs."""
    weight = {sign: float(np.sum(np.maximum(sign * sums, 0) ** 2)) for sign in (1.0, -1.0)}
    if s == 1:
        sign = max(weight, key=lambda sign: weight[sign])
        return [(sign * sums > 0, sign)]
    positive = min(max(round(s * weight[1.0] / max(sum(weight.values()), 1e-300)), 1), s - 1)
    found = []
    for sign, count in ((1.0, positive), (-1.0, s - positive)):
        order = np.argsort(-sign * sums, kind="stable")
        order = order[sign * sums[order] > 0]
        for part in range(count):
            chosen = np.zeros(len(sums), dtype=bool)
            chosen[order[part::count]] = True
            if chosen.any():
                found.append((chosen, sign))
    return found


def _best_neuron(
    direction: Float64Array, cancel: Float64Array, heights: Float64Array, W: float, B: float
) -> tuple[Float64Array, float]:
    """The (w, b), w = μ·direction − b·cancel of norm W, for which Σ heights·(μ·heights + b) is largest."""
    square, cross, other = direction @ direction, direction @ cancel, cancel @ cancel
    biases = np.linspace(0.0, B, BIASES)
    with np.errstate(invalid="ignore"):  # a root below 0: there is no such w
        mus = (biases * cross + np.sqrt((biases * cross) ** 2 - square * (biases**2 * other - W * W))) / square
    values = np.where(mus > 0, mus * float(heights @ heights) + biases * float(heights.sum()), 0.0)
    choice = int(values.argmax())
    mu, b = (mus[choice], biases[choice]) if values[choice] > 0 else (0.0, 0.0)
    # Cancel a little more than the bias, so that off the set scores are below 0, and stay inside the scales.
    w = mu * direction - (b + SLACK * (mu * float(heights.max(initial=0.0)) + b)) * cancel
    shrink = (1 - SLACK) * min(1.0, W / max(float(np.linalg.norm(w)), 1e-300))
    return shrink * w, shrink * b

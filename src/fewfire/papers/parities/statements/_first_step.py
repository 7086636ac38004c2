"""The first gradient step of parities, Theorem 2: exact for any number of inputs, and Lemmas 3 to 7 and 12 about it.

At the symmetric start g ≡ 0, so that the hinge loss has slope −y everywhere and the gradient in u_i, b_i, w_i is minus
E[yσ], u_i E[yσ'], u_i E[yσ'x], with σ = ReLU6 and σ' = 1[0 < · < 6] at ⟨w_i, x⟩ + b. With η₁ = 1 and λ₁ = ½ the step
leaves u_i⁽¹⁾ = E[yσ] and w_i⁽¹⁾ = u_i⁽⁰⁾ E[yσ'x] (both are printed with a minus).

D_A is half D⁽¹⁾, uniform, and half D⁽²⁾, in which the bits of A are all equal. A weight is −1, 0 or 1, so a neuron sees
A only through how many bits of each group of equal weights are +1, and the other inputs only through S, the sum of |J|
independent signs: all of its expectations are short sums, and J may be as large as one likes.

Inputs are ±1 here and a neuron is σ(⟨w, x⟩/√n + b): where the paper's E[yσ'x] has x = ±1/√n, divide `weights` by √n.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb, exp, lgamma, log, sqrt
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from fewfire._errors import invalid
from fewfire._types import AnyArray, Float64Array
from fewfire._validate import check_choice, check_integer, check_number, check_support

Half: TypeAlias = Literal["both", "uniform", "correlated"]
"""D_A, or its part D⁽¹⁾ or D⁽²⁾ alone."""

CEILING = 6.0


class FirstStep(NamedTuple):
    """Expectations per neuron: E[yσ'x] of shape (neurons, n), E[yσ'] and E[yσ] of shape (neurons,), for x = ±1."""

    weights: Float64Array
    bias: Float64Array
    output: Float64Array


def first_step(signs: AnyArray, support: Sequence[int], bias: float, half: Half = "both") -> FirstStep:
    """E[yσ'x], E[yσ'] and E[yσ] on D_A for neurons σ(⟨w, x⟩/√n + b), exactly.

    Parameters
    ----------
    signs : array of shape (neurons, n)
        The weights w, each −1, 0 or 1.
    support : sequence of int
        A.
    bias : float
        b, the same for all neurons.
    half : "both", "uniform" or "correlated"

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> import numpy as np
    >>> neuron = np.ones((1, 11))
    >>> step = parities.first_step(neuron, [0, 1, 2], bias=0.1)
    >>> step.weights.shape, step.weights[0, :4].round(3)
    ((1, 11), array([0.25, 0.25, 0.25, 0.  ]))
    """
    signs, members = _check_signs(signs, support)
    check_choice("half", half, get_args(Half))
    n, bias = signs.shape[1], check_number("bias", bias)
    weights = np.zeros(signs.shape)
    inside = signs[:, members]
    outside = signs.copy()
    outside[:, members] = 0
    # Bits of A with weight −1, 0, 1 and inputs off A with a weight, shape (neurons, 4).
    counts = [np.count_nonzero(inside == value, axis=1) for value in (-1, 0, 1)]
    groups = np.stack([*counts, np.count_nonzero(outside, axis=1)], axis=1)
    kinds, of_neuron = np.unique(groups, axis=0, return_inverse=True)
    table = np.array([_expectations(n, tuple(kind), bias, half) for kind in kinds.tolist()])
    found = table[of_neuron.reshape(-1)]
    # Columns 0 to 2: bits of A with weight −1, 0, 1. Column 3: inputs outside A, times their sign.
    weights[:, members] = np.take_along_axis(found[:, :3], (inside + 1).astype(np.int64), axis=1)
    weights += outside * found[:, 3:4]
    return FirstStep(weights, found[:, 4], found[:, 5])


def firing_share(signs: AnyArray, support: Sequence[int], bias: float) -> Float64Array:
    """φ(w, b) of Lemma 6, shape (neurons,): the probability that a neuron passes its gradient whatever the bits of A.

    That is Pr[k/√n < S/√n + b < 6 − k/√n].

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> import numpy as np
    >>> neuron = np.ones((1, 11))
    >>> parities.firing_share(neuron, [0, 1, 2], bias=0.1)
    array([0.14453125])
    """
    signs, members = _check_signs(signs, support)
    n, k = signs.shape[1], len(members)
    free = np.count_nonzero(signs, axis=1) - np.count_nonzero(signs[:, members], axis=1)
    shares = {}
    for size in np.unique(free):
        total = np.arange(-size, size + 1, 2)
        passes = (total > k - bias * sqrt(n)) & (total < (CEILING - bias) * sqrt(n) - k)
        shares[size] = _fair_coins(int(size)) @ passes
    return np.array([shares[size] for size in free])


def good_start(signs: AnyArray, support: Sequence[int], bias: float) -> AnyArray:
    """Which neurons are good, shape (neurons,), by the three conditions in the proof of Lemma 7.

    The weights on A add up to 0; at least a third of the other inputs have a weight; and on the uniform half the
    gradient of the bias and off A is within the bound of Lemma 4 at C = 14√k.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> import numpy as np
    >>> signs = np.random.default_rng(0).choice([-1, 1], size=(1000, 101))
    >>> int(parities.good_start(signs, range(8), bias=0.1).sum())
    250
    """
    signs, members = _check_signs(signs, support)
    n, k = signs.shape[1], len(members)
    free = np.count_nonzero(signs, axis=1) - np.count_nonzero(signs[:, members], axis=1)
    uniform = first_step(signs, support, bias, "uniform")
    uniform.weights[:, members] = 0.0
    largest = np.maximum(np.abs(uniform.weights).max(axis=1), np.abs(uniform.bias))
    balanced = signs[:, members].sum(axis=1) == 0
    return np.asarray(balanced & (free >= (n - k) / 3) & (largest <= lemma_4(n, k, 14 * sqrt(k))))


def lemma_3(n: int, k: int, c: float) -> float:
    """c/√C(n − 1, k): |E[x_j f σ']| for j off A, and |E[f σ']|, on uniform inputs, with probability 1 − 1/c over w.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> parities.lemma_3(n=30, k=3, c=10.0) > parities.lemma_3(n=300, k=3, c=10.0)
    True
    """
    n = check_integer("n", n, 2)
    k = check_integer("k", k, 1, n - 1)
    c = check_number("c", c, 0.0, open_low=True)
    # By the logarithm: C(n − 1, k) itself may be past the floats.
    return c * exp(-(lgamma(n) - lgamma(k + 1) - lgamma(n - k)) / 2)


def lemma_4(n: int, k: int, C: float) -> float:
    """C(n − 1)/√C(n − 1, k): the same for all j off A and the bias at once, with probability 1 − 1/C.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> round(parities.lemma_4(n=100, k=7, C=10.0), 4)
    0.0081
    """
    return lemma_3(n, k, check_number("C", C, 0.0, open_low=True) * (n - 1))


def lemma_6(k: int, free: int) -> float:
    """2k·C(|J|, ⌊|J|/2⌋)/2^|J| ≤ 1.6 k/√|J|: how far E[hσ'] is from E[h]·φ for h = ±1 of the bits of A.

    The constant is made explicit. The two depend on the bits of A only where S is within k of an end of the window,
    in two strips of k lattice points each; printed, the strip beyond 6 is left out.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> round(parities.lemma_6(k=3, free=97), 3)
    0.482
    """
    k, free = check_integer("k", k, 1), check_integer("free", free, 0)
    peak = exp(lgamma(free + 1) - lgamma(free // 2 + 1) - lgamma(free - free // 2 + 1) - free * log(2))
    return 2 * k * peak


def lemma_12(n: int, k: int) -> float:
    """k/√n: |u⁽¹⁾| after the first step.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> parities.lemma_12(n=100, k=3)
    0.3
    """
    return check_integer("k", k, 1) / sqrt(check_integer("n", n, 1))


def balanced_probability(k: int) -> float:
    """P[Σ_{j∈A} w_j = 0] exactly, a central trinomial coefficient over 3^k; Lemma 7 bounds it by 1/(6√k).

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> round(parities.balanced_probability(4), 4)
    0.2346
    """
    k = check_integer("k", k, 1)
    return float(sum(comb(k, 2 * j) * comb(2 * j, j) for j in range(k // 2 + 1)) / 3**k)


def good_neuron_bound(k: int) -> float:
    """Lemma 7: a neuron is good after the first step with probability at least 1/(14√k), for 7 ≤ k ≤ ⁴√n/(2√2).

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> round(parities.good_neuron_bound(7), 4)
    0.027
    """
    return 1 / (14 * sqrt(check_integer("k", k, 1)))


def bias_noise(n: int, k: int, examples: int, share: float = 0.5) -> float:
    """n/k·√(share/(3m)): how far a sample of m moves a good neuron's bias, root mean square over u ~ U(±n/k).

    The bias moves by u times the mean of yσ' over the sample, which is 0 in expectation and has variance share/m. It
    should be small compared with b = 1/(8k): m well above 64n²·share/3.

    Examples
    --------
    >>> from fewfire.papers import parities
    >>> round(parities.bias_noise(n=100, k=7, examples=10_000), 4)
    0.0583
    """
    n, k, m = check_integer("n", n, 1), check_integer("k", k, 1), check_integer("examples", examples, 1)
    return n / k * sqrt(check_number("share", share, 0.0, 1.0) / (3 * m))


def _check_signs(signs: AnyArray, support: Sequence[int]) -> tuple[AnyArray, list[int]]:
    signs = np.asarray(signs)
    if signs.ndim != 2 or not np.isin(signs, (-1, 0, 1)).all():
        rule = "must be a table of −1, 0 and 1 of shape (neurons, n)"
        raise invalid("signs", rule, f"shape {signs.shape}", "pass √n times the weights of init.symmetric, rounded")
    return signs.astype(np.float64), list(check_support("support", support, signs.shape[1]))


@lru_cache(maxsize=4096)
def _expectations(n: int, kind: tuple[int, ...], bias: float, half: Half) -> tuple[float, ...]:
    """E[yσ'x_j] for j with weight −1, 0, 1 in A, then the same off A times its sign, E[yσ'] and E[yσ]."""
    sizes, free = np.array(kind[:3]), kind[3]
    # How many bits of each group are +1, over all combinations: shape (patterns, 3).
    ups = np.stack([grid.ravel() for grid in np.meshgrid(*(np.arange(size + 1) for size in sizes))], axis=1)
    uniform = np.prod([_fair_coins(kind[i])[ups[:, i]] for i in range(3)], axis=0)
    correlated = 0.5 * ((ups == sizes).all(axis=1) * 1.0 + (ups == 0).all(axis=1))
    mass = {"uniform": uniform, "correlated": correlated, "both": (uniform + correlated) / 2}[half]
    signed = mass * (-1.0) ** (sizes.sum() - ups.sum(axis=1))
    sums = 2 * ups - sizes
    total = np.arange(-free, free + 1, 2)
    probability = _fair_coins(free)
    score = ((sums[:, 2] - sums[:, 0])[:, None] + total) / sqrt(n) + bias
    fires = (score > 0) & (score < CEILING)
    passed = signed * (fires @ probability)
    inside = passed @ (sums / np.maximum(sizes, 1))
    off = signed @ (fires @ (probability * total)) / max(free, 1)
    value = signed @ (np.clip(score, 0, CEILING) @ probability)
    return (*inside.tolist(), float(off), float(passed.sum()), float(value))


@lru_cache(maxsize=1024)
def _fair_coins(count: int) -> Float64Array:
    """The probability of 0, 1, … `count` heads."""
    from scipy.stats import binom  # half a second to load, which every worker of a sweep would pay

    probabilities = np.asarray(binom.pmf(np.arange(count + 1), count, 0.5))
    probabilities.flags.writeable = False
    return probabilities

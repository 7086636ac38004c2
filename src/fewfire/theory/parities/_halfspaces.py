"""What linear classifiers reach on D_A at best: the reference for linear rivals.

Half of D_A has equal support bits, which a half-space gets right; on the uniform half it can correlate with the parity
only as far as a threshold function does. Off the support bits are independent of the label, so weights there do not
help.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, islice

import numpy as np

from fewfire._cube import cube
from fewfire._errors import invalid
from fewfire._validate import check_integer


def halfspace_accuracy(k: int, largest_weight: int = 5) -> float:
    """The highest accuracy on D_A of sign(⟨w, x_A⟩ − t) with integer weights |w_j| ≤ largest_weight.

    0.875 for k = 3, 0.84375 for k = 5, 0.828125 for k = 7. Every threshold function of five bits or fewer has weights
    of at most 5, so for k ≤ 5 this is the best half-space of all; for larger k it is found among small weights.
    """
    k = check_integer("k", k, 3, 9, "the half-spaces of more bits are too many to try")
    largest_weight = check_integer("largest_weight", largest_weight, 1)
    if k % 2 == 0:
        raise invalid("k", "must be odd", k, "parities treats odd k only")
    X = cube(k).astype(np.int64)
    mass = np.full(2**k, 2.0 ** -(k + 1))
    mass[[0, -1]] += 0.25
    signed = mass * X.prod(axis=1)
    best = 0.0
    # Mass and label do not change when coordinates are permuted, so ascending weights suffice.
    candidates = combinations_with_replacement(range(-largest_weight, largest_weight + 1), k)
    while block := list(islice(candidates, 2000)):
        scores = X @ np.array(block).T
        order = np.argsort(scores, axis=0)
        ranked = np.take_along_axis(scores, order, axis=0)
        below = np.cumsum(signed[order], axis=0)
        # A threshold fits only between different scores; the label sum is 0 by symmetry.
        correlation = np.where(ranked[1:] != ranked[:-1], np.abs(2 * below[:-1]), 0.0)
        best = max(best, float(correlation.max()))
    return (1 + best) / 2

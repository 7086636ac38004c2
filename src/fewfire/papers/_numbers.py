"""Arithmetic of bounds: sample counts past the floats become infinite, and their log10 stays finite."""

from __future__ import annotations

import math

from fewfire._validate import check_integer, check_number


def power(base: float, exponent: float) -> float:
    """base**exponent for base ≥ 0, infinite instead of an OverflowError."""
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf


def product(*factors: float) -> float:
    """The product of non-negative factors; 0 when one of them is 0, even next to an infinite one."""
    return 0.0 if 0.0 in factors else math.prod(map(float, factors))


def log10(value: float) -> float:
    """The decimal logarithm of a non-negative number; −∞ at 0."""
    return math.log10(value) if value > 0 else -math.inf


def check_class(n: int, s: int, k: int, W: float, B: float) -> None:
    """The parameters of the class H(n, s, k) with scales W and B."""
    check_integer("n", n, 1)
    check_integer("s", s, 1)
    check_integer("k", k, 1, s, "no more neurons can fire than there are")
    check_number("W", W, 0.0)
    check_number("B", B, 0.0)


def check_accuracy(epsilon: float, delta: float | None = None) -> None:
    """The accuracy and the failure probability of a PAC learner."""
    check_number("epsilon", epsilon, 0.0, open_low=True)
    if delta is not None:
        check_number("delta", delta, 0.0, 1.0, open_low=True, open_high=True)

"""Preactivations at the start of sublinear, Definition 3.1: ⟨w, x⟩ + b is N(0, (‖x‖² + 1)/m), independent by neuron."""

from __future__ import annotations

import math

from fewfire._validate import check_integer, check_number


def deviation(width: int, input_norm: float) -> float:
    """√((‖x‖² + 1)/m), the standard deviation of one preactivation."""
    width = check_integer("width", width, 1)
    norm = check_number("input_norm", input_norm, 0.0)
    return math.sqrt((norm**2 + 1) / width)


def tail(z: float) -> float:
    """1 − Φ(z), with all digits of a small tail."""
    return math.erfc(z / math.sqrt(2)) / 2


def between(low: float, high: float) -> float:
    """Φ(high) − Φ(low) for low ≤ high, taken on the side where no digits cancel."""
    return tail(low) - tail(high) if low + high > 0 else tail(-high) - tail(-low)

"""Neurons that can change side of the threshold while weights move by at most R (sublinear, Claims 5.2 and 5.16).

A neuron with ‖Δw‖ ≤ R can change on x when its start preactivation z has |z − τ| ≤ R‖x‖. Since z is N(0, (‖x‖² + 1)/m)
the probability is exact, and its density at 0 gives the bound R‖x‖·√(2m/(π(‖x‖² + 1))) = R√(m/π) for ‖x‖ = 1: the
constant that the paper leaves open. Claim 5.16 has R = m^(−15/24): at most m^(−1/8)/√π a neuron and example,
n·m^(7/8)/√π on average over m neurons and n examples. That is below m only for m > (n/√π)⁸.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fewfire._validate import check_integer, check_number
from fewfire.theory.sublinear._gaussian import between, deviation, tail


@dataclass(frozen=True)
class FlipBound:
    """Claim 5.16 with its constants.

    Attributes
    ----------
    per_neuron : float
        Probability that one neuron can change on one of the n examples, at most 1.
    total : float
        Number of neurons that can change on one of the examples, at most the width: twice the bound on the mean.
    failure : float
        Probability that more than `total` can, for fixed examples (Chernoff's bound).
    """

    per_neuron: float
    total: float
    failure: float


def claim_radius(width: int) -> float:
    """m^(−15/24), the distance ‖Δw‖ of Claim 5.16."""
    return float(check_integer("width", width, 1) ** (-15 / 24))


def flip_probability(width: int, radius: float, threshold: float = 0.0, input_norm: float = 1.0) -> float:
    """The exact probability Pr[|z − τ| ≤ R‖x‖] that a neuron can change on one input while it moves by at most R."""
    spread, reach, tau = _scale(width, radius, threshold, input_norm)
    return between((tau - reach) / spread, (tau + reach) / spread)


def flip_probability_bound(width: int, radius: float, input_norm: float = 1.0) -> float:
    """Claim 3.18 with its constant: Pr[|z − τ| ≤ R‖x‖] ≤ R‖x‖·√(2m/(π(‖x‖² + 1))) for every τ, at most 1."""
    spread, reach, _ = _scale(width, radius, 0.0, input_norm)
    return min(1.0, reach / spread * math.sqrt(2 / math.pi))


def expected_flips(width: int, radius: float, threshold: float = 0.0, input_norm: float = 1.0) -> float:
    """The exact mean number of neurons that can change on one input: m·Pr[|z − τ| ≤ R‖x‖]."""
    return width * flip_probability(width, radius, threshold, input_norm)


def reachable_active(width: int, radius: float, threshold: float, input_norm: float = 1.0) -> float:
    """The exact mean number of neurons that fire on one input after some move by at most R: m·Pr[z > τ − R‖x‖].

    Remark 5.17 without its bounds: no training that stays within R of the start can have more, on average.
    """
    spread, reach, tau = _scale(width, radius, threshold, input_norm)
    return width * tail((tau - reach) / spread)


def claim_5_16(n: int, width: int, radius: float | None = None, input_norm: float = 1.0) -> FlipBound:
    """Claim 5.16 with explicit constants: how many of m neurons can change on one of n fixed examples.

    Parameters
    ----------
    n : int
        Examples.
    width : int
        m.
    radius : float
        Largest ‖Δw‖; m^(−15/24) unless given.
    input_norm : float
        ‖x‖ of the examples.
    """
    n = check_integer("n", n, 1)
    distance = claim_radius(width) if radius is None else radius
    mean = n * width * flip_probability_bound(width, distance, input_norm)
    return FlipBound(min(1.0, mean / width), min(float(width), 2 * mean), math.exp(-mean / 3))


def _scale(width: int, radius: float, threshold: float, input_norm: float) -> tuple[float, float, float]:
    """The deviation of z, the reach R‖x‖ and τ."""
    spread = deviation(width, input_norm)
    reach = check_number("radius", radius, 0.0) * input_norm
    return spread, reach, check_number("threshold", threshold, 0.0)

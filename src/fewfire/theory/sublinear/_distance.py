"""How far network and pseudo-network can be apart (sublinear, Claims 5.5 to 5.7, Lemma 5.8, Theorem 5.1).

With outputs ±m^(−1/5) and ‖w_r − w_{r,0}‖ ≤ R, at most F neurons change on an input of norm 1, each worth R in A − g
and R + τ in C (the paper drops the τ). So |A − g| ≤ m^(−1/5)·R·F and |C| ≤ m^(−1/5)·(R + τ)·F; |B| is a sum of
random signs.

Theorem 5.1 takes R = K/m^(3/5) and says m^(−1/5)·R = K/m, which is K/m^(4/5): with F of order K·m^(9/10) the terms
grow as K²·m^(1/10) where K²·m^(−1/10) is printed. For R = K/m^(4/5), the radius that Lemma 4.7 in fact reaches, F is
of order K·m^(7/10), the terms of order K²·m^(−3/10), and the theorem holds with K²·m^(−3/10) + m^(−1/10).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fewfire._validate import check_integer, check_number
from fewfire.theory._numbers import check_constant, power
from fewfire.theory.sublinear._activity import binomial_quantile
from fewfire.theory.sublinear._flips import flip_probability
from fewfire.theory.sublinear._gaussian import deviation


@dataclass(frozen=True)
class DistanceBound:
    """Bounds on the three terms of |f − g| at one input, for every network within the radius.

    Attributes
    ----------
    gradient_term, start_term, flip_term : float
        On |A − g|, |B| and |C|.
    flips : int
        On the neurons that can change side.
    """

    gradient_term: float
    start_term: float
    flip_term: float
    flips: int

    @property
    def total(self) -> float:
        """The bound on |f − g|."""
        return self.gradient_term + self.start_term + self.flip_term


def distance_bound(
    width: int, radius: float, threshold: float = 0.0, failure: float = 0.01, input_norm: float = 1.0
) -> DistanceBound:
    """Lemma 5.8 with every constant, for one fixed input and all networks with ‖w_r − w_{r,0}‖ ≤ radius at once.

    Parameters
    ----------
    width : int
        m, below 2^31.
    radius : float
        R.
    threshold : float
        τ.
    failure : float
        Probability over the start that the bound fails, at most; a third each for F, for Σ z² (Lemma 3.14) and for the
        signs of the outputs (Hoeffding).
    input_norm : float
        ‖x‖.
    """
    third = check_number("failure", failure, 0.0, 1.0, open_low=True, open_high=True) / 3
    flips = binomial_quantile(width, flip_probability(width, radius, threshold, input_norm), 1 - third)
    log = math.log(1 / third)
    squares = deviation(width, input_norm) ** 2 * (width + 2 * math.sqrt(width * log) + 2 * log)
    output, reach = width**-0.2, radius * input_norm
    return DistanceBound(
        gradient_term=output * reach * flips,
        start_term=output * math.sqrt(2 * squares * (log + math.log(2))),
        flip_term=output * (reach + threshold) * flips,
        flips=flips,
    )


def theorem_5_1(width: int, K: float, exponent: float = 0.8, constant: float = 1.0) -> float:
    """Theorem 5.1, corrected: constant·(K²·m^(13/10 − 2e) + m^(−1/10)) for weights within K/m^e of the start.

    e = 4/5 gives K²·m^(−3/10) + m^(−1/10), which vanishes; the printed e = 3/5 gives K²·m^(1/10), which does not.
    τ = O(m^(−e)) is taken for granted, as in the paper; `distance_bound` has the threshold in it.
    """
    width, K = check_integer("width", width, 1), check_number("K", K, 0.0)
    exponent = check_number("exponent", exponent, 0.0)
    check_constant(constant)
    return constant * (K**2 * power(width, 1.3 - 2 * exponent) + power(width, -0.1))


def theorem_5_1_printed(width: int, K: float, constant: float = 1.0) -> float:
    """Theorem 5.1 as printed: constant·K²·m^(−1/10) for weights within K/m^(3/5), which no constant makes true."""
    check_constant(constant)
    return constant * check_number("K", K, 0.0) ** 2 * power(check_integer("width", width, 1), -0.1)

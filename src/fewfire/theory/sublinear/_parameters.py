"""Theorems 4.8 and 5.12 of sublinear: width, step size, iterations and radius for a robust loss of ε.

The numbers are astronomical (a width of 10^(thousands) for γ = 0.3), so every field is a log₁₀. Constants that the
paper leaves open are 1.

As printed the setting contradicts itself. Per-neuron gradients of norm m^(−1/5) give ‖∇‖_F² ≤ m^(3/5), not m^(1/5), and
n·m^(7/8)·m^(−1/5) is n·m^(27/40), not n·m^(27/50). With the printed η = ε·m^(−1/5) the weights may travel
ηT·m^(−1/5) = (K²/ε)·m^(−2/5), never within the m^(−15/24) that Lemma 5.14 asks for.

Corrected: radius K/m^(4/5) and η = ε·m^(−3/5), so that the regret is ηm^(3/5)/2 + K²m^(−3/5)/(2ηT) = ε and the travel
at most K₁/m^(4/5) with K₁ = max(K, K²/ε). Then m^(7/40) ≥ K₁ keeps the travel within m^(−15/24), m ≥ (2nK₁/ε)⁸ the
coupling error 2K₁m^(−4/5)·n·m^(27/40) within ε, and m ≥ (K₁²/ε)^(10/3), ε^(−10) the distance of Theorem 5.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fewfire._validate import check_integer, check_number
from fewfire.theory._numbers import log10
from fewfire.theory.sublinear._complexity import log10_complexity, log10_complexity_at
from fewfire.theory.sublinear._robust_target import robust_degree


@dataclass(frozen=True)
class TheoremParameters:
    """The theorem's setting, as decimal logarithms.

    Attributes
    ----------
    log10_K : float
        K.
    log10_width : float
        m: the largest of `log10_widths`.
    log10_step_size, log10_iterations : float
        η and T.
    log10_radius : float
        ‖W* − W_0‖, how far from the start a good network lies.
    log10_travel : float
        ηT·m^(−1/5), how far training may go.
    log10_travel_allowed : float
        m^(−15/24), how far Lemma 5.14 lets it go.
    log10_widths : dict
        What each condition asks of the width.
    degree : float
        M of Lemma 4.2.
    """

    log10_K: float
    log10_width: float
    log10_step_size: float
    log10_iterations: float
    log10_radius: float
    log10_travel: float
    log10_travel_allowed: float
    log10_widths: dict[str, float]
    degree: float

    @property
    def consistent(self) -> bool:
        """Whether the travel stays within what is allowed; rounding aside."""
        return self.log10_travel <= self.log10_travel_allowed + 1e-9 * abs(self.log10_width)


def theorem_parameters(
    n: int, d: int, gamma: float, epsilon: float, K: float | None = None, *, printed: bool = False
) -> TheoremParameters:
    """The setting of Theorems 4.8 and 5.12, corrected unless `printed` asks for the paper's own exponents.

    Parameters
    ----------
    n, d : int
        Examples and inputs.
    gamma, epsilon : float
        γ of the separation and ε of the loss.
    K : float
        Scale of the radius; 2n·𝓒(q, ε₃), the proof's own, unless given. A K that is given also leaves out the width
        that Lemma 4.7 asks for, so that Theorem 5.12 stands alone.
    """
    n, d = check_integer("n", n, 1), check_integer("d", d, 2)
    degree = robust_degree(n, gamma, epsilon)
    widths: dict[str, float] = {}
    if K is None:
        single, double = log10_complexity(n, gamma, epsilon), log10_complexity_at(n, gamma, epsilon)
        scale = math.log10(2 * n) + double
        widths["Lemma 4.7, n·d·𝓒²/ε₃²"] = math.log10(n * d) + 2 * (double + single)
        widths["Theorem 4.8, n²"] = 2 * math.log10(n)
    else:
        scale = log10(check_number("K", K, 0.0, open_low=True))
    small = math.log10(epsilon)
    iterations = 2 * scale - 2 * small
    widths |= _printed(n, small, scale) if printed else _corrected(n, small, scale)
    width = max(widths.values())
    step = small - (0.2 if printed else 0.6) * width
    return TheoremParameters(
        log10_K=scale,
        log10_width=width,
        log10_step_size=step,
        log10_iterations=iterations,
        log10_radius=scale - (0.6 if printed else 0.8) * width,
        log10_travel=step + iterations - 0.2 * width,
        log10_travel_allowed=-15 / 24 * width,
        log10_widths=widths,
        degree=degree,
    )


def _printed(n: int, epsilon: float, K: float) -> dict[str, float]:
    return {
        "Theorem 5.12, n^(300/31)": 300 / 31 * math.log10(n),
        "Theorem 5.12, (Kn/ε)^(24/15)": 24 / 15 * (K + math.log10(n) - epsilon),
        "Theorem 5.12, (K²/ε)^(300/29)": 300 / 29 * (2 * K - epsilon),
    }


def _corrected(n: int, epsilon: float, K: float) -> dict[str, float]:
    reach = max(K, 2 * K - epsilon)
    return {
        "travel, K₁^(40/7)": 40 / 7 * reach,
        "coupling, (2nK₁/ε)⁸": 8 * (math.log10(2 * n) + reach - epsilon),
        "Theorem 5.1, (K₁²/ε)^(10/3)": 10 / 3 * (2 * reach - epsilon),
        "Theorem 5.1, ε^(−10)": -10 * epsilon,
    }

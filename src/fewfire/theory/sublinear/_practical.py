"""Step sizes for widths that exist: the regret bound of Theorem 5.12 (sublinear), counts in place of exponents.

This is a practical setting, not the theorem's. Subgradient descent on the pseudo-network, which is linear in the
weights, has average loss at most that of any W* within ‖W* − W_0‖_F ≤ D plus ηG²/2 + D²/(2ηT), where ‖∇‖_F ≤ G; with
outputs ±m^(−1/5), a 1-Lipschitz loss and inputs of norm ‖x‖, G² = m^(−2/5)·‖x‖²·(neurons active on an example). That
part is a proof; that the network itself follows its pseudo-network has to be measured (`pseudo_distance`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fewfire._validate import check_integer, check_number


@dataclass(frozen=True)
class PracticalParameters:
    """A step size and what it gives.

    Attributes
    ----------
    step_size : float
        η = D/(G√T), the best for the bound.
    excess : float
        DG/√T: the average loss of the pseudo-network above that of the best one within the radius, at most.
    travel : float
        ηT·m^(−1/5)·‖x‖: how far one neuron's weights may go.
    """

    step_size: float
    excess: float
    travel: float


def practical_parameters(
    width: int, active: float, iterations: int, radius: float, input_norm: float = 1.0
) -> PracticalParameters:
    """The step size of the regret bound for a given width and budget: practical, not the theorem's.

    Parameters
    ----------
    width : int
        m.
    active : float
        The most neurons active on one example.
    iterations : int
        T.
    radius : float
        ‖w*_r − w_{r,0}‖ of the network to compete with, so that D = √m·radius.
    input_norm : float
        ‖x‖.
    """
    width, iterations = check_integer("width", width, 1), check_integer("iterations", iterations, 1)
    active = check_number("active", active, 0.0, width, open_low=True)
    radius = check_number("radius", radius, 0.0, open_low=True)
    norm = check_number("input_norm", input_norm, 0.0, open_low=True)
    gradient, distance = math.sqrt(active) * width**-0.2 * norm, math.sqrt(width) * radius
    step = distance / (gradient * math.sqrt(iterations))
    return PracticalParameters(
        step, regret(step, iterations, gradient, distance), step * iterations * width**-0.2 * norm
    )


def regret(step_size: float, iterations: int, gradient: float, distance: float) -> float:
    """ηG²/2 + D²/(2ηT), eq. (19): the average excess of T subgradient steps with ‖∇‖ ≤ G towards a point D away."""
    step = check_number("step_size", step_size, 0.0, open_low=True)
    iterations = check_integer("iterations", iterations, 1)
    gradient, distance = check_number("gradient", gradient, 0.0), check_number("distance", distance, 0.0)
    return step * gradient**2 / 2 + distance**2 / (2 * step * iterations)

"""γ-separability as arithmetic (sublinear, Definition 3.7): γ = ε(ε − 2ρ) for separation ε and adversary radius ρ.

`fewfire.problems` measures it on points (`separation`, `gamma`, `is_separable`); here are the inverses, and the two
bands of inner products that the step polynomial has to tell apart.
"""

from __future__ import annotations

import math

from fewfire._validate import check_number


def largest_radius(separation: float, gamma: float) -> float:
    """The largest ρ for which points at distance `separation` are γ-separable: ρ = (ε − γ/ε)/2."""
    separation = check_number("separation", separation, 0.0, open_low=True)
    remedy = "γ is at most the separation squared, reached at radius 0"
    gamma = check_number("gamma", gamma, 0.0, separation**2, open_low=True, remedy=remedy)
    return (separation - gamma / separation) / 2


def least_separation(gamma: float, rho: float) -> float:
    """The least distance between points that makes them γ-separable: ε = ρ + √(ρ² + γ)."""
    gamma = check_number("gamma", gamma, 0.0, open_low=True)
    rho = check_number("rho", rho, 0.0)
    return rho + math.sqrt(rho**2 + gamma)


def inner_product_bands(gamma: float, rho: float) -> tuple[float, float]:
    """The two bands of inner products on the unit sphere end at 1 − (ε − ρ)²/2 and begin at 1 − ρ²/2.

    With x̃_j within ρ of x_j, no ⟨x_i, x̃_j⟩ with i ≠ j is above the first and no ⟨x_j, x̃_j⟩ below the second; they
    are γ/2 apart.
    """
    other = math.sqrt(check_number("rho", rho, 0.0) ** 2 + check_number("gamma", gamma, 0.0, open_low=True))
    return 1 - other**2 / 2, 1 - rho**2 / 2

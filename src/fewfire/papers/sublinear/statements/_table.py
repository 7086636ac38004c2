"""What the shifted ReLU saves in adversarial training, as a table: exact values next to the bounds of the paper."""

from __future__ import annotations

from typing import NamedTuple

from fewfire.networks.init import activity_threshold
from fewfire.papers import sublinear as theory


class BoundRow(NamedTuple):
    """One line of the table."""

    quantity: str
    value: str
    bound: str
    statement: str


def compare_saving(
    width: int,
    n: int,
    d: int,
    activity: float,
    scale: float,
    gamma: float,
    rho: float,
    epsilon: float,
    attack_steps: int,
) -> list[BoundRow]:
    """All rows; `activity` is the share of the neurons that fires at the start."""
    return [
        *activity_rows(width, activity_threshold(width, activity * width), n, scale),
        *fit_rows(n, gamma, rho, epsilon),
        *cost_rows(width, n, d, activity * width, attack_steps),
        *theorem_rows(n, d, gamma, epsilon, scale),
    ]


def activity_rows(width: int, threshold: float, n: int, scale: float) -> list[BoundRow]:
    """Neurons that fire at the start, those that can change side, and the distance of the pseudo-network."""
    low, high = theory.active_interval(width, threshold)
    claimed = theory.lemma_threshold(width, 1.0)
    rows = [
        BoundRow(
            "active on an input at the start",
            f"{theory.expected_active(width, threshold):.0f} [{low}, {high}]",
            number(theory.activity_bound(width, threshold / claimed)),
            f"Lemma 5.15, K = {threshold / claimed:.3g}",
        )
    ]
    for label, radius in (("m^(−15/24)", theory.claim_radius(width)), ("K/m^(4/5)", scale * width**-0.8)):
        bound = width * theory.flip_probability_bound(width, radius)
        flips = width * theory.flip_probability(width, radius, threshold)
        rows.append(BoundRow(f"can change, ‖Δw‖ ≤ {label}", number(flips), number(bound), "Claim 3.18, one input"))
        total = theory.claim_5_16(n, width, radius).total
        rows.append(BoundRow("", "", number(total), f"Claim 5.16, any of {n} inputs"))
        reached = theory.reachable_active(width, radius, threshold)
        rows.append(BoundRow("can be active then", number(reached), "", "Remark 5.17"))
    distance = theory.distance_bound(width, scale * width**-0.8, threshold)
    shape = f"Theorem 5.1: {theory.theorem_5_1(width, scale):.3g}"
    rows.append(BoundRow("|f − g| at an input, 99%", "", number(distance.total), f"Lemma 5.8; {shape}"))
    return rows


def fit_rows(n: int, gamma: float, rho: float, epsilon: float) -> list[BoundRow]:
    """The polynomial of the robust fit: its degree and the size of its coefficients."""
    most, error = theory.robust_degree(n, gamma, epsilon), epsilon / (3 * n)
    degree = size = "not built"
    if theory.step_is_buildable(gamma, error, rho):
        step = theory.step_polynomial(gamma, error, rho)
        degree, size = str(step.degree), f"2^{step.log2_coefficients():.0f}"
    return [
        BoundRow("degree of the robust fit", degree, number(most), "Lemma 4.2"),
        BoundRow("sum of its coefficients", size, f"2^{6 * most:.0f}/γ", "Claim 4.3"),
    ]


def cost_rows(width: int, n: int, d: int, active: float, attack_steps: int) -> list[BoundRow]:
    """Multiply-adds of one iteration, term by term, and the dense count."""
    cost = theory.iteration_cost(width, n, d, active, attack_steps)
    terms = ("query", "forward", "backward", "update")
    rows = [BoundRow(f"multiply-adds, {name}", number(getattr(cost, name)), "", "Lemma 6.3") for name in terms]
    rows.append(BoundRow("multiply-adds, attack", number(cost.attack), "", f"{attack_steps} steps, not in the paper"))
    dense = f"dense: {number(cost.dense)}, {cost.speedup:.3g} times"
    return [*rows, BoundRow("multiply-adds, all", number(cost.total), "", dense)]


def theorem_rows(n: int, d: int, gamma: float, epsilon: float, scale: float) -> list[BoundRow]:
    """What the theorems ask for: with the proof's own K, and with the K given."""
    rows = []
    for label, K in (("the proof's K", None), (f"K = {scale:g}", scale)):
        asked = theory.theorem_parameters(n, d, gamma, epsilon, K)
        rows.append(BoundRow(f"width asked, {label}", "", power_of_ten(asked.log10_width), "Theorems 4.8, 5.12"))
        rows.append(BoundRow("  iterations", "", power_of_ten(asked.log10_iterations), ""))
        rows.append(BoundRow("  step size", "", power_of_ten(asked.log10_step_size), ""))
    return rows


def number(value: float) -> str:
    """Digits with commas while they can be read, then three digits and a power of ten."""
    if value >= 1e7:
        return f"{value:.3g}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def power_of_ten(exponent: float) -> str:
    """10^exponent, as the theorems' numbers are past the floats."""
    return f"10^{exponent:,.0f}" if abs(exponent) >= 100 else f"10^{exponent:.3g}"

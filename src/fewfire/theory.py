"""Proposition 3 of pareto: below a product of four resources, noisy gradient descent learns no parity.

The formulas of the papers that the library itself calls are here; all others are in `fewfire.papers`.

r parameters, T steps,
gradient precision τ and success probability δ: if r·T/(τ²δ) ≤ ¼ C(n, k), some (n, k)-parity leaves no trace in the
first T iterates with probability at least 1 − δ. Read for δ, success has at most the probability 4rT/(τ² C(n, k)).

The paper prints ½. Its proof grants the adversary noise τ but also lets the sample err by τ/2 (Assumption 2), for which
Markov's inequality gives failure 1 − 2δ, or 1 − δ with ¼ (docs/errata.md, row 36); `fraction` is that number.
Assumption 2 must then be read for the target χ_S, not for the zero function.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, inf, sqrt

from fewfire._validate import check_integer, check_number


@dataclass(frozen=True)
class ResourceFrontier:
    """Where resources stand against Proposition 3.

    `supply` is r·T/(τ²δ), `demand` ¼ C(n, k).
    """

    parameters: float
    steps: float
    tau: float
    delta: float
    demand: float

    @property
    def supply(self) -> float:
        """r·T/(τ²δ)."""
        return self.parameters * self.steps / (self.tau**2 * self.delta)

    @property
    def excluded(self) -> bool:
        """Whether success with probability δ is ruled out."""
        return self.supply <= self.demand

    @property
    def success_bound(self) -> float:
        """The largest probability of success the proposition leaves open."""
        return min(1.0, self.delta * self.supply / self.demand)

    @property
    def factor(self) -> float:
        """demand / supply: how many times more of one resource would lift the exclusion; above 1 while excluded."""
        return self.demand / self.supply

    def thresholds(self) -> dict[str, float]:
        """For each resource alone, the others as they are: the value at which the exclusion ends.

        parameters and steps must exceed theirs, tau and delta fall below; samples stands for 1/τ².
        """
        factor = self.factor
        return {
            "parameters": self.parameters * factor,
            "steps": self.steps * factor,
            "samples": factor / self.tau**2,
            "tau": self.tau / sqrt(factor),
            "delta": self.delta / factor,
        }


def frontier(
    n: int, k: int, parameters: float, steps: float, tau: float, delta: float = 0.99, *, fraction: float = 0.25
) -> ResourceFrontier:
    """Compare r·T/(τ²δ) with fraction·C(n, k): ¼ is what the proof gives, ½ what the paper prints.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> pareto.frontier(50, 3, parameters=1000, steps=1000, tau=0.01)
    ResourceFrontier(parameters=1000, steps=1000, tau=0.01, delta=0.99, demand=4900.0)
    """
    n = check_integer("n", n, 1)
    k = check_integer("k", k, 0, n)
    for name, value in (("parameters", parameters), ("steps", steps), ("tau", tau), ("fraction", fraction)):
        check_number(name, value, 0.0, open_low=True)
    check_number("delta", delta, 0.0, 1.0, open_low=True)
    try:
        demand = fraction * comb(n, k)
    except OverflowError:
        demand = inf
    return ResourceFrontier(parameters, steps, tau, delta, demand)

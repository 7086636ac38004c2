"""Proposition 3 of pareto: below a product of four resources, noisy gradient descent learns no parity.

r parameters, T steps, gradient precision τ and success probability δ: if r·T/(τ²δ) ≤ ½ C(n, k), some (n, k)-parity
leaves no trace in the first T iterates with probability at least 1 − δ. Read for δ, success has at most the
probability 2rT/(τ² C(n, k)).

The proof grants the adversary noise τ but also lets the sample err by τ/2 (Assumption 2), for which Markov's
inequality gives failure 1 − 2δ, or 1 − δ with ¼ in place of ½; `fraction` is that number. Assumption 2 must then be
read for the target χ_S, not for the zero function.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, inf, log, sqrt

from fewfire._validate import check_integer, check_number


@dataclass(frozen=True)
class Frontier:
    """Where resources stand against Proposition 3.

    `supply` is r·T/(τ²δ), `demand` ½ C(n, k).
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
    n: int, k: int, parameters: float, steps: float, tau: float, delta: float = 0.99, *, fraction: float = 0.5
) -> Frontier:
    """Compare r·T/(τ²δ) with fraction·C(n, k)."""
    n = check_integer("n", n, 1)
    k = check_integer("k", k, 0, n)
    for name, value in (("parameters", parameters), ("steps", steps), ("tau", tau), ("fraction", fraction)):
        check_number(name, value, 0.0, open_low=True)
    check_number("delta", delta, 0.0, 1.0, open_low=True)
    try:
        demand = fraction * comb(n, k)
    except OverflowError:
        demand = inf
    return Frontier(parameters, steps, tau, delta, demand)


def gradient_precision(samples: int, parameters: float = 1, steps: float = 1, failure: float | None = None) -> float:
    """τ that `samples` examples give: 1/√m, or with a failure probability the τ of Assumption 2 by Hoeffding.

    There every one of r·T means of m numbers in [−1, 1] must be within τ/2: τ = √(8 log(2rT/failure)/m).
    """
    samples = check_integer("samples", samples, 1)
    if failure is None:
        return 1 / sqrt(samples)
    failure = check_number("failure", failure, 0.0, 1.0, open_low=True, open_high=True)
    return sqrt(8 * log(2 * parameters * steps / failure) / samples)

"""Which resource is short for an (n, k)-parity by each statement of pareto, and what would buy success.

Lower bounds (statistical limit, Proposition 3) can only exclude; upper bounds (Theorem 5 with the numbers of
`theorem_21`, exhaustive search) can only promise. Of Theorem 4 there is the scaling with constants 1, which promises
nothing: with the constants of its proof it covers no network of practical size (`theorem_16`). What practical SGD
lacks is measured, not proved: `fewfire.sweeps.laws.diagnose`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, comb, inf, isfinite, log, log10, sqrt

from fewfire._validate import check_integer, check_number
from fewfire.papers.pareto.statements._theorems import (
    Requirement,
    samples_needed,
    samples_sufficient,
    set_bits,
    theorem_4,
    theorem_21,
)
from fewfire.theory import ResourceFrontier, frontier


@dataclass(frozen=True)
class Resources:
    """What a run has: width of the two-layer network, examples, gradient steps, and the success probability wanted."""

    width: int
    samples: int
    steps: int
    success: float = 0.99


@dataclass(frozen=True)
class Diagnosis:
    """The verdict of one statement.

    `verdict` is "excluded" or "not excluded" (lower bounds), "promised" or "not promised" (upper bounds), "met" or
    "not met" (a scaling without its constants), or "silent" where the statement does not apply. `short` names the
    resources that would have to grow; each entry of `remedies` is one way out, as amounts of what changes.
    """

    statement: str
    verdict: str
    reason: str
    short: tuple[str, ...] = ()
    remedies: tuple[dict[str, float], ...] = ()


def verdicts(
    n: int, k: int, resources: Resources, noise: float = 0.0, error: float = 0.1, *, adversarial: bool = False
) -> list[Diagnosis]:
    """The verdicts of the statistical limit, Proposition 3, Theorem 4, Theorem 5 and exhaustive search, in this order.

    Parameters
    ----------
    n, k : int
    resources : Resources
    noise : float
        The probability that a label is flipped.
    error : float
        Of Theorem 4.
    adversarial : bool
        Whether the network's gradients are bounded by 1 and their noise, of size samples^(−1/2), may be adversarial.
        Proposition 3 assumes so and is silent otherwise: the noise of SGD is not adversarial.

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> resources = pareto.Resources(width=100, samples=50, steps=1000)
    >>> pareto.verdicts(50, 3, resources)[0].reason
    'naming the set takes 14.3 bits; any method needs 15 examples'
    """
    n = check_integer("n", n, 2)
    k = check_integer("k", k, 1, n, "a parity has at most n bits")
    check_integer("width", resources.width, 1)
    check_integer("samples", resources.samples, 1)
    check_integer("steps", resources.steps, 1)
    check_number("delta", resources.success, 0.0, 1.0, open_low=True)
    return [
        _statistical_limit(n, k, resources, noise),
        _proposition_3(n, k, resources, adversarial),
        _theorem_4(n, k, resources, error),
        _theorem_5(n, k, resources),
        _exhaustive(n, k, resources, noise),
    ]


def network_parameters(n: int, width: int) -> int:
    """The number of parameters of a two-layer network."""
    return width * (n + 2) + 1


def _statistical_limit(n: int, k: int, have: Resources, noise: float) -> Diagnosis:
    needed = samples_needed(n, k, noise, have.success)
    reason = f"naming the set takes {set_bits(n, k):.1f} bits; any method needs {needed:,} examples"
    if have.samples >= needed:
        return Diagnosis("statistical limit", "not excluded", reason)
    return Diagnosis("statistical limit", "excluded", reason, ("samples",), ({"samples": needed},))


def _proposition_3(n: int, k: int, have: Resources, adversarial: bool) -> Diagnosis:
    if not adversarial:
        reason = "assumes gradients bounded by 1 and adversarial noise, which SGD does not have"
        return Diagnosis("Proposition 3", "silent", reason)
    found: ResourceFrontier = frontier(
        n, k, network_parameters(n, have.width), have.steps, gradient_precision(have.samples), have.success
    )
    reason = f"r·T/(τ²δ) = {found.supply:.3g} against ¼·C(n, k) = {found.demand:.3g}"
    if not found.excluded:
        return Diagnosis("Proposition 3", "not excluded", reason)
    limits = found.thresholds()
    width = inf if found.demand == inf else ceil((limits["parameters"] - 1) / (n + 2))
    ways = ({"width": width}, {"steps": limits["steps"]}, {"samples": limits["samples"]})
    reason += f"; success has at most probability {found.success_bound:.2g}"
    return Diagnosis("Proposition 3", "excluded", reason, ("width", "steps", "samples"), ways)


def _theorem_4(n: int, k: int, have: Resources, error: float) -> Diagnosis:
    if k % 2:
        return Diagnosis("Theorem 4", "silent", "treats even k only")
    least = max(4 * k + 1, ceil(1 / error**2))
    options = [theorem_4(n, k, s, error) for s in range(least + 1 - least % 2, n, 2)]
    if not options:
        return Diagnosis("Theorem 4", "silent", f"needs a sparsity above max(4k, 1/ε²) = {least - 1} and below n = {n}")
    return _upper("Theorem 4", ("met", "not met"), "scaling with constants 1: ", options, have)


def _theorem_5(n: int, k: int, have: Resources) -> Diagnosis:
    if k % 2 or k == n:
        return Diagnosis("Theorem 5", "silent", "treats even k below n only")
    if k == 2:  # s = 0, all weights small, is no start of `networks.init.under_sparse`
        return Diagnosis("Theorem 5", "silent", "needs an even sparsity above 0 and below k = 2")
    odd = n + 1 - n % 2  # a further random input makes n odd, as the closed form needs
    options = [theorem_21(odd, k, s, max(1 - have.success, 1e-12)) for s in range(2, k, 2)]
    return _upper("Theorem 5", ("promised", "not promised"), "finds a correlated subnetwork: ", options, have)


def _upper(
    statement: str, verdicts: tuple[str, str], promise: str, options: list[Requirement], have: Resources
) -> Diagnosis:
    """What the sparsity with the smallest of the largest shortfalls asks for, and the ways out where it is short."""

    def shortfall(option: Requirement) -> float:
        wanted = ((option.width, have.width), (option.samples, have.samples), (option.steps, have.steps))
        return max(needed / given for needed, given in wanted)

    best = min(options, key=shortfall)
    reason = f"{promise}sparsity {best.sparsity} asks for width {best.width:.3g}, {best.samples:.3g} examples"
    short = best.short(have.width, have.samples, have.steps)
    if not short:
        return Diagnosis(statement, verdicts[0], reason)
    # Besides the best mixture: keep the width and take more samples, or the reverse, where that is possible.
    ends = [best] if isfinite(shortfall(best)) else []
    if narrow := [option for option in options if option.width <= have.width and isfinite(option.samples)]:
        ends.append(min(narrow, key=lambda option: option.samples))
    if frugal := [option for option in options if option.samples <= have.samples and isfinite(option.width)]:
        ends.append(min(frugal, key=lambda option: option.width))
    ways: list[dict[str, float]] = []
    for option in ends:
        way = option.short(have.width, have.samples, have.steps) | {"sparsity": float(option.sparsity)}
        ways += [way] if way not in ways else []
    return Diagnosis(statement, verdicts[1], reason, tuple(short), tuple(ways))


def _exhaustive(n: int, k: int, have: Resources, noise: float) -> Diagnosis:
    sets, enough = comb(n, k), samples_sufficient(n, k, noise, max(1 - have.success, 1e-12))
    popcounts = sets * -(-have.samples // 64)
    reason = f"{_size(sets, 4)} sets, {_size(popcounts, 3)} popcounts of 64 examples; succeeds from {enough:,} examples"
    if have.samples >= enough:
        return Diagnosis("exhaustive search", "promised", reason)
    return Diagnosis("exhaustive search", "not promised", reason, ("samples",), ({"samples": enough},))


def _size(number: int, digits: int) -> str:
    """So many digits of a whole number, which may be past the floats."""
    return f"{number:.{digits}g}" if number < 10**300 else f"10^{log10(number):.0f}"


def advice(findings: list[Diagnosis]) -> list[str]:
    """What is short and what would buy it, one line per statement; lower bounds first, since nothing gets past them."""
    lines = [
        f"{finding.statement}: short of {' or '.join(finding.short)}. Lifted by: {_ways(finding)}."
        for finding in findings
        if finding.verdict == "excluded"
    ]
    lines = lines or ["No lower bound that applies stands in the way."]
    lines += [
        f"{finding.statement}: short of {' and '.join(finding.short)}. Bought by: {_ways(finding)}."
        for finding in findings
        if finding.verdict in ("not promised", "not met")
    ]
    promised = [finding.statement for finding in findings if finding.verdict == "promised"]
    return [*lines, f"Success is promised by: {', '.join(promised)}."] if promised else lines


def _ways(finding: Diagnosis) -> str:
    ways = [", ".join(f"{name} {_amount(value)}" for name, value in way.items()) for way in finding.remedies]
    return "; or ".join(ways) or "nothing that could be counted"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value < 1e7 else f"{value:.3g}"


def gradient_precision(samples: int, parameters: float = 1, steps: float = 1, failure: float | None = None) -> float:
    """τ that `samples` examples give: 1/√m, or with a failure probability the τ of Assumption 2 by Hoeffding.

    There every one of r·T means of m numbers in [−1, 1] must be within τ/2: τ = √(8 log(2rT/failure)/m).

    Examples
    --------
    >>> from fewfire.papers import pareto
    >>> round(pareto.gradient_precision(10_000), 4)
    0.01
    """
    samples = check_integer("samples", samples, 1)
    if failure is None:
        return 1 / sqrt(samples)
    failure = check_number("failure", failure, 0.0, 1.0, open_low=True, open_high=True)
    return sqrt(8 * log(2 * parameters * steps / failure) / samples)

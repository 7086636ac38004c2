"""A random network of H(n, s, k) measured, next to the bounds of sparse-activations on its class.

Up to 20 inputs every quantity is exact, from the whole cube. Beyond, sensitivities are sampled with 95% intervals,
and the degree is an upper bound: (d + 1)·tail(d) ≤ AS(h), taken at the upper end of its interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from fewfire._cube import MAX_EXACT
from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._validate import check_integer, check_number
from fewfire.fourier import sampled, spectrum
from fewfire.networks import TwoLayer, check_sparsity, construct
from fewfire.papers import sparse_activations as theory
from fewfire.papers._numbers import log10, power
from fewfire.papers.sparse_activations.rademacher_table import rademacher_table

POINTS = 20_000  # random inputs behind each sampled quantity, where n > 20

RADEMACHER = {
    "theorem_19": "eq. (15)",
    "explicit": "eq. (15), every constant",
    "conjecture_20": "Conjecture 20",
    "classical": "classical",
}

Measured: TypeAlias = tuple[float | None, float | None, float | None]
"""A quantity and the ends of its interval, as `Comparison` has them."""


@dataclass(frozen=True)
class Comparison:
    """One quantity of a network, and one bound on it, infinite where it is past the floats.

    A bound may stand alone, and may be a lower one (`upper` is false). A sampled quantity has the ends of its 95%
    interval; one known from below has `low` alone, one known from above `high` alone, an exact one neither.
    """

    quantity: str
    statement: str
    bound: float
    log10_bound: float
    measured: float | None = None
    low: float | None = None
    high: float | None = None
    upper: bool = True

    @property
    def holds(self) -> bool | None:
        """Whether the measured value respects the bound; None where there is nothing to compare."""
        if self.measured is None or not self.upper:
            return None
        return (self.measured if self.low is None else self.low) <= self.bound * (1 + 1e-9)


def scaled_member(
    n: int, s: int, k: int, seed: int | Stream, kind: str = "dense", W: float | None = None, B: float | None = None
) -> TwoLayer:
    """A random member of H(n, s, k), its hidden layer scaled so that it just fits W and B where they are given."""
    network = construct.random_member(n, s, k, seed, kind)
    own = network.norms()
    given = [(name, limit, size) for name, limit, size in (("W", W, own.W), ("B", B, own.B)) if limit is not None]
    limits = [(check_number(name, limit, 0.0, open_low=name == "W"), size) for name, limit, size in given]
    factor = min((limit / size for limit, size in limits if size > 0), default=1.0)
    if factor == 0:
        raise invalid("B", "must be positive for this network, which has biases", B, "leave B out")
    # Rounding may put the largest weight a bit above its limit.
    factor *= 1.0 if factor == 1.0 else 1 - 1e-12
    return network.with_parameters(hidden=network.hidden * factor, bias=network.bias * factor)


def compare_member(
    network: TwoLayer,
    k: int,
    epsilon: float,
    delta: float,
    *,
    W: float | None = None,
    B: float | None = None,
    rho: float = 0.9,
    samples: int | None = None,
    seed: int | Stream = 0,
) -> list[Comparison]:
    """What was measured of a network, next to the bounds for its class, of at most k active neurons.

    W and B are the network's own norms unless given; `samples` adds the Rademacher complexity of the class on so many
    uniform inputs; the seed is that of everything sampled (stream "measure").
    """
    n, s, own, stream = network.inputs, network.width, network.norms(), as_stream(seed, "measure")
    W, B = own.W if W is None else W, own.B if B is None else B
    sizes = n, s, k, W, B
    active, average, noise, degree = _measured(network, epsilon, rho, stream)
    noisy, least = f"noise sensitivity, ρ = {rho:g}", f"degree for a tail ≤ {epsilon:g}"
    printed, sharp = theory.degree(*sizes, epsilon), theory.degree_sharp(k, W, epsilon)
    rows = [
        _row("active neurons, most", "Definition 1: k", k, active),
        _row("average sensitivity", "Lemma 9", theory.average_sensitivity(*sizes), average),
        _row("average sensitivity", "4k²W² (sharp)", theory.average_sensitivity_sharp(k, W), average),
        _row(noisy, "Lemma 10", theory.noise_sensitivity(rho, *sizes), noise),
        _row(noisy, "2(1 − ρ)k²W² (sharp)", theory.noise_sensitivity_sharp(rho, k, W), noise),
        _row(least, "Theorem 8", printed, degree),
        _row(least, "4k²W²/ε (sharp)", sharp, degree),
    ]
    for statement, d in (("Theorem 8", printed), ("Theorem 8, sharp degree", min(float(n), sharp))):
        exponent = theory.log10_samples(*sizes, epsilon, delta, d=d)
        rows.append(Comparison("samples, uniform inputs", statement, power(10.0, exponent), exponent))
    for statement, count in (
        ("Theorem 17", theory.general_samples),
        ("Lemma 18 with eq. (15)", theory.rademacher_samples),
    ):
        rows.append(_row("samples, any inputs", statement, count(*sizes, epsilon, delta)))
    if min(W**2, B) >= math.log2(s):  # the classes of Theorem 13
        time = theory.log10_junta_time(n, s)
        rows.append(Comparison("time, at least about", "Theorem 13", power(10.0, time), time, upper=False))
    if samples is not None:
        X = stream.child("inputs").sign_rows(check_integer("samples", samples, 1), n)
        block = 2 ** min(n, (s // k).bit_length() - 1)
        table = rademacher_table(X, W, B, max_block=block, draws=4, restarts=2, seed=stream.child("rademacher"))
        row = table.row(s, k)
        from_below = row["estimate"], row["estimate"] - 2 * row["standard_error"], None
        name = f"Rademacher complexity, m = {samples}"
        rows += [_row(name, statement, row[key], from_below) for key, statement in RADEMACHER.items()]
    return rows


def _measured(network: TwoLayer, epsilon: float, rho: float, stream: Stream) -> list[Measured]:
    """Active neurons, average sensitivity, noise sensitivity and degree."""
    report = check_sparsity(network, seed=stream.child("sparsity"))
    active = float(report.max_active), None if report.exact else float(report.max_active), None
    if network.inputs <= MAX_EXACT:
        exact = spectrum(network)
        values = exact.average_sensitivity(), exact.noise_sensitivity(rho), exact.degree_for(epsilon)
        return [active, *((float(value), None, None) for value in values)]
    drawn = sampled(network, samples=POINTS, seed=stream.child("spectrum"))
    average, noise = drawn.average_sensitivity(), drawn.noise_sensitivity(rho)
    most = float(min(network.inputs, max(0, math.ceil(average.high / epsilon) - 1)))
    return [active, average, noise, (most, None, most)]


def _row(quantity: str, statement: str, bound: float, measured: Measured = (None, None, None)) -> Comparison:
    return Comparison(quantity, statement, float(bound), log10(bound), *measured)

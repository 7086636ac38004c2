"""A random network of H(n, s, k) measured, next to the bounds of sparse-activations on its class.

Up to 20 inputs every quantity is exact, from the whole cube. Beyond, sensitivities are sampled with 95% intervals,
and the degree is an upper bound: (d + 1)·tail(d) ≤ AS(h), taken at the upper end of its interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fewfire._cube import MAX_EXACT
from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._validate import check_integer, check_number
from fewfire.fourier import sampled, spectrum
from fewfire.fourier._sampled import Interval
from fewfire.networks import TwoLayer, check_sparsity, construct
from fewfire.papers import sparse_activations as theory
from fewfire.papers._numbers import from_log10, log10
from fewfire.papers.sparse_activations.rademacher_table import rademacher_table


@dataclass(frozen=True)
class Comparison:
    """One quantity of a network, and one bound on it.

    Parameters
    ----------
    quantity, statement : str
    bound : float
        Infinite where it is past the floats.
    log10_bound : float
    measured : float or None
        None where a bound stands alone.
    low, high : float or None
        Ends of the 95% interval of a sampled quantity; `low` alone for one known from below, `high` alone for one
        known from above, neither for an exact one.
    upper : bool
        Whether the bound is an upper one on the quantity.
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
    limits = [
        (check_number(name, limit, 0.0, open_low=name == "W"), size)
        for name, limit, size in (("W", W, own.W), ("B", B, own.B))
        if limit is not None
    ]
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
    points: int = 20_000,
    samples: int | None = None,
    seed: int | Stream = 0,
) -> list[Comparison]:
    """What was measured of a network, next to the bounds for its class.

    Parameters
    ----------
    network : TwoLayer
    k : int
        The network is claimed to have at most k active neurons.
    epsilon, delta : float
        Accuracy and failure probability of a learner.
    W, B : float, optional
        The scales of the class; the network's own norms unless given.
    rho : float in [0, 1)
        Of the noise sensitivity.
    points : int
        Random inputs behind each sampled quantity, where n > 20.
    samples : int, optional
        m: adds the Rademacher complexity of the class on m uniform inputs.
    seed : int or Stream
        Of everything sampled (stream "measure").
    """
    own = network.norms()
    W, B = own.W if W is None else W, own.B if B is None else B
    n, s = network.inputs, network.width
    stream = as_stream(seed, "measure")
    rows = _measured(network, k, W, B, epsilon, rho, points, stream)
    rows += _sample_counts(n, s, k, W, B, epsilon, delta)
    if samples is not None:
        rows += _rademacher(n, s, k, W, B, check_integer("samples", samples, 1), stream)
    return rows


def _measured(
    network: TwoLayer, k: int, W: float, B: float, epsilon: float, rho: float, points: int, stream: Stream
) -> list[Comparison]:
    n, s = network.inputs, network.width
    if n <= MAX_EXACT:
        exact = spectrum(network)
        average = Interval(exact.average_sensitivity(), math.nan, math.nan)
        noise = Interval(exact.noise_sensitivity(rho), math.nan, math.nan)
        degree = Interval(exact.degree_for(epsilon), math.nan, math.nan)
    else:
        drawn = sampled(network, samples=points, seed=stream.child("spectrum"))
        average, noise = drawn.average_sensitivity(), drawn.noise_sensitivity(rho)
        most = float(min(n, max(0, math.ceil(average.high / epsilon) - 1)))
        degree = Interval(most, math.nan, most)
    report = check_sparsity(network, seed=stream.child("sparsity"))
    active = Interval(report.max_active, math.nan if report.exact else report.max_active, math.nan)
    name = f"noise sensitivity, ρ = {rho:g}"
    least = f"degree for a tail ≤ {epsilon:g}"
    return [
        _row("active neurons, most", "Definition 1: k", k, active),
        _row("average sensitivity", "Lemma 9", theory.average_sensitivity(n, s, k, W, B), average),
        _row("average sensitivity", "4k²W² (sharp)", theory.average_sensitivity_sharp(k, W), average),
        _row(name, "Lemma 10", theory.noise_sensitivity(rho, n, s, k, W, B), noise),
        _row(name, "2(1 − ρ)k²W² (sharp)", theory.noise_sensitivity_sharp(rho, k, W), noise),
        _row(least, "Theorem 8", theory.degree(n, s, k, W, B, epsilon), degree),
        _row(least, "4k²W²/ε (sharp)", theory.degree_sharp(k, W, epsilon), degree),
    ]


def _sample_counts(n: int, s: int, k: int, W: float, B: float, epsilon: float, delta: float) -> list[Comparison]:
    printed = theory.degree(n, s, k, W, B, epsilon)
    sharp = min(float(n), theory.degree_sharp(k, W, epsilon))
    rows = []
    for name, d in (("Theorem 8", printed), ("Theorem 8, sharp degree", sharp)):
        exponent = theory.log10_samples(n, s, k, W, B, epsilon, delta, d=d)
        rows.append(Comparison("samples, uniform inputs", name, from_log10(exponent), exponent))
    general = theory.general_samples(n, s, k, W, B, epsilon, delta)
    lemma_18 = theory.rademacher_samples(n, s, k, W, B, epsilon, delta)
    rows.append(_row("samples, any inputs", "Theorem 17", general))
    rows.append(_row("samples, any inputs", "Lemma 18 with eq. (15)", lemma_18))
    if min(W**2, B) >= math.log2(s):  # the classes of Theorem 13
        time = theory.log10_junta_time(n, s)
        rows.append(Comparison("time, at least about", "Theorem 13", from_log10(time), time, upper=False))
    return rows


def _rademacher(n: int, s: int, k: int, W: float, B: float, m: int, stream: Stream) -> list[Comparison]:
    X = stream.child("inputs").sign_rows(m, n)
    block = 2 ** min(n, (s // k).bit_length() - 1)
    table = rademacher_table(X, W, B, max_block=block, draws=4, restarts=2, seed=stream.child("rademacher"))
    row = table.row(s, k)
    from_below = Interval(row["estimate"], row["estimate"] - 2 * row["standard_error"], math.nan)
    name = f"Rademacher complexity, m = {m}"
    statements = ("eq. (15)", "eq. (15), every constant", "Conjecture 20", "classical")
    keys = ("theorem_19", "explicit", "conjecture_20", "classical")
    return [_row(name, statement, row[key], from_below) for statement, key in zip(statements, keys, strict=True)]


def _row(quantity: str, statement: str, bound: float, measured: Interval | None = None) -> Comparison:
    if measured is None:
        return Comparison(quantity, statement, float(bound), log10(bound))
    low, high = (None if math.isnan(end) else float(end) for end in measured[1:])
    return Comparison(quantity, statement, float(bound), log10(bound), float(measured.value), low, high)

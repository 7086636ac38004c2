"""Large coefficients of any degree from membership queries: Goldreich–Levin, Kushilevitz–Mansour.

Sets are sorted into buckets by their members among the first k coordinates. The weight of the bucket T ⊆ [k] is

    Σ_{S ∩ [k] = T} f̂(S)² = E[f(y, z) f(y', z) χ_T(y) χ_T(y')],   y, y' uniform on {±1}ᵏ, z on the other coordinates,

so pairs of queries that agree outside [k] estimate it for every T at once: it is the Fourier coefficient at T of the
product against y·y'. A bucket that holds a set with |f̂(S)| ≥ θ weighs θ² or more, and with ‖f‖ ≤ 1 at most 4/θ²
buckets weigh θ²/4 or more. Buckets are split by a few coordinates at a time, all splits of one bucket by one small
transform. So parities and juntas of any degree are found with a number of queries that grows with n log(n)/θ⁴.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._cube import cube_index
from fewfire._errors import invalid
from fewfire._random import Stream, as_stream
from fewfire._validate import check_integer, check_number
from fewfire.fourier._functions import Function, as_function
from fewfire.fourier._monomials import members_of
from fewfire.fourier._sampled import BLOCK_VALUES
from fewfire.fourier._walsh import transform

if TYPE_CHECKING:
    from fewfire._types import Float64Array, SignArray
    from fewfire.fourier._monomials import Term

_STEP = 10
"""Coordinates by which buckets are split at a time."""


@dataclass(frozen=True)
class QuerySearch:
    """What `goldreich_levin` found.

    Attributes
    ----------
    terms : list of (set, coefficient)
        Estimated coefficients, largest magnitude first.
    queries : int
        Points at which the function was evaluated.
    samples : int
        Pairs of queries behind each bucket weight.
    buckets : int
        Bucket weights estimated.
    """

    terms: list[Term]
    queries: int
    samples: int
    buckets: int


def goldreich_levin(
    query: object,
    n: int | None = None,
    threshold: float = 0.1,
    *,
    bound: float = 1.0,
    confidence: float = 0.95,
    samples: int | None = None,
    seed: int | Stream = 0,
) -> QuerySearch:
    """Every set whose coefficient is at least `threshold` in magnitude, by querying the function where it likes.

    With probability `confidence` the answer holds every S with |f̂(S)| ≥ threshold and none below threshold / 2.

    Parameters
    ----------
    query : callable, network or problem
        As for `spectrum`; values within ±bound.
    n : int, optional
        Number of inputs; needed with a plain callable.
    threshold : float in (0, bound]
    bound : float
        Largest magnitude of a value, 1 for ±1 functions.
    confidence : float in (0, 1)
    samples : int, optional
        Pairs of queries per step; by Hoeffding's inequality unless given. Fewer lose the guarantee.
    seed : int or Stream

    Examples
    --------
    >>> import fewfire as ff
    >>> parity = ff.problems.Parity(40, 6, support=[1, 8, 13, 21, 34, 39])
    >>> ff.fourier.goldreich_levin(parity, threshold=0.5).terms
    [((1, 8, 13, 21, 34, 39), 1.0)]
    """
    function, n = as_function(query, n)
    bound = check_number("bound", bound, 0.0, open_low=True)
    theta = check_number("threshold", threshold, 0.0, bound, open_low=True) / bound
    confidence = check_number("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)
    counted = _Counted(function, bound)
    stream = as_stream(seed, "queries")
    # Each of the weights tested must be within θ²/4, and each coefficient within θ/4: half the failures to either.
    failure, most = (1.0 - confidence) / 2.0, math.ceil(4.0 / theta**2)
    tests = math.ceil(n / _STEP) * most * 2**_STEP
    if samples is None:
        samples = math.ceil(32.0 * math.log(2.0 * tests / failure) / theta**4)
    samples = check_integer("samples", samples, 1)

    alive: list[tuple[int, ...]] = [()]
    buckets = 0
    for known in range(0, n, _STEP):
        weights = counted.bucket_weights(alive, known, min(_STEP, n - known), samples, n, stream.child(f"step {known}"))
        buckets += weights.size
        heavy = np.argwhere(weights >= theta**2 / 2.0)
        alive = [alive[prefix] + tuple(known + bit for bit in members_of(int(cell))) for prefix, cell in heavy]

    checks = math.ceil(32.0 * math.log(2.0 * most / failure) / theta**2)
    points = stream.child("coefficients").sign_rows(checks, n)
    values = counted(points)
    found = [(members, bound * float((values * points[:, list(members)].prod(axis=1)).mean())) for members in alive]
    terms = [term for term in found if abs(term[1]) >= 0.75 * theta * bound]
    terms.sort(key=lambda term: (-abs(term[1]), term[0]))
    return QuerySearch(terms, counted.queries, samples, buckets)


class _Counted:
    """The function scaled into [−1, 1], counting its evaluations."""

    def __init__(self, function: Function, bound: float) -> None:
        self.function, self.bound, self.queries = function, bound, 0

    def __call__(self, points: SignArray) -> Float64Array:
        values = self.function(points)
        self.queries += len(points)
        worst = float(np.abs(values).max())
        if worst > self.bound:
            raise invalid("bound", "must be at least every |f(x)|", self.bound, f"pass bound={worst} or more")
        return values / self.bound

    def bucket_weights(
        self, prefixes: list[tuple[int, ...]], known: int, width: int, samples: int, n: int, stream: Stream
    ) -> Float64Array:
        """Estimated weights of the buckets that coordinates from `known` on make of prefixes: (prefixes, 2^width)."""
        cells = np.zeros((len(prefixes), 2**width))
        rows = max(1, BLOCK_VALUES // n)
        for start in range(0, samples, rows):
            count = min(rows, samples - start)
            points = stream.child("points").sign_rows(count, n, start)
            agreement = stream.child("others").sign_rows(count, known + width, start)
            others = points.copy()
            others[:, : known + width] *= agreement
            product = self(points) * self(others)
            cell = cube_index(agreement[:, known:])
            for row, prefix in enumerate(prefixes):
                signed = product * agreement[:, list(prefix)].prod(axis=1)
                cells[row] += np.bincount(cell, weights=signed, minlength=2**width)
        for row in cells:
            transform(row, inplace=True, normalise=False, threads=1)
        return cells / samples

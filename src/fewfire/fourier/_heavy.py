"""Large coefficients of any degree from random samples, on few candidate coordinates.

Of all 2ⁿ sets too many look large by chance and too many must be tried; of the subsets of c candidates, 2ᶜ, neither
holds. Samples fall into 2ᶜ cells by their candidate coordinates, and one transform of the cell sums gives the
empirical coefficient of every subset at once. Candidates come from the user, or from a screen that keeps coordinates
with low-degree influence: it finds the support of most juntas, but a lone parity of degree above the screen's shows
no such influence (sparse-activations, Conjecture 12, says why no cheap screen can).

False positives. If a set holds a coordinate on which the label does not depend, then given the labels its sum
Σ y_i χ_S(x_i) has independent fair signs, so P(|coefficient| ≥ t) ≤ 2 exp(−m t² / (2 mean y²)) exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._cube import cube_index
from fewfire._errors import invalid
from fewfire._threads import thread_count
from fewfire._validate import check_integer, check_labels, check_number, check_signs, check_support
from fewfire.fourier._estimate import estimate
from fewfire.fourier._monomials import Term, above, members_of, terms
from fewfire.fourier._walsh import transform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import Float64Array

MAX_CANDIDATES = 26
"""2²⁶ cells take 512 MiB."""


@dataclass(frozen=True)
class HeavyCoefficients:
    """Large empirical coefficients on some candidate coordinates.

    Attributes
    ----------
    terms : list of (set, coefficient)
        Largest first.
    candidates : tuple of int
        The coordinates whose subsets were tried, ascending.
    threshold : float
        Coefficients of at least this magnitude are listed.
    false_positives : float
        Upper bound on the expected number of listed sets that hold a coordinate the label does not depend on.
    """

    terms: list[Term]
    candidates: tuple[int, ...]
    threshold: float
    false_positives: float


def heavy(
    X: object,
    y: object,
    *,
    candidates: Sequence[int] | None = None,
    threshold: float | None = None,
    false_positive_rate: float = 0.01,
    screen_degree: int = 2,
    screen_size: int = 16,
    threads: int | None = None,
) -> HeavyCoefficients:
    """All large coefficients, of any degree, whose set lies within a few candidate coordinates.

    Parameters
    ----------
    X : array of ±1, shape (samples, n)
    y : array of shape (samples,)
    candidates : sequence of int, optional
        Coordinates to search, at most 26; `screen_support` chooses unless given.
    threshold : float, optional
        Least magnitude to list; chosen so that `false_positives` is `false_positive_rate` unless given.
    false_positive_rate : float in (0, 1)
    screen_degree, screen_size : int
        Passed to `screen_support`.
    threads : int, optional
        All cores unless given.

    Examples
    --------
    >>> import fewfire as ff
    >>> X, y = ff.problems.Parity(16, 5, support=[1, 3, 5, 7, 9]).sample(2000, seed=0)
    >>> ff.fourier.heavy(X, y, candidates=range(16)).terms
    [((1, 3, 5, 7, 9), 1.0)]
    """
    signs = check_signs("X", X)
    samples, n = signs.shape
    labels = np.asarray(check_labels("y", y, samples), dtype=np.float64)
    rate = check_number("false_positive_rate", false_positive_rate, 0.0, 1.0, open_low=True, open_high=True)
    workers = thread_count(threads)
    if candidates is None:
        chosen = screen_support(signs, labels, screen_size, degree=screen_degree, threads=workers)
    else:
        chosen = tuple(sorted(check_support("candidates", candidates, n)))
    if len(chosen) > MAX_CANDIDATES:
        raise invalid("candidates", f"may number at most {MAX_CANDIDATES}", len(chosen), "screen them further")
    sets, power = 2.0 ** len(chosen), float((labels**2).mean())
    if threshold is None:
        threshold = math.sqrt(2.0 * power * math.log(2.0 * sets / rate) / samples)
    else:
        threshold = check_number("threshold", threshold, 0.0, open_low=True)
    expected = 2.0 * sets * math.exp(-samples * threshold**2 / (2.0 * power)) if power else 0.0
    cells = np.bincount(cube_index(signs[:, chosen]), weights=labels, minlength=2 ** len(chosen)) / samples
    coefficients: Float64Array = transform(cells, inplace=True, normalise=False, threads=workers)

    large = above(coefficients, threshold) if power else np.empty(0, dtype=np.int64)
    found = terms(coefficients, large, lambda index: tuple(chosen[bit] for bit in members_of(index)))
    return HeavyCoefficients(found, chosen, threshold, min(sets, expected))


def screen_support(X: object, y: object, size: int, *, degree: int = 2, threads: int | None = None) -> tuple[int, ...]:
    """The coordinates of largest low-degree influence, at most `size`, ascending.

    The influence of i is estimated as the sum of squared empirical coefficients over the sets of at most `degree`
    members that hold i, leaving out those within the largest expected by chance among so many sets,
    √(2 mean y² ln(2 · sets) / m). A coordinate with none left is not listed.
    """
    size = check_integer("size", size, 1)
    estimated = estimate(X, y, degree, threads=threads)
    labels = np.asarray(y, dtype=np.float64)
    noise = 2.0 * float((labels**2).mean()) * math.log(2.0 * len(estimated.values)) / estimated.samples
    kept = np.flatnonzero(estimated.values**2 > noise)
    members = estimated.sets[kept]
    influence = np.zeros(estimated.n + 1)  # the padding −1 counts into the last entry
    np.add.at(influence, members, (estimated.values[kept] ** 2)[:, None])
    order = np.argsort(-influence[:-1], kind="stable")[:size]
    return tuple(sorted(int(i) for i in order if influence[i] > 0.0))

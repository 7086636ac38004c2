"""Maximum likelihood for noisy parities: the agreement of all 2ⁿ sets by one Walsh–Hadamard transform.

With c(x) the sum of labels at x, Σ_x c(x) χ_S(x) is the correlation of S. It takes 2n·ln 2 / (1 − 2·noise)² examples.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np

from fewfire import fourier
from fewfire._bits import pack
from fewfire._errors import invalid
from fewfire._threads import job_count
from fewfire._types import AnyArray, IdArray, SignArray
from fewfire.learners._fitting import all_or_nothing
from fewfire.learners._signs import Binarize
from fewfire.learners.baselines._exhaustive_parity import Hit, ParityClassifier, Search

MAX_COLUMNS = 28  # 1 GiB of counters
BLOCK = 1 << 20  # examples and counters at a time


@dataclass(eq=False, repr=False)
class WalshParity(ParityClassifier):
    """The parity of any columns, or its negation, that agrees with the most labels: maximum likelihood at any noise.

    At most 28 columns may vary: 2ⁿ counters take 4·2ⁿ bytes, 256 MiB for 26 columns, besides the table.

    Parameters
    ----------
    binarize, n_jobs
        As in `ExhaustiveParity`, like the columns that are taken.

    Attributes
    ----------
    classes_, support_, sign_, agreement_, runner_up_support_, runner_up_agreement_, p_value_, sets_searched_
        As of `ExhaustiveParity`, over all 2ⁿ sets, the empty one included. Of sets S that agree equally that of the
        lowest number Σ_{j ∈ S} 2ʲ is found, where j counts the columns that vary.

    Examples
    --------
    >>> from fewfire.problems import Parity
    >>> X, y = Parity(n=16, support=[0, 2, 3, 5, 11, 12, 15], noise=0.4).sample(2000, seed=0)
    >>> WalshParity().fit(X, y).support_
    (0, 2, 3, 5, 11, 12, 15)
    """

    _: KW_ONLY
    binarize: Binarize | None = None
    n_jobs: int | None = -1

    @all_or_nothing
    def fit(self, X: AnyArray, y: AnyArray) -> Self:
        """Transform; X of shape (m, n), y of shape (m,) with two classes."""
        threads = job_count(self.n_jobs)
        signs, labels = self._learn_signs(X, y)
        if signs.shape[1] > MAX_COLUMNS:
            rule, remedy = f"must have at most {MAX_COLUMNS} columns that vary", "leave out some: n take 4·2ⁿ bytes"
            raise invalid("X", rule, signs.shape[1], remedy)
        self._record(transform_search(signs, labels, threads), len(labels))
        return self


def transform_search(X: SignArray, y: SignArray, threads: int) -> Search:
    """Search all sets of columns of X (m, n) and y (m,), int8 of ±1."""
    values = np.zeros(1 << X.shape[1], dtype=np.int32)
    for first in range(0, len(X), BLOCK):
        points = pack(X[first : first + BLOCK]).sum(axis=1).astype(np.intp)
        np.add.at(values, points, y[first : first + BLOCK])
    fourier.transform(values, inplace=True, normalise=False, threads=threads)
    best = _strongest(values, -1)
    found = [best, _strongest(values, best)][: len(values)]
    hits = [Hit(tuple(j for j in range(MAX_COLUMNS) if one >> j & 1), int(values[one])) for one in found]
    return Search(hits[0], hits[1] if len(hits) > 1 else None, len(values), 0)


def _strongest(values: IdArray, taken: int) -> int:
    """The first of the strongest sets, one left out, as a number."""
    best, place = -1, 0
    for first in range(0, len(values), BLOCK):
        strengths = np.abs(values[first : first + BLOCK])
        strengths[max(taken - first, 0) : max(taken - first + 1, 0)] = -1
        index = int(strengths.argmax())
        if strengths[index] > best:
            best, place = int(strengths[index]), first + index
    return place

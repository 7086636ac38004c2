"""Sparse parities by meeting in the middle: C(n, ⌈k/2⌉) sets per round instead of C(n, k), for little noise.

Where no label of some rows is flipped, χ_A·y = χ_B there for the halves A and B of the support. A round draws a few
more rows than log₂ C(n, k/2), makes keys of the values of all A and all B there, and compares what matches with all
labels. Keys are of products with the first row drawn, so that the negation is found too.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from scipy.stats import binom
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from fewfire._bits import pack_columns
from fewfire._errors import FewfireWarning, invalid
from fewfire._types import AnyArray, IdArray, SignArray
from fewfire._validate import check_integer, check_number
from fewfire.learners._fitting import all_or_nothing
from fewfire.learners._signs import Binarize
from fewfire.learners.baselines._exhaustive_parity import Hit, ParityClassifier, Search, packed_correlations, unrank

MAX_HALVES = 1 << 25  # sets of ⌈k/2⌉ columns
FLAGS = 1 << 22  # of keys that occur
MATCHES = 1 << 21  # looked at in a round, at most
VERIFIED = 1024  # examples that matches are compared with, a multiple of 64
LONG = 1 << 31  # halves looked at in all rounds, beyond which a warning is given: some ten minutes of one core
MISSED, SURE = 1e-3, 1e-6  # the probability that no round is clean, at most; the p-value that ends the search


@dataclass(eq=False, repr=False)
class MeetInTheMiddleParity(ParityClassifier):
    """A parity of k of many columns, or its negation, with little label noise, in time of order n^⌈k/2⌉.

    Halves of sets are matched on random rows until a set agrees with so many labels that its p-value is below 10⁻⁶, or
    for as many rounds as `noise` asks for; a warning says so where these may take more than some ten minutes. A round
    takes some 40 bytes for each of at most 2²⁵ halves.

    Parameters
    ----------
    k : int from 1 to 6
        Size of the sets.
    noise : float in [0, 1/2)
        Up to this rate of wrong labels one support in 1000 is missed, where examples suffice. A round succeeds with
        probability (1 − noise)^r, where r is about 4 + log₂ C(n, k/2).
    binarize, random_state
        As in `ExhaustiveParity`, like the columns that are taken.

    Attributes
    ----------
    classes_, support_, sign_, agreement_, runner_up_support_, runner_up_agreement_, p_value_
        As of `ExhaustiveParity`, among the sets that matched in some round. The p-value is over all C(n, k) sets: where
        it is not small, nothing was found.
    sets_searched_, rounds_ : int
        Sets that matched, and how often rows were drawn.

    Examples
    --------
    >>> from fewfire.problems import Parity
    >>> X, y = Parity(n=300, support=[2, 5, 11, 290], noise=0.1).sample(200, seed=0)
    >>> MeetInTheMiddleParity(k=4, random_state=0).fit(X, y).support_
    (2, 5, 11, 290)
    """

    k: int = 4
    _: KW_ONLY
    noise: float = 0.1
    binarize: Binarize | None = None
    random_state: int | np.random.RandomState | None = None

    @all_or_nothing
    def fit(self, X: AnyArray, y: AnyArray) -> Self:
        """Search; X of shape (m, n), y of shape (m,) with two classes."""
        k = check_integer("k", self.k, 1, 6, "larger sets take too long; train a network")
        noise = check_number("noise", self.noise, 0.0, 0.5, open_high=True)
        signs, labels = self._learn_signs(X, y)
        m, n = signs.shape
        if k > n:
            raise invalid("k", f"must be at most {n}, the number of columns that vary", k, "choose a smaller k")
        if math.comb(n, k - k // 2) > MAX_HALVES:
            raise invalid("k", f"must have C({n}, ⌈k/2⌉) of at most 2^25", k, "choose a smaller k, or fewer columns")
        columns, packed = pack_columns(signs), pack_columns(labels[:, None])[0]
        few, tested = VERIFIED // 64, min(m, VERIFIED)
        tails = binom.sf(np.arange(tested + 1) - 1, tested, 0.5)
        enough = 2 * int(np.count_nonzero(tails > SURE / (2 * math.comb(n, k)))) - tested
        size = min(m, math.comb(n, k // 2).bit_length() + 4)
        clean = (1.0 - noise) ** size + noise**size
        rounds = 1 if clean == 1.0 else math.ceil(math.log(MISSED) / math.log1p(-clean))
        if rounds * math.comb(n, k - k // 2) > LONG:
            text = (
                f"noise = {noise:g} asks for up to {rounds:,} rounds over {math.comb(n, k - k // 2):,} halves of sets"
            )
            text += f" where nothing is found; ExhaustiveParity(k={k}) looks at {math.comb(n, k):,} sets once, whatever"
            warnings.warn(f"{text} the noise. Remedy: a lower noise, or that.", FewfireWarning, stacklevel=2)
        random, done, searched = check_random_state(self.random_state), 0, 0
        strengths = {tuple(range(k)): 0}  # where nothing meets, the first columns are as good as any
        while done < rounds and max(strengths.values()) < enough:
            met = meet(signs, labels, k, sample_without_replacement(m, size, random_state=random))
            values = np.abs(packed_correlations(columns[:, :few], packed[:few], tested, met))
            strengths |= {tuple(met[i].tolist()): int(values[i]) for i in np.argsort(-values, kind="stable")[:2]}
            done, searched = done + 1, searched + len(met)
        best = sorted(strengths, key=lambda support: (-strengths[support], support))[:2]
        found = packed_correlations(columns, packed, m, np.array(best)).tolist()
        hits = [Hit(support, value) for support, value in zip(best, found, strict=True)]
        self._record(Search(hits[0], hits[1] if len(hits) > 1 else None, math.comb(n, k), 0), m)
        self.rounds_, self.sets_searched_ = done, searched
        return self


def meet(X: SignArray, y: SignArray, size: int, rows: IdArray) -> IdArray:
    """The sets of `size` columns of X whose product, or its negation, is y on some rows: shape (sets, size)."""
    n, small = X.shape[1], size // 2
    bits = np.uint32(1) << np.arange(len(rows) - 1, dtype=np.uint32)
    columns = ((X[rows[1:]] * X[rows[0]]).T < 0) @ bits
    left = keys_of_sets(columns, small) ^ ((y[rows[1:]] * y[rows[0]] < 0) @ bits)
    right = keys_of_sets(columns, size - small)
    # Most keys of one side are not on the other.
    flags = np.zeros(FLAGS, dtype=np.bool_)
    flags[left % FLAGS] = True
    rights = np.flatnonzero(flags[right % FLAGS])
    flags[:] = False
    flags[right[rights] % FLAGS] = True
    lefts = np.flatnonzero(flags[left % FLAGS])
    rights = rights[np.argsort(right[rights])]
    first = np.searchsorted(right[rights], left[lefts], "left")
    counts = np.searchsorted(right[rights], left[lefts], "right") - first
    ends = np.cumsum(counts)
    kept = int(np.searchsorted(ends, MATCHES, "right"))  # columns that are alike would fill the memory
    lefts, first, counts, ends = lefts[:kept], first[:kept], counts[:kept], ends[:kept]
    places = np.arange(counts.sum()) + np.repeat(first - ends + counts, counts)
    sets = np.hstack([unrank(np.repeat(lefts, counts), n, small), unrank(rights[places], n, size - small)])
    return sets[(np.diff(sets, axis=1) > 0).all(axis=1)]  # of the ways to cut a set in two only one is ascending


def keys_of_sets(columns: AnyArray, size: int) -> AnyArray:
    """The XOR of the keys of each set of columns, shape (C(n, size),), in the order of `unrank`: by the last member."""
    found = np.zeros(1, dtype=np.uint32)
    for members in range(1, size + 1):
        found = np.concatenate([found[: math.comb(c, members - 1)] ^ key for c, key in enumerate(columns)])
    return found

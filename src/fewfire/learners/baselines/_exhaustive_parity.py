"""Exhaustive search for a sparse parity (pareto, section 3.2): C(n, k) sets, any rate of label noise below 1/2.

It needs hardly more examples than the statistical limit and pays n^k time for it; networks trade the two.

The strength of a set S is |Σ_i y_i χ_S(x_i)|: 2·agreement − m for the better of the parity and its negation. Of equally
strong sets the smaller, then the lexicographically first, wins. `search` runs csrc/kernels/parity_search.cpp, and
`search_reference` is its reference implementation in NumPy.

With `max_sets` a share q of the sets is drawn without repetition and has the support with probability q. A network of
neurons on random sets of k inputs draws with repetitions: half hold the support from log 2·C(n, k) neurons on.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import reduce
from math import comb
from typing import Any, Self

import numpy as np
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._bits import pack_columns
from fewfire._errors import invalid
from fewfire._extension import core
from fewfire._threads import job_count
from fewfire._types import AnyArray, Float64Array, IdArray, SignArray, WordArray
from fewfire._validate import check_integer, two_classes
from fewfire.learners._fitting import all_or_nothing
from fewfire.learners._signs import Binarize, column_names, learn_signs

MAX_SIZE = 5  # the largest sets searched
BLOCK_WORDS = 1 << 18  # words of examples of sets at a time
BLOCK_SETS = 1 << 16  # sets of the reference implementation at a time


class ParityClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier by the parity of some columns, or its negation; a subclass searches for it."""

    binarize: Binarize | None

    def _learn_signs(self, X: AnyArray, y: AnyArray) -> tuple[SignArray, SignArray]:
        """The columns that vary as signs, shape (m, n), and labels ±1, shape (m,)."""
        X, y = validate_data(self, X, y)
        self.classes_, labels = two_classes(y)
        self._sign_map = learn_signs(X, column_names(self), self.binarize)
        return self._sign_map.transform(X), labels.astype(np.int8)

    def predict(self, X: AnyArray) -> AnyArray:
        """The class of each row of X of shape (rows, n): shape (rows,)."""
        values = self._parity(X)
        return np.asarray(self.classes_[(values > 0).astype(np.intp)])

    def predict_proba(self, X: AnyArray) -> Float64Array:
        """The probability of each class, shape (rows, 2): that of a label to agree, `agreement_`, for the parity's."""
        values = self._parity(X)
        second = np.where(values > 0, self.agreement_, 1.0 - self.agreement_)
        return np.stack([1.0 - second, second], axis=1)

    def _parity(self, X: AnyArray) -> SignArray:
        """The parity found, or its negation, at each row: ±1 of shape (rows,)."""
        check_is_fitted(self)
        signs = self._sign_map.transform(validate_data(self, X, reset=False))
        members = signs[:, self._sign_map.indices(self.support_)]
        return np.asarray(self.sign_ * np.multiply.reduce(members, axis=1, dtype=np.int8))

    def _record(self, found: Search, examples: int) -> None:
        def support(hit: Hit) -> tuple[int, ...]:
            return tuple(self._sign_map.active[list(hit.support)].tolist())

        def agreement(hit: Hit) -> float:
            return (examples + abs(hit.correlation)) / (2 * examples)

        best, other = found.best, found.runner_up
        self.support_, self.agreement_ = support(best), agreement(best)
        self.sign_ = -1 if best.correlation < 0 else 1
        self.runner_up_support_ = None if other is None else support(other)
        self.runner_up_agreement_ = np.nan if other is None else agreement(other)
        tail = float(binom.sf((examples + abs(best.correlation)) // 2 - 1, examples, 0.5))
        self.p_value_ = min(1.0, 2 * found.sets * tail)
        self.sets_searched_ = found.sets

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # one parity is no match for most data
        return tags


@dataclass(eq=False, repr=False)
class ExhaustiveParity(ParityClassifier):
    """The parity of k columns, or its negation, that agrees with the most labels, among all sets of k columns.

    Columns of ±1 are taken as they are; in any other column with two values the smaller becomes +1 and the larger −1.
    Constant columns are left out; columns with more values are refused unless `binarize="median"`.

    Parameters
    ----------
    k : int from 1 to 5
        Size of the sets.
    at_most : bool
        Search the sets of at most k columns, the empty one included, instead of exactly k.
    max_sets : int, optional
        Search so many sets of k columns, drawn without repetition, where there are more: compute saved is luck needed.
    random_state : int, RandomState or None
        Of these sets.
    binarize : None or "median"
    n_jobs : int or None
        Threads; −1 is all cores, None is one.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The first stands for −1, the second for +1.
    support_ : tuple of int
        The set found, ascending; of sets that agree equally the smallest, then lexicographically first.
    sign_ : int
        −1 when the negation of the parity agrees better, else +1.
    agreement_ : float
        Share of the labels that the parity (times sign_) matches; the label noise is estimated by 1 − agreement_.
    runner_up_support_, runner_up_agreement_ : as above, for the next best set
        None and NaN when only one set was searched.
    p_value_ : float
        If the labels were coin flips, the probability that one of the sets would agree as well is at most this
        (union bound over the sets and their negations; holds for any X).
    sets_searched_ : int

    Examples
    --------
    >>> from fewfire.problems import Parity
    >>> X, y = Parity(n=30, k=3, support=[2, 5, 11], noise=0.2).sample(300, seed=0)
    >>> ExhaustiveParity(k=3).fit(X, y).support_
    (2, 5, 11)
    """

    k: int = 3
    _: KW_ONLY
    at_most: bool = False
    max_sets: int | None = None
    binarize: Binarize | None = None
    n_jobs: int | None = -1
    random_state: int | np.random.RandomState | None = None

    @all_or_nothing
    def fit(self, X: AnyArray, y: AnyArray) -> Self:
        """Search; X of shape (m, n), y of shape (m,) with two classes."""
        k = check_integer("k", self.k, 1, MAX_SIZE, "larger sets take too long to enumerate; train a network")
        threads = job_count(self.n_jobs)
        signs, labels = self._learn_signs(X, y)
        n = signs.shape[1]
        if k > n and not self.at_most:
            rule = f"must be at most {n}, the number of columns that vary"
            raise invalid("k", rule, k, "choose a smaller k, or at_most=True")
        sizes = range(min(k, n) + 1) if self.at_most else [k]
        if self.max_sets is not None and self.at_most:
            raise invalid("max_sets", "must be None with at_most=True", self.max_sets, "search the sets of one size")
        if self.max_sets is not None and check_integer("max_sets", self.max_sets, 1) < comb(n, k):
            random = check_random_state(self.random_state)
            found = search_part(signs, labels, k, self.max_sets, int(random.randint(2**31 - 1)))
        else:
            found = reduce(Search.joined, (search(signs, labels, size, threads) for size in sizes))
        self._record(found, len(labels))
        return self


@dataclass(frozen=True)
class Hit:
    """A set and its correlation Σ_i y_i χ_S(x_i) with the labels."""

    support: tuple[int, ...]
    correlation: int


@dataclass(frozen=True)
class Search:
    """The strongest set, the next one (None when there is no other), and the work done."""

    best: Hit
    runner_up: Hit | None
    sets: int
    words: int  # of 64 examples, met by an XOR and a popcount, unused lanes included; 0 without the extension

    def joined(self, other: Search) -> Search:
        """This search and one of larger sets together."""
        hits = [hit for hit in (self.best, self.runner_up, other.best, other.runner_up) if hit is not None]
        ranked = sorted(hits, key=lambda hit: -abs(hit.correlation))  # stable: the smaller sets come first
        return Search(ranked[0], ranked[1], self.sets + other.sets, self.words + other.words)


def search(X: SignArray, y: SignArray, size: int, threads: int) -> Search:
    """Search all sets of `size` coordinates, 0 to 5, of X (m, n) and y (m,), int8 of ±1; only C++ uses threads."""
    extension = core()
    if size == 0:
        return Search(Hit((), int(y.sum(dtype=np.int64))), None, 1, 0)
    if extension is None:
        return search_reference(X, y, size)
    members, correlations = np.empty((2, size), dtype=np.int64), np.empty(2, dtype=np.int64)
    columns, labels = pack_columns(X), pack_columns(y[:, None])[0]
    sets, words = extension.parity_search(columns, labels, len(X), size, threads, members, correlations)
    hits = [Hit(tuple(row.tolist()), int(value)) for row, value in zip(members, correlations, strict=True)]
    return Search(hits[0], hits[1] if sets > 1 else None, sets, words)


def search_part(X: SignArray, y: SignArray, size: int, count: int, seed: int) -> Search:
    """Search `count` random sets of `size` coordinates, at most C(n, size)."""
    hits = _strongest(X, y, random_sets(X.shape[1], size, count, np.random.default_rng(seed)))
    return Search(hits[0], hits[1] if count > 1 else None, count, 0)


def search_reference(X: SignArray, y: SignArray, size: int) -> Search:
    """The same search in NumPy: all sets by their numbers, so many at a time."""
    n, top = X.shape[1], list[Hit]()
    sets = comb(n, size)
    for first in range(0, sets, BLOCK_SETS):
        part = unrank(np.arange(first, min(first + BLOCK_SETS, sets)), n, size)
        top = sorted(top + _strongest(X, y, part), key=lambda hit: (-abs(hit.correlation), hit.support))[:2]
    return Search(top[0], top[1] if sets > 1 else None, sets, 0)


def _strongest(X: SignArray, y: SignArray, sets: IdArray) -> list[Hit]:
    """The two strongest of some sets (sets, size); of equally strong ones the lexicographically first."""
    values = correlations(X, y, sets)
    # Strength first, then the members in order: the last key counts most.
    order = np.lexsort((*sets.T[::-1], -np.abs(values)))[:2]
    return [Hit(tuple(sets[i].tolist()), int(values[i])) for i in order]


def random_sets(n: int, size: int, count: int, rng: np.random.Generator) -> IdArray:
    """Different sets of `size` among n coordinates, uniformly, each ascending: shape (count, size)."""
    return unrank(rng.choice(comb(n, size), count, replace=False), n, size)


def unrank(ranks: IdArray, n: int, size: int) -> IdArray:
    """The sets of these numbers from 0 to C(n, size) − 1: shape (len(ranks), size), members ascending.

    The number of a set {c₁ < c₂ < …} is C(c₁, 1) + C(c₂, 2) + ….
    """
    left = np.array(ranks, dtype=np.int64)
    members = np.empty((len(left), size), dtype=np.int64)
    for index in range(size, 0, -1):
        below = np.array([comb(c, index) for c in range(n)], dtype=np.int64)
        members[:, index - 1] = np.searchsorted(below, left, side="right") - 1
        left -= below[members[:, index - 1]]
    return members


def correlations(X: SignArray, y: SignArray, sets: IdArray) -> IdArray:
    """Σ_i y_i χ_S(x_i) for each of the sets (sets, size): shape (sets,)."""
    return packed_correlations(pack_columns(X), pack_columns(y[:, None])[0], len(X), sets)


def packed_correlations(columns: WordArray, labels: WordArray, examples: int, sets: IdArray) -> IdArray:
    """The same from bit vectors of columns (n, words) and labels (words,); bits past the examples are clear."""
    block = max(1, BLOCK_WORDS // columns.shape[1])
    found = np.empty(len(sets), dtype=np.int64)
    for first in range(0, len(sets), block):
        part = sets[first : first + block]
        words = np.bitwise_xor.reduce(columns[part], axis=1) ^ labels
        new = hasattr(np, "bitwise_count")
        bits = np.bitwise_count(words) if new else np.unpackbits(words.view(np.uint8), axis=1)
        found[first : first + block] = examples - 2 * bits.sum(axis=1, dtype=np.int64)
    return found

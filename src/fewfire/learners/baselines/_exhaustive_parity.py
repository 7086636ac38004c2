"""Exhaustive search for a sparse parity (pareto, section 3.2): C(n, k) sets, any rate of label noise below 1/2.

It needs hardly more examples than the statistical limit and pays n^k time for it; networks trade the two.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._errors import invalid
from fewfire._validate import check_integer, check_number, check_signs
from fewfire.learners._classes import two_classes
from fewfire.learners.baselines._parity_search import MAX_SIZE, Search, cores, search

if TYPE_CHECKING:
    from fewfire._types import AnyArray, SignArray


class ExhaustiveParity(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The parity of k columns, or its negation, that agrees with the most labels, among all sets of k columns.

    Parameters
    ----------
    k : int from 1 to 5
        Size of the sets.
    at_most : bool
        Search the sets of at most k columns, the empty one included, instead of exactly k.
    threshold : float, optional
        Columns are taken as +1 above it and −1 elsewhere; None demands columns of ±1.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The first stands for −1, the second for +1.
    support_ : int64 array of shape (size,)
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
    >>> ExhaustiveParity(k=3).fit(X, y).support_.tolist()
    [2, 5, 11]
    """

    def __init__(
        self, k: int = 3, *, at_most: bool = False, threshold: float | None = None, n_jobs: int | None = None
    ) -> None:
        self.k = k
        self.at_most = at_most
        self.threshold = threshold
        self.n_jobs = n_jobs

    def fit(self, X: AnyArray, y: AnyArray) -> ExhaustiveParity:
        """Search; X of shape (m, n), y of shape (m,) with two classes."""
        k = check_integer("k", self.k, 1, MAX_SIZE, "larger sets take too long to enumerate; train a network")
        threads = cores() if self.n_jobs is None else check_integer("n_jobs", self.n_jobs, 1)
        X, y = validate_data(self, X, y)
        signs = self._signs(X)
        n = signs.shape[1]
        if k > n and not self.at_most:
            raise invalid("k", f"must be at most n = {n}, the number of columns", k, "choose a smaller k, or at_most")
        self.classes_, values = two_classes(y)
        labels = values.astype(np.int8)
        sizes = range(min(k, n) + 1) if self.at_most else [k]
        found = reduce(Search.joined, (search(signs, labels, size, threads) for size in sizes))
        self._record(found, len(labels))
        return self

    def predict(self, X: AnyArray) -> AnyArray:
        """The class of each row of X of shape (rows, n): shape (rows,)."""
        check_is_fitted(self)
        signs = self._signs(validate_data(self, X, reset=False))
        values = self.sign_ * np.multiply.reduce(signs[:, self.support_], axis=1, dtype=np.int8)
        return np.asarray(self.classes_[(values > 0).astype(np.intp)])

    def _signs(self, X: AnyArray) -> SignArray:
        if self.threshold is None:
            return check_signs("X", X)
        threshold = check_number("threshold", self.threshold)
        return np.where(threshold < X, np.int8(1), np.int8(-1))

    def _record(self, found: Search, examples: int) -> None:
        best, other = found.best, found.runner_up
        strength = abs(best.correlation)
        self.support_ = np.array(best.support, dtype=np.int64)
        self.sign_ = -1 if best.correlation < 0 else 1
        self.agreement_ = (examples + strength) / (2 * examples)
        self.runner_up_support_ = None if other is None else np.array(other.support, dtype=np.int64)
        self.runner_up_agreement_ = np.nan if other is None else (examples + abs(other.correlation)) / (2 * examples)
        tail = float(binom.sf((examples + strength) // 2 - 1, examples, 0.5))
        self.p_value_ = min(1.0, 2 * found.sets * tail)
        self.sets_searched_ = found.sets

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # one parity is no match for most data
        return tags

"""Exhaustive search for a sparse parity (pareto, section 3.2): C(n, k) sets, any rate of label noise below 1/2.

It needs hardly more examples than the statistical limit and pays n^k time for it; networks trade the two.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._classes import two_classes
from fewfire._cores import thread_count
from fewfire._errors import invalid
from fewfire._validate import check_choice, check_integer
from fewfire.learners._signs import BINARIZE, learn_signs
from fewfire.learners.baselines._parity_search import MAX_SIZE, Hit, Search, search

if TYPE_CHECKING:
    from fewfire._types import AnyArray, IdArray


class ExhaustiveParity(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The parity of k columns, or its negation, that agrees with the most labels, among all sets of k columns.

    Columns of ±1 are taken as they are; in any other column with two values the smaller becomes +1 and the larger −1.
    Constant columns are left out; columns with more values are refused unless `binarize="median"`.

    Parameters
    ----------
    k : int from 1 to 5
        Size of the sets.
    at_most : bool
        Search the sets of at most k columns, the empty one included, instead of exactly k.
    binarize : None or "median"
    threads : int, optional
        All cores by default.

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

    def __init__(
        self, k: int = 3, *, at_most: bool = False, binarize: str | None = None, threads: int | None = None
    ) -> None:
        self.k = k
        self.at_most = at_most
        self.binarize = binarize
        self.threads = threads

    def fit(self, X: AnyArray, y: AnyArray) -> Self:
        """Search; X of shape (m, n), y of shape (m,) with two classes."""
        k = check_integer("k", self.k, 1, MAX_SIZE, "larger sets take too long to enumerate; train a network")
        threads = thread_count(self.threads)
        if self.binarize is not None:
            check_choice("binarize", self.binarize, BINARIZE)
        X, y = validate_data(self, X, y)
        classes, labels = two_classes(y)
        names = getattr(self, "feature_names_in_", [f"x{column}" for column in range(X.shape[1])])
        sign_map = learn_signs(X, [str(name) for name in names], self.binarize)
        signs, n = sign_map.transform(X), len(sign_map.active)
        if k > n and not self.at_most:
            rule = f"must be at most {n}, the number of columns that vary"
            raise invalid("k", rule, k, "choose a smaller k, or at_most=True")
        sizes = range(min(k, n) + 1) if self.at_most else [k]
        found = reduce(Search.joined, (search(signs, labels.astype(np.int8), size, threads) for size in sizes))
        self.classes_, self._sign_map = classes, sign_map
        self._record(found, len(labels), sign_map.active)
        return self

    def predict(self, X: AnyArray) -> AnyArray:
        """The class of each row of X of shape (rows, n): shape (rows,)."""
        check_is_fitted(self)
        signs = self._sign_map.transform(validate_data(self, X, reset=False))
        places = np.searchsorted(self._sign_map.active, np.array(self.support_, dtype=np.int64))
        values = self.sign_ * np.multiply.reduce(signs[:, places], axis=1, dtype=np.int8)
        return np.asarray(self.classes_[(values > 0).astype(np.intp)])

    def _record(self, found: Search, examples: int, columns: IdArray) -> None:
        def support(hit: Hit) -> tuple[int, ...]:
            return tuple(columns[list(hit.support)].tolist())

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

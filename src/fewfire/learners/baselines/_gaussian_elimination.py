"""Noiseless parities by Gaussian elimination over the field of two elements, on bit-packed rows.

With −1 as the bit 1, y = χ_S(x) reads ⟨a, x⟩ = y (mod 2), a the indicator of S: about n + 2 random examples have full
rank and fix a. It looks at examples, so it is not a statistical query algorithm, and the lower bound of
sparse-activations, Theorem 14, does not touch it; nor does it survive a single flipped label.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._bits import pack
from fewfire._errors import FewfireWarning
from fewfire._types import AnyArray, IdArray, SignArray, WordArray
from fewfire._validate import two_classes
from fewfire.learners._fitting import all_or_nothing
from fewfire.learners._signs import Binarize, column_names, learn_signs


@dataclass(eq=False, repr=False)
class GaussianElimination(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Finds the parity that fits noiseless labels, in time of order n³/64.

    Examples are taken in order until they fix every coefficient; one that contradicts those before it is skipped.
    When the result does not fit all examples, `consistent_` is False and there is a warning.

    A table of ±1 is taken as it is. In any other table columns of ±1 stay, and in a column with two other values the
    smaller becomes +1 and the larger −1 (so 0 ↦ +1, 1 ↦ −1); constant columns are left out; columns with more values
    are refused unless `binarize="median"`.

    Parameters
    ----------
    intercept : bool
        Fit ±χ_S instead of χ_S, at the price of one more example. Needed when the classes are not −1 and +1, since
        it is then open which of them an even number of −1s gives.
    binarize : None or "median"

    Attributes
    ----------
    support_ : tuple of int
        The columns of the parity; those the examples leave open are left out.
    sign_ : int
        −1 if the parity is negated.
    rank_ : int
        Of the examples used; the parity is the only one that fits when `unique_`.
    unique_ : bool
        Never with constant columns left out: whether the parity depends on them is open.
    consistent_ : bool
        Whether every example fits.
    samples_used_ : int
        Examples looked at until the rank was full.
    classes_ : array of shape (2,)
        The first stands for −1, the second for +1.
    mapping_ : list of (what became +1, what became −1)
        One pair per column; None where nothing did.

    Examples
    --------
    >>> from fewfire.problems import Parity
    >>> X, y = Parity(n=30, k=3, support=[2, 5, 11]).sample(40, seed=0)
    >>> GaussianElimination().fit(X < 0, y).support_
    (2, 5, 11)
    """

    intercept: bool = False
    _: KW_ONLY
    binarize: Binarize | None = None

    @all_or_nothing
    def fit(self, X: AnyArray, y: AnyArray) -> Self:
        """Solve for the support: X of binary columns (samples, n), y (samples,) of two classes, the smaller being −1.

        Labels that are all −1 or all +1 are accepted.
        """
        X, y = validate_data(self, X, y)
        classes, labels = two_classes(y, lone_sign=True)
        odd = labels < 0
        sign_map = learn_signs(X, column_names(self), self.binarize, keep_constant_signs=True)
        signs, active = sign_map.transform(X), sign_map.active
        unknowns = np.hstack([signs, -np.ones((len(signs), 1), np.int8)]) if self.intercept else signs
        columns = unknowns.shape[1]
        labelled = np.hstack([unknowns, np.where(odd, -1, 1).astype(np.int8)[:, None]])
        basis, pivots, used = _eliminate(pack(labelled), columns)
        solution = np.zeros(columns, dtype=bool)
        solution[pivots] = _bits(basis, columns)
        chosen = np.flatnonzero(solution[: signs.shape[1]])
        self._sign_map, self.mapping_, self.classes_ = sign_map, sign_map.mapping, classes
        self.support_ = tuple(active[chosen].tolist())
        self.sign_ = -1 if self.intercept and solution[-1] else 1
        self.rank_, self.samples_used_ = len(pivots), used
        self.unique_ = len(pivots) == columns and len(active) == self.n_features_in_
        self.consistent_ = bool(np.array_equal(self._odd(signs), odd))
        if not self.consistent_:
            warnings.warn(_inconsistent(classes, self.intercept), FewfireWarning, stacklevel=2)
        return self

    def predict(self, X: AnyArray) -> AnyArray:
        """The class of each row of X of shape (rows, n): shape (rows,)."""
        check_is_fitted(self)
        signs = self._sign_map.transform(validate_data(self, X, reset=False))
        return np.asarray(self.classes_[np.where(self._odd(signs), 0, 1)])

    def _odd(self, signs: SignArray) -> AnyArray:
        negative = np.count_nonzero(signs[:, self._sign_map.indices(self.support_)] < 0, axis=1) + (self.sign_ < 0)
        return np.asarray(negative % 2 == 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # one wrong label, and the parity found is arbitrary
        return tags


def _inconsistent(classes: AnyArray, intercept: bool) -> str:
    """The warning where no parity fits: where it is open which class is odd, the intercept is the first remedy."""
    noisy = "a learner that tolerates noise, such as LowDegreeClassifier"
    if intercept or classes.tolist() == [-1, 1]:
        return f"The labels are not a parity of the columns (noise?), so the fit is arbitrary. Remedy: use {noisy}."
    first, second = classes.tolist()
    return (
        f"The labels are not a parity of the columns with {first!r} taken as odd and {second!r} as even, so the fit is "
        f"arbitrary. Remedy: pass intercept=True, which tries both ways round; if the labels are noisy, use {noisy}."
    )


def _eliminate(rows: WordArray, columns: int) -> tuple[WordArray, IdArray, int]:
    """A reduced basis (rank, words) of rows whose bit `columns` is the label, its pivots (rank,), and the rows used."""
    basis = np.zeros((columns, rows.shape[1]), dtype=np.uint64)
    pivots = np.zeros(columns, dtype=np.int64)
    rank = used = 0
    while used < len(rows) and rank < columns:
        row = rows[used]
        used += 1
        hit = _bits(row, pivots[:rank])
        reduced = row ^ np.bitwise_xor.reduce(basis[:rank][hit], axis=0)
        pivot = _lowest_bit(reduced)
        if pivot >= columns:
            continue  # nothing new (0 = 0), or a contradiction (0 = 1)
        stale = _bits(basis[:rank], pivot)
        basis[:rank][stale] ^= reduced
        basis[rank], pivots[rank] = reduced, pivot
        rank += 1
    return basis[:rank], pivots[:rank], used


def _bits(rows: WordArray, columns: int | IdArray) -> AnyArray:
    """The bit of each row at a column, or of one row at each of several."""
    return np.asarray(rows[..., columns // 64] >> np.asarray(columns % 64, dtype=np.uint64) & np.uint64(1), dtype=bool)


def _lowest_bit(row: WordArray) -> int:
    """The position of the lowest set bit; past every column when there is none."""
    for word, value in enumerate(map(int, row)):
        if value:
            return 64 * word + (value & -value).bit_length() - 1
    return 64 * len(row)

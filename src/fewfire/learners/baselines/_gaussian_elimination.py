"""Noiseless parities by Gaussian elimination over the field of two elements, on bit-packed rows.

With −1 as the bit 1, y = χ_S(x) reads ⟨a, x⟩ = y (mod 2), a the indicator of S: about n + 2 random examples have full
rank and fix a. It looks at examples, so it is not a statistical query algorithm, and the lower bound of
sparse-activations, Theorem 14, does not touch it; nor does it survive a single flipped label.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fewfire._bits import pack
from fewfire._errors import FewfireWarning, invalid
from fewfire._validate import check_signs

if TYPE_CHECKING:
    from fewfire._types import AnyArray, IdArray, SignArray, WordArray


class GaussianElimination(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Finds the parity that fits noiseless labels, in time of order n³/64.

    Examples are taken in order until they fix every coefficient; one that contradicts those before it is skipped.
    When the result does not fit all examples, `consistent_` is False and a warning says so.

    Parameters
    ----------
    intercept : bool
        Fit ±χ_S instead of χ_S, at the price of one more example. Needed when the classes are not −1 and +1, since
        nothing then says which of them an even number of −1s should give.

    Attributes
    ----------
    support_ : tuple of int
        The coordinates of the parity; those the examples leave open are left out.
    sign_ : int
        −1 if the parity is negated.
    rank_ : int
        Of the examples used; the parity is the only one that fits when `unique_`.
    unique_ : bool
    consistent_ : bool
        Whether every example fits.
    samples_used_ : int
        Examples looked at until the rank was full.
    classes_ : array of shape (2,)
    """

    def __init__(self, intercept: bool = False) -> None:
        self.intercept = intercept

    def fit(self, X: AnyArray, y: AnyArray) -> GaussianElimination:
        """Solve for the support.

        Parameters
        ----------
        X : array of ±1 of shape (samples, n)
        y : array of shape (samples,)
            Two classes; the smaller one is taken as −1.
        """
        signs = check_signs("X", X)
        classes, odd = _classes(y, len(signs))
        unknowns = np.hstack([signs, -np.ones((len(signs), 1), np.int8)]) if self.intercept else signs
        columns = unknowns.shape[1]
        labelled = np.hstack([unknowns, np.where(odd, -1, 1).astype(np.int8)[:, None]])
        basis, pivots, used = _eliminate(pack(labelled), columns)
        solution = np.zeros(columns, dtype=bool)
        solution[pivots] = _bits(basis, columns)
        chosen = np.flatnonzero(solution[: signs.shape[1]])
        self.n_features_in_ = signs.shape[1]
        self.classes_ = classes
        self.support_ = tuple(chosen.tolist())
        self.sign_ = -1 if self.intercept and solution[-1] else 1
        self.rank_, self.unique_, self.samples_used_ = len(pivots), len(pivots) == columns, used
        self.consistent_ = bool(np.array_equal(self._odd(signs), odd))
        if not self.consistent_:
            message = (
                "The labels are not a parity of the columns (noise?), so the fit is arbitrary. Remedy: use a learner"
            )
            warnings.warn(f"{message} that bears noise, such as LowDegreeClassifier.", FewfireWarning, stacklevel=2)
        return self

    def predict(self, X: AnyArray) -> AnyArray:
        """The class of each row of ±1 inputs, of shape (rows,)."""
        check_is_fitted(self)
        signs = check_signs("X", X, self.n_features_in_)
        return np.asarray(self.classes_[np.where(self._odd(signs), 0, 1)])

    def _odd(self, signs: SignArray) -> AnyArray:
        negative = np.count_nonzero(signs[:, self.support_] < 0, axis=1) + (self.sign_ < 0)
        return np.asarray(negative % 2 == 1)


def _classes(y: AnyArray, rows: int) -> tuple[AnyArray, AnyArray]:
    """The two classes, and for each label whether it is the first of them."""
    labels = np.asarray(y)
    if labels.shape != (rows,):
        raise invalid("y", f"must be a vector of {rows} labels, one per row of X", f"shape {labels.shape}")
    classes = np.unique(labels)
    if len(classes) == 1 and classes[0] in (-1, 1):
        classes = np.array([-1, 1], dtype=labels.dtype)
    if len(classes) != 2:
        raise invalid("y", "must have two classes", f"a vector with {len(classes)}", "encode the labels as +1 and −1")
    return classes, labels == classes[0]


def _eliminate(rows: WordArray, columns: int) -> tuple[WordArray, IdArray, int]:
    """A reduced basis of the rows, whose bit `columns` is the label.

    Returns
    -------
    basis : array of shape (rank, words)
        Row r has bit pivots[r] set, and no other basis row has it.
    pivots : array of shape (rank,)
    used : int
        Rows looked at until the rank was `columns`.
    """
    basis = np.zeros((columns, rows.shape[1]), dtype=np.uint64)
    pivots = np.zeros(columns, dtype=np.int64)
    rank = used = 0
    while used < len(rows) and rank < columns:
        row = rows[used]
        used += 1
        hit = _bits_at(row, pivots[:rank])
        reduced = row ^ np.bitwise_xor.reduce(basis[:rank][hit], axis=0)
        pivot = _lowest_bit(reduced)
        if pivot >= columns:
            continue  # nothing new (0 = 0), or a contradiction (0 = 1)
        stale = _bits(basis[:rank], pivot)
        basis[:rank][stale] ^= reduced
        basis[rank], pivots[rank] = reduced, pivot
        rank += 1
    return basis[:rank], pivots[:rank], used


def _bits(rows: WordArray, column: int) -> AnyArray:
    """Bit `column` of each row."""
    return np.asarray(rows[:, column // 64] >> np.uint64(column % 64) & np.uint64(1), dtype=bool)


def _bits_at(row: WordArray, columns: IdArray) -> AnyArray:
    """The bits of one row at the given columns."""
    return np.asarray(row[columns // 64] >> (columns % 64).astype(np.uint64) & np.uint64(1), dtype=bool)


def _lowest_bit(row: WordArray) -> int:
    """The position of the lowest set bit; past every column when there is none."""
    for word, value in enumerate(map(int, row)):
        if value:
            return 64 * word + (value & -value).bit_length() - 1
    return 64 * len(row)

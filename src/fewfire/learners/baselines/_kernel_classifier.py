"""What the two kernel rivals share: one solve on the Gram matrix, predictions in blocks of rows.

With f in the kernel's space and m examples, the objective is

    (1/m) Σ_i loss(y_i, f(x_i)) + (alpha/2) ‖f‖²,   loss "ridge": (y − f)²/2, "hinge": max(0, 1 − y f).

Several classes are learned one against the rest (ridge) or in pairs (hinge).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._classes import find_classes
from fewfire._validate import check_choice, check_number

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array

_BLOCK = 512  # rows of a Gram matrix worked on at a time: its temporaries are as large as the block


class KernelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier on a kernel matrix; a subclass gives `_kernel`."""

    def __init__(self, bias: float = 1.0, *, loss: str = "ridge", alpha: float = 1e-3) -> None:
        self.bias = bias
        self.loss = loss
        self.alpha = alpha

    @abstractmethod
    def _kernel(self, A: Float64Array, B: Float64Array) -> Float64Array:
        """The kernel of all rows of A and B, of shape (len(A), len(B))."""

    def kernel(self, A: AnyArray, B: AnyArray | None = None) -> Float64Array:
        """The kernel matrix of rows of numbers, of shape (len(A), len(B)); B is A unless given."""
        check_number("bias", self.bias, 0.0)
        left = np.asarray(A, dtype=np.float64)
        right = left if B is None else np.asarray(B, dtype=np.float64)
        gram = np.empty((len(left), len(right)))
        for start in range(0, len(left), _BLOCK):
            gram[start : start + _BLOCK] = self._kernel(left[start : start + _BLOCK], right)
        return gram

    def fit(self, X: AnyArray, y: AnyArray) -> KernelClassifier:
        """Solve; X of shape (m, n), y of shape (m,). Memory 8 m² bytes."""
        loss = check_choice("loss", self.loss, ("ridge", "hinge"))
        alpha = check_number("alpha", self.alpha, 0.0, open_low=True)
        X, y = validate_data(self, X, y, dtype=np.float64)
        self.classes_ = find_classes(y)
        self.X_fit_ = X
        gram = self.kernel(X)
        if loss == "hinge":
            self.machine_ = SVC(kernel="precomputed", C=1 / (alpha * len(X))).fit(gram, y)
        else:
            targets = LabelBinarizer(neg_label=-1).fit_transform(y).astype(np.float64)
            gram.flat[:: len(X) + 1] += alpha * len(X)
            self.dual_coef_ = cho_solve(cho_factor(gram, lower=True, overwrite_a=True), targets)
        return self

    def decision_function(self, X: AnyArray) -> Float64Array:
        """f(x) for each row of X of shape (rows, n): shape (rows,) for two classes, else (rows, classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        blocks = [self._decide(X[start : start + _BLOCK]) for start in range(0, len(X), _BLOCK)]
        values = np.concatenate(blocks)
        return np.asarray(values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values)

    def predict(self, X: AnyArray) -> AnyArray:
        """The class of each row of X of shape (rows, n): shape (rows,)."""
        values = self.decision_function(X)
        index = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[index])

    def _decide(self, rows: Float64Array) -> Float64Array:
        gram = self.kernel(rows, self.X_fit_)
        if self.loss == "hinge":
            return np.asarray(self.machine_.decision_function(gram))
        return np.asarray(gram @ self.dual_coef_)

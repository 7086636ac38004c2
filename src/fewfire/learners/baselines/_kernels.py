"""The conjugate and the tangent kernel of the wide two-layer ReLU network, and classifiers with them.

A neuron with standard normal weights w and bias weight v computes relu(⟨w, x⟩/√n + βv) = relu(⟨g, x̃⟩) with g standard
normal and x̃ = (x/√n, β). With c the cosine of the angle between x̃ and ỹ, expectations of products of neurons and of
their slopes are arc-cosine kernels,

    κ₀(c) = 2 E[step(⟨g, x̃⟩) step(⟨g, ỹ⟩)]                = (π − arccos c) / π
    κ₁(c) = 2 E[relu(⟨g, x̃⟩) relu(⟨g, ỹ⟩)] / (‖x̃‖ ‖ỹ‖) = (√(1 − c²) + c (π − arccos c)) / π.

Where |c| is nearly 1 the slope of arccos has no bound: the last digit of c would change the eighth of κ₀, and that
digit changes with the order in which a matrix product sums. There the angle comes from the chord between x̃/‖x̃‖ and
ỹ/‖ỹ‖, and the kernel of a row does not depend on the other rows to about 1e-12.

Without the bias (β = 0) κ₁(c), and c κ₀(c) alike, hold no odd power of c but the first: no odd parity of three
or more bits is in reach of either kernel. Only the bias makes them comparable.

Both classifiers solve once on the Gram matrix and predict in blocks of rows. With f in the kernel's space and m
examples, the objective is

    Σ_i p_i loss(y_i, f(x_i)) + (alpha/2) ‖f‖²,   loss "square": (y − f)²/2, "hinge": max(0, 1 − y f)

with p_i the row's share of all weights, 1/m where none are given.

Several classes are learned one against the rest ("square") or in pairs ("hinge").
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._errors import invalid
from fewfire._types import AnyArray, Float64Array, FloatArray
from fewfire._validate import check_choice, check_number, find_classes
from fewfire.learners._fitting import ScoreClassifier, all_or_nothing, weighted_rows

KernelLoss: TypeAlias = Literal["square", "hinge"]
"""The loss of the classifiers."""

LARGEST = 1e150  # of an input or a bias, whose squares are summed

_NEAR = 1e-6
"""Where 1 − |c| is below this, angles come from chords. Elsewhere an error of c grows at most 710 times in them."""

_PAIR_ELEMENTS = 1 << 20  # entries of chords at a time

_BLOCK = 512  # rows of a Gram matrix worked on at a time: its temporaries are as large as the block


def order_one(angle: Float64Array) -> Float64Array:
    """κ₁, of the shape of `angle`."""
    return np.asarray((np.sin(angle) + np.cos(angle) * (np.pi - angle)) / np.pi)


def inner_products(A: FloatArray, B: FloatArray, bias: float) -> tuple[Float64Array, Float64Array, Float64Array]:
    """⟨x̃, ỹ⟩ and ‖x̃‖ ‖ỹ‖ for all rows of A and B, and the angles, each of shape (len(A), len(B))."""
    n = A.shape[1]
    products = A @ B.T / n + bias**2
    lengths = [np.sqrt(np.einsum("ij,ij->i", rows, rows) / n + bias**2) for rows in (A, B)]
    scale = np.outer(*lengths)
    # Rows of zeros without a bias have no direction; any cosine does, their kernel is 0.
    cosine = np.clip(np.divide(products, scale, out=np.zeros_like(products), where=scale > 0), -1.0, 1.0)
    angle = np.arccos(cosine)
    rows, columns = np.nonzero(np.abs(cosine) > 1.0 - _NEAR)
    step = max(1, _PAIR_ELEMENTS // (n + 1))
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step], columns[start : start + step]
        side = np.sign(cosine[i, j])
        left, right = 1.0 / lengths[0][i], side / lengths[1][j]
        chord = (A[i] * left[:, None] - B[j] * right[:, None]) / np.sqrt(n)
        half = np.sqrt(np.einsum("ij,ij->i", chord, chord) + (bias * (left - right)) ** 2) / 2.0
        near = 2.0 * np.arcsin(np.minimum(half, 1.0))
        angle[i, j] = np.where(side > 0, near, np.pi - near)
    return products, scale, angle


def hinge_tolerance(bound: float, largest: float) -> float:
    """The tolerance for libsvm: the solution is that of the objective to nine digits, as far as float64 allows.

    The dual coefficients are at most `bound` and the kernel `largest`, so that one rounding of a coefficient changes a
    gradient by their product times ε; libsvm never ends if its tolerance is below that.
    """
    return float(np.clip(1e3 * np.finfo(np.float64).eps * bound * largest, 1e-9, 1e-3))


@dataclass(eq=False, repr=False)
class KernelClassifier(ScoreClassifier, BaseEstimator):  # type: ignore[misc]
    """A classifier on a kernel matrix; a subclass gives `_kernel`."""

    bias: float = 1.0
    _: KW_ONLY
    loss: KernelLoss = "square"
    alpha: float = 1e-3

    @abstractmethod
    def _kernel(self, A: Float64Array, B: Float64Array) -> Float64Array:
        """The kernel of all rows of A and B, of shape (len(A), len(B))."""

    def kernel(self, A: AnyArray, B: AnyArray | None = None) -> Float64Array:
        """The kernel matrix of rows of numbers, of shape (len(A), len(B)); B is A unless given."""
        check_number("bias", self.bias, 0.0, LARGEST)
        left = np.asarray(A, dtype=np.float64)
        right = left if B is None else np.asarray(B, dtype=np.float64)
        gram = np.empty((len(left), len(right)))
        for start in range(0, len(left), _BLOCK):
            with np.errstate(over="ignore", invalid="ignore"):  # refused below
                gram[start : start + _BLOCK] = self._kernel(left[start : start + _BLOCK], right)
        if not np.isfinite(gram).all():
            largest = max(float(np.abs(left).max()), float(np.abs(right).max()))
            raise invalid("X", f"must be less than about {LARGEST:g} in magnitude", largest, "scale its columns")
        return gram

    @all_or_nothing
    def fit(self, X: AnyArray, y: AnyArray, sample_weight: object = None) -> KernelClassifier:
        """Solve; X of shape (m, n), y and weights of shape (m,). Memory 8 m² bytes."""
        loss = check_choice("loss", self.loss, get_args(KernelLoss))
        alpha = check_number("alpha", self.alpha, 0.0, open_low=True)
        X, y = validate_data(self, X, y, dtype=np.float64)
        X, y, weights = weighted_rows(X, y, sample_weight)
        self.classes_ = find_classes(y)
        self.X_fit_, shares = X, weights / weights.sum()
        gram = self.kernel(X)
        if loss == "hinge":
            tol = hinge_tolerance(float(shares.max()) / alpha, float(gram.diagonal().max()))
            self.machine_ = SVC(kernel="precomputed", C=1 / alpha, tol=tol).fit(gram, y, sample_weight=shares)
        else:
            targets = LabelBinarizer(neg_label=-1).fit_transform(y).astype(np.float64)
            gram.flat[:: len(X) + 1] += alpha / shares
            self.dual_coef_ = cho_solve(cho_factor(gram, lower=True, overwrite_a=True), targets)
        return self

    def decision_function(self, X: AnyArray) -> Float64Array:
        """f(x) for each row of X of shape (rows, n): shape (rows,) for two classes, else (rows, classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        decide = self.machine_.decision_function if self.loss == "hinge" else lambda gram: gram @ self.dual_coef_
        grams = (self.kernel(X[start : start + _BLOCK], self.X_fit_) for start in range(0, len(X), _BLOCK))
        values = np.concatenate([decide(gram) for gram in grams])
        return np.asarray(values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values)


class ConjugateKernel(KernelClassifier):
    """Classifier with the conjugate kernel of the two-layer ReLU network; fixed features, of infinite width.

    The network is f(x) = √(2/width) Σ_j u_j relu(⟨w_j, x⟩/√n + bias·v_j) with standard normal w_j, v_j, so that
    K(x, x) = ‖x‖²/n + bias². `RandomFeatures` has finite width and tends to it.

    Parameters
    ----------
    bias : float of at least 0
        Standard deviation of the neurons' biases; at 0 no odd parity of three or more bits can be expressed.
    loss : "square" or "hinge"
    alpha : float above 0
        Strength of the penalty (alpha/2) ‖f‖² against the mean loss.

    Attributes
    ----------
    classes_ : array of shape (classes,)
    X_fit_ : array of shape (m, n)
    dual_coef_ : array of shape (m, 1 or classes), for "square"
    machine_ : scikit-learn SVC, for "hinge"

    Examples
    --------
    >>> from fewfire.learners.baselines import ConjugateKernel
    >>> from fewfire.problems import Parity
    >>> X, y = Parity(8, 2).sample(600, seed=0)
    >>> ConjugateKernel().fit(X[:500], y[:500]).score(X[500:], y[500:]) > 0.9
    True
    """

    def _kernel(self, A: Float64Array, B: Float64Array) -> Float64Array:
        """‖x̃‖ ‖ỹ‖ κ₁(c): the limit of (2/width) Σ_j σ_j(x) σ_j(y)."""
        _, scale, angle = inner_products(A, B, self.bias)
        return scale * order_one(angle)


class TangentKernel(KernelClassifier):
    """Classifier with the tangent kernel of the two-layer ReLU network: the lazy regime, no features learned.

    The network is f(x) = √(2/width) Σ_j u_j relu(⟨w_j, x⟩/√n + bias·v_j) with standard normal u_j, w_j, v_j; the
    kernel is ⟨∇f(x), ∇f(y)⟩ over u, w and v at infinite width, so that K(x, x) = 2 (‖x‖²/n + bias²). There is no
    output offset.

    Parameters and attributes are those of `ConjugateKernel`.

    Examples
    --------
    >>> from fewfire.learners.baselines import TangentKernel
    >>> from fewfire.problems import Parity
    >>> X, y = Parity(8, 2).sample(600, seed=0)
    >>> TangentKernel().fit(X[:500], y[:500]).score(X[500:], y[500:]) > 0.9
    True
    """

    def _kernel(self, A: Float64Array, B: Float64Array) -> Float64Array:
        """‖x̃‖ ‖ỹ‖ κ₁(c) + ⟨x̃, ỹ⟩ κ₀(c): output weights, and hidden weights with biases."""
        products, scale, angle = inner_products(A, B, self.bias)
        return scale * order_one(angle) + products * (1.0 - angle / np.pi)

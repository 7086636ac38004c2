"""Random features: a hidden layer kept as drawn, a linear classifier on top (parities, section 1)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import SVC
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._random import Stream
from fewfire._types import AnyArray, FloatArray
from fewfire._validate import check_choice, check_integer, check_number, find_classes
from fewfire.learners._fitting import ScoreClassifier, all_or_nothing, weighted_rows
from fewfire.learners.baselines._kernels import hinge_tolerance
from fewfire.networks import TwoLayer
from fewfire.networks.init._base import Initialiser

FeatureLoss: TypeAlias = Literal["square", "hinge", "logistic"]
"""The loss of the linear classifier on the features."""


@dataclass(eq=False, repr=False)
class RandomFeatures(ScoreClassifier, BaseEstimator):  # type: ignore[misc]
    """A linear classifier on √(2/width) σ(⟨w_j, x⟩ + b_j), j = 1 … width, with w and b random and fixed.

    Parameters
    ----------
    width : int
        Number of features.
    activation : "relu", "relu6" or Activation, optional
        The initialiser's own unless given; relu for "gaussian".
    init : "gaussian" or Initialiser
        "gaussian": w_j normal of variance 1/n, b_j normal of standard deviation `bias`; as the width grows
        these features tend to `ConjugateKernel`. An initialiser of `fewfire.networks.init` gives the features
        with which a network of that start and seed begins; it brings its own biases.
    bias : float of at least 0
        For "gaussian" only.
    loss : "square", "hinge" or "logistic"
        (y − f)²/2, max(0, 1 − y f) or log(1 + exp(−y f)); minimised as a (weighted) mean, plus (alpha/2) ‖u‖².
    alpha : float above 0
    random_state : int, RandomState or None
        An integer is the seed of the initialiser.

    Attributes
    ----------
    classes_ : array of shape (classes,)
    network_ : TwoLayer
        The hidden layer, in float32; its output weights are not used. Features are computed in float64.
    head_ : the scikit-learn classifier on the features

    Examples
    --------
    >>> from fewfire.learners.baselines import RandomFeatures
    >>> from fewfire.problems import Parity
    >>> X, y = Parity(8, 2).sample(600, seed=0)
    >>> RandomFeatures(width=500, random_state=0).fit(X[:500], y[:500]).score(X[500:], y[500:]) > 0.9
    True
    """

    width: int = 1000
    _: KW_ONLY
    activation: str | None = None
    init: Literal["gaussian"] | Initialiser = "gaussian"
    bias: float = 1.0
    loss: FeatureLoss = "square"
    alpha: float = 1e-3
    random_state: int | np.random.RandomState | None = None

    @all_or_nothing
    def fit(self, X: AnyArray, y: AnyArray, sample_weight: object = None) -> RandomFeatures:
        """Draw the features and fit the linear classifier; X of shape (m, n), y and weights of shape (m,)."""
        width = check_integer("width", self.width, 1)
        loss = check_choice("loss", self.loss, get_args(FeatureLoss))
        alpha = check_number("alpha", self.alpha, 0.0, open_low=True)
        X, y = validate_data(self, X, y, dtype=np.float64)
        X, y, weights = weighted_rows(X, y, sample_weight)
        self.classes_ = find_classes(y)
        network = self._draw(X.shape[1], width)
        self.network_ = network if self.activation is None else network.with_parameters(activation=self.activation)
        strength = alpha * float(weights.sum())
        features = self.features(X)
        if loss == "square":
            self.head_ = RidgeClassifier(alpha=strength)
        elif loss == "logistic":
            self.head_ = LogisticRegression(C=1 / strength, max_iter=10_000)
        else:
            largest = float(np.einsum("ij,ij->i", features, features).max())
            tol = hinge_tolerance(float(weights.max()) / strength, largest)
            self.head_ = SVC(kernel="linear", C=1 / strength, tol=tol)
        self.head_.fit(features, y, sample_weight=weights)
        return self

    def features(self, X: AnyArray) -> FloatArray:
        """√(2/width) σ(⟨w_j, x⟩ + b_j) for each row of X of shape (rows, n): shape (rows, width)."""
        check_is_fitted(self, "network_")
        # The order of a matrix product's sums changes with the number of rows: in float32 a row's score would, too.
        values = self.network_.astype(np.float64).features(np.asarray(X, dtype=np.float64))
        return np.asarray(values * math.sqrt(2 / self.network_.width))

    def decision_function(self, X: AnyArray) -> FloatArray:
        """The score of each row of X of shape (rows, n): shape (rows,) for two classes, else (rows, classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(self.head_.decision_function(self.features(X)))

    def _draw(self, inputs: int, width: int) -> TwoLayer:
        state = self.random_state
        fixed = isinstance(state, int | np.integer)
        stream = Stream(state if fixed else int(check_random_state(state).randint(2**31 - 1)), "init")  # type: ignore[arg-type]
        if isinstance(self.init, Initialiser):
            return self.init(inputs, width, stream)
        check_choice("init", self.init, ("gaussian",))
        bias = check_number("bias", self.bias, 0.0) * stream.child("bias").normal(width)
        hidden = stream.child("hidden").normal((width, inputs)) / math.sqrt(inputs)
        return TwoLayer(hidden.astype(np.float32), bias, np.zeros(width))

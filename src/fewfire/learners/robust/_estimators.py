"""`RobustClassifier` and `RobustRegressor`: sublinear's adversarial training as scikit-learn estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import validate_data

from fewfire._classes import find_classes
from fewfire._validate import check_choice, check_finite
from fewfire.learners._fitting import all_or_nothing, label_unit
from fewfire.learners.robust import _losses
from fewfire.learners.robust._base import RobustNetwork
from fewfire.robustness import TwoLayerScores
from fewfire.robustness._criteria import encode

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array

_PARAMETERS = """
    Parameters
    ----------
    width : int
        Hidden neurons of a network, m.
    activity : float in (0, 1/2] or "auto"
        About the share of the neurons that fires on a row at the start; "auto" is 0.1, or the theorem's threshold.
    rho : float
        Radius of the adversary, in the units of X ("ball") or of the slice.
    norm : {{"l2", "linf"}}
    adversary : {{"pgd", "fgm", "none"}} or PGD
        How the worst points are looked for: 10 steps of projected gradient ascent, one step, not at all, or as told.
    domain : {{"ball", "slice", "projected"}}
        "ball": any columns. "slice": rows with ‖x‖ = 1 and x_d = 1/2, on which the adversary stays, as in the paper.
        "projected": any columns, standardised and projected to that slice; the adversary turns the standardised row.
    bounds : (low, high), optional
        Numbers or arrays of shape (columns,) that no column may leave under attack; for "ball".
    setting : {{"practical", "theorem"}}
        What "auto" means for activity, loss and learning_rate: what works, or sublinear Theorem 5.12 with K = 1.
    method : {{"auto", "lists", "index", "dense"}}
        How the active neurons are found; all give the same networks up to rounding. `method_` records it.
    loss : {losses} or "auto"
        {auto_loss}
    learning_rate : float, "theorem", "printed" or "auto"
        "auto" is the loss's own number over the largest eigenvalue of the tangent kernel at the start, divided by the
        number of rows; the theorem's is m^(−3/5)/√iterations, which the paper prints as m^(−1/5)/√iterations.
    iterations : int
        T, each one attack on all rows and one full-batch gradient step.
    random_state : int, RandomState or None
    verbose : bool
        Tell the progress on standard error.

    Attributes
    ----------
    networks_ : tuple of TwoLayer
        {networks}
    history_ : RobustHistory
        Losses, active neurons and work of every iteration.
    drift_ : float
        ‖W − W₀‖_{{2,∞}}, the largest movement of a neuron, which the theorem assumes to be at most m^(−15/24).
    method_, learning_rate_, n_iter_, {more}n_features_in_, feature_names_in_
    """


class RobustClassifier(ClassifierMixin, RobustNetwork):  # type: ignore[misc]
    __doc__ = """Classify with a sparsely firing two-layer network that an adversary cannot easily fool.

    f(x) = Σ_r a_r σ_τ(⟨w_r, x⟩ + b_r) with σ_τ(z) = z·1[z > τ]; W alone is trained (sublinear, Algorithm 1). Two
    classes need one network; more need one per class, trained together on points that one adversary moves for all.
""" + _PARAMETERS.format(
        losses='{"logistic", "hinge", "absolute"}',
        auto_loss='"auto" is logistic (with more classes: softmax), or the theorem\'s absolute on labels ±1.',
        networks="One for two classes (positive for `classes_[1]`), else one per class; on the network's inputs.",
        more="classes_, ",
    )

    @all_or_nothing
    def fit(self, X: object, y: object) -> Self:
        """Fit to a table (rows, columns) and labels (rows,)."""
        table, labels = validate_data(self, X, y, dtype=np.float64)
        classes = find_classes(labels)
        heads = 1 if len(classes) == 2 else len(classes)
        check_choice("loss", self.loss, ("auto", *_losses.CLASSIFICATION))
        auto = "absolute" if self.setting == "theorem" else "logistic"
        loss = auto if self.loss == "auto" else self.loss
        self._train(table, heads, loss, _losses.classification(loss, encode(classes, labels), heads))
        self.classes_ = classes
        return self

    def decision_function(self, X: object) -> Float64Array:
        """The scores: (rows,) for two classes, positive for `classes_[1]`; (rows, classes) for more."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: object) -> AnyArray:
        """The class of every row, shape (rows,)."""
        scores = self._scores(X)
        place = (scores[:, 0] > 0).astype(np.int64) if len(self.classes_) == 2 else scores.argmax(axis=1)
        return np.asarray(self.classes_[place])


class RobustRegressor(RegressorMixin, RobustNetwork):  # type: ignore[misc]
    __doc__ = """Predict a number with a sparsely firing two-layer network that an adversary cannot easily move.

    f(x) = Σ_r a_r σ_τ(⟨w_r, x⟩ + b_r) with σ_τ(z) = z·1[z > τ]; W alone is trained (sublinear, Algorithm 1), on labels
    brought to mean 0 and deviation 1, against a 1-Lipschitz convex loss (Definition 3.2).
""" + _PARAMETERS.format(
        losses='{"absolute", "huber"}',
        auto_loss='"auto" is huber, or the theorem\'s absolute; both of standardised labels.',
        networks="One, on the network's inputs, for standardised labels.",
        more="",
    )

    @all_or_nothing
    def fit(self, X: object, y: object) -> Self:
        """Fit to a table (rows, columns) and numbers (rows,)."""
        table, labels = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        labels = check_finite("y", np.asarray(labels, dtype=np.float64))
        unit = label_unit(labels)
        centre, spread = float((labels / unit).mean() * unit), float((labels / unit).std() * unit) or 1.0
        check_choice("loss", self.loss, ("auto", *_losses.REGRESSION))
        auto = "absolute" if self.setting == "theorem" else "huber"
        loss = auto if self.loss == "auto" else self.loss
        self._train(table, 1, loss, _losses.regression(loss, (labels - centre) / spread))
        self._label_centre, self._label_spread = centre, spread
        return self

    def predict(self, X: object) -> Float64Array:
        """The number for every row, shape (rows,)."""
        return np.asarray(self._scores(X)[:, 0])

    def heads(self) -> TwoLayerScores:
        """The fitted network as a function of points that gives labels in their own units."""
        (net,) = super().heads().networks
        offset = net.offset * self._label_spread + self._label_centre
        return TwoLayerScores((net.with_parameters(output=net.output * self._label_spread, offset=offset),))

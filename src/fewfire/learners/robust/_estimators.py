"""`RobustClassifier` and `RobustRegressor`: training against an adversary as scikit-learn estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from fewfire._classes import class_places, find_classes, is_balanced
from fewfire._errors import invalid
from fewfire._validate import check_choice, check_finite, check_number, check_sample_weight
from fewfire.learners._fitting import all_or_nothing, label_unit
from fewfire.learners.robust import _losses
from fewfire.learners.robust._base import RobustNetwork
from fewfire.learners.robust._settings import resolve, trains_minibatches
from fewfire.robustness import LayeredScores, TwoLayerScores
from fewfire.robustness._criteria import encode

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.engines.robust import TrainerMethod
    from fewfire.learners.robust._domains import Domain
    from fewfire.learners.robust._settings import SettingName
    from fewfire.robustness import PGD
    from fewfire.robustness._threats import Norm

_PARAMETERS = """
    Parameters
    ----------
    width : int
        Hidden neurons of a network, m.
    activity : float in (0, 1/2] or "auto"
        Algorithm 1: about the share of the neurons that fires on a row at the start; "auto" is 0.1, or the theorem's
        threshold.
    rho : float
        Radius of the adversary, in the units of X ("ball") or of the slice.
    norm : {{"l2", "linf"}}
    adversary : {{"pgd", "fgm", "none"}} or PGD
        How the worst points are looked for. "pgd": one step per epoch from where the last epoch left them, or for
        Algorithm 1 10 steps of projected gradient ascent; "fgm": one step; "none": not at all; or as told.
    domain : {{"ball", "slice", "projected"}}
        "ball": any columns. "slice": rows with ‖x‖ = 1 and x_d = 1/2, on which the adversary stays, as in the paper.
        "projected": any columns, standardised and projected to that slice; the adversary turns the standardised row.
    bounds : (low, high), optional
        Numbers or arrays of shape (columns,) that no column may leave under attack; for "ball".
    setting : {{"auto", "practical", "sublinear", "theorem"}}
        "practical": ReLUs, both layers trained by minibatches with AdamW. "sublinear": sublinear's Algorithm 1, shifted
        ReLUs of which the first layer moves, with numbers that serve. "theorem": the same with those of Theorem 5.12
        (K = 1). "auto" is "sublinear" where activity, method or iterations is given, or another domain than "ball",
        else "practical". `setting_` records it.
    method : {{"auto", "lists", "index", "dense"}}
        Algorithm 1: how the active neurons are found; all give the same networks up to rounding. `method_` records it.
    loss : {losses} or "auto"
        {auto_loss}
    learning_rate : float, "theorem", "printed" or "auto"
        "auto" is 0.005, falling to 0, where minibatches are trained. For Algorithm 1 it is the loss's own number over
        the largest eigenvalue of the tangent kernel at the start, divided by the number of rows; the theorem's is
        m^(−3/5)/√iterations, which the paper prints as m^(−1/5)/√iterations.
    weight_decay, epochs : float, int
        Of "practical": AdamW's decay, and passes over the rows.
    batch_size : int or "auto"
        Of "practical": rows of a minibatch; "auto" is 64, or an eighth of the rows where that is less.
    iterations : int, optional
        Algorithm 1: T, each one attack on all rows and one full-batch gradient step; 200 unless given.
    early_stopping : bool or int
        Of "practical": hold out a tenth of the rows, stop after so many epochs (True: 10) in which their robust error
        does not fall, and keep the best epoch.{own}
    warm_start : bool
        Of "practical": go on from the last fit's network.
    random_state : int, RandomState or None
    verbose : bool
        Show the progress as one bar, in a notebook or on standard error.

    Attributes
    ----------
    networks_ : tuple of TwoLayer
        {networks}
    history_ : EpochHistory or RobustHistory
        Losses of every epoch; or losses, active neurons and work of every iteration of Algorithm 1.
    drift_ : float
        Algorithm 1: ‖W − W₀‖_{{2,∞}}, the largest movement of a neuron, which the theorem assumes to be at most
        m^(−15/24).
    setting_, method_, learning_rate_, n_iter_, {more}n_features_in_, feature_names_in_

    Examples
    --------{examples}
    """

_CLASSIFIERS_OWN = """
    proof_weight : float in [0, 1]
        Of "practical": the share of the loss that is taken at the margin which lines prove over the adversary's set, in
        place of its worst points. 0.1 to 0.5 make `certify` prove more by lines, and faster, at some cost in accuracy.
    class_weight : dict, "balanced" or None
        Weights by class that multiply those of the rows, as in scikit-learn."""

_CLASSIFIER_EXAMPLES = """
    >>> import fewfire as ff
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = ff.RobustClassifier(width=200, rho=0.1, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> ff.robust_score(model, X, y) > 0.9  # against an adversary of the same reach
    True"""

_REGRESSOR_EXAMPLES = """
    >>> import fewfire as ff
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(200, random_state=0)
    >>> ff.RobustRegressor(width=200, rho=0.05, random_state=0).fit(X, y).score(X, y) > 0.7
    True"""


class RobustClassifier(ClassifierMixin, RobustNetwork):  # type: ignore[misc]
    __doc__ = """Classify with a two-layer network that an adversary cannot easily fool.

    One hidden layer of ReLUs for all classes, both layers trained at points that an adversary has moved, or the paper's
    algorithm: f(x) = Σ_r a_r σ_τ(⟨w_r, x⟩ + b_r) with σ_τ(z) = z·1[z > τ], W alone being trained (sublinear,
    Algorithm 1), one network for two classes and one per class for more.
""" + _PARAMETERS.format(
        losses='{"logistic", "hinge", "absolute"}',
        auto_loss='"auto" is logistic (with more classes: softmax), or the theorem\'s absolute on labels ±1.',
        networks="One of the rows, with an output per class beyond two; Algorithm 1: of its inputs, one per class.",
        more="temperature_, classes_, ",
        own=_CLASSIFIERS_OWN,
        examples=_CLASSIFIER_EXAMPLES,
    )

    classes_: AnyArray
    temperature_: float

    def __init__(
        self,
        width: int = 1000,
        activity: float | Literal["auto"] = "auto",
        rho: float = 0.1,
        *,
        norm: Norm = "l2",
        adversary: Literal["pgd", "fgm", "none"] | PGD = "pgd",
        domain: Domain = "ball",
        bounds: Any = None,
        setting: SettingName = "auto",
        method: TrainerMethod = "auto",
        loss: Literal["auto", "logistic", "hinge", "absolute"] = "auto",
        learning_rate: float | Literal["auto", "theorem", "printed"] = "auto",
        weight_decay: float = 0.3,
        epochs: int = 50,
        batch_size: int | Literal["auto"] = "auto",
        iterations: int | None = None,
        early_stopping: bool | int = False,
        proof_weight: float = 0.0,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            width,
            activity,
            rho,
            norm=norm,
            adversary=adversary,
            domain=domain,
            bounds=bounds,
            setting=setting,
            method=method,
            loss=loss,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            epochs=epochs,
            batch_size=batch_size,
            iterations=iterations,
            early_stopping=early_stopping,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
        self.proof_weight = proof_weight
        self.class_weight = class_weight

    @all_or_nothing
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit to a table (rows, columns) and labels (rows,), of some weights (rows,); weight 2 counts as two rows."""
        continued = self._continues()
        table, labels, weight = self._rows(X, y, sample_weight, reset=not continued)
        classes = find_classes(labels)
        if continued and not np.array_equal(classes, self.classes_):
            rule = f"must hold the classes {', '.join(map(str, self.classes_))} with warm_start"
            raise invalid("y", rule, classes.tolist(), "start with a fresh estimator")
        self._learn(table, labels, weight, classes, continued)
        return self

    @available_if(trains_minibatches)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def partial_fit(self, X: object, y: object, classes: object = None, sample_weight: object = None) -> Self:
        """One epoch over these rows, in the setting "practical"; the first call needs all `classes`."""
        first = not hasattr(self, "networks_")
        if first and classes is None:
            raise invalid("classes", "must be passed on the first call of partial_fit", None, "pass numpy.unique(y)")
        if is_balanced(self.class_weight):
            rule = "must not be 'balanced' with partial_fit, which sees part of the rows"
            raise invalid("class_weight", rule, "balanced", "pass a dict of weights")
        given = self.classes_ if classes is None else find_classes(np.ravel(np.asarray(classes)), "classes")
        if not first and not np.array_equal(given, self.classes_):
            rule = f"must stay {', '.join(map(str, self.classes_))}, those of the first call"
            raise invalid("classes", rule, given.tolist(), "leave classes out, or start with a fresh estimator")
        table, labels, weight = self._rows(X, y, sample_weight, reset=first)
        class_places(labels, given)
        self._learn(table, labels, weight, given, None)
        return self

    def _learn(
        self, table: Float64Array, labels: AnyArray, weight: Float64Array, classes: AnyArray, continued: bool | None
    ) -> None:
        """Train on checked rows; `continued` is None for one epoch more."""
        heads = 1 if len(classes) == 2 else len(classes)
        check_choice("loss", self.loss, ("auto", *_losses.CLASSIFICATION))
        auto = "absolute" if self.setting == "theorem" else "logistic"
        loss = auto if self.loss == "auto" else self.loss
        proofs = check_number("proof_weight", self.proof_weight, 0.0, 1.0)
        if proofs and (resolve(self) != "practical" or loss != "logistic" or self.domain != "ball"):
            rule = "must be 0 but in setting='practical' with loss='logistic' and domain='ball'"
            raise invalid("proof_weight", rule, self.proof_weight, "leave it out")
        self._train(table, heads, _losses.ClassificationLoss(loss, encode(classes, labels), heads), weight, continued)
        self.classes_ = classes

    def _rows(self, X: object, y: object, sample_weight: object, *, reset: bool) -> Any:
        """Checked rows: table, labels and weights of mean 1, without the rows of weight 0."""
        table, labels = validate_data(self, X, y, reset=reset, dtype=np.float64)
        weight = check_sample_weight(sample_weight, len(table))
        if self.class_weight is not None:
            if not isinstance(self.class_weight, dict) and not is_balanced(self.class_weight):
                raise invalid("class_weight", "must be a dict, 'balanced' or None", self.class_weight)
            weight = weight / weight.max() * compute_sample_weight(self.class_weight, labels)
        return self._weighed(table, labels, weight)

    def decision_function(self, X: object) -> Float64Array:
        """The scores: (rows,) for two classes, positive for `classes_[1]`; (rows, classes) for more."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: object) -> Float64Array:
        """Probabilities of the classes (rows, classes): scores over `temperature_`, which held-out rows gave.

        Those of Algorithm 1 are not calibrated: its temperature is 1.
        """
        scores = self._scores(X) / self.temperature_
        if len(self.classes_) > 2:
            return np.asarray(softmax(scores, axis=1))
        upper = expit(scores)
        return np.hstack([1.0 - upper, upper])

    def predict(self, X: object) -> AnyArray:
        """The class of every row, shape (rows,)."""
        scores = self._scores(X)
        place = (scores[:, 0] > 0).astype(np.int64) if len(self.classes_) == 2 else scores.argmax(axis=1)
        return np.asarray(self.classes_[place])


class RobustRegressor(RegressorMixin, RobustNetwork):  # type: ignore[misc]
    __doc__ = """Predict a number with a two-layer network that an adversary cannot easily move.

    One hidden layer of ReLUs, both layers trained at points that an adversary has moved, or the paper's algorithm:
    f(x) = Σ_r a_r σ_τ(⟨w_r, x⟩ + b_r) with σ_τ(z) = z·1[z > τ], W alone being trained (sublinear, Algorithm 1). Labels
    are brought to mean 0 and deviation 1; the losses are 1-Lipschitz and convex (Definition 3.2).
""" + _PARAMETERS.format(
        losses='{"absolute", "huber"}',
        auto_loss='"auto" is huber, or the theorem\'s absolute; both of standardised labels.',
        networks="One, of the rows or of Algorithm 1's inputs, for standardised labels.",
        more="",
        own="",
        examples=_REGRESSOR_EXAMPLES,
    )

    @all_or_nothing
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit to a table (rows, columns) and numbers (rows,), of some weights (rows,); weight 2 counts as two rows."""
        continued = self._continues()
        table, labels, weight = self._rows(X, y, sample_weight, reset=not continued)
        self._learn(table, labels, weight, continued)
        return self

    @available_if(trains_minibatches)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def partial_fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """One epoch over these rows, in the setting "practical"; the first call learns the scales."""
        table, labels, weight = self._rows(X, y, sample_weight, reset=not hasattr(self, "networks_"))
        self._learn(table, labels, weight, None)
        return self

    def _learn(self, table: Float64Array, labels: Float64Array, weight: Float64Array, continued: bool | None) -> None:
        """Train on checked rows; `continued` is None for one epoch more."""
        if not (continued or (continued is None and hasattr(self, "networks_"))):
            unit = label_unit(labels)
            centre = float(np.average(labels / unit, weights=weight))
            spread = float(np.sqrt(np.average((labels / unit - centre) ** 2, weights=weight))) * unit or 1.0
            self._label_centre, self._label_spread = centre * unit, spread
        check_choice("loss", self.loss, ("auto", *_losses.REGRESSION))
        auto = "absolute" if self.setting == "theorem" else "huber"
        loss = auto if self.loss == "auto" else self.loss
        standard = (labels - self._label_centre) / self._label_spread
        self._train(table, 1, _losses.RegressionLoss(loss, standard), weight, continued)

    def _rows(self, X: object, y: object, sample_weight: object, *, reset: bool) -> Any:
        """Checked rows: table, labels and weights of mean 1, without the rows of weight 0."""
        table, labels = validate_data(self, X, y, reset=reset, dtype=np.float64, y_numeric=True)
        labels = check_finite("y", np.asarray(labels, dtype=np.float64))
        return self._weighed(table, labels, check_sample_weight(sample_weight, len(table)))

    def predict(self, X: object) -> Float64Array:
        """The number for every row, shape (rows,)."""
        return np.asarray(self._scores(X)[:, 0])

    def heads(self) -> LayeredScores | TwoLayerScores:
        """The fitted network as a function of points that gives labels in their own units."""
        heads, spread, centre = super().heads(), self._label_spread, self._label_centre
        if isinstance(heads, LayeredScores):
            (hidden, output), (bias, offset) = heads.weights, heads.biases
            return LayeredScores((hidden, output * spread), (bias, offset * spread + centre), "relu")
        (net,) = heads.networks
        moved = net.with_parameters(output=net.output * spread, offset=net.offset * spread + centre)
        return TwoLayerScores((moved,))

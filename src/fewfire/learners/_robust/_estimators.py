"""`RobustClassifier` and `RobustRegressor`: training against an adversary as scikit-learn estimators."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Final, Literal, Self, TypeAlias, get_args

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._errors import invalid
from fewfire._explanation import Explanation
from fewfire._types import AnyArray, Float64Array
from fewfire._validate import (
    check_choice,
    check_finite,
    check_number,
    check_sample_weight,
    class_indices,
    counted,
    find_classes,
    is_balanced,
)
from fewfire.engines.robust._registry import TrainerMethod
from fewfire.learners._fitting import ScoreClassifier, all_or_nothing, label_unit, probabilities
from fewfire.learners._robust import _algorithm_one, _losses, _minibatches
from fewfire.learners._robust._inputs import DOMAINS, Domain
from fewfire.learners._robust._losses import LabelledLoss
from fewfire.robustness import PGD, Layers, ModelAdapter, SliceCap, ball, register_adapter
from fewfire.robustness._adapter import encode
from fewfire.robustness._gradient import check_adversary
from fewfire.robustness._threats import Norm, Threat, check_within, norm_name

SettingName: TypeAlias = Literal["auto", "practical", "sublinear", "theorem"]
SETTINGS: Final = get_args(SettingName)


def resolve(model: Any) -> str:
    """The setting of an estimator; "auto" is "sublinear" where something is given that only Algorithm 1 has."""
    setting = check_choice("setting", model.setting, SETTINGS)
    own = {
        "activity": model.activity != "auto",
        "iterations": model.iterations is not None,
        "method": model.method != "auto",
        "learning_rate": model.learning_rate in ("theorem", "printed"),
    }
    if setting == "auto":
        return "sublinear" if any(own.values()) or model.domain != "ball" else "practical"
    for name, given in own.items():
        if given and setting == "practical":
            rule = "can be given in settings 'sublinear' and 'theorem' only"
            raise invalid(name, rule, getattr(model, name), "leave it out, or use setting='sublinear'")
    return setting


def trains_minibatches(model: Any) -> bool:
    """Whether an estimator's setting is "practical", which partial_fit needs."""
    if resolve(model) == "practical":
        return True
    raise AttributeError("partial_fit needs setting='practical'; Algorithm 1 takes all rows at once. Remedy: call fit.")


@dataclass(eq=False, repr=False)
class RobustNetwork(BaseEstimator):  # type: ignore[misc]
    """Two-layer networks trained against an adversary; see `RobustClassifier`."""

    width: int = 1000
    activity: float | Literal["auto"] = "auto"
    rho: float = 0.1
    _: KW_ONLY
    norm: Norm = "l2"
    adversary: Literal["pgd", "fgm", "none"] | PGD = "pgd"
    domain: Domain = "ball"
    bounds: Any = None
    setting: SettingName = "auto"
    method: TrainerMethod = "auto"
    loss: Literal["auto", "logistic", "hinge", "absolute", "huber"] = "auto"
    learning_rate: float | Literal["auto", "theorem", "printed"] = "auto"
    weight_decay: float = 0.3
    epochs: int = 50
    batch_size: int | Literal["auto"] = "auto"
    iterations: int | None = None
    early_stopping: bool | int = False
    warm_start: bool = False
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False

    def _threat(self, columns: int, rho: float, norm: Norm, bounds: Any) -> Threat:
        """The set the adversary moves points of that many columns in."""
        rho = check_number("rho", rho, 0.0)
        if check_choice("domain", self.domain, DOMAINS) == "ball":
            return ball(norm, rho, bounds, columns)
        if norm_name(norm) != "l2":
            raise invalid("norm", f"must be 'l2' in domain={self.domain!r}", norm)
        if bounds is not None:
            raise invalid("bounds", 'can be given in domain="ball" only', bounds, "leave it out")
        return SliceCap(rho)

    def _continues(self) -> bool:
        """Whether a fit continues from the network of the last one."""
        return bool(self.warm_start and hasattr(self, "networks_") and self.setting_ == "practical")

    def _weighed(self, table: Float64Array, labels: AnyArray, weight: Float64Array) -> Any:
        """Rows of weight above 0, and their weights brought to mean 1."""
        weight = weight / (weight.max() or 1.0)
        kept = weight > np.finfo(np.float32).tiny
        if not kept.any():
            raise invalid("class_weight", "must leave some row a weight above 0", "none that does")
        return table[kept], labels[kept], weight[kept] / weight[kept].mean()

    def _train(
        self, X: Float64Array, heads: int, losses: LabelledLoss, weight: Float64Array, continued: bool | None
    ) -> None:
        """Fit networks of so many scores to a checked table; `continued` is None for one epoch more."""
        self.setting_ = resolve(self)
        threat = self._threat(X.shape[1], self.rho, self.norm, self.bounds)
        check_within(X, threat)
        if self.setting_ != "practical":
            _algorithm_one.fit(self, X, threat, heads, losses, weight)
        elif continued is None:
            _minibatches.continue_once(self, X, threat, heads, losses, weight)
        else:
            _minibatches.fit(self, X, threat, heads, losses, weight, continued)

    def _scores(self, X: object) -> Float64Array:
        """Scores of every row, shape (rows, heads)."""
        check_is_fitted(self)
        table = validate_data(self, X, reset=False, dtype=np.float64)
        return self._heads().scores(self._inputs.points(table))

    def _heads(self) -> Layers:
        """The fitted networks as functions of points: of the rows themselves, or of the slice in domain "projected"."""
        practical = self.setting_ == "practical"
        return Layers.of(*(net if practical else self._inputs.on_points(net) for net in self.networks_))

    def explain(self) -> Explanation:
        """What was trained, what it reached and what it cost; the table is the history."""
        check_is_fitted(self)
        lines = _explain_minibatches(self) if self.setting_ == "practical" else _explain_algorithm_one(self)
        table = {name: values for name, values in vars(self.history_).items() if np.ndim(values)}
        return Explanation(type(self).__name__, lines, table)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "networks_")


@register_adapter(RobustNetwork, described="RobustClassifier, RobustRegressor")
def _adapt(model: Any, X: object, y: object) -> ModelAdapter:
    """The networks as functions of points, and the model's own adversary unless another is given."""
    check_is_fitted(model)

    def threat(rho: float | None, norm: Norm | None, bounds: Any) -> Threat:
        own = model.rho if rho is None else rho, norm or model.norm, model.bounds if bounds is None else bounds
        return model._threat(model._inputs.columns, *own)  # type: ignore[no-any-return]

    space = None if model.domain == "ball" else model._inputs
    return ModelAdapter(model._heads(), getattr(model, "classes_", None), space, threat)


@dataclass(eq=False, repr=False)
class RobustClassifier(ScoreClassifier, RobustNetwork):
    """Classify with a two-layer network that an adversary cannot easily fool.

    One hidden layer of ReLUs for all classes, both layers trained at points that an adversary has moved, or the paper's
    algorithm: f(x) = Σ_r a_r σ_τ(⟨w_r, x⟩ + b_r) with σ_τ(z) = z·1[z > τ], W alone being trained (sublinear,
    Algorithm 1), one network for two classes and one per class for more.

    Parameters
    ----------
    width : int
        Hidden neurons of a network, m.
    activity : float in (0, 1/2] or "auto"
        Algorithm 1: about the share of the neurons that fires on a row at the start; "auto" is 0.1, or the theorem's
        threshold.
    rho : float
        Radius of the adversary, in the units of X ("ball") or of the slice.
    norm : {"l2", "linf"} or 2, np.inf
    adversary : {"pgd", "fgm", "none"} or PGD
        How the worst points are looked for. "pgd": one step per epoch from where the last epoch left them, or for
        Algorithm 1 10 steps of projected gradient ascent; "fgm": one step; "none": not at all; or as given.
    domain : {"ball", "slice", "projected"}
        "ball": any columns. "slice": rows with ‖x‖ = 1 and x_d = 1/2, on which the adversary stays, as in the paper.
        "projected": any columns, standardised and projected to that slice; the adversary turns the standardised row.
    bounds : (low, high), optional
        Numbers or arrays of shape (columns,) that no column may leave under attack; for "ball".
    setting : {"auto", "practical", "sublinear", "theorem"}
        "practical": ReLUs, both layers trained by minibatches with AdamW. "sublinear": sublinear's Algorithm 1, shifted
        ReLUs of which the first layer moves, with practical numbers. "theorem": the same with those of Theorem 5.12
        (K = 1). "auto" is "sublinear" where activity, method or iterations is given, or another domain than "ball",
        else "practical". `setting_` records it.
    method : {"auto", "lists", "index", "dense"}
        Algorithm 1: how the active neurons are found; all give the same networks up to rounding. `method_` records it.
    loss : {"auto", "logistic", "hinge", "absolute"}
        "auto" is logistic (with more classes: softmax), or the theorem's absolute on labels ±1.
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
        does not fall, and keep the best epoch.
    proof_weight : float in [0, 1]
        Of "practical": the share of the loss that is taken at the margin that lines prove over the set, instead
        of its worst points. 0.1 to 0.5 make `certify` prove more by lines, and faster, at some cost in accuracy.
    class_weight : dict, "balanced" or None
        Weights by class that multiply those of the rows, as in scikit-learn.
    warm_start : bool
        Of "practical": continue from the last fit's network.
    random_state : int, RandomState or None
    verbose : bool
        Show the progress as one bar, in a notebook or on standard error.

    Attributes
    ----------
    networks_ : tuple of TwoLayer
        One of the rows, with an output per class beyond two; Algorithm 1: of its inputs, one per class.
    history_ : EpochHistory or RobustHistory
        Losses of every epoch; or losses, active neurons and work of every iteration of Algorithm 1.
    drift_ : float
        Algorithm 1: ‖W − W₀‖_{2,∞}, the largest movement of a neuron, which the theorem assumes to be at most
        m^(−15/24).
    setting_, method_, learning_rate_, n_iter_, temperature_, classes_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import fewfire as ff
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = ff.RobustClassifier(width=200, rho=0.1, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> ff.robust_score(model, X, y) > 0.9  # against an adversary of the same reach
    True
    """

    _: KW_ONLY
    proof_weight: float = 0.0
    class_weight: dict[Any, float] | Literal["balanced"] | None = None

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
        class_indices(labels, given)
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
        return probabilities(self.decision_function(X) / self.temperature_)


class RobustRegressor(RegressorMixin, RobustNetwork):  # type: ignore[misc]
    """Predict a number with a two-layer network that an adversary cannot easily move.

    Parameters and attributes are those of `RobustClassifier`, but for class_weight, proof_weight, classes_ and
    temperature_. Labels are brought to mean 0 and deviation 1; the losses of these, "huber" ("auto") and "absolute"
    (the theorem's), are 1-Lipschitz and convex (Definition 3.2).

    Examples
    --------
    >>> import fewfire as ff
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(200, random_state=0)
    >>> ff.RobustRegressor(width=200, rho=0.05, random_state=0).fit(X, y).score(X, y) > 0.7
    True
    """

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

    def _heads(self) -> Layers:
        """The fitted network as a function of points that gives labels in their own units."""
        heads, spread, centre = super()._heads(), self._label_spread, self._label_centre
        (hidden, output), (bias, offset) = heads.weights, heads.biases
        return replace(heads, weights=(hidden, output * spread), biases=(bias, offset * spread + centre))


def _explain_minibatches(model: Any) -> list[str]:
    history, (net,) = model.history_, model.networks_
    losses = history.robust_loss
    outputs = net.output.size // net.width
    how = "points carried from epoch to epoch" if model.adversary == "pgd" else str(check_adversary(model.adversary))
    lines = [
        f"one network of {net.width} neurons and {counted(outputs, 'output')}, both layers trained",
        _adversary(model, how),
        f"robust loss {losses[0]:.4g} -> {losses[-1]:.4g} in {model.n_iter_} epochs of rate {model.learning_rate_:.4g}",
    ]
    if getattr(model, "proof_weight", 0.0):
        lines.append(f"a share of {model.proof_weight:g} of the loss at margins that lines prove")
    if not np.isnan(history.validation_error).all():
        error = history.validation_error[history.best_epoch - 1]
        lines.append(f"robust validation error {error:.4g} at epoch {history.best_epoch}, which was kept")
    return lines


def _explain_algorithm_one(model: Any) -> list[str]:
    history, networks = model.history_, model.networks_
    many = f"{len(networks)} networks" if len(networks) > 1 else "one network"
    done, dense = history.multiply_adds.sum(), history.dense_multiply_adds.sum()
    robust, clean = ((losses[0], losses[-1]) for losses in (history.robust_loss, history.clean_loss))
    lines = [
        f"{many} of {networks[0].width} neurons, {networks[0].activation}, method {model.method_}",
        _adversary(model, str(check_adversary(model.adversary))),
        f"robust loss {robust[0]:.4g} -> {robust[1]:.4g}, clean loss {clean[0]:.4g} -> {clean[1]:.4g} "
        f"in {model.n_iter_} iterations of rate {model.learning_rate_:.4g}",
        f"active neurons per example: mean {history.mean_active[-1]:.1f}, largest {history.max_active[-1]:.0f}",
        f"weights moved by at most {model.drift_:.4g}; {done / dense:.1%} of the dense multiply-adds done",
    ]
    if robust[1] > 0.95 * model._constant_loss:
        lines.append("hardly better than a constant: lower rho, or raise width or iterations")
    return lines


def _adversary(model: Any, how: str) -> str:
    return f"adversary: rho {model.rho:g} ({norm_name(model.norm)}, {model.domain}), {how}"

"""Which models can be attacked and certified, and how each is seen: scores of points, a task, the user's rows.

===========================  ==============================================================================
model                        seen as
===========================  ==============================================================================
TwoLayer                     its value; labels ±1 make it a classifier by sign, other labels a regressor
ParityNetClassifier          its network, with a column's two values joined by a straight line
RobustClassifier, -Regressor  their networks, and their own adversary unless another is asked for
MLPClassifier, MLPRegressor  scikit-learn's layers, any depth and activation
Pipeline of scalers and one  the same in the user's units; StandardScaler, MinMaxScaler and MaxAbsScaler
===========================  ==============================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from fewfire._errors import invalid
from fewfire._validate import check_inputs, check_labels
from fewfire.learners.parity_net import ParityNetClassifier
from fewfire.learners.robust import _criteria
from fewfire.learners.robust._base import RobustNetwork
from fewfire.learners.robust._estimators import encode
from fewfire.learners.robust._heads import Heads
from fewfire.learners.robust._perceptron import Perceptron
from fewfire.networks import TwoLayer

if TYPE_CHECKING:
    from fewfire._types import AnyArray, Float64Array
    from fewfire.learners.robust._criteria import Criterion
    from fewfire.learners.robust._inputs import Inputs

SUPPORTED = (
    "TwoLayer, ParityNetClassifier, RobustClassifier, RobustRegressor, scikit-learn's MLPClassifier or MLPRegressor, "
    "or a Pipeline of StandardScaler, MinMaxScaler or MaxAbsScaler and one of these"
)


@dataclass(frozen=True, eq=False)
class Target:
    """A model as attacks and certificates see it.

    Parameters
    ----------
    scores : Heads or Perceptron
        Of points of shape (rows, d).
    classes : array of shape (classes,), or None for a regressor
    inputs : Inputs, optional
        Turns rows into points where they are not the same.
    owner : RobustNetwork, optional
        Whose adversary is the default.
    """

    scores: Heads | Perceptron
    classes: AnyArray | None
    inputs: Inputs | None = None
    owner: RobustNetwork | None = None

    def points(self, X: Float64Array) -> Float64Array:
        """The points that rows (rows, columns) are."""
        return X if self.inputs is None else self.inputs.points(X)

    def rows(self, points: Float64Array, X: Float64Array) -> Float64Array:
        """The rows that moved points stand for."""
        return points if self.inputs is None else self.inputs.rows(points, X)

    def labels(self, y: object, rows: int) -> AnyArray:
        """Labels (rows,) as criteria take them."""
        if self.classes is None:
            return check_labels("y", y, rows)
        labels = np.asarray(y)
        if labels.shape != (rows,):
            raise invalid("y", f"must be a vector of {rows} labels, one per row of X", f"shape {labels.shape}")
        unknown = labels[~np.isin(labels, self.classes)]
        if unknown.size:
            rule = f"must hold classes the model knows, {', '.join(map(str, self.classes))}"
            raise invalid("y", rule, unknown[0].item(), "attack rows of these classes")
        return np.asarray(encode(self.classes, labels))

    def criterion(self, labels: AnyArray) -> Criterion:
        """What an attack raises: −margin, or the error of a regressor."""
        if self.classes is None:
            return _criteria.error(labels)
        return _criteria.negative_margin(labels, 1 if len(self.classes) == 2 else len(self.classes))


def recognise(model: Any, y: object) -> Target:
    """How a fitted model is seen; labels decide what a bare network is."""
    if isinstance(model, TwoLayer):
        signs = bool(np.all(np.isin(np.asarray(y), (-1, 1))))
        return Target(Heads((model.astype(np.float64),)), np.array([-1, 1]) if signs else None)
    if isinstance(model, Pipeline):
        return _through(model, y)
    if isinstance(model, RobustNetwork):
        heads = model.heads()
        return Target(heads, getattr(model, "classes_", None), model._inputs, model)
    if isinstance(model, ParityNetClassifier):
        check_is_fitted(model)
        return Target(_joined_signs(model), model.classes_)
    if isinstance(model, MLPClassifier | MLPRegressor):
        check_is_fitted(model)
        return Target(_perceptron(model), getattr(model, "classes_", None))
    raise invalid("model", f"must be a fitted {SUPPORTED}", f"a {type(model).__name__}")


def check_rows(target: Target, X: object) -> Float64Array:
    """A table of finite numbers with the model's columns, as float64."""
    columns = target.scores.inputs if target.inputs is None else len(target.inputs.center)
    return np.asarray(check_inputs("X", X, columns, np.dtype(np.float64)), dtype=np.float64)


def _perceptron(model: Any) -> Perceptron:
    classes = getattr(model, "classes_", None)
    single = model.n_outputs_ == 1 or (classes is not None and model.out_activation_ == "softmax")
    if not single:
        raise invalid("model", "must have one label a row", f"a {type(model).__name__} of {model.n_outputs_} outputs")
    return Perceptron.of(model)


def _joined_signs(model: Any) -> Heads:
    """The network over all columns, each with its two values joined by a straight line; constant columns weigh 0."""
    map_, active, net = model._sign_map, model.active_, model.network_.astype(np.float64)
    if not np.isnan(map_.cut[active]).all():
        rule = "must take two-valued columns as they are"
        raise invalid("model", rule, "a ParityNetClassifier with binarize='median'", "a cut has no gradient to follow")
    low, high = (np.asarray(end, dtype=np.float64) for end in (map_.low, map_.high))
    identity = (low == -1) & (high == 1)
    half = np.where(high > low, (high - low) / 2, 1.0)
    scale = np.where(identity, 1.0, -1.0 / half)
    shift = np.where(identity, 0.0, (low + high) / 2 / half)
    if not len(active):  # the one input is the constant +1
        hidden, bias = np.zeros((net.width, len(low))), net.bias + net.hidden[:, 0]
        return Heads((net.with_parameters(hidden, bias),))
    hidden = np.zeros((net.width, len(low)))
    hidden[:, active] = net.hidden
    return Heads((net.with_parameters(hidden),)).after(scale, np.where(high > low, shift, 0.0))


def _through(pipeline: Any, y: object) -> Target:
    target = recognise(pipeline.steps[-1][1], y)
    if target.inputs is not None and target.inputs.domain != "ball":
        rule = "behind scalers must have a RobustClassifier or RobustRegressor of domain 'ball'"
        raise invalid("model", rule, target.inputs.domain, "scale the table before the pipeline")
    scores = target.scores
    for _, scaler in reversed(pipeline.steps[:-1]):
        scores = scores.after(*_affine(scaler, scores.inputs))
    # The radius of the last step's own adversary is in other units than the user's.
    return replace(target, scores=scores, inputs=None, owner=None)


def _affine(scaler: Any, columns: int) -> tuple[Float64Array, Float64Array]:
    """scale and shift, each of shape (columns,), of a scaler x ↦ scale·x + shift."""
    one, zero = np.ones(columns), np.zeros(columns)
    if scaler in ("passthrough", None):
        return one, zero
    if isinstance(scaler, StandardScaler | MinMaxScaler | MaxAbsScaler):
        check_is_fitted(scaler)
    if isinstance(scaler, StandardScaler):
        scale = one if scaler.scale_ is None else 1.0 / scaler.scale_
        return scale, zero if scaler.mean_ is None or not scaler.with_mean else -scaler.mean_ * scale
    if isinstance(scaler, MinMaxScaler) and not scaler.clip:
        return scaler.scale_, scaler.min_
    if isinstance(scaler, MaxAbsScaler):
        return 1.0 / scaler.scale_, zero
    raise invalid("model", f"must be a fitted {SUPPORTED}", f"a Pipeline with {type(scaler).__name__}")

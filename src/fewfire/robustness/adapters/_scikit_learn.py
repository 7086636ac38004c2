"""scikit-learn's linear models and perceptrons, and pipelines of scalers that end in any model with an adapter.

Scores are those before the output's activation, so that a classifier decides by their sign or the largest of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fewfire._errors import invalid
from fewfire.robustness._adapter import ModelAdapter, adapter_of, register_adapter
from fewfire.robustness._formula import Layers

if TYPE_CHECKING:
    from fewfire._types import Float64Array

Affine: TypeAlias = "tuple[Float64Array | float, Float64Array | float]"

_LINEAR: Final = ("LinearClassifierMixin", "LinearModel", "BaseSGDRegressor")
"""The base classes of linear models, discriminants and support vector machines."""


@register_adapter(*(f"sklearn.linear_model.{name}" for name in _LINEAR), described="linear model of scikit-learn")
def linear_model(model: Any, X: object, y: object) -> ModelAdapter:
    """⟨coef_, x⟩ + intercept_, which `certify` bounds exactly."""
    check_is_fitted(model)
    classes = getattr(model, "classes_", None)
    coefficients = model.coef_.toarray() if hasattr(model.coef_, "toarray") else np.asarray(model.coef_)
    weights = np.atleast_2d(coefficients).astype(np.float64).T
    heads = weights.shape[1]
    if heads != (1 if classes is None or len(classes) == 2 else len(classes)):
        raise _several_outputs(model, heads)
    offsets = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (heads,))
    return ModelAdapter(Layers((weights,), (offsets,)), classes, predict=model.predict)


@register_adapter("sklearn.neural_network.MLPClassifier", "sklearn.neural_network.MLPRegressor")
def perceptron(model: Any, X: object, y: object) -> ModelAdapter:
    """Its layers, of any depth and activation; certified with one hidden layer of ReLUs."""
    check_is_fitted(model)
    classes = getattr(model, "classes_", None)
    single = model.n_outputs_ == 1 or (classes is not None and model.out_activation_ == "softmax")
    if not single:
        raise _several_outputs(model, model.n_outputs_)
    if model.out_activation_ not in ("identity", "logistic", "softmax"):
        raise invalid("model", "must end in identity, logistic or softmax", model.out_activation_)
    weights = tuple(np.asarray(layer, dtype=np.float64) for layer in model.coefs_)
    biases = tuple(np.asarray(layer, dtype=np.float64) for layer in model.intercepts_)
    return ModelAdapter(Layers(weights, biases, model.activation), classes, predict=model.predict)


@register_adapter("sklearn.pipeline.Pipeline", described="Pipeline of scalers and one of these")
def pipeline(model: Any, X: object, y: object) -> ModelAdapter:
    """The last step, seen through the scalers: in the user's units."""
    adapter = adapter_of(model.steps[-1][1], X, y)
    if adapter.space is not None:
        rule = "behind scalers must be attacked in the columns that it is given"
        remedy = "scale the table before the pipeline; of a robust estimator, use domain='ball'"
        raise invalid("model", rule, f"a {type(model.steps[-1][1]).__name__} with a space of its own", remedy)
    scores = adapter.scores
    for _, scaler in reversed(model.steps[:-1]):
        scale, shift = (np.broadcast_to(np.asarray(part, dtype=np.float64), scores.inputs) for part in _affine(scaler))
        scores = scores.after(scale, shift)
    # The radius of the last step's own adversary is in other units than the user's.
    return replace(adapter, scores=scores, threat=None, predict=adapter.predict and model.predict)


def _several_outputs(model: Any, outputs: int) -> Exception:
    return invalid("model", "must have one label per row", f"a {type(model).__name__} of {outputs} outputs")


def _affine(scaler: Any) -> Affine:
    """scale and shift of a scaler x ↦ scale·x + shift."""
    if scaler in ("passthrough", None):
        return 1.0, 0.0
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    if not isinstance(scaler, MaxAbsScaler | MinMaxScaler | StandardScaler):
        rule = "must have no other steps before its last than StandardScaler, MinMaxScaler and MaxAbsScaler"
        raise invalid("model", rule, f"a Pipeline with {type(scaler).__name__}", "transform the table beforehand")
    check_is_fitted(scaler)
    if isinstance(scaler, MaxAbsScaler):
        return 1.0 / scaler.scale_, 0.0
    if isinstance(scaler, StandardScaler):
        scale = 1.0 if scaler.scale_ is None else 1.0 / scaler.scale_
        return scale, 0.0 if scaler.mean_ is None or not scaler.with_mean else -scaler.mean_ * scale
    if scaler.clip:
        raise invalid("model", "must have scalers that do not clip", "a MinMaxScaler(clip=True)", "pass bounds instead")
    return scaler.scale_, scaler.min_

"""scikit-learn's linear models and perceptrons, and pipelines of linear steps that end in any model with an adapter.

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

Affine: TypeAlias = "tuple[Float64Array, Float64Array]"
"""scale, of shape (columns,) or a matrix (columns, outputs), and shift of x ↦ scale·x + shift."""

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


@register_adapter("sklearn.pipeline.Pipeline", described="Pipeline of scalers, PCA and one of these")
def pipeline(model: Any, X: object, y: object) -> ModelAdapter:
    """The last step, seen through the linear steps before it: in the user's units."""
    adapter = adapter_of(model.steps[-1][1], X, y)
    if adapter.space is not None:
        rule = "behind scalers must be attacked in the columns that it is given"
        remedy = "scale the table before the pipeline; of a robust estimator, use domain='ball'"
        raise invalid("model", rule, f"a {type(model.steps[-1][1]).__name__} with a space of its own", remedy)
    scores = adapter.scores
    for _, step in reversed(model.steps[:-1]):
        if step not in ("passthrough", None):
            scores = scores.after(*_affine(step))
    # A ColumnTransformer of named columns predicts frames alone, which points are not: the scores decide.
    framed = hasattr(model, "feature_names_in_") and any(hasattr(step, "transformers_") for _, step in model.steps)
    # The radius of the last step's own adversary is in other units than the user's.
    predict = None if framed or adapter.predict is None else model.predict
    return replace(adapter, scores=scores, threat=None, predict=predict)


def _several_outputs(model: Any, outputs: int) -> Exception:
    return invalid("model", "must have one label per row", f"a {type(model).__name__} of {outputs} outputs")


def _affine(step: Any) -> Affine:
    """What a fitted scaler, a PCA or a ColumnTransformer of these does to rows."""
    from sklearn.compose import ColumnTransformer
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

    if isinstance(step, FunctionTransformer) and step.func is None:  # what "passthrough" has become in a fit
        return np.ones(step.n_features_in_), np.zeros(step.n_features_in_)
    if not isinstance(step, ColumnTransformer | MaxAbsScaler | MinMaxScaler | PCA | RobustScaler | StandardScaler):
        rule = (
            "must have only linear steps before its last: StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, PCA"
        )
        got = f"a Pipeline with {type(step).__name__}"
        raise invalid("model", f"{rule}, or a ColumnTransformer of these", got, "transform the table beforehand")
    check_is_fitted(step)
    columns = step.n_features_in_
    if isinstance(step, ColumnTransformer):
        return _side_by_side(step)
    if isinstance(step, PCA):
        spread = np.sqrt(step.explained_variance_) if step.whiten else np.ones(1)
        if spread.min() < 1e-9 * spread.max():  # divided by what rounding left of 0
            got, remedy = "a PCA that whitens linearly dependent columns", "lower its n_components"
            raise invalid("model", "must have components that vary", got, remedy)
        matrix = step.components_.T / spread
        return matrix, -step.mean_ @ matrix
    ones, zeros = np.ones(columns), np.zeros(columns)
    if isinstance(step, MaxAbsScaler):
        return ones / step.scale_, zeros
    if isinstance(step, MinMaxScaler):
        if step.clip:
            rule, got = "must have scalers that do not clip", "a MinMaxScaler(clip=True)"
            raise invalid("model", rule, got, "pass bounds instead")
        return step.scale_, step.min_
    scale = ones if step.scale_ is None else ones / step.scale_
    centre = step.center_ if isinstance(step, RobustScaler) else step.mean_ if step.with_mean else None
    return scale, zeros if centre is None else -centre * scale


def _side_by_side(transformer: Any) -> Affine:
    """The parts of a ColumnTransformer as one matrix; a column that no part takes has a row of zeros."""
    columns = np.arange(transformer.n_features_in_)
    place = {name: column for column, name in enumerate(getattr(transformer, "feature_names_in_", ()))}
    weights = transformer.transformer_weights or {}
    matrices, shifts = [np.zeros((len(columns), 0))], [np.zeros(0)]
    for name, step, chosen in transformer.transformers_:
        if isinstance(chosen, slice):
            first, last = (place[end] if isinstance(end, str) else end for end in (chosen.start, chosen.stop))
            last = last + 1 if isinstance(chosen.stop, str) else last  # a slice of names has its last one in it
            picked = columns[first : last : chosen.step]
        else:
            listed = np.atleast_1d(chosen)
            if listed.size and isinstance(listed[0], str):
                listed = np.array([place[column] for column in listed])
            picked = columns[listed] if listed.size else columns[:0]
        if picked.size and not (isinstance(step, str) and step == "drop"):
            scale, shift = (part * weights.get(name, 1.0) for part in _affine(step))
            matrices.append(np.zeros((len(columns), len(shift))))
            np.add.at(matrices[-1], picked, np.diag(scale) if scale.ndim == 1 else scale)  # a column may be there twice
            shifts.append(shift)
    return np.hstack(matrices), np.concatenate(shifts)

"""What fits of several learners share: they succeed or change nothing; units of labels; weighted rows; probabilities.

A fit that raises, be it for bad data, for want of memory or by Ctrl-C, leaves the estimator as it was: one that was
fitted before predicts as before, `n_features_in_` included, and one that was not is still unfitted.

Two classes get probabilities from the values of a polynomial or network by one logistic slope, fitted to rows that it
did not see: P(+1 | value) = 1 / (1 + exp(−slope·value)), so that a class is predicted exactly where its probability is
above 1/2. Targets are drawn a little towards one half (Platt 1999), which keeps the slope finite where no such row is
wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin

from fewfire._errors import invalid
from fewfire._types import AnyArray, Float64Array
from fewfire._validate import check_number, check_sample_weight, is_balanced

Arguments = ParamSpec("Arguments")
Learner = TypeVar("Learner")
Result = TypeVar("Result")
LARGEST = 1e300  # the magnitude of a number to learn, at most: what is predicted has to stay finite
LARGEST_SLOPE, BISECTIONS = 1e3, 100  # larger slopes change nothing: values of 0.1 are certain


def all_or_nothing(
    fit: Callable[Concatenate[Learner, Arguments], Result],
) -> Callable[Concatenate[Learner, Arguments], Result]:
    """A method that takes back what it has set on its object when it raises."""

    @wraps(fit)
    def guarded(self: Learner, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        state: dict[str, Any] = vars(self)
        before = dict(state)
        try:
            return fit(self, *arguments, **options)
        except BaseException:
            state.clear()
            state.update(before)
            raise

    return guarded


def label_unit(labels: Float64Array) -> float:
    """What to divide labels by so that their squares stay finite and above 0: a power of two, 1 for ordinary ones."""
    largest = float(np.abs(labels).max())
    if largest > LARGEST:
        raise invalid("y", f"must be at most {LARGEST:g} in magnitude", largest, "measure it in other units")
    ordinary = 1e-100 < largest < 1e100 or largest == 0.0
    return 1.0 if ordinary else float(np.ldexp(1.0, int(np.frexp(largest)[1]) - 1))


def weighted_rows(table: Any, labels: AnyArray, sample_weight: object) -> tuple[Any, AnyArray, Float64Array]:
    """The rows of a table whose weight is not 0, their labels and weights (rows,)."""
    weights = check_sample_weight(sample_weight, len(labels))
    kept = np.flatnonzero(weights)
    return (table, labels, weights) if len(kept) == len(weights) else (table[kept], labels[kept], weights[kept])


def class_weighted(
    class_weight: object, classes: AnyArray, indices: AnyArray, weights: Float64Array, least: int
) -> Float64Array:
    """Weights of rows (rows,) times those of their classes, which must be above 0 for so many classes at least."""
    if class_weight is None:
        return weights
    if is_balanced(class_weight):
        totals = np.bincount(indices, weights=weights, minlength=len(classes))
        return np.asarray(weights * (totals.sum() / (len(classes) * totals))[indices])
    if not isinstance(class_weight, Mapping):
        raise invalid("class_weight", "must be None, 'balanced' or a dict of weights", class_weight)
    factors = [
        check_number(f"class_weight[{label!r}]", class_weight.get(label, 1.0), 0.0) for label in classes.tolist()
    ]
    if np.count_nonzero(factors) < least:
        rule = "must not be 0 for both classes" if least == 1 else "must be above 0 for two classes at least"
        raise invalid("class_weight", rule, dict(class_weight))
    return np.asarray(weights * np.array(factors)[indices])


def logistic_slope(values: Float64Array, labels: Float64Array, weights: Float64Array | None = None) -> float:
    """The slope of least log loss, above 0, of values (samples,) and labels ±1; NaN values do not count."""
    seen = np.isfinite(values)
    if not seen.any():
        return 1.0
    weights = np.ones(int(seen.sum())) if weights is None else weights[seen]
    values, labels = values[seen], labels[seen]
    positive, negative = float(weights[labels > 0].sum()), float(weights[labels < 0].sum())
    unit = weights.mean()
    target = np.where(labels > 0, (positive + unit) / (positive + 2 * unit), unit / (negative + 2 * unit))
    low, high = 1e-6, LARGEST_SLOPE
    # The slope of the loss rises in the slope: bisect for its zero on a logarithmic scale.
    for _ in range(BISECTIONS):
        middle = float(np.sqrt(low * high))
        if float(weights @ (values * (expit(middle * values) - target))) > 0.0:
            high = middle
        else:
            low = middle
    return float(np.sqrt(low * high))


def probabilities(scores: Float64Array) -> Float64Array:
    """The probability of each class, shape (rows, classes): of log odds (rows,), or of scores (rows, classes)."""
    if scores.ndim == 2:
        return np.asarray(softmax(scores, axis=1))
    second = expit(scores)
    return np.stack([1.0 - second, second], axis=1)


class ScoreClassifier(ClassifierMixin):  # type: ignore[misc]
    """A classifier whose `decision_function` gives scores: (rows,) for two classes, else (rows, classes)."""

    classes_: AnyArray

    def decision_function(self, X: Any) -> Any:
        """The scores of every row."""
        raise NotImplementedError

    def predict(self, X: Any) -> AnyArray:
        """The class of every row of X, shape (rows,)."""
        scores = self.decision_function(X)
        index = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])

"""`TabularRegressor`: the ensemble of `TabularClassifier` for one or several numbers per row."""

from __future__ import annotations

import datetime
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin

from fewfire._dense.losses import TabularLoss
from fewfire._dense.network import Rows
from fewfire._errors import invalid
from fewfire._types import AnyArray, Float64Array
from fewfire._validate import check_finite, counted
from fewfire.tabular._base import TabularBase


class TabularRegressor(RegressorMixin, TabularBase):  # type: ignore[misc]
    """Predict numbers from rows of a small table with an ensemble of networks and trees.

    Targets are standardised inside, several at once if y has columns; the loss is the squared error. Parameters and
    attributes are those of `TabularClassifier`, less `class_weight`, `label_smoothing` and `classes_`; the
    temperature is 1. `optimiser=None` is AdamW(learning_rate=0.002), or AdamW(epochs=30) where no rows are held out.

    Parameters
    ----------
    hidden, sparsity, members, skip, scaling, gains, trees, categorical_features, optimiser, early_stopping
    warm_start, device, n_jobs, random_state, verbose

    Attributes
    ----------
    loss_curve_, validation_curve_, n_iter_, mixing_weights_, temperature_, n_features_in_, feature_names_in_, device_

    Examples
    --------
    >>> import fewfire as ff
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(150, random_state=0)
    >>> model = ff.TabularRegressor(scaling="rank", members=2, random_state=0).fit(X[:100], y[:100])
    >>> model.score(X[100:], y[100:]) > 0.6
    True
    """

    target_checks: ClassVar[dict[str, Any]] = {"multi_output": True, "y_numeric": True}
    default_rate: ClassVar[float] = 2e-3  # errors of smooth targets follow the size of the last steps
    _centre: Float64Array
    _scale: Float64Array

    def partial_fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """One epoch of every network over these rows; the first call learns the scaling of inputs and targets.

        Columns that do not vary in the first call are not used later either.
        """
        return self._partial_fit(X, y, sample_weight)

    def predict(self, X: object) -> Float64Array:
        """Predicted numbers, shape (rows,), or (rows, outputs) if y had columns."""
        values = self._decoded(self._outputs(X))
        return values if self._columned else values[:, 0]

    def _refuse_targets(self, y: object) -> None:
        try:
            values = np.asarray(y)
        except ValueError:  # rows of several lengths
            return
        if values.dtype.kind in "mM":
            raise _date(f"dtype {values.dtype}")
        if values.ndim and values.dtype.kind in "OUS":
            for value in values.ravel().tolist():
                _refuse_other_than_number(value)

    def _learn_target(self, rows: Rows, classes: AnyArray | None = None) -> None:
        self._columned = rows.target.ndim == 2
        target = _columns_of(rows.target)
        # Squares of 1e160 or 1e-200 leave the numbers; dividing by a power of two first changes no digit.
        unit = np.ldexp(0.5, np.frexp(np.abs(target).max(axis=0))[1])
        centre = np.average(target / unit, axis=0, weights=rows.weight)
        deviation = np.sqrt(np.average((target / unit - centre) ** 2, axis=0, weights=rows.weight))
        self._centre = centre * unit
        self._scale = np.where(deviation > 0, deviation * unit, 1.0)

    def _encode(self, y: AnyArray) -> AnyArray:
        target, columns = _columns_of(y), len(self._centre)
        if target.shape[1] != columns:  # NumPy would repeat a single column
            rule = f"must have {counted(columns, 'column')}, as in the first fit"
            raise invalid("y", rule, f"shape {y.shape}", "pass as many columns, or fit a fresh estimator")
        return (target - self._centre) / self._scale

    def _decoded(self, outputs: Float64Array) -> Float64Array:
        return np.asarray(outputs * self._scale + self._centre)

    def _described_target(self, y: AnyArray) -> Float64Array:
        return self._decoded(self._encode(y))

    def _strata(self, y: AnyArray) -> AnyArray:
        return np.asarray(self._encode(y).sum(axis=1))

    def _class_factors(self, rows: Rows) -> Float64Array | float:
        return 1.0

    def _loss(self) -> TabularLoss:
        return "squared"

    def _offset(self, targets: Rows) -> AnyArray:
        return np.zeros(targets.target.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _refuse_other_than_number(value: Any) -> None:
    kind = type(value).__name__
    if isinstance(value, datetime.date | datetime.timedelta | np.datetime64 | np.timedelta64) or kind == "Period":
        raise _date(value)
    if kind == "NAType":
        raise invalid("y", "must hold finite numbers", "a missing value", "drop or impute the missing values")
    try:
        float(0 if value is None else value)  # None is NaN to NumPy, and reported as that later
    except OverflowError:
        raise invalid(
            "y", "must hold numbers below 1.8e308", "an integer beyond", "divide y by a power of ten"
        ) from None
    except (TypeError, ValueError):
        remedy = "turn the targets into numbers, or fit a TabularClassifier to classes"
        raise invalid("y", "must hold numbers", value, remedy) from None


def _date(got: object) -> Exception:
    remedy = "pass numbers, such as days since a fixed date"
    return invalid("y", "must hold numbers, not dates or spans of time", got, remedy)


def _columns_of(y: AnyArray) -> Float64Array:
    """Targets as a table; a None among them is NaN by now, which scikit-learn's own check lets pass."""
    return check_finite("y", np.asarray(y, dtype=np.float64)).reshape(len(y), -1)

"""What the classifier and the regressor share: fitting an ensemble to encoded targets, continuing it, evaluating it."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, check_random_state, check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._errors import FewfireWarning, InvalidArgument, invalid
from fewfire._random import Stream
from fewfire._validate import check_flag, check_sample_weight, refuse_masked
from fewfire.robustness import black_box, register_adapter
from fewfire.tabular._categories import category_folds, learn_categories
from fewfire.tabular._effects import Explained, find_effects
from fewfire.tabular._ensemble import Ensemble, columns_for
from fewfire.tabular._examples import Examples
from fewfire.tabular._forecast import announce
from fewfire.tabular._frames import learn_reader, readable, refuse_infinite, refuse_sparse_frame
from fewfire.tabular._preprocessing import varies
from fewfire.tabular._settings import resolve
from fewfire.tabular._summary import describe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fewfire._types import AnyArray, Float64Array
    from fewfire.tabular._categories import CategoryColumns
    from fewfire.tabular._effects import Effects
    from fewfire.tabular._frames import CategoryReader
    from fewfire.tabular._network import TabularLoss
    from fewfire.tabular._preprocessing import Columns
    from fewfire.tabular._settings import Settings


SHOWN = 5  # columns that a warning names
NUMBERS: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": False}


@dataclass(frozen=True)
class CheckedRows:
    """Checked rows: table (rows, columns) with NaN and codes of categories, y as given, weight (rows,) in (0, 1]."""

    table: Float64Array
    y: AnyArray
    weight: Float64Array


@dataclass(frozen=True)
class TargetRows:
    """Rows with encoded targets: table (rows, columns), target (rows, outputs), weight of mean 1 and strata (rows,)."""

    table: Float64Array
    target: AnyArray
    weight: AnyArray
    strata: AnyArray

    def encoded(self, columns: Columns) -> Examples:
        """The rows as inputs of networks."""
        return Examples(columns.encode(self.table), self.target, self.weight, self.strata)


class SparseInitBase(BaseEstimator, ABC):  # type: ignore[misc]
    """Fit, partial_fit and outputs; subclasses encode targets and decode outputs."""

    target_checks: ClassVar[dict[str, Any]] = {}
    default_rate: ClassVar[float] = 8e-3  # of AdamW, where rows are held out to stop by
    _ensemble: Ensemble
    _reader: CategoryReader | None = None
    _categories: CategoryColumns | None = None

    def fit(
        self, X: object, y: object, sample_weight: object = None, *, validation_data: tuple[Any, ...] | None = None
    ) -> Self:
        """Fit the ensemble.

        Parameters
        ----------
        X : table (rows, columns)
            Numbers and, in a data frame or where `categorical_features` says so, categories; NaN or None marks a
            missing value.
        y : (rows,) labels, or numbers of shape (rows,) or (rows, outputs) for the regressor
        sample_weight : (rows,), optional
            A row of weight 2 counts as two; rows of weight 0 are left out.
        validation_data : (X, y) or (X, y, sample_weight), optional
            Rows to stop early by; every network then trains on all of X.
        """
        continued = check_flag("warm_start", self.warm_start) and hasattr(self, "_ensemble")
        with _unchanged_on_error(self):
            rows = self._rows(X, y, sample_weight, reset=not continued)
            if not continued:
                self._learn_target(rows)
            targets = self._targets(rows)
            held = None if validation_data is None else self._held_targets(validation_data)
            settings = resolve(self, len(targets.table), judged=held is not None)
            ensemble, examples = self._continue(targets, crossed=True) if continued else self._begin(targets, settings)
            if held is None:
                validation = None
            else:
                validation = replace(held, table=self._numbers(held.table)).encoded(ensemble.columns)
            if self.verbose and not continued:
                announce(ensemble, examples, settings, judged=validation is not None or settings.patience is not None)
            ensemble.train(examples, validation, settings, bool(self.verbose))
            if not self.warm_start:
                ensemble.forget_training()
            return self._finish(ensemble)

    def summary(self) -> str:
        """What the fitted model is made of: members with weights and held-out losses, and how the time was spent."""
        check_is_fitted(self)
        categories = len(self._reader.codes) if self._reader is not None else 0
        of_these = f", {categories} of categories" if categories else ""
        heading = f"{type(self).__name__} of {self.n_features_in_} columns{of_these}"
        return describe(heading, self._ensemble, self.engine_)

    def explain(
        self,
        X: object,
        y: object = None,
        *,
        repeats: int = 5,
        points: int = 16,
        max_rows: int = 500,
        random_state: int | np.random.RandomState | None = 0,
    ) -> Effects:
        """Which columns the predictions rest on, and how each moves them: importances with intervals, and curves.

        Parameters
        ----------
        X : table (rows, columns)
            Best of rows that were not trained on.
        y : (rows,) or (rows, outputs), optional
            Their targets; without them importances say what the model leans on, right or wrong.
        repeats : int
            Shuffles of every column.
        points : int
            Values of a column at which its curve is computed, or categories, at most.
        max_rows : int
            Of more rows, so many are drawn.
        random_state : int, RandomState or None
        """
        table = self._table(X)
        refuse_masked("y", y, "leave out the rows where y is masked")
        self._refuse_targets(y)
        target = None if y is None else self._described_target(check_array(y, ensure_2d=False, dtype=None))
        if target is not None:
            check_consistent_length(table, target)
        codes = {} if self._reader is None else self._reader.codes
        about = Explained(
            self,
            lambda rows: self._decoded(self._ensemble.outputs(self._numbers(rows))),
            [str(name) for name in getattr(self, "feature_names_in_", [f"x{i}" for i in range(table.shape[1])])],
            {place: list(categories) for place, categories in codes.items()},
            getattr(self, "classes_", None),
        )
        random = check_random_state(random_state)
        return find_effects(about, table, target, repeats=repeats, points=points, max_rows=max_rows, random=random)

    def _partial_fit(self, X: object, y: object, sample_weight: object, classes: AnyArray | None = None) -> Self:
        """One epoch of every network over the rows; `classes` are those of a first call."""
        first = not hasattr(self, "_ensemble")
        with _unchanged_on_error(self):
            rows = self._rows(X, y, sample_weight, reset=first)
            if first:
                self._learn_target(rows, classes)
            targets = self._targets(rows)
            settings = resolve(self, len(targets.table), judged=False)
            ensemble, examples = self._begin(targets, settings) if first else self._continue(targets)
            if first:
                _judge_first_rows(targets.table, ensemble.columns, getattr(self, "feature_names_in_", None))
            ensemble.train_epoch(examples, settings, bool(self.verbose))
            return self._finish(ensemble)

    def _begin(self, targets: TargetRows, settings: Settings) -> tuple[Ensemble, Examples]:
        stream = Stream(int(check_random_state(self.random_state).randint(2**31 - 1)), "sparse_init")
        if self._reader is not None:
            targets = self._learn_categories(targets, self._reader, stream.child("categories"))
        columns = columns_for(targets.table, targets.weight, settings)
        examples = targets.encoded(columns)
        return Ensemble(columns, self._loss(), self._offset(targets), settings, stream), examples

    def _continue(self, targets: TargetRows, *, crossed: bool = False) -> tuple[Ensemble, Examples]:
        """A copy of the ensemble to go on with: training changes it in place, and may fail or be interrupted half way.

        The optimiser is shared, so that its settings can be changed between calls. A warm fit mostly sees the rows of
        the first one, whose targets are in the means of their categories: `crossed` gives them those of other folds.
        """
        ensemble = copy.deepcopy(self._ensemble, {id(self.optimiser): self.optimiser})
        if crossed and self._categories is not None:
            targets = self._crossed(targets, self._categories, ensemble.stream.child("categories"))
        else:
            targets = replace(targets, table=self._numbers(targets.table))
        return ensemble, targets.encoded(ensemble.columns)

    def _learn_categories(self, targets: TargetRows, reader: CategoryReader, stream: Stream) -> TargetRows:
        """Learn what categories become; the rows with numbers in their place that do not know their own targets."""
        codes = {place: len(codes) for place, codes in reader.codes.items()}
        self._categories = learn_categories(codes, targets.table, targets.target, targets.weight)
        return self._crossed(targets, self._categories, stream)

    def _crossed(self, targets: TargetRows, categories: CategoryColumns, stream: Stream) -> TargetRows:
        folds = category_folds(targets.strata, stream)
        return replace(targets, table=categories.crossed(targets.table, targets.target, targets.weight, folds))

    def _numbers(self, table: Float64Array) -> Float64Array:
        """A table (rows, columns) with numbers in place of codes."""
        return table if self._categories is None else self._categories.transform(table)

    def _finish(self, ensemble: Ensemble) -> Self:
        self._ensemble, curves = ensemble, ensemble.main().curves
        self.loss_curve_, self.validation_curve_ = list(curves.training), list(curves.validation)
        self.n_iter_, self.engine_ = len(curves.training), "torch" if self.engine == "torch" else "cpu"
        self.temperature_ = ensemble.temperature
        self.mixing_weights_ = ensemble.mixing_weights()
        return self

    def _rows(self, X: object, y: object, sample_weight: object, *, reset: bool) -> CheckedRows:
        refuse_masked("y", y, "leave out the rows where y is masked")
        self._refuse_targets(y)
        with readable(X):
            if reset:
                self._categories, self._reader = None, learn_reader(X, self.categorical_features)
            if self._reader is None:
                refuse_sparse_frame(X)
                table, target = validate_data(self, X, y, reset=reset, **NUMBERS, **self.target_checks)
            else:
                validate_data(self, X, y, reset=reset, skip_check_array=True)  # names and numbers of columns
                table, target = check_X_y(self._reader.read(X), y, **NUMBERS, **self.target_checks)
        refuse_infinite(table, getattr(self, "feature_names_in_", None))
        weight, kept = _relative(check_sample_weight(sample_weight, len(table)))
        return CheckedRows(table[kept], target[kept], weight[kept])

    def _targets(self, rows: CheckedRows) -> TargetRows:
        with np.errstate(over="ignore"):  # the loss will not be finite, and says so
            target = np.ascontiguousarray(self._encode(rows.y), dtype=np.float32)
        weight, kept = _relative(rows.weight * self._class_factors(rows))  # of labels that are known by now
        if not kept.any():
            raise invalid("class_weight", "must leave some row a weight above 0", self.class_weight)
        weight = weight[kept]
        scaled = (weight / weight.mean()).astype(np.float32)
        return TargetRows(rows.table[kept], target[kept], scaled, self._strata(rows.y[kept]))

    def _held_targets(self, validation_data: tuple[Any, ...]) -> TargetRows:
        if not isinstance(validation_data, tuple) or len(validation_data) not in (2, 3):
            got = f"a {type(validation_data).__name__}"
            raise invalid("validation_data", "must be a tuple (X, y) or (X, y, sample_weight)", got)
        X, y, *weight = validation_data
        try:
            return self._targets(self._rows(X, y, weight[0] if weight else None, reset=False))
        except (TypeError, ValueError) as error:  # scikit-learn's of sparse matrices is a TypeError
            raise InvalidArgument(f"validation_data: {error}") from None

    def _outputs(self, X: object) -> Float64Array:
        """Mean output (rows, outputs) of networks and trees, float64; that of a row does not depend on other rows."""
        table = self._table(X)
        return self._ensemble.outputs(self._numbers(table))

    def _table(self, X: object) -> Float64Array:
        """Checked numbers and codes of categories (rows, columns)."""
        check_is_fitted(self)
        with readable(X):
            if self._reader is None:
                refuse_sparse_frame(X)
                table = validate_data(self, X, reset=False, **NUMBERS)
            else:
                validate_data(self, X, reset=False, skip_check_array=True)
                table = check_array(self._reader.read(X), **NUMBERS)
        return refuse_infinite(table, getattr(self, "feature_names_in_", None))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_iter_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @abstractmethod
    def _refuse_targets(self, y: object) -> None:
        """Refuse values of the wrong kind, in words of their own; the rest, and None, is left to scikit-learn."""

    @abstractmethod
    def _learn_target(self, rows: CheckedRows, classes: AnyArray | None = None) -> None:
        """Learn what the targets are, such as the classes where they are not given."""

    @abstractmethod
    def _encode(self, y: AnyArray) -> AnyArray:
        """Targets as the networks learn them: shape (rows, outputs)."""

    @abstractmethod
    def _decoded(self, outputs: Float64Array) -> Float64Array:
        """Outputs (rows, outputs) as they are read: chances (rows, classes), or numbers (rows, outputs)."""

    @abstractmethod
    def _described_target(self, y: AnyArray) -> Float64Array:
        """Targets as `_decoded` would predict them."""

    @abstractmethod
    def _strata(self, y: AnyArray) -> AnyArray:
        """What held-out parts are balanced by: shape (rows,)."""

    @abstractmethod
    def _class_factors(self, rows: CheckedRows) -> Float64Array | float:
        """Weights of the classes, row by row, or 1."""

    @abstractmethod
    def _loss(self) -> TabularLoss:
        """The name of the loss."""

    @abstractmethod
    def _offset(self, targets: TargetRows) -> AnyArray:
        """Where the outputs start: shape (outputs,)."""


def _relative(weight: Float64Array) -> tuple[Float64Array, AnyArray]:
    """Weights as parts of the largest, so that sums of them stay finite, and which rows count in float32."""
    relative = weight / (weight.max() or 1.0)
    return relative, relative > np.finfo(np.float32).tiny


def _judge_first_rows(table: Float64Array, columns: Columns, names: AnyArray | None) -> None:
    """Refuse first rows of partial_fit (rows, columns) that leave no column to learn from; tell which they drop."""
    if not len(columns.places):
        rule = "must have columns that vary in the first call of partial_fit, which settles those that are used"
        got = "a single row" if len(table) == 1 else f"a table of {len(table)} rows in which none does"
        raise invalid("X", rule, got, "begin with more rows")
    idle = [place for place, column in enumerate(table.T) if not varies(column)]
    if idle:
        shown = ", ".join(str(place) if names is None else repr(str(names[place])) for place in idle[:SHOWN])
        more = f" and {len(idle) - SHOWN} more" if len(idle) > SHOWN else ""
        text = (
            f"X does not vary in column{'s' if len(idle) > 1 else ''} {shown}{more} in the first call of partial_fit, "
            "which settles the columns that are used: later calls will not use them. Remedy: begin with more rows."
        )
        warnings.warn(text, FewfireWarning, stacklevel=4)


@contextmanager
def _unchanged_on_error(estimator: object) -> Iterator[None]:
    """Give an estimator back the attributes it had, should the block raise."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


# Ranks and piecewise-linear encodings of the columns have kinks by the hundred, and inputs are rounded to float32:
# slopes over a share of ρ lead further than the gradient at a point would.
register_adapter(SparseInitBase, described="SparseInitClassifier, SparseInitRegressor")(black_box)

"""What the classifier and the regressor share: settings, fitting an ensemble to encoded targets, continuing it."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, check_random_state, check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from fewfire._dense.network import Rows
from fewfire._dense.optimisers import AdamW, Optimiser
from fewfire._errors import FewfireWarning, InvalidArgument, invalid
from fewfire._random import Stream
from fewfire._threads import job_count
from fewfire._validate import (
    check_choice,
    check_flag,
    check_integer,
    check_number,
    check_sample_weight,
    refuse_masked,
)
from fewfire.robustness import black_box, register_adapter
from fewfire.tabular._effects import Explained, find_effects, find_importances
from fewfire.tabular._encodings import ENCODINGS, varies
from fewfire.tabular._ensemble import TRIAL_ROWS, Ensemble, columns_for
from fewfire.tabular._frames import (
    category_folds,
    check_groups,
    dense,
    learn_categories,
    learn_reader,
    plain_numbers,
    readable,
    refuse_infinite,
    row_groups,
)
from fewfire.tabular._training import FitProgress

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from fewfire._dense.losses import TabularLoss
    from fewfire._types import AnyArray, Float64Array
    from fewfire.tabular._effects import Effects
    from fewfire.tabular._encodings import Columns
    from fewfire.tabular._frames import CategoricalFeatures, CategoryColumns, CategoryReader


PATIENCE = 8  # epochs without a better held-out loss
PATIENCE_OF_MANY = 6  # of more than TRIAL_ROWS rows, whose held-out loss varies less; and in their trial
SEEN = 200  # training rows that are kept for importances
FEWEST = 20  # rows; below, nothing is held out
SHORT = 30  # epochs where nothing is held out and the optimiser is the default one
SHOWN = 5  # columns that a warning names
NUMBERS: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": False}


Device = Literal["cpu", "cuda"]
Gains = Literal["auto", "none", "mild", "strong"]


@dataclass(frozen=True)
class Settings:
    """Checked settings of one fit."""

    hidden: tuple[int, ...]
    sparsity: int | None
    members: int
    skip: bool
    scaling: str
    gains: str
    trees: bool
    smoothing: float
    optimiser: Optimiser
    patience: int | None
    threads: int
    device: str
    progress: FitProgress


@dataclass(eq=False, repr=False)
class TabularParameters(BaseEstimator):  # type: ignore[misc]
    """The parameters of both estimators; see `TabularClassifier`."""

    hidden: tuple[int, ...] = (256, 64)
    _: KW_ONLY
    sparsity: int | None = 2
    members: int = 4
    skip: bool = True
    scaling: str = "auto"
    gains: Gains = "auto"
    trees: bool = True
    categorical_features: CategoricalFeatures = "auto"
    optimiser: Optimiser | None = None
    early_stopping: Literal["auto"] | bool | int = "auto"
    warm_start: bool = False
    device: Device = "cpu"
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: bool | int = False


class TabularBase(TabularParameters, ABC):
    """Fit, partial_fit and outputs; subclasses encode targets and decode outputs."""

    target_checks: ClassVar[dict[str, Any]] = {}
    default_rate: ClassVar[float] = 8e-3  # of AdamW, where rows are held out to stop by
    _ensemble: Ensemble
    _reader: CategoryReader | None = None
    _categories: CategoryColumns | None = None
    _importances: Float64Array | None

    def fit(
        self, X: object, y: object, sample_weight: object = None, *, groups: object = None, validation_data: Any = None
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
        groups : (rows,), optional
            Labels of what rows come from, such as patients: rows of one are held out together, and a row without a
            label alone. Copies of a row always are, where 20 rows or more differ.
        validation_data : (X, y) or (X, y, sample_weight), optional
            Rows to stop early by; every network then trains on all of X.
        """
        continued = check_flag("warm_start", self.warm_start) and hasattr(self, "_ensemble")
        with _unchanged_on_error(self):
            rows = self._rows(X, y, sample_weight, groups, reset=not continued)
            if not continued:
                self._learn_target(rows)
            targets = self._targets(rows)
            validation = None if validation_data is None else self._validation_rows(validation_data)
            settings = resolve(self, len(targets), validated=validation is not None)
            ensemble, encoded = self._continue(targets, crossed=True) if continued else self._begin(targets, settings)
            if validation is not None:
                validation = replace(validation, X=ensemble.columns.encode(self._numbers(validation.X)))
            ensemble.train(encoded, validation, settings)
            if not self.warm_start:
                ensemble.forget_training()
            return self._finish(ensemble, settings)

    def summary(self) -> str:
        """A description of the fitted model: members with weights and held-out losses, and how the time was spent."""
        check_is_fitted(self)
        categories = len(self._reader.codes) if self._reader is not None else 0
        of_these = f", {categories} of categories" if categories else ""
        heading = f"{type(self).__name__} of {self.n_features_in_} columns{of_these}"
        return _described(heading, self._ensemble, self.device_)

    @property
    def feature_importances_(self) -> Float64Array:
        """Importances (columns,) as `explain` finds them on up to 200 training rows: shares of 1, none below 0."""
        check_is_fitted(self)
        if self._importances is None:
            table, target = self._seen
            lost, *_ = find_importances(self._explained(table), table, self._described_target(target), 2, 0)
            self._importances = np.maximum(lost, 0.0) / (np.maximum(lost, 0.0).sum() or 1.0)
        return self._importances

    def export_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the whole model, from raw columns to predictions, as an ONNX file (extra `onnx`).

        Inputs are `X` (rows, columns of numbers), float64, NaN where missing, and where there is text `categories`
        (rows, columns of text); an empty text is missing, or what the metadata name where that is a category. Outputs
        are `label` and `probabilities` (rows, the metadata's `classes`), or `prediction`, by onnxruntime 1.21 or newer.
        """
        check_is_fitted(self)
        from fewfire.tabular._export import export  # late: few export, and it needs a package

        export(self, path)

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
            Their targets; without them importances are those of the predictions, right or wrong.
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
        random, about = check_random_state(random_state), self._explained(table)
        return find_effects(about, table, target, repeats=repeats, points=points, max_rows=max_rows, random=random)

    def _explained(self, table: Float64Array) -> Explained:
        codes = {} if self._reader is None else self._reader.codes
        return Explained(
            self,
            lambda rows: self._decoded(self._ensemble.outputs(self._numbers(rows))),
            [str(name) for name in getattr(self, "feature_names_in_", [f"x{i}" for i in range(table.shape[1])])],
            {index: list(categories) for index, categories in codes.items()},
            getattr(self, "classes_", None),
        )

    def _partial_fit(self, X: object, y: object, sample_weight: object, classes: AnyArray | None = None) -> Self:
        """One epoch of every network over the rows; `classes` are those of a first call."""
        first = not hasattr(self, "_ensemble")
        with _unchanged_on_error(self):
            rows = self._rows(X, y, sample_weight, reset=first)
            if first:
                self._learn_target(rows, classes)
            targets = self._targets(rows)
            settings = resolve(self, len(targets), validated=False)
            ensemble, encoded = self._begin(targets, settings) if first else self._continue(targets)
            if first:
                _check_first_rows(targets.X, ensemble.columns, getattr(self, "feature_names_in_", None))
            ensemble.train_epoch(encoded, settings)
            return self._finish(ensemble, settings)

    def _begin(self, targets: Rows, settings: Settings) -> tuple[Ensemble, Rows]:
        """A fresh ensemble, and the rows encoded for it."""
        stream = Stream(int(check_random_state(self.random_state).randint(2**31 - 1)), "sparse_init")
        if self._reader is not None:
            codes = {index: len(codes) for index, codes in self._reader.codes.items()}
            self._categories = learn_categories(codes, targets)
            targets = self._crossed(targets, self._categories, stream.child("categories"))
        columns = columns_for(targets.X, targets.weight, settings)
        ensemble = Ensemble(columns, self._loss(), self._offset(targets), settings, stream)
        return ensemble, replace(targets, X=columns.encode(targets.X))

    def _continue(self, targets: Rows, *, crossed: bool = False) -> tuple[Ensemble, Rows]:
        """A copy of the ensemble to go on with: training changes it in place, and may fail or be interrupted half way.

        The optimiser is shared, so that its settings can be changed between calls. A warm fit mostly sees the rows of
        the first one, whose targets are in the means of their categories: `crossed` gives them those of other folds.
        """
        ensemble = copy.deepcopy(self._ensemble, {id(self.optimiser): self.optimiser})
        if crossed and self._categories is not None:
            targets = self._crossed(targets, self._categories, ensemble.stream.child("categories"))
        else:
            targets = replace(targets, X=self._numbers(targets.X))
        return ensemble, replace(targets, X=ensemble.columns.encode(targets.X))

    def _crossed(self, targets: Rows, categories: CategoryColumns, stream: Stream) -> Rows:
        """The rows with numbers in place of codes that are not made of their own targets."""
        return replace(targets, X=categories.crossed(targets, category_folds(targets, stream)))

    def _numbers(self, table: Float64Array) -> Float64Array:
        """A table (rows, columns) with numbers in place of codes."""
        return table if self._categories is None else self._categories.transform(table)

    def _finish(self, ensemble: Ensemble, settings: Settings) -> Self:
        settings.progress.finish()
        self._importances = None
        self._ensemble, curves = ensemble, ensemble.main().curves
        self.loss_curve_, self.validation_curve_ = list(curves.training), list(curves.validation)
        self.n_iter_, self.device_ = len(curves.training), self.device
        self.temperature_ = ensemble.temperature
        self.mixing_weights_ = ensemble.mixing_weights()
        return self

    def _rows(self, X: object, y: object, sample_weight: object, groups: object = None, *, reset: bool) -> Rows:
        """Checked rows: X (rows, columns) with NaN and codes of categories, y as given, weights in (0, 1]."""
        refuse_masked("y", y, "leave out the rows where y is masked")
        self._refuse_targets(y)
        with readable(X := dense(X)):
            if reset:
                self._categories, self._reader = None, learn_reader(X, self.categorical_features)
            if self._reader is None:
                table, target = validate_data(self, X, y, reset=reset, **NUMBERS, **self.target_checks)
            else:
                validate_data(self, X, y, reset=reset, skip_check_array=True)  # names and numbers of columns
                table, target = check_X_y(self._reader.read(X), y, **NUMBERS, **self.target_checks)
        refuse_infinite(table, getattr(self, "feature_names_in_", None))
        weight, kept = _relative(check_sample_weight(sample_weight, len(table)))
        given = None if groups is None else check_groups(groups, len(table))[kept]
        if reset:
            chosen = np.random.RandomState(0).permutation(np.flatnonzero(kept))[:SEEN]
            self._seen = table[chosen], target[chosen]
        return Rows(table[kept], target[kept], weight[kept], groups=given)

    def _targets(self, rows: Rows) -> Rows:
        """Rows with encoded targets (rows, outputs), weights of mean 1, and strata; all float32 but the strata."""
        with np.errstate(over="ignore"):  # an error of the loss, which is not finite, follows
            target = np.ascontiguousarray(self._encode(rows.target), dtype=np.float32)
        weight, kept = _relative(rows.weight * self._class_factors(rows))  # of labels that are known by now
        if not kept.any():
            raise invalid("class_weight", "must leave some row a weight above 0", self.class_weight)
        weight = weight[kept]
        scaled = (weight / weight.mean()).astype(np.float32)
        table, given = rows.X[kept], None if rows.groups is None else rows.groups[kept]
        return Rows(table, target[kept], scaled, self._strata(rows.target[kept]), groups=row_groups(table, given))

    def _validation_rows(self, validation_data: object) -> Rows:
        if not isinstance(validation_data, tuple) or len(validation_data) not in (2, 3):
            got = f"a {type(validation_data).__name__}"
            raise invalid("validation_data", "must be a tuple (X, y) or (X, y, sample_weight)", got)
        X, y, *weight = validation_data
        try:
            return self._targets(self._rows(X, y, weight[0] if weight else None, reset=False))
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"validation_data: {error}") from None

    def _outputs(self, X: object) -> Float64Array:
        """Mean output (rows, outputs) of networks and trees, float64; that of a row does not depend on other rows."""
        table = self._table(X)
        return self._ensemble.outputs(self._numbers(table))

    def _table(self, X: object) -> Float64Array:
        """Checked numbers and codes of categories (rows, columns)."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if self._reader is None and (plain := plain_numbers(X, names)) is not None:
            return refuse_infinite(plain, names)
        with readable(X := dense(X)):
            if self._reader is None:
                table = validate_data(self, X, reset=False, ensure_min_samples=0, **NUMBERS)
            else:
                validate_data(self, X, reset=False, skip_check_array=True)
                table = check_array(self._reader.read(X), ensure_min_samples=0, **NUMBERS)
        return refuse_infinite(table, names)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_iter_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _refuse_targets(self, y: object) -> None:
        """Refuse values of the wrong kind, in words of their own; the rest, and None, is left to scikit-learn."""

    @abstractmethod
    def _learn_target(self, rows: Rows, classes: AnyArray | None = None) -> None:
        """Learn what the targets are, such as the classes where they are not given."""

    @abstractmethod
    def _encode(self, y: AnyArray) -> AnyArray:
        """Targets as the networks learn them: shape (rows, outputs)."""

    @abstractmethod
    def _decoded(self, outputs: Float64Array) -> Float64Array:
        """Outputs (rows, outputs) as probabilities (rows, classes), or numbers (rows, outputs)."""

    @abstractmethod
    def _described_target(self, y: AnyArray) -> Float64Array:
        """Targets as `_decoded` would predict them."""

    @abstractmethod
    def _strata(self, y: AnyArray) -> AnyArray:
        """What folds are balanced by: shape (rows,)."""

    @abstractmethod
    def _class_factors(self, rows: Rows) -> Float64Array | float:
        """Weights of the classes, row by row, or 1."""

    @abstractmethod
    def _loss(self) -> TabularLoss:
        """The name of the loss."""

    @abstractmethod
    def _offset(self, targets: Rows) -> AnyArray:
        """Where the outputs start: shape (outputs,)."""


def _relative(weight: Float64Array) -> tuple[Float64Array, AnyArray]:
    """Weights as parts of the largest, so that sums of them stay finite, and which rows count in float32."""
    relative = weight / (weight.max() or 1.0)
    return relative, relative > np.finfo(np.float32).tiny


def _check_first_rows(table: Float64Array, columns: Columns, names: AnyArray | None) -> None:
    """Refuse first rows of partial_fit (rows, columns) that leave no column to learn from; warn of those they drop."""
    if not len(columns.used):
        rule = "must have columns that vary in the first call of partial_fit, which settles those that are used"
        got = "a single row" if len(table) == 1 else f"a table of {len(table)} rows in which none does"
        raise invalid("X", rule, got, "begin with more rows")
    idle = [index for index, column in enumerate(table.T) if not varies(column)]
    if idle:
        shown = ", ".join(str(index) if names is None else repr(str(names[index])) for index in idle[:SHOWN])
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


def resolve(estimator: Any, rows: int, *, validated: bool) -> Settings:
    """The settings of an estimator for a table of so many rows; raises on the first that breaks its rule.

    `validated`: whether other rows are given to stop by.
    """
    optimiser = estimator.optimiser
    if optimiser is not None and not isinstance(optimiser, Optimiser):
        raise invalid("optimiser", "must be an AdamW, an SGD or None", optimiser, "pass fewfire.tabular.AdamW(...)")
    patience = _patience(estimator.early_stopping, rows, validated or rows >= FEWEST)
    if optimiser is None:
        stops = validated or patience is not None
        optimiser = AdamW(learning_rate=estimator.default_rate) if stops else AdamW(epochs=SHORT)
    optimiser.check()
    sparsity = estimator.sparsity
    check_flag("warm_start", estimator.warm_start)
    verbose = estimator.verbose
    if not isinstance(verbose, bool | np.bool_ | int | np.integer) or verbose < 0:
        raise invalid("verbose", "must be True, False or 2, which logs every epoch", verbose)
    smoothing = getattr(estimator, "label_smoothing", 0.0)  # a regressor has none
    remedy = "0 trains on the labels as they are"
    return Settings(
        hidden=_hidden(estimator.hidden),
        sparsity=None if sparsity is None else check_integer("sparsity", sparsity, 1, remedy="None is a dense start"),
        members=check_integer("members", estimator.members, 1),
        skip=check_flag("skip", estimator.skip),
        scaling=check_choice("scaling", estimator.scaling, ("auto", *ENCODINGS)),
        gains=check_choice("gains", estimator.gains, get_args(Gains)),
        trees=check_flag("trees", estimator.trees),
        smoothing=check_number("label_smoothing", smoothing, 0.0, 1.0, open_high=True, remedy=remedy),
        optimiser=optimiser,
        patience=patience,
        threads=job_count(estimator.n_jobs),
        device=_device(estimator.device),
        progress=FitProgress(int(verbose)),
    )


def _device(name: object) -> str:
    """A device that can train networks here."""
    device = check_choice("device", name, get_args(Device))
    if device == "cuda":
        from fewfire.tabular import _gpu

        _gpu.check_gpu()
    return device


def _hidden(widths: int | Sequence[int]) -> tuple[int, ...]:
    try:
        layers = (widths,) if isinstance(widths, int | np.integer) else tuple(widths)
    except TypeError:
        layers = ()
    if not 1 <= len(layers) <= 3:
        raise invalid("hidden", "must give the widths of one to three layers", widths, "pass (1000, 64) for example")
    return tuple(check_integer(f"hidden[{layer}]", width, 1) for layer, width in enumerate(layers))


def _patience(early_stopping: object, rows: int, enough: bool) -> int | None:
    default = PATIENCE if rows <= TRIAL_ROWS else PATIENCE_OF_MANY
    if isinstance(early_stopping, str) and early_stopping == "auto":
        return default if enough else None
    if isinstance(early_stopping, bool | np.bool_):
        return default if early_stopping else None
    return check_integer("early_stopping", early_stopping, 1, remedy="pass 'auto', False, True or a number of epochs")


COUNTED = {"cpu": "all threads added up", "cuda": "networks by the clock, threads of trees added up"}
"""How time was taken, by device."""


def _described(heading: str, ensemble: Ensemble, device: str) -> str:
    """A table of the members, weightiest first, and a line about temperature and time."""
    lines = [heading, f"{'member':32s} {'weight':>7s}  {'held-out loss':>13s}  trained"]
    weights = ensemble.mixing_weights()
    details = {name: ("", trees.description()) for name, trees in ensemble.trees.items()}
    for variant, group in ensemble.groups.items():
        lowest = f"{min(group.curves.validation):.4f}" if group.curves.validation else ""
        epochs = len(group.curves.training)
        annealed = f", {group.annealed} of annealing" if group.annealed else ""
        details[str(variant)] = lowest, ("1 epoch" if epochs == 1 else f"{epochs} epochs") + annealed
    for name in sorted(weights, key=lambda name: -weights[name]):
        loss, trained = details[name]
        lines.append(f"{name:32s} {weights[name]:7.3f}  {loss:>13s}  {trained}")
    if ensemble.loss != "squared":
        lines.append(f"temperature of the networks: {ensemble.temperature:.2f}")
    spent = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in ensemble.seconds.items())
    lines.append(f"time, {COUNTED[device]}: {spent or 'not known'}")
    return "\n".join(lines)


# Ranks and piecewise-linear encodings of the columns have kinks by the hundred, and inputs are rounded to float32:
# slopes over a share of ρ lead further than the gradient at a point would.
register_adapter(TabularBase, described="TabularClassifier, TabularRegressor")(black_box)

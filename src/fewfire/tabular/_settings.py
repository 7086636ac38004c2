"""The default rule, and the checks of the settings an estimator was made with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from fewfire._cores import job_count
from fewfire._errors import invalid
from fewfire._validate import check_choice, check_flag, check_integer, check_number
from fewfire.tabular._encodings import ENCODINGS
from fewfire.tabular._optimisers import AdamW, Optimiser

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDS = 4  # each network trains on three of four parts
TRIAL_ROWS = 2000  # of more rows, so many choose the variants of the inputs
TRIAL_EPOCHS = 20  # at most: who is best shows early
TRIAL_NETWORKS = 2  # of each variant, at most; they are judged by the same rows
FINALISTS = 4  # variants that are then trained on all rows
PATIENCE = 8  # epochs without a better held-out loss
PATIENCE_OF_MANY = 6  # of more than TRIAL_ROWS rows, whose held-out loss shakes less; and in their trial
FEWEST = 20  # rows; below, nothing is held out
SHORT = 30  # epochs where nothing is held out and the optimiser is the default one

EngineName = Literal["auto", "cpu", "torch"]
GainName = Literal["auto", "none", "mild", "strong"]


@dataclass(frozen=True)
class Settings:
    """What one fit goes by."""

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
    engine: str


def folds_of(rows: int) -> int:
    """Into how many parts so many rows are divided, of which each network leaves one out."""
    return min(FOLDS, rows)


def resolve(estimator: Any, rows: int, *, judged: bool) -> Settings:
    """The settings of an estimator for a table of so many rows; raises on the first that breaks its rule.

    `judged` says whether other rows are given to stop by.
    """
    optimiser = estimator.optimiser
    if optimiser is not None and not isinstance(optimiser, Optimiser):
        raise invalid("optimiser", "must be an AdamW, an SGD or None", optimiser, "pass fewfire.tabular.AdamW(...)")
    patience = _patience(estimator.early_stopping, rows, judged or rows >= FEWEST)
    if optimiser is None:
        stops = judged or patience is not None
        optimiser = AdamW(learning_rate=estimator.default_rate) if stops else AdamW(epochs=SHORT)
    optimiser.check()
    sparsity = estimator.sparsity
    check_flag("warm_start", estimator.warm_start)
    _check_verbose(estimator.verbose)
    return Settings(
        hidden=_hidden(estimator.hidden),
        sparsity=None if sparsity is None else check_integer("sparsity", sparsity, 1, remedy="None is a dense start"),
        members=check_integer("members", estimator.members, 1),
        skip=check_flag("skip", estimator.skip),
        scaling=check_choice("scaling", estimator.scaling, ("auto", *ENCODINGS)),
        gains=check_choice("gains", estimator.gains, get_args(GainName)),
        trees=check_flag("trees", estimator.trees),
        smoothing=_smoothing(estimator),
        optimiser=optimiser,
        patience=patience,
        threads=job_count(estimator.n_jobs),
        engine=check_choice("engine", estimator.engine, get_args(EngineName)),
    )


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


def _check_verbose(verbose: object) -> None:
    """A boolean; scikit-learn's users also write levels as numbers, of which 0 is silent and all others are alike."""
    if not isinstance(verbose, bool | np.bool_ | int | np.integer) or verbose < 0:
        raise invalid("verbose", "must be True or False", verbose)


def _smoothing(estimator: Any) -> float:
    """Of the labels; a regressor has none."""
    given = getattr(estimator, "label_smoothing", 0.0)
    return check_number("label_smoothing", given, 0.0, 1.0, open_high=True, remedy="0 trains on the labels as they are")

"""A table of examples with what is known about its columns, and random splits of it (pareto, appendix C.3).

A split holds a tenth of the rows for testing, and a fraction of the others for training. Each trial draws both anew.
The draw depends on the data set's name, its number of rows and the trial alone, so every model sees the same rows, on
every machine. Rows are drawn without regard to their class (the paper says nothing of strata), and in one trial the
training set of a smaller fraction is part of that of a larger one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._types import AnyArray, Float64Array, IdArray
from fewfire._validate import check_integer, check_number

CAP = 20_000
"""Training rows at most; the paper has no such limit."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """A tabular data set, as `load` gives it: rows in the order of the source, which may be sorted by class.

    Parameters
    ----------
    name : str
    X : float32 array of shape (rows, features)
        Raw values; categorical columns hold the number of the category.
    y : int64 array of shape (rows,) for classification, float64 for regression
        Classes are numbered 0, 1, … in sorted order of their names.
    task : "classification" or "regression"
    feature_names : tuple of str
    categorical : bool array of shape (features,)
    source : str
        Where it came from: a path, or "OpenML" and the number there.
    """

    name: str
    X: NDArray[np.float32]
    y: AnyArray
    task: str
    feature_names: tuple[str, ...]
    categorical: NDArray[np.bool_]
    source: str

    def __post_init__(self) -> None:
        rows, features = self.X.shape
        if len(self.y) != rows:
            raise invalid("y", f"must have {rows} values, one per row of X", f"shape {self.y.shape}")
        if len(self.feature_names) != features or self.categorical.shape != (features,):
            got = f"a mask of shape {self.categorical.shape} and {len(self.feature_names)} names"
            raise invalid("feature_names and categorical", f"must describe the {features} columns of X", got)

    def __len__(self) -> int:
        return len(self.X)

    def standardised(self, rows: IdArray) -> Float64Array:
        """These rows, their columns with mean 0 and deviation 1 over the whole set, as the paper has them."""
        centre, spread = self._moments
        return np.asarray((self.X[rows] - centre) / spread)

    @cached_property
    def _moments(self) -> tuple[Float64Array, Float64Array]:
        spread = self.X.std(axis=0, dtype=np.float64)
        return self.X.mean(axis=0, dtype=np.float64), np.where(spread > 0, spread, 1)


def encode_classes(labels: AnyArray) -> NDArray[np.int64]:
    """Classes of any type as 0, 1, … in sorted order, shape (rows,)."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint rows to train and to test on, by number and in random order."""

    dataset: Dataset
    train: IdArray
    test: IdArray

    @property
    def X_train(self) -> NDArray[np.float32]:
        """The training inputs, shape (training rows, features)."""
        return self.dataset.X[self.train]

    @property
    def y_train(self) -> AnyArray:
        """The training targets, shape (training rows,)."""
        return self.dataset.y[self.train]

    @property
    def X_test(self) -> NDArray[np.float32]:
        """The test inputs, shape (test rows, features)."""
        return self.dataset.X[self.test]

    @property
    def y_test(self) -> AnyArray:
        """The test targets, shape (test rows,)."""
        return self.dataset.y[self.test]


def split(dataset: Dataset, trial: int, fraction: float = 1.0, cap: int | None = CAP) -> Split:
    """The split of one trial.

    Parameters
    ----------
    dataset : Dataset
    trial : int
        From 0; each has its own test set.
    fraction : float in (0, 1]
        Share of the rows outside the test set to train on; rounded, at least one row.
    cap : int, optional
        Training rows at most; None is no limit.
    """
    check_integer("trial", trial, 0)
    rows = check_integer("rows of the data set", len(dataset), 2)
    size = training_rows(rows, fraction, cap)
    order = Stream.of_run(f"tabular/{dataset.name}/{trial}", "split").permutation(rows)
    held_out = held_out_rows(rows)
    return Split(dataset, order[held_out : held_out + size], order[:held_out])


def training_rows(rows: int, fraction: float, cap: int | None = CAP) -> int:
    """How many of the rows of a data set `split` gives to train on.

    Examples
    --------
    >>> import fewfire as ff
    >>> ff.problems.tabular.training_rows(20_000, fraction=0.1)
    1800
    """
    check_number("fraction", fraction, 0.0, 1.0, open_low=True)
    size = max(1, round(fraction * (rows - held_out_rows(rows))))
    return size if cap is None else min(size, check_integer("cap", cap, 1))


def held_out_rows(rows: int) -> int:
    """How many rows of a data set are held out for testing: a tenth."""
    return max(1, round(rows / 10))

"""A table of examples with what is known about its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import invalid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fewfire._types import AnyArray


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
            raise invalid("y", f"must have {rows} values, one a row of X", f"shape {self.y.shape}")
        if len(self.feature_names) != features or self.categorical.shape != (features,):
            got = f"a mask of shape {self.categorical.shape} and {len(self.feature_names)} names"
            raise invalid("feature_names and categorical", f"must describe the {features} columns of X", got)

    def __len__(self) -> int:
        return len(self.X)


def encode_classes(labels: AnyArray) -> NDArray[np.int64]:
    """Classes of any type as 0, 1, … in sorted order, shape (rows,)."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)

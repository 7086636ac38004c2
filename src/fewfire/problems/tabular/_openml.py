"""Data sets from OpenML, through scikit-learn's `fetch_openml`, which checks sums and keeps what it fetched.

pandas, where it is installed, parses the large sets about ten times faster.
"""

from __future__ import annotations

import socket
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from fewfire._errors import FileFormatError
from fewfire._optional import is_installed
from fewfire.problems.tabular._dataset import Dataset, encode_classes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fewfire._types import AnyArray
    from fewfire.problems.tabular._catalogue import DatasetInfo

SECONDS = 60.0
"""How long to wait for an answer."""


def fetch(info: DatasetInfo) -> Dataset:
    """The data set from OpenML, or from the folder that scikit-learn keeps its downloads in.

    Raises `OSError` where the network does not answer.
    """
    from sklearn.datasets import fetch_openml  # only here: it takes a while to import

    with warnings.catch_warnings(), _patience():
        warnings.filterwarnings("ignore", "A network error occurred")  # of the retry; the last error is raised
        found = fetch_openml(
            data_id=info.openml_id,
            as_frame=False,
            parser="pandas" if is_installed("pandas") else "liac-arff",
            n_retries=1,
        )
    rows, features = found.data.shape
    if (rows, features) != (info.rows, info.features):
        raise FileFormatError(
            f"OpenML's data set {info.openml_id} should be {info.name!r} with {info.rows} rows and {info.features} "
            f"features; it has {rows} and {features}."
        )
    names = tuple(found.feature_names)
    categories: dict[str, list[object]] = found.categories or {}
    columns = [_numbers(found.data[:, place], categories.get(name)) for place, name in enumerate(names)]
    return Dataset(
        info.name,
        np.stack(columns, axis=1),
        encode_classes(found.target),
        info.task,
        names,
        np.array([name in categories for name in names]),
        f"OpenML {info.openml_id}",
    )


@contextmanager
def _patience() -> Iterator[None]:
    """Give up on an address that does not answer; scikit-learn would wait for ever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(before or SECONDS)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _numbers(values: AnyArray, categories: list[object] | None) -> AnyArray:
    """A column as float32; categories are numbered in sorted order.

    pandas' parser leaves the names of the categories in the column, the other one their places in the list.
    """
    if categories is None:
        return values.astype(np.float32)
    numbers: dict[object, int] = {name: number for number, name in enumerate(sorted(categories, key=str))}
    if values.dtype != object:
        numbers = {place: numbers[name] for place, name in enumerate(categories)}
    return np.array([numbers.get(value, np.nan) for value in values], dtype=np.float32)

"""A table in a file as a problem: its rows are split anew for each run, as pareto, C.3, splits its data sets.

A run's streams have one key. It shuffles the rows; the stream "test" sees the first tenth of them and any other one the
rest, so that examples to train on are a random part of what is not held out. Inputs are standardised over the whole
table, as the paper has it. A file may change or move: a spec holds the hash of its content, and runs refuse another.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fewfire._errors import FewfireError, FileFormatError, invalid
from fewfire._random import Stream, as_stream
from fewfire._validate import check_choice, check_integer
from fewfire.problems._base import DescribedProblem, assign, check_window, register_problem
from fewfire.problems.tabular._dataset import held_out_rows, training_rows
from fewfire.problems.tabular._load import TARGET, VARIABLE, read_file

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fewfire._types import AnyArray
    from fewfire.problems.tabular import Dataset


@register_problem
@dataclass(frozen=True)
class TableFile(DescribedProblem):
    """Rows of a Parquet or CSV file.

    Parameters
    ----------
    file : str
        A path, or a name in the folder that FEWFIRE_DATA names. Columns are numbers, or texts and dictionaries, whose
        categories are numbered.
    label : str
        The column to predict. Two classes are −1 and +1 in sorted order; of more, which take a network of as many
        outputs and the loss "cross_entropy", the numbers from 0.
    task : "classification" or "regression"
    cap : int, optional
        Training rows at most where a spec asks for a share of them.
    digest : str
        Hash of the file's content; found when it is left out.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     _ = path.write_text("a,b,kind\\n" + "1,2,yes\\n3,5,no\\n" * 50)
    ...     table = TableFile(str(path), label="kind")
    ...     X, y = table.sample(60, seed=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((60, 2), [-1, 1])
    """

    name: ClassVar = "table"
    input_bytes: ClassVar = 4
    bayes_error: ClassVar = 0.0  # not known

    file: str
    label: str = TARGET
    task: str = "classification"
    cap: int | None = None
    digest: str = ""

    def __post_init__(self) -> None:
        for name in ("file", "label", "digest"):
            if not isinstance(getattr(self, name), str):
                raise invalid(name, "must be a text", getattr(self, name))
        check_choice("task", self.task, ("classification", "regression"))
        if self.cap is not None:
            check_integer("cap", self.cap, 1)
        if not self.digest:  # a spec that has it is read where the file need not be
            assign(self, digest=_content(self.file)[1])
            self._rows()

    @property
    def inputs(self) -> int:
        """The number of columns of X."""
        return int(self._rows()[0].shape[1])

    @property
    def outputs(self) -> int:
        """The outputs that a network needs: one, or one for each of more than two classes."""
        _, y = self._rows()
        return 1 if y.dtype != np.int64 else int(y.max()) + 1

    @property
    def test_rows(self) -> int:
        """How many rows are held out: a tenth."""
        return held_out_rows(len(self._rows()[0]))

    def training_rows(self, share: float) -> int:
        """How many rows a share of those that are not held out is, the cap at most."""
        return training_rows(len(self._rows()[0]), share, self.cap)

    def sample(self, m: int, seed: int | Stream = 0, start: int = 0) -> tuple[AnyArray, AnyArray]:
        """Rows start … start + m − 1 of a run's part of the table, which is finite.

        Parameters
        ----------
        m, start : int
        seed : int or Stream
            The stream "test" of a run sees the rows that its other streams do not.

        Returns
        -------
        X : float32 array of shape (m, inputs)
        y : int8 array of ±1, int64 array of classes, or float64 array, of shape (m,)
        """
        (m, start), stream, (X, y) = check_window(m, start), as_stream(seed, "data"), self._rows()
        order = Stream(stream.key, "split").permutation(len(X))
        held = self.test_rows
        part = order[:held] if stream.name == "test" else order[held:]
        if start + m > len(part):
            rule = f"must stay within the {len(part)} rows of this part of {self.file}"
            raise invalid("m", rule, f"rows {start} to {start + m - 1}", "ask for fewer samples; none are fresh")
        chosen = part[start : start + m]
        return X[chosen], y[chosen]

    def target(self, X: ArrayLike) -> AnyArray:
        """Refused: only the rows of a table have labels."""
        raise FewfireError("a table has no target beyond its rows. Remedy: compare with the labels that sample gives.")

    def _rows(self) -> tuple[AnyArray, AnyArray]:
        path, digest = _content(self.file)
        if digest != self.digest:
            rule = f"must have the content that the spec was made for, of hash {self.digest}"
            raise invalid("file", rule, f"{path} of hash {digest}", "restore the file, or leave digest out")
        return _read(path, digest, self.label, self.task)


def _content(file: str) -> tuple[str, str]:
    """Where the file lies, and the hash of its content."""
    places = [Path(file), *([Path(os.environ[VARIABLE]) / file] if os.environ.get(VARIABLE) else [])]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        rule = "must be a file: Parquet, or CSV with a first line of names"
        raise invalid("file", rule, file, f"give its path, or its name in the folder that {VARIABLE} names")
    stamp = path.stat()
    return str(path), _hash(str(path), stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=64)
def _hash(path: str, changed: int, size: int) -> str:
    with Path(path).open("rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=8)).hexdigest()


@lru_cache(maxsize=4)
def _read(path: str, digest: str, label: str, task: str) -> tuple[AnyArray, AnyArray]:
    """Standardised inputs and labels of all rows, in the order of the file."""
    dataset: Dataset = read_file(Path(path), Path(path).stem, task, label)
    if np.isnan(dataset.X).any():
        row, column = np.argwhere(np.isnan(dataset.X))[0].tolist()
        where = f"row {row + 1} of the column {dataset.feature_names[column]!r}"
        raise FileFormatError(f"{path} has no value in {where}. Remedy: leave out such rows, or fill them in.")
    y = dataset.y
    if task == "classification" and y.max() < 2:
        y = np.where(y == y.max(), 1, -1).astype(np.int8)
    return dataset.standardised(np.arange(len(y))).astype(np.float32), y

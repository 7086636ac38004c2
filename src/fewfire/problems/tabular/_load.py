"""Finding a data set: a local file first, then OpenML."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from fewfire._errors import DataUnavailable, FileFormatError, invalid
from fewfire.problems.tabular._catalogue import find
from fewfire.problems.tabular._openml import fetch
from fewfire.problems.tabular._parquet import TARGET, read_parquet

if TYPE_CHECKING:
    from fewfire.problems.tabular._dataset import Dataset

VARIABLE = "FEWFIRE_DATA"
"""The environment variable that names the folder of local files."""


def load(name: str, directory: str | Path | None = None, *, download: bool = True) -> Dataset:
    """One of the 16 data sets of pareto, Table 1, by name.

    Parameters
    ----------
    name : str
        A key of `DATASETS`.
    directory : path, optional
        Folder with `NAME.parquet`: numeric feature columns, and the class in a column `target`. By default the folder
        named by the environment variable FEWFIRE_DATA, if it is set.
    download : bool
        Whether a set that is not there is fetched from OpenML. scikit-learn keeps it in its own data folder.

    Returns
    -------
    Dataset
        Rows in the order of the source; `split` shuffles them.
    """
    info = find(name)
    folder = _folder(directory)
    if folder is not None and (path := folder / f"{name}.parquet").is_file():
        return read_parquet(path, name, info.task)
    where = f"no {name}.parquet in {folder}" if folder is not None else f"no folder given and {VARIABLE} not set"
    if not download:
        raise _unavailable(name, where, "nothing is to be downloaded")
    try:
        return fetch(info)
    except OSError as error:  # URLError, HTTPError, timeouts, a folder that cannot be written
        raise _unavailable(name, where, f"OpenML could not be asked ({error})") from error
    except FileFormatError:
        raise
    except ValueError as error:  # a wrong checksum, columns of text
        raise FileFormatError(f"OpenML's answer for {name!r} cannot be used: {error}") from error


def _folder(directory: str | Path | None) -> Path | None:
    if directory is None:
        named = os.environ.get(VARIABLE)
        return Path(named) if named else None
    folder = Path(directory)
    if not folder.is_dir():
        raise invalid("directory", "must be a folder", str(directory), f"leave it out to use {VARIABLE} or OpenML")
    return folder


def _unavailable(name: str, local: str, remote: str) -> DataUnavailable:
    return DataUnavailable(
        f"the data set {name!r} is not at hand: {local}; {remote}. Remedy: put {name}.parquet (numeric feature columns "
        f"and a column {TARGET!r}) into a folder and name it in directory or in {VARIABLE}, or connect to openml.org."
    )

"""Measuring models on data sets: what the store does not have yet is trained, one after the other, and stored at once.

Trials come first: after the first round every cell has one result. A model whose package is missing, and a data set
that is neither in a file nor on the network, are skipped with the reason.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from fewfire._errors import DataUnavailable, FileFormatError, MissingDependency
from fewfire.papers.pareto.tables._summary import calibration
from fewfire.problems import tabular
from fewfire.problems.tabular._dataset import CAP
from fewfire.sweeps.spec._run_spec import canonical, text_hash
from fewfire.sweeps.store._protocol import Measurement
from fewfire.sweeps.store._row import environment_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fewfire._types import AnyArray
    from fewfire.papers.pareto.tables._models import TabularModel
    from fewfire.problems.tabular import Dataset
    from fewfire.sweeps import Store

VERSION = 1  # part of every key: a change of the protocol must change it


def measure(
    store: Store,
    datasets: Sequence[str],
    fractions: Sequence[float],
    trials: int,
    models: Sequence[TabularModel],
    *,
    directory: str | Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[list[Measurement], dict[str, str]]:
    """The measurements of these models, and what was skipped with the reason.

    Parameters
    ----------
    store : Store
        Measurements it has are taken from it; new ones are added one by one.
    datasets, directory
        Names and local files, as `problems.tabular.load` takes them.
    fractions : floats in (0, 1]
        Shares of the rows outside the test set to train on.
    trials : int
    models : list of TabularModel
    progress : callable
        Called with a line of text before each training.
    """
    keys = {model.name: model.key() for model in models if not model.missing()}
    skipped = {model.name: reason for model in models if (reason := model.missing())}
    loaded: list[Dataset] = []
    for name in datasets:
        try:
            loaded.append(tabular.load(name, directory))
        except (DataUnavailable, FileFormatError, MissingDependency) as error:
            skipped[name] = str(error)
    known = {found.hash: found for found in store.measurements() if found.status == "done"}
    measured = []
    for trial, fraction, dataset, model in product(range(trials), sorted(fractions), loaded, models):
        if model.name not in keys:
            continue
        table = {
            "experiment": "tabular",
            "version": VERSION,
            "dataset": dataset.name,
            "rows": len(dataset),
            "fraction": float(fraction),
            "cap": CAP,
            "trial": trial,
            "model": keys[model.name],
        }
        spec = canonical(table)
        found = known.get(text_hash(spec))
        if found is None:
            progress(f"{dataset.name}, {fraction:g} of the rows, trial {trial}, {model.name}")
            found = _train(spec, dataset, fraction, trial, model)
            store.add_measurements([found])
        measured.append(found)
    return measured, skipped


def _train(spec: str, dataset: Dataset, fraction: float, trial: int, model: TabularModel) -> Measurement:
    parts = tabular.split(dataset, trial, fraction, CAP)
    X_train: AnyArray
    X_test: AnyArray
    X_train, X_test = parts.X_train, parts.X_test
    if model.standardised:
        X_train, X_test = (dataset.standardised(rows) for rows in (parts.train, parts.test))
    begin = time.process_time()
    try:
        with warnings.catch_warnings(), threadpool_limits(1):  # one thread: seconds compare, sums round alike
            warnings.simplefilter("ignore")  # such as of steps that a network lacks
            estimator: Any = model.build(trial, **model.settings).fit(X_train, parts.y_train)
            seconds = time.process_time() - begin
            predicted = np.ravel(estimator.predict(X_test))
            probabilities = estimator.predict_proba(X_test) if hasattr(estimator, "predict_proba") else None
    except Exception as error:  # a model may refuse a table, such as one of a single class
        message = f"{type(error).__name__}: {error}"
        return Measurement(spec, "failed", math.nan, time.process_time() - begin, message, environment_text())
    wrong = float(np.mean(predicted.astype(np.int64) != parts.y_test))
    complete = probabilities is not None and np.shape(probabilities)[1] > int(dataset.y.max())  # or lacks a class
    message = json.dumps(calibration(np.asarray(probabilities, np.float64), parts.y_test)) if complete else ""
    return Measurement(spec, "done", wrong, seconds, message, environment_text())

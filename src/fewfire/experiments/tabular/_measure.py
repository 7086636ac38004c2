"""Measuring models on data sets: what the store does not have yet is trained, one after the other, and kept at once.

Trials come first: after the first round every cell has one result. A model that cannot be had here, and a data set
that is neither in a file nor on the network, are skipped with the reason.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from fewfire._errors import DataUnavailable, FileFormatError, MissingDependency
from fewfire.experiments.spec import canonical, text_hash
from fewfire.experiments.store import Measurement, environment_text
from fewfire.experiments.tabular._calibration import calibration
from fewfire.problems import tabular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from fewfire.experiments.store import Store
    from fewfire.experiments.tabular._models import TabularModel
    from fewfire.problems.tabular import Dataset

VERSION = 1
"""Part of every key: a change of the protocol must change it."""


@dataclass(frozen=True)
class MeasurementPlan:
    """What to measure.

    Parameters
    ----------
    datasets : names of `problems.tabular.DATASETS`
    fractions : floats in (0, 1]
        Shares of the rows outside the test set to train on.
    trials : int
    models : list of TabularModel
    cap : int
        Training rows at most.
    directory : path, optional
        Of local files; see `problems.tabular.load`.
    """

    datasets: Sequence[str]
    fractions: Sequence[float]
    trials: int
    models: Sequence[TabularModel]
    cap: int = tabular.CAP
    directory: str | Path | None = None


def measure(
    plan: MeasurementPlan, store: Store, tell: Callable[[str], None] = lambda text: None
) -> tuple[list[Measurement], dict[str, str]]:
    """The measurements of a plan, and what was skipped with the reason.

    Parameters
    ----------
    plan : MeasurementPlan
    store : Store
        Measurements it has are taken from it; new ones are added one by one.
    tell : callable
        Called with a line of text before each training.
    """
    skipped = {model.name: reason for model in plan.models if (reason := model.missing())}
    models = [model for model in plan.models if model.name not in skipped]
    datasets: list[Dataset] = []
    for name in plan.datasets:
        try:
            datasets.append(tabular.load(name, plan.directory))
        except (DataUnavailable, FileFormatError, MissingDependency) as error:
            skipped[name] = str(error)
    known = {found.hash: found for found in store.measurements() if found.status == "done"}
    measured = []
    for dataset, fraction, trial, model, spec in _cells(plan, datasets, models):
        found = known.get(text_hash(spec))
        if found is None:
            tell(f"{dataset.name}, {fraction:g} of the rows, trial {trial}, {model.name}")
            found = _train(spec, dataset, fraction, trial, model, plan.cap)
            store.add_measurements([found])
        measured.append(found)
    return measured, skipped


def _cells(
    plan: MeasurementPlan, datasets: list[Dataset], models: list[TabularModel]
) -> Iterator[tuple[Dataset, float, int, TabularModel, str]]:
    keys = {model.name: model.key() for model in models}
    for trial in range(plan.trials):
        for fraction in sorted(plan.fractions):
            for dataset in datasets:
                for model in models:
                    table = {
                        "experiment": "tabular",
                        "version": VERSION,
                        "dataset": dataset.name,
                        "rows": len(dataset),
                        "fraction": float(fraction),
                        "cap": plan.cap,
                        "trial": trial,
                        "model": keys[model.name],
                    }
                    yield dataset, fraction, trial, model, canonical(table)


def _train(spec: str, dataset: Dataset, fraction: float, trial: int, model: TabularModel, cap: int) -> Measurement:
    parts = tabular.split(dataset, trial, fraction, cap)
    X_train, X_test = parts.X_train, parts.X_test
    if model.standardised:
        centre, spread = dataset.X.mean(axis=0, dtype=np.float64), dataset.X.std(axis=0, dtype=np.float64)
        X_train, X_test = ((X - centre) / np.where(spread > 0, spread, 1) for X in (X_train, X_test))
    begin = time.process_time()
    try:
        with warnings.catch_warnings(), threadpool_limits(1):  # one thread: seconds compare, sums round alike
            warnings.simplefilter("ignore")  # rivals talk about steps they lack; their errors say it all
            estimator: Any = model.build(trial, **model.settings).fit(X_train, parts.y_train)
            seconds = time.process_time() - begin
            predicted = np.ravel(estimator.predict(X_test))
            chances = estimator.predict_proba(X_test) if hasattr(estimator, "predict_proba") else None
    except Exception as error:  # a rival may refuse a table, such as one of a single class; the others go on
        message = f"{type(error).__name__}: {error}"
        return Measurement(spec, "failed", math.nan, time.process_time() - begin, message, environment_text())
    wrong = float(np.mean(predicted.astype(np.int64) != parts.y_test))
    complete = chances is not None and np.shape(chances)[1] > int(dataset.y.max())  # a table may lack a class
    told = json.dumps(calibration(np.asarray(chances, np.float64), parts.y_test)) if complete else ""
    return Measurement(spec, "done", wrong, seconds, told, environment_text())

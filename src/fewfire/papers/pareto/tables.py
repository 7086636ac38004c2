"""Models measured on the tabular data sets of pareto, on identical splits, and their errors in few numbers.

Calibration is by log loss and the expected calibration error (Guo, Pleiss, Sun and Weinberger 2017).

Each model has fixed settings: nothing is tuned on the test rows. Families "paper-network" and "forest-grid" are
searches of the paper: it reports the best median of a family, chosen by the test errors themselves, and so does the
summary for these two (as "best of").

Networks are those of pareto, appendix C.3: three hidden layers of one width, dense or with s inputs per neuron.
scikit-learn's `MLPClassifier` trains them (log loss, Adam, learning rate 1e-3, batches of 256, 100 epochs); the weights
start as C.1 says: uniform within one over the square root of the fan-in, a sparse first layer with s ones per row. The
paper names SGD in C.1 alone; with plain SGD at this rate the networks hardly leave their start (docs/errata.md).

What the store does not have yet is trained, one after the other, and stored at once. Trials come first: after the first
round every cell has one result. A model whose package is missing, and a data set that is neither in a file nor on the
network, are skipped with the reason.
"""

from __future__ import annotations

import json
import logging
import math
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import fewfire
from fewfire._errors import DataUnavailable, FileFormatError, MissingDependency, invalid
from fewfire._optional import is_installed
from fewfire._random import Stream
from fewfire._types import AnyArray, Float64Array
from fewfire._validate import check_integer, did_you_mean
from fewfire.networks import init
from fewfire.papers._claims import Row, grouped
from fewfire.problems import tabular
from fewfire.problems.tabular import DATASETS, Dataset, training_rows
from fewfire.problems.tabular._dataset import CAP
from fewfire.sweeps import Store
from fewfire.sweeps.spec._run_spec import canonical, text_hash
from fewfire.sweeps.store._protocol import Measurement
from fewfire.sweeps.store._row import environment_text

SHOWN = 4  # families of more models are summed up by their best one
DRAWS = 2000  # resamples of the bootstrap
BINS = 15
LEAST = 1e-6  # smaller probabilities count as this: a forest's 0 would cost infinitely much

_ROWS = (
    (24.5, 27.8, 34.2, 22.0, 22.9, 24.8, 22.9, 23.6, 22.5),
    (18.9, 23.2, 25.1, 15.4, 18.0, 23.0, 23.6, 13.7, 12.8),
    (6.3, 13.7, 23.2, 19.1, 18.9, 21.4, 21.6, 17.1, 17.1),
    (1.4, 4.2, 12.3, 2.1, 4.0, 10.0, 6.3, 1.9, 1.7),
    (12.7, 14.9, 20.0, 12.4, 13.9, 17.4, 12.1, 12.0, 11.1),
    (14.6, 16.5, 23.1, 14.8, 16.8, 21.9, 14.6, 14.5, 13.9),
    (20.2, 21.8, 25.9, 19.7, 21.1, 25.2, 20.9, 20.1, 19.5),
    (7.2, 10.0, 14.4, 7.7, 8.6, 10.5, 6.7, 7.3, 6.2),
    (26.1, 28.7, 33.7, 28.5, 28.7, 29.9, 31.4, 29.1, 28.6),
    (39.9, 43.9, 46.3, 35.8, 43.0, 47.8, 41.8, 34.8, 33.4),
    (39.1, 39.3, 40.7, 39.1, 39.4, 40.6, 39.5, 39.5, 39.4),
    (23.0, 26.1, 28.7, 22.0, 23.8, 27.2, 25.5, 22.7, 22.0),
    (28.7, 30.1, 33.5, 28.2, 29.2, 31.9, 28.9, 28.0, 28.0),
    (19.5, 28.9, 37.6, 22.2, 29.2, 39.8, 23.4, 20.5, 20.5),
    (12.2, 14.8, 20.8, 11.2, 13.8, 18.4, 12.9, 10.6, 9.7),
    (27.1, 28.0, 31.3, 27.8, 28.6, 31.0, 27.8, 28.1, 27.4),
)


_FRACTIONS = (1.0, 0.1, 0.01)

TABLE_2: dict[str, dict[str, dict[Any, float]]] = {
    name: {
        "network": dict(zip(_FRACTIONS, row[:3], strict=True)),
        "forest": dict(zip(_FRACTIONS, row[3:6], strict=True)),
        "quoted": dict(zip(("network", "forest", "best"), row[6:], strict=True)),
    }
    for name, row in zip(DATASETS, _ROWS, strict=True)
}
"""Median test errors in percent by data set: of the best network and the best forest, by fraction of the rows.

"Best" is over all settings tried, chosen by the same test errors. "quoted" are tuned models of Grinsztajn et al. (2022)
on the full data.
"""


def published(name: str, fraction: float) -> dict[str, float]:
    """What Table 2 prints for a data set and a fraction: "network" and "forest", in percent; empty where nothing."""
    return {kind: TABLE_2[name][kind][fraction] for kind in ("network", "forest") if fraction in _FRACTIONS}


def calibration(probabilities: Float64Array, labels: AnyArray) -> dict[str, float]:
    """Log loss and expected calibration error of probabilities (rows, classes) at classes (rows,), numbered 0, 1, …

    The latter is the mean distance, over bins of equal width of the likeliest class's probability, between that and
    the share of the bin's rows of which it is the class.
    """
    given = np.clip(probabilities[np.arange(len(labels)), labels], LEAST, 1.0)
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    bins = np.minimum((sure * BINS).astype(np.int64), BINS - 1)
    gaps = np.bincount(bins, weights=sure - right, minlength=BINS)
    return {"log_loss": -float(np.log(given).mean()), "ece": float(np.abs(gaps).sum() / len(labels))}


def mean_calibration(measurements: Iterable[Measurement]) -> dict[str, float] | None:
    """Means of the calibration in the messages of measurements; None where one lacks it."""
    messages = [found.message for found in measurements if found.status == "done"]
    if not messages or not all(messages):
        return None
    read = [json.loads(text) for text in messages]
    return {key: float(np.mean([values[key] for values in read])) for key in ("log_loss", "ece")}


def summarise(errors: Sequence[float]) -> dict[str, float]:
    """Of one or more trials: their number, median with its 95% bootstrap interval, mean and standard deviation.

    The same errors give the same interval. A single trial has deviation 0.
    """
    sample = np.sort(np.asarray(errors, dtype=np.float64))
    chosen = Stream(0, "bootstrap").integers(len(sample), (DRAWS, len(sample)))
    # Ends that are medians of resamples, not numbers between two of them: errors on small test sets are grainy.
    tail = (1 - 0.95) / 2
    low, high = np.quantile(np.median(sample[chosen], axis=1), [tail, 1 - tail], method="inverted_cdf")
    return {
        "trials": len(sample),
        "median": float(np.median(sample)),
        "low": float(low),
        "high": float(high),
        "mean": float(np.mean(errors)),
        "deviation": float(np.std(errors, ddof=1)) if len(sample) > 1 else 0.0,
    }


def mean_ranks(cells: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Each model's mean rank over the cells (1 is the smallest error; ties share their mean rank).

    Parameters
    ----------
    cells : one mapping from model to error per cell
        Cells that lack one of the models that others have are left out: ranks among fewer models do not compare.
    """
    models = list(dict.fromkeys(model for cell in cells for model in cell))
    complete = [[cell[model] for model in models] for cell in cells if len(cell) == len(models)]
    if not complete:
        return {}
    ranks = rankdata(np.array(complete), method="average", axis=1).mean(axis=0)
    return dict(zip(models, ranks.tolist(), strict=True))


def table_rows(measurements: Iterable[Measurement], models: Sequence[TabularModel]) -> list[Row]:
    """A row per cell, `whole` with as many rows to train on as the paper has; the best of each family comes again."""
    family = {model.name: model.family for model in models}
    cells: dict[tuple[str, float, str], list[Measurement]] = {}
    for found in measurements:
        spec = found.table
        cells.setdefault((spec["dataset"], spec["fraction"], spec["model"]["name"]), []).append(found)
    rows, best = [], []
    for (dataset, fraction, model), trials in cells.items():
        done = [found for found in trials if found.status == "done"]
        row: Row = {"dataset": dataset, "fraction": fraction, "model": model, "family": family[model]}
        spec = trials[0].table
        row["training_rows"] = training_rows(spec["rows"], fraction, spec["cap"])
        row["whole"] = row["training_rows"] == training_rows(DATASETS[dataset].rows, fraction, None)
        row["settings"] = spec["model"]["settings"]
        row["published"] = published(dataset, fraction)
        row["quoted"] = {kind: TABLE_2[dataset]["quoted"][kind] for kind in ("network", "forest")}
        row["failures"] = [found.message for found in trials if found.status == "failed"]
        if done:
            row |= summarise([found.error for found in done])
            row["seconds"] = float(np.mean([found.seconds for found in done]))
            row["calibration"] = mean_calibration(done)
        rows.append(row)
    members = [row for row in rows if row["family"] and "median" in row]
    for (_, _, searched), alike in grouped(members, "dataset", "fraction", "family").items():
        if len(alike) > 1:
            chosen: Row = min(alike, key=lambda row: float(row["median"]))
            best.append(chosen | {"model": f"best of {searched}", "family": "", "chosen": chosen["model"]})
    return rows + best


def overall(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """For each fraction the mean over data sets of each model's median error, and mean ranks."""
    measured = [row for row in rows if "median" in row]
    single = {row["model"] for row in measured if not row["family"]}
    summary = []
    for fraction, here in sorted(grouped(measured, "fraction").items()):
        datasets = [{row["model"]: row["median"] for row in mine} for mine in grouped(here, "dataset").values()]
        models = {model for cell in datasets for model in cell}
        cells = [cell for cell in datasets if len(cell) == len(models)]
        means = {model: float(np.mean([cell[model] for cell in cells])) for cell in cells[:1] for model in cell}
        ranks = mean_ranks([{model: error for model, error in cell.items() if model in single} for cell in cells])
        summary.append({"fraction": fraction, "datasets": len(cells), "mean": means, "rank": ranks})
    return summary


def text_table(rows: Sequence[Row], skipped: Mapping[str, str]) -> str:
    """Medians in percent, a block per fraction, with the paper's; then means, ranks and what was skipped."""
    lines: list[str] = []
    measured = [row for row in rows if "median" in row]
    members = Counter(family for family, _ in {(row["family"], row["model"]) for row in measured})
    shown = [row for row in measured if not row["family"] or members[row["family"]] <= SHOWN]
    models = list(dict.fromkeys(row["model"] for row in shown))
    titles = [*models, "paper network", "paper forest"]
    totals = {entry["fraction"]: entry for entry in overall(rows)}
    for fraction in sorted({row["fraction"] for row in shown}):
        here = {(row["dataset"], row["model"]): row for row in shown if row["fraction"] == fraction}
        lines += [
            f"median test error in %, {100 * fraction:g}% of the training rows",
            _line("", titles, {name: name for name in titles}),
        ]
        for name in DATASETS:
            found = {model: here[name, model] for model in models if (name, model) in here}
            if found:
                values = {model: f"{100 * row['median']:.1f}" for model, row in found.items()}
                values |= {
                    f"paper {key}": f"{value:.1f}" for key, value in next(iter(found.values()))["published"].items()
                }
                whole = all(row["whole"] for row in found.values())
                lines.append(_line(name if whole else f"{name} *", titles, values))
        total = totals[fraction]
        for title, scale in (("mean", 100), ("rank", 1)):
            values = {model: f"{scale * value:.2f}" for model, value in total[title].items()}
            lines.append(_line(f"{title} of {total['datasets']} data sets", titles, values))
        lines.append("")
    if any(not row["whole"] for row in shown):
        lines.append("* fewer training rows than in the paper, whose figures do not compare")
    lines += [f"skipped {name}: {reason}" for name, reason in skipped.items()]
    for row in rows:
        if row["failures"] and "chosen" not in row:
            where = f"{row['model']} on {row['dataset']}, {100 * row['fraction']:g}%"
            lines.append(f"failed {len(row['failures'])} times, {where}: {row['failures'][0]}")
    return "\n".join(lines) + "\n"


def _line(title: str, columns: Sequence[str], values: Mapping[str, str]) -> str:
    """A title and one right-aligned value per column, empty where there is none."""
    cells = (f"{values.get(column, ''):>{max(9, len(column) + 2)}}" for column in columns)
    return (f"{title:<34}" + "".join(cells)).rstrip()


WIDTHS = (100, 300, 1000, 3000, 10_000, 30_000)  # the paper's widths
GRID = {"max_depth": (None, 2, 3, 4, 10), "max_features": (1, 2, 3, 4, "sqrt", None), "n_estimators": (10, 100, 1000)}
"""The paper's grid of forests; it prints −1 for an unlimited depth, which scikit-learn writes as None."""


@dataclass(frozen=True)
class TabularModel:
    """A model with its settings.

    Parameters
    ----------
    name : str
    build : callable
        `build(trial, **settings)` gives an estimator with `fit` and `predict`.
    settings : mapping
        Part of what a measurement is keyed by.
    package : str
        What must be installed; its version is part of the key too.
    family : str
        "" or the search that the model is part of.
    standardised : bool
        Whether the whole table is standardised first, as the paper does for its networks. The others see raw columns.
    """

    name: str
    build: Callable[..., Any]
    settings: Mapping[str, Any]
    package: str = "scikit-learn"
    family: str = ""
    standardised: bool = False

    def missing(self) -> str:
        """Why the model cannot be measured here; "" where it can."""
        if self.package not in ("fewfire", "scikit-learn") and not is_installed(self.package):
            return f"the package {self.package!r} is not installed (pip install --no-deps {self.package})"
        return ""

    def key(self) -> dict[str, Any]:
        """The model as part of a measurement's spec."""
        settings = dict(self.settings)
        if self.package == "fewfire":  # its defaults may change between releases
            defaults = self.build(0, **settings).get_params()
            settings |= {name: repr(value) for name, value in defaults.items() if name != "random_state"}
        return {"name": self.name, "settings": settings, self.package: version(self.package)}


@dataclass(eq=False, repr=False)
class PaperNetwork(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network trained as pareto, C.3, trains it.

    Parameters
    ----------
    width : int
        Of every hidden layer.
    sparsity : int or None
        Non-zero weights of each first-layer row; None is dense.
    solver : "adam" or "sgd"
    learning_rate : float
    epochs : int
    random_state : int
    """

    width: int = 100
    sparsity: int | None = 2
    solver: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 1e-3
    epochs: int = 100
    random_state: int = 0

    def fit(self, X: AnyArray, y: AnyArray) -> PaperNetwork:
        """Train on X (rows, features), already standardised, and classes y (rows,)."""
        X = np.asarray(X, dtype=np.float32)
        network = MLPClassifier(
            (check_integer("width", self.width, 1),) * 3,
            solver=self.solver,
            alpha=0.0,
            batch_size=min(256, len(X)),
            momentum=0.0,
            learning_rate_init=self.learning_rate,
            max_iter=1,
            tol=0.0,
            n_iter_no_change=self.epochs + 1,
            warm_start=True,
            random_state=self.random_state,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is the stop
            network.fit(X, y)  # makes the arrays, which are overwritten
            stream = Stream(self.random_state, "paper network")
            # scikit-learn keeps weights as (fan-in, fan-out).
            for layer, (weights, biases) in enumerate(zip(network.coefs_, network.intercepts_, strict=True)):
                inputs, width = weights.shape
                sparse = layer == 0 and self.sparsity is not None
                start = init.sparse(min(int(self.sparsity or inputs), inputs)) if sparse else init.dense()
                drawn = start(inputs, width, stream.child(f"layer{layer}"))
                weights[:], biases[:] = drawn.hidden.T, drawn.bias
            self.network_ = network.set_params(max_iter=self.epochs).fit(X, y)
        self.classes_ = network.classes_
        return self

    def predict(self, X: AnyArray) -> AnyArray:
        """The classes of X (rows, features), shape (rows,)."""
        classes: AnyArray = self.network_.predict(np.asarray(X, dtype=np.float32))
        return classes


def find_models(names: Sequence[str]) -> list[TabularModel]:
    """The models of these names, families written out, each once."""
    found = {model.name: model for name in names for model in _expand(name)}
    return list(found.values())


def _expand(name: str) -> list[TabularModel]:
    if name in MODELS:
        return [MODELS[name]]
    grid = {f"forest-{'-'.join(map(str, row))}": dict(zip(GRID, row, strict=True)) for row in product(*GRID.values())}
    if name == "forest-grid" or name in grid:
        chosen = {name: grid[name]} if name in grid else grid
        return [TabularModel(key, _forest, settings, family="forest-grid") for key, settings in chosen.items()]
    if name == "paper-network":
        return [_paper_network(kind, width) for kind in ("sparse", "dense") for width in WIDTHS]
    if found := re.fullmatch(r"(sparse|dense)-([1-9]\d*)", name):
        return [_paper_network(found[1], int(found[2]))]
    choices = [*MODELS, "forest-grid", "paper-network"]
    rule = f"must be among {', '.join(choices)}, or sparse-WIDTH and dense-WIDTH, the paper's networks"
    raise invalid("models", rule, name, did_you_mean(name, choices))


def _forest(trial: int, **settings: Any) -> Any:
    return RandomForestClassifier(**settings, n_jobs=1, random_state=trial)


def _catboost(trial: int, **settings: Any) -> Any:
    quiet = {"verbose": False, "allow_writing_files": False}
    return import_module("catboost").CatBoostClassifier(**settings, **quiet, random_seed=trial, thread_count=1)


def _pytabkit(name: str, trial: int) -> Any:
    made = getattr(import_module("pytabkit"), name)(random_state=trial, n_threads=1)  # on a GPU where torch finds one
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)  # its import lowers the level
    return made


def _paper_network(kind: str, width: int) -> TabularModel:
    def build(trial: int, **settings: Any) -> Any:
        return PaperNetwork(**settings, random_state=trial)

    settings = {"width": width, "sparsity": 2 if kind == "sparse" else None}
    return TabularModel(f"{kind}-{width}", build, settings, family="paper-network", standardised=True)


MODELS = {
    "fewfire": TabularModel("fewfire", lambda trial: fewfire.TabularClassifier(random_state=trial), {}, "fewfire"),
    "forest": TabularModel("forest", _forest, {"n_estimators": 300, "min_samples_leaf": 3}),
    "xgboost": TabularModel(
        "xgboost", lambda trial: import_module("xgboost").XGBClassifier(n_jobs=1, random_state=trial), {}, "xgboost"
    ),
    "catboost": TabularModel("catboost", _catboost, {"iterations": 500}, "catboost"),
    "mlp": TabularModel("mlp", lambda trial: make_pipeline(StandardScaler(), MLPClassifier(random_state=trial)), {}),
    "realmlp": TabularModel("realmlp", partial(_pytabkit, "RealMLP_TD_Classifier"), {}, "pytabkit"),
    "tabm": TabularModel("tabm", partial(_pytabkit, "TabM_D_Classifier"), {}, "pytabkit"),
}
"""Models by name: fewfire's default estimator, and others at their defaults or at the settings given here."""


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

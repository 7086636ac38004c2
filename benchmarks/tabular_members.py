"""What does each member of SparseInitClassifier's mixture buy: variants of the networks, extra trees, forest, boosting?

Every set, fraction and trial (from 100 on: those of the documentation's tables are never looked at) is one job of one
thread. A job fits every member once, on the folds of the networks, and stores what each says of held-out and of test
rows; mixing rules are compared afterwards, without fitting anything again. Jobs already stored are not repeated.
Asked of the rule in use: 0.2 points less error than the networks alone at 10%, in the mean over sets, and no more at 1%.

    python benchmarks/tabular_members.py convert --data FOLDER_OF_PARQUET --out SETS
    python benchmarks/tabular_members.py measure --data SETS --out JOBS --minutes 8 --pack PACKED
    python benchmarks/tabular_members.py judge --data JOBS
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import sys
import tarfile
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # read when the libraries below are loaded

import numpy as np  # noqa: E402
from scipy.special import expit  # noqa: E402
from sklearn.ensemble import (  # noqa: E402
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeRegressor  # noqa: E402

import fewfire as ff  # noqa: E402
from fewfire.problems.tabular import Dataset, split  # noqa: E402
from fewfire.tabular import ENCODINGS, PiecewiseLinearEncoding  # noqa: E402
from fewfire.tabular._ensemble import Ensemble  # noqa: E402
from fewfire.tabular._mixing import best_temperature, mixing_weights, tree_shares  # noqa: E402

FIRST_TRIAL = 100
PLAN = ((0.01, range(10)), (0.1, range(5)), (1.0, range(2)), (0.1, range(5, 10)), (1.0, range(2, 4)))
"""Fractions and trials, counted from FIRST_TRIAL, in the order they are measured."""
TEST_ROWS = 3000  # stored of a job, at most
PACK = 15 * 2**20  # bytes of a packed file, at most
TREES = 100  # per fold

FORESTS = {
    "extra trees": (ExtraTreesClassifier, {"n_estimators": TREES}),
    "extra trees, leaf 3": (ExtraTreesClassifier, {"n_estimators": TREES, "min_samples_leaf": 3}),
    "extra trees, half": (ExtraTreesClassifier, {"n_estimators": TREES, "min_samples_leaf": 2, "max_features": 0.5}),
    "extra trees, half, leaf 8": (
        ExtraTreesClassifier,
        {"n_estimators": TREES, "min_samples_leaf": 8, "max_features": 0.5},
    ),
    "forest, leaf 3": (RandomForestClassifier, {"n_estimators": TREES, "min_samples_leaf": 3}),
}
BOOSTING = {
    "boosting, 8 leaves": {"max_iter": 200, "max_leaf_nodes": 8, "min_samples_leaf": 5},
    "boosting, 31 leaves": {"max_iter": 300, "learning_rate": 0.05},
}


class TreeBins(PiecewiseLinearEncoding):
    """The piecewise-linear encoding with edges where a small tree splits the target along the column."""

    target = np.zeros(0)  # of the job's rows; set before a fit

    def fit_ranks(self, columns):
        """Edges of the small trees, as many as there would be equally full bins."""
        super().fit_ranks(columns)
        most = max(len(edges) for edges in self.edges_)
        tree = DecisionTreeRegressor(max_leaf_nodes=most, min_samples_leaf=max(3, len(self.target) // 100))
        for place, column in enumerate(columns):
            values = column.distinct[column.of_row][:, None]
            found = tree.fit(values, self.target).tree_
            inner = found.threshold[found.children_left >= 0]
            self.edges_[place] = np.unique([column.distinct[0], *inner, column.distinct[-1]])
        return self


class Recorded:
    """Keeps what the groups of networks say of held-out rows before the least are dropped, and their folds."""

    def __enter__(self):
        self._plain = Ensemble._weigh, Ensemble._divide

        def weigh(ensemble, stops, judges):
            self.groups, self.stops, self.ensemble = dict(ensemble.groups), stops, ensemble
            return self._plain[0](ensemble, stops, judges)

        def divide(ensemble, *arguments):
            division = self._plain[1](ensemble, *arguments)
            self.folds = division.folds
            return division

        Ensemble._weigh, Ensemble._divide = weigh, divide
        return self

    def __exit__(self, *details):
        Ensemble._weigh, Ensemble._divide = self._plain

    def members(self, table):
        """By variant: log odds at held-out rows (rows,) and at a table (rows, columns)."""
        alone = copy.copy(self.ensemble)
        alone.weights, alone.temperature, alone.trees = np.ones(1), 1.0, {}
        for (variant, group), stop in zip(self.groups.items(), self.stops, strict=True):
            alone.groups = {variant: group}
            yield str(variant), (stop.pooled[:, 0], alone.outputs(table.astype(np.float64))[:, 0])


def measure_job(folder: str, out: str, name: str, fraction: float, trial: int) -> str:
    """Fit every member to one training set and store its log odds or probabilities of class 1."""
    stored = np.load(Path(folder) / f"{name}.npz")
    X, y = stored["X"], stored["y"].astype(np.int64)
    empty = np.zeros(X.shape[1], bool)
    data = Dataset(name, X, y, "classification", tuple(map(str, range(X.shape[1]))), empty, folder)
    parts = split(data, trial, fraction)
    X_test, y_test = parts.X_test[:TEST_ROWS], parts.y_test[:TEST_ROWS]
    X, y = parts.X_train, parts.y_train
    members, seconds = {}, {}
    ENCODINGS["tree_bins"], TreeBins.target = TreeBins, y
    for label, settings in {"networks": {}, "tree bins": {"scaling": "tree_bins", "gains": "mild"}}.items():
        start = time.process_time()
        with Recorded() as recorded:
            model = ff.SparseInitClassifier(**settings, trees=False, random_state=trial).fit(X, y)
        seconds[label] = time.process_time() - start
        members |= dict(recorded.members(X_test))
        if label == "networks":
            default, folds = model.decision_function(X_test), recorded.folds
    for label, (build, settings) in FORESTS.items():
        start = time.process_time()
        members[label] = crossed(X, y, X_test, folds, build(**settings, random_state=trial), forest_chance)
        seconds[label] = time.process_time() - start
    for label, settings in BOOSTING.items():
        start = time.process_time()
        model = HistGradientBoostingClassifier(
            **settings, max_features=0.5, l2_regularization=1.0, early_stopping=False, random_state=trial
        )
        members[label] = boosted(X, y, X_test, folds, model)
        seconds[label] = time.process_time() - start
    path = Path(out) / job_name(name, fraction, trial)
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("wb") as file:
        np.savez_compressed(
            file,
            names=np.array(list(members)),
            held=np.array([held for held, _ in members.values()], np.float16),
            test=np.array([test for _, test in members.values()], np.float16),
            default=default.astype(np.float16),
            y=y.astype(np.int8),
            y_test=y_test.astype(np.int8),
            timed=np.array(list(seconds)),
            seconds=np.array(list(seconds.values())),
        )
    unfinished.rename(path)
    return f"{name} {fraction:g} {trial}: {sum(seconds.values()):.0f} s"


def forest_chance(model, X):
    """Probability of class 1; 0 where a fold lacks it."""
    return model.predict_proba(X)[:, list(model.classes_).index(1)] if 1 in model.classes_ else np.zeros(len(X))


def crossed(X, y, X_test, folds, model, predict):
    """Of one model per fold: predictions of held-out rows (rows,), and the mean one of test rows."""
    held, test = np.zeros(len(X)), np.zeros(len(X_test))
    for fold in folds:
        part = np.setdiff1d(np.arange(len(X)), fold)
        model.fit(X[part], y[part])
        held[fold] = predict(model, X[fold])
        test += predict(model, X_test) / len(folds)
    return held, test


def boosted(X, y, X_test, folds, model):
    """Log odds as of `crossed`, after the number of rounds that predicts held-out rows best."""
    models = []
    held = np.zeros((model.max_iter, len(X)))
    for fold in folds:
        part = np.setdiff1d(np.arange(len(X)), fold)
        fitted = type(model)(**model.get_params()).fit(X[part], y[part])
        models.append(fitted)
        for round_, values in enumerate(fitted.staged_decision_function(X[fold])):
            held[round_, fold] = values[:, 0] if values.ndim == 2 else values
    losses = np.logaddexp(0, -np.where(y == 1, 1, -1) * held).mean(axis=1)
    best = int(losses.argmin())
    tests = [next(islice(fitted.staged_decision_function(X_test), best, None)).reshape(-1) for fitted in models]
    return held[best], np.mean(tests, axis=0)


def job_name(name: str, fraction: float, trial: int) -> str:
    return f"{name}_{fraction:g}_{trial}.npz"


def convert(options: argparse.Namespace) -> int:
    """Parquet files as npz, so that measuring needs no pyarrow."""
    options.out.mkdir(parents=True, exist_ok=True)
    for path in sorted(options.data.glob("*.parquet")):
        data = ff.problems.tabular.load(path.stem, directory=options.data, download=False)
        np.savez_compressed(options.out / f"{path.stem}.npz", X=data.X, y=data.y.astype(np.int8))
    print(sum(path.stat().st_size for path in options.out.glob("*.npz")) / 2**20, "MiB")
    return 0


def measure(options: argparse.Namespace) -> int:
    """Run the jobs of PLAN that are not stored, as many at a time as there are cores."""
    options.out.mkdir(parents=True, exist_ok=True)
    stop = time.monotonic() + 60 * options.minutes
    sets = {path.stem: len(np.load(path)["y"]) for path in options.data.glob("*.npz")}
    if options.sets:
        sets = {name: rows for name, rows in sets.items() if name in options.sets.split(",")}
    order = sorted(sets, key=lambda name: -sets[name])  # the longest of a block first
    jobs = [
        (name, fraction, FIRST_TRIAL + trial)
        for fraction, trials in PLAN
        if fraction <= options.largest
        for trial in trials
        if trial < options.trials
        for name in order
        if not (options.out / job_name(name, fraction, FIRST_TRIAL + trial)).exists()
    ]
    print(f"{len(jobs)} jobs on {options.workers} workers", flush=True)
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        running: set[Future[str]] = set()
        while running or (jobs and time.monotonic() < stop):
            while jobs and len(running) < options.workers and time.monotonic() < stop:
                running.add(pool.submit(measure_job, str(options.data), str(options.out), *jobs.pop(0)))
            done, running = wait(running, 5, FIRST_COMPLETED)
            for job in done:
                print(job.result() if job.exception() is None else f"failed: {job.exception()!r}", flush=True)
            if running and time.monotonic() > stop + 60 * options.grace:
                print(f"{len(running)} jobs given up", flush=True)
                for process in list(pool._processes.values()):
                    process.terminate()
                break
    if options.pack:
        pack(options.out, options.pack)
    print(json.dumps({"name": "tabular_members", "left": len(jobs)}))
    return 0


def pack(folder: Path, target: Path) -> None:
    """All jobs in a few tar files of at most PACK bytes."""
    target.mkdir(parents=True, exist_ok=True)
    parts: list[list[Path]] = [[]]
    size = 0
    for path in sorted(folder.glob("*.npz"), key=lambda path: path.stat().st_size):
        if size + path.stat().st_size > PACK:
            parts.append([])
            size = 0
        parts[-1].append(path)
        size += path.stat().st_size + 2048
    for number, paths in enumerate(parts):
        with tarfile.open(target / f"members-{number}.tar", "w") as archive:
            for path in paths:
                archive.add(path, path.name)


def judge(options: argparse.Namespace) -> int:
    """Mean test errors and log losses over the sets, of the networks, of each member and of mixing rules."""
    found: dict[float, dict[str, dict[str, list[tuple[float, float]]]]] = {}
    for path in sorted(options.data.glob("*.npz")):
        name, fraction, _ = path.stem.rsplit("_", 2)
        job = np.load(path)
        for rule, chances in rules(job).items():
            given = np.clip(np.where(job["y_test"] == 1, chances, 1 - chances), 1e-4, 1)
            cell = found.setdefault(float(fraction), {}).setdefault(rule, {}).setdefault(name, [])
            cell.append((100 * np.mean((chances > 0.5) != job["y_test"]), -np.log(given).mean()))
    means = {}
    for fraction, table in sorted(found.items()):
        jobs = sum(len(cell) for cell in table[NETWORKS].values())
        print(f"{fraction:g} of the training rows, {len(table[NETWORKS])} sets, {jobs} jobs: error in %, log loss")
        for rule, cells in table.items():
            error, loss = np.mean([np.mean(cell, axis=0) for cell in cells.values()], axis=0)
            print(f"  {rule:45s} {error:6.2f} {loss:.4f}")
            means.setdefault(rule, {})[fraction] = round(float(error), 2)
    gains = {fraction: means[NETWORKS][fraction] - means[RULE][fraction] for fraction in found}
    print(json.dumps({"name": "tabular_members", "ratio": None, "networks": means[NETWORKS], "rule": means[RULE]}))
    return int(gains.get(0.1, 0.2) < 0.2 or gains.get(0.01, 0.0) < 0)


NETWORKS, RULE = "networks alone", "shares of networks, extra trees and boosting"


def rules(job) -> dict[str, np.ndarray]:
    """Chances of class 1 at the test rows, by rule."""
    names = [str(name) for name in job["names"]]
    held, test = job["held"].astype(np.float64), job["test"].astype(np.float64)
    target, weight = job["y"].astype(np.float64)[:, None], np.ones(len(job["y"]))

    def networks(kept):
        places = [place for place, name in enumerate(names) if name.endswith("gains") and kept(name)]
        weights = mixing_weights("logistic", held[places][:, :, None], target, weight)
        mixed = weights @ held[places]
        temperature = best_temperature("logistic", mixed[:, None], target, weight)
        return mixed / temperature, weights @ test[places] / temperature

    mixed, shown = networks(lambda name: not name.startswith("tree_bins"))
    alone = expit(shown)
    found = {NETWORKS: alone, "networks with tree bins besides": expit(networks(lambda name: True)[1])}
    chances = {}
    for place, name in enumerate(names):
        if not name.endswith("gains"):
            chances[name] = tuple(expit(v) if name.startswith("boosting") else v for v in (held[place], test[place]))
            found[f"{name}, alone"] = chances[name][1]
            found[f"{name}, half"] = (alone + chances[name][1]) / 2
    leaves = 31 if len(target) > 5000 / 0.75 else 8
    trees = [chances["extra trees, half"], chances[f"boosting, {leaves} leaves"]]
    pairs = [np.column_stack([1 - p, p]) for p, _ in trees]
    shares = tree_shares("logistic", mixed[:, None], pairs, target, weight)
    return found | {RULE: shares @ np.stack([alone, *(p for _, p in trees)])}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("convert", "measure", "judge"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pack", type=Path)
    parser.add_argument("--minutes", type=float, default=8.0, help="after these no job is begun")
    parser.add_argument("--grace", type=float, default=1.0, help="minutes that begun jobs then have")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--sets", help="names, with commas between; all if not given")
    parser.add_argument("--largest", type=float, default=1.0, help="fraction")
    parser.add_argument("--trials", type=int, default=10)
    options = parser.parse_args()
    return {"convert": convert, "measure": measure, "judge": judge}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())

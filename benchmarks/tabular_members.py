"""What does each member of SparseInitClassifier's mixture buy: settings of the networks, kinds of trees, neighbours?

Every set, fraction, trial (from 100 on: those of the documentation's tables are never looked at) and family of members
is one job of one thread. A job fits the members of its family on the folds of the networks, and stores what each says
of held-out and of test rows; tabular_mixtures.py compares mixtures of them afterwards, without fitting anything again.
Jobs already stored are not repeated.

    python benchmarks/tabular_members.py convert --data FOLDER_OF_PARQUET --out SETS
    python benchmarks/tabular_members.py measure --data SETS --out JOBS --minutes 8 --pack PACKED
    python benchmarks/tabular_mixtures.py JOBS
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
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # read when the libraries below are loaded

import numpy as np  # noqa: E402
from sklearn.ensemble import ExtraTreesClassifier  # noqa: E402
from sklearn.neighbors import NearestNeighbors  # noqa: E402
from sklearn.utils import check_random_state  # noqa: E402

import fewfire as ff  # noqa: E402
from fewfire._random import Stream  # noqa: E402
from fewfire.problems.tabular import Dataset, split  # noqa: E402
from fewfire.tabular import AdamW, RankEncoding, _ensemble, _trees  # noqa: E402
from fewfire.tabular._boosting import binned  # noqa: E402
from fewfire.tabular._encodings import PiecewiseLinearEncoding  # noqa: E402
from fewfire.tabular._extra_trees import ExtraTreesRule  # noqa: E402
from fewfire.tabular._flat_trees import narrowed  # noqa: E402
from fewfire.tabular._held_out import held_out_folds  # noqa: E402
from fewfire.tabular._queue import work_off  # noqa: E402
from fewfire.tabular._relevance import explained_shares, relevance_gains  # noqa: E402
from fewfire.tabular._settings import folds_of  # noqa: E402

FIRST_TRIAL = 100
TEST_ROWS = 3000  # stored of a job, at most
PACK = 15 * 2**20  # bytes of a packed file, at most

NETWORKS = {
    "networks": ({}, {}),
    "finalists by loss alone": ({}, {"finalists": lambda losses, count: sorted(losses, key=losses.get)[:count]}),
    "3 of 4": ({}, {"folds_of": lambda rows: 4}),
    "7 of 8": ({}, {"folds_of": lambda rows: 8}),
    "40 bins": ({}, {"bins": (40, 640)}),
    "smoothed by 0.1": ({"label_smoothing": 0.1}, {}),
    "512 wide": ({"hidden": (512, 128)}, {}),
    "8 networks": ({"members": 8}, {}),
    "8 finalists": ({}, {"FINALISTS": 8}),
    "8 networks, 7 of 8": ({"members": 8}, {"folds_of": lambda rows: 8}),
    "slow": ({"optimiser": AdamW(learning_rate=0.002), "early_stopping": 16}, {}),
}
"""Families of networks: arguments of the estimator, and what else is set (constants of _ensemble.py, or bins)."""
TREES = ("trees", "boosting", "pairs")
FAMILIES = (*NETWORKS, *TREES)
FIRST = ("networks", "3 of 4", "finalists by loss alone")
PLAN = (
    (1.0, range(3), FIRST),
    (0.1, range(4, 8), FIRST),
    (0.1, range(4), FAMILIES),
    (0.01, range(5), ("networks", *TREES)),
    (1.0, range(2), FAMILIES),
)
"""Fractions, trials counted from FIRST_TRIAL and families, in the order they are measured."""


class Recorded:
    """Keeps what the groups of networks say of held-out rows before the least are dropped, and their folds."""

    def __enter__(self):
        build = _ensemble.Ensemble
        self._plain = build._weigh, build._divide

        def weigh(ensemble, stops, judges):
            self.groups, self.stops, self.ensemble = dict(ensemble.groups), stops, ensemble
            return self._plain[0](ensemble, stops, judges)

        def divide(ensemble, *arguments):
            division = self._plain[1](ensemble, *arguments)
            self.folds = division.folds
            return division

        build._weigh, build._divide = weigh, divide
        return self

    def __exit__(self, *details):
        _ensemble.Ensemble._weigh, _ensemble.Ensemble._divide = self._plain

    def members(self, rows, table):
        """By variant: log odds at the rows (NaN where none held them out) and at a table (rows, columns)."""
        alone = copy.copy(self.ensemble)
        alone.weights, alone.temperature, alone.trees = np.ones(1), 1.0, {}
        for (variant, group), stop in zip(self.groups.items(), self.stops, strict=True):
            alone.groups, held = {variant: group}, np.full(rows, np.nan)
            held[np.unique(np.concatenate(self.folds))] = stop.pooled[:, 0]
            yield str(variant), (held, alone.outputs(table.astype(np.float64))[:, 0])


def networks(family, X, y, X_test, trial):
    """Log odds of every variant of a family of networks."""
    arguments, constants = NETWORKS[family]
    with ExitStack() as stack:
        recorded = stack.enter_context(Recorded())
        for name, value in constants.items():
            if name == "bins":
                stack.enter_context(patch.object(PiecewiseLinearEncoding.__init__, "__defaults__", value))
            else:
                stack.enter_context(patch.object(_ensemble, name, value))
        ff.SparseInitClassifier(**arguments, trees=False, random_state=trial).fit(X, y)
    return dict(recorded.members(len(X), X_test))


def trees(family, X, y, X_test, trial):
    """Chances of class 1, by kinds of trees and by neighbours."""
    stream = Stream(int(check_random_state(trial).randint(2**31 - 1)), "sparse_init")
    folds = held_out_folds(y, 4, folds_of(len(y)), stream.child("folds"))
    rows = _trees.TreeRows(X.astype(np.float64), y[:, None], np.ones(len(X)))

    def of(kind, X_test=X_test, rows=rows, *, whole=False, **constants):
        with ExitStack() as stack:
            for name, value in constants.items():
                stack.enter_context(patch.object(_trees, name, value))
            group = kind("logistic", 2, stream.child(kind.__name__))
            (held,) = work_off([group.train(rows, folds, None)], 1)
            if whole:
                rule, ids = _trees.boosting_rule(len(rows)), np.arange(len(rows))
                table = binned(narrowed(rows.table), rule.bins)
                boosters = [group.begun(rows, table, rule, ids, ids[:1], number) for number in range(2)]
                for booster in boosters:
                    booster.advance(group.rounds)
                group.models = [_trees.TreeModel(*booster.trees(group.rounds)) for booster in boosters]
            spread = np.full(len(y), np.nan)
            spread[np.unique(np.concatenate(folds))] = held[:, 1]
            return spread, group.predictions(X_test.astype(np.float64))[:, 1]

    if family == "boosting":
        slow = replace(_trees.LARGE, learning_rate=0.03, least_rows=10, l2=10.0, share=0.3)
        return {
            "boosting": of(_trees.Boosting),
            "boosting, all rows": of(_trees.Boosting, whole=True),
            "boosting, other seed": of(type("Other", (_trees.Boosting,), {})),
            "boosting, third seed": of(type("Third", (_trees.Boosting,), {})),
            "boosting, slow": of(_trees.Boosting, LARGE=slow, SMALL=slow, FIRST_ROUNDS=150, MOST_ROUNDS=800),
        }
    if family == "pairs":
        shown, fresh = pairs(X, y, X_test)
        rows = _trees.TreeRows(shown, rows.target, rows.weight)
        return {
            "extra trees, pairs": of(_trees.ExtraTrees, fresh, rows),
            "boosting, pairs": of(_trees.Boosting, fresh, rows),
        }
    trees_each = max(_trees.LEAST_TREES, min(_trees.TREES, _trees.TREES * _trees.MANY * 4 // (3 * len(X))))
    whole = ExtraTreesClassifier(4 * trees_each, min_samples_leaf=2, max_features=0.5, random_state=trial)
    plain = of(_trees.ExtraTrees)
    return {
        "extra trees": plain,
        "extra trees, 100": of(_trees.ExtraTrees, LEAST_TREES=100),
        "extra trees, all rows": (plain[0], forest_chance(whole.fit(X, y), X_test)),
        "extra trees, all columns": of(_trees.ExtraTrees, EXTRA=ExtraTreesRule(share=1.0)),
        "neighbours": neighbours(X, y, X_test, folds),
    }


def forest_chance(model, X):
    """Probability of class 1; 0 where it was not seen."""
    return model.predict_proba(X)[:, list(model.classes_).index(1)] if 1 in model.classes_ else np.zeros(len(X))


def ranked(X, y, X_test):
    """Normal ranks of the columns, and what each explains of the target."""
    encoding = RankEncoding().fit(X)
    shown = encoding.transform(X)
    return shown, encoding.transform(X_test), explained_shares(shown, y[:, None].astype(float), np.ones(len(y)))


def pairs(X, y, X_test, most=6):
    """The columns, and sums and differences of the ranks of those that explain most."""
    *tables, shares = ranked(X, y, X_test)
    best = np.argsort(-shares, kind="stable")[:most]
    one, other = (best[ids] for ids in np.triu_indices(len(best), 1))
    return [
        np.hstack([raw.astype(np.float64), table[:, one] + table[:, other], table[:, one] - table[:, other]])
        for raw, table in zip((X, X_test), tables, strict=True)
    ]


def neighbours(X, y, X_test, folds):
    """Chances by the nearest rows, in ranks times gains; gain and number of neighbours are those best for held-out rows."""
    *tables, shares = ranked(X, y, X_test)
    best = np.inf
    for gain in ("mild", "strong"):
        shown, fresh = (np.asarray(table * relevance_gains(shares, gain), np.float32) for table in tables)
        held, test = {}, {}
        for fold in folds:
            part = np.setdiff1d(np.arange(len(X)), fold)
            search = NearestNeighbors(n_neighbors=min(50, len(part))).fit(shown[part])
            for rows, into, share in ((shown[fold], held, None), (fresh, test, 1 / len(folds))):
                distance, place = search.kneighbors(rows)
                for count in (5, 12, 25, 50):
                    near = distance[:, :count] / (distance[:, :count].mean(axis=1, keepdims=True) + 1e-9)
                    weight = np.exp(-near)
                    chance = ((weight * y[part][place[:, :count]]).sum(axis=1) + 0.5) / (weight.sum(axis=1) + 1)
                    if share is None:
                        into.setdefault(count, np.full(len(X), np.nan))[fold] = chance
                    else:
                        into[count] = into.get(count, 0.0) + share * chance
        for count, chance in held.items():
            loss = -np.nanmean(np.log(np.where(y == 1, chance, 1 - chance)))
            if loss < best:
                best, found = loss, (chance, test[count])
    return found


def measure_job(folder: str, out: str, name: str, fraction: float, trial: int, family: str) -> str:
    """Fit every member of a family to one training set and store its log odds (networks) or chances of class 1."""
    stored = np.load(Path(folder) / f"{name}.npz")
    X, y = stored["X"], stored["y"].astype(np.int64)
    empty = np.zeros(X.shape[1], bool)
    data = Dataset(name, X, y, "classification", tuple(map(str, range(X.shape[1]))), empty, folder)
    parts = split(data, trial, fraction)
    X_test, y_test = parts.X_test[:TEST_ROWS], parts.y_test[:TEST_ROWS]
    start = time.process_time()
    fit = networks if family in NETWORKS else trees
    members = fit(family, parts.X_train, parts.y_train, X_test, trial)
    seconds = time.process_time() - start
    path = Path(out) / job_name(name, fraction, trial, family)
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("wb") as file:
        np.savez_compressed(
            file,
            names=np.array(list(members)),
            held=np.array([held for held, _ in members.values()], np.float16),
            test=np.array([test for _, test in members.values()], np.float16),
            y=parts.y_train.astype(np.int8),
            y_test=y_test.astype(np.int8),
            seconds=seconds,
        )
    unfinished.rename(path)
    return f"{name} {fraction:g} {trial} {family}: {seconds:.0f} s"


def job_name(name: str, fraction: float, trial: int, family: str) -> str:
    return f"{name}_{fraction:g}_{trial}_{family.replace(' ', '-')}.npz"


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
    chosen = options.families.split(",") if options.families else FAMILIES
    planned = [
        (name, fraction, FIRST_TRIAL + trial, family)
        for fraction, trials, families in PLAN
        if fraction <= options.largest
        for family in families
        if family in chosen
        for trial in trials
        if trial < options.trials
        for name in order
    ]
    jobs = [job for job in dict.fromkeys(planned) if not (options.out / job_name(*job)).exists()]
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("convert", "measure"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--pack", type=Path)
    parser.add_argument("--minutes", type=float, default=8.0, help="after these no job is begun")
    parser.add_argument("--grace", type=float, default=1.0, help="minutes that begun jobs then have")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--sets", help="names, with commas between; all if not given")
    parser.add_argument("--families", help="names, with commas between; all if not given")
    parser.add_argument("--largest", type=float, default=1.0, help="fraction")
    parser.add_argument("--trials", type=int, default=10)
    options = parser.parse_args()
    return {"convert": convert, "measure": measure}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())

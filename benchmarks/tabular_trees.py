"""What do the trees beside tabular networks cost, by themselves and beside scikit-learn's of the same settings?

Extra trees and boosting are fitted on the folds of a default fit, scikit-learn's ExtraTreesClassifier and
HistGradientBoostingClassifier on the same rows with as many trees and rounds; one thread, processor time, in turns,
median of `--repeats`. First both must predict the rows held out about as well (within a point). The exit status is 1
when they do not, or when a tree or a round takes longer than scikit-learn's.

    FEWFIRE_DATA=folder python benchmarks/tabular_trees.py
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # read when the libraries below are loaded

import argparse  # noqa: E402
import json  # noqa: E402
import statistics  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier  # noqa: E402

from fewfire._extension import load  # noqa: E402
from fewfire._random import Stream  # noqa: E402
from fewfire.tabular import _trees  # noqa: E402
from fewfire.tabular._held_out import held_out_folds  # noqa: E402
from fewfire.tabular._queue import work_off  # noqa: E402
from tabular_fit import table  # noqa: E402

CASES = ("1000 x 20", "10000 x 50", "18000 x 10")
FOLDS = 4


def timed(work, *arguments):
    """Seconds of processor time, and what the work returns."""
    begin = time.process_time()
    found = work(*arguments)
    return time.process_time() - begin, found


def ours(kind, rows, folds):
    """The models of all folds, and what they say of the rows held out."""
    group = kind("logistic", 2, Stream(0, "trees"))
    (held,) = work_off([group.train(rows, folds, None)], 1)
    return group, held.argmax(axis=1)


def theirs(group, rows, folds):
    """scikit-learn's models with the settings of a group, and what they say of the rows held out."""
    said = np.zeros(len(rows), np.int64)
    for number, fold in enumerate(folds):
        part = np.setdiff1d(np.arange(len(rows)), fold)
        if isinstance(group, _trees.ExtraTrees):
            rule, count = _trees.EXTRA, _trees.tree_count(len(part))
            model = ExtraTreesClassifier(
                count, min_samples_leaf=rule.least_rows, max_features=rule.share, random_state=number
            )
        else:
            rule = _trees.boosting_rule(len(part))
            model = HistGradientBoostingClassifier(
                max_iter=group.grown,
                max_leaf_nodes=rule.leaves,
                min_samples_leaf=rule.least_rows,
                learning_rate=rule.learning_rate,
                max_bins=rule.bins,
                early_stopping=False,
                random_state=number,
            )
        said[fold] = model.fit(rows.table[part], rows.target[part, 0]).predict(rows.table[fold])
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cases", default=",".join(CASES), help="tables, separated by commas")
    chosen = parser.parse_args()
    found, met = {}, load() is not None
    for case in chosen.cases.split(","):
        X, y, *_ = table(case)
        rows = _trees.TreeRows(X.astype(np.float64), y[:, None].astype(np.float64), np.ones(len(X)))
        folds = held_out_folds(y, FOLDS, FOLDS, Stream(0, "folds"))
        for name, kind in _trees.KINDS.items():
            seconds: dict[str, list[float]] = {"fewfire": [], "scikit-learn": []}
            for _ in range(chosen.repeats):
                taken, (group, said) = timed(ours, kind, rows, folds)
                seconds["fewfire"].append(taken)
                taken, other = timed(theirs, group, rows, folds)
                seconds["scikit-learn"].append(taken)
            right = [float(np.mean(labels == y)) for labels in (said, other)]
            each = FOLDS * (group.grown if isinstance(group, _trees.Boosting) else len(group.models[0].trees.roots))
            mine, peer = (statistics.median(taken) for taken in seconds.values())
            found[f"{case}, {name}"] = {"seconds": round(mine, 3), "ratio": round(peer / mine, 2)}
            met &= abs(right[0] - right[1]) <= 0.01 and mine <= peer
            print(
                f"{case}, {name}: {mine:.2f} s, scikit-learn's {peer:.2f} s ({peer / mine:.1f}×); {1000 * mine / each:.2f} and "
                f"{1000 * peer / each:.2f} ms each; held-out rows right {right[0]:.2%}, {right[1]:.2%}",
                flush=True,
            )
    ratio = min(part["ratio"] for part in found.values())
    print(json.dumps({"name": "tabular_trees", "ratio": ratio, "threads": 1, "met": bool(met), "figures": found}))
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())

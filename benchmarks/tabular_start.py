"""Does the sparse start of SparseInitClassifier beat a dense one on few rows, and does width help?

The default, a dense start and a first layer of 32 instead of 256 on the data sets at hand, the same rows and seeds for
all (protocol of pareto C.3). Differences of mean errors are taken set by set; the test over sets is Student's, paired,
with Wilcoxon's beside. Asked: the sparse start has the lower mean error. The same for the paper's own networks, three
layers of 100 and 300 trained for 100 epochs, comes from `--models sparse-100,dense-100,sparse-300,dense-300`.

    FEWFIRE_DATA=folder python benchmarks/tabular_start.py --fraction 0.01 --trials 10 --store start.sqlite
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import nullcontext

import numpy as np
from scipy.stats import ttest_1samp, wilcoxon

import fewfire as ff
from fewfire.experiments.store import MemoryStore, SqliteStore
from fewfire.experiments.tabular import MeasurementPlan, TabularModel, find_models, measure
from tabular_accuracy import NO_DATA, complete_sets, local_sets

VARIANTS = {"dense": {"sparsity": None}, "narrow": {"hidden": (32, 64)}}


def build(trial: int, **settings: object) -> ff.SparseInitClassifier:
    return ff.SparseInitClassifier(random_state=trial, **settings)


def models(names: str) -> list[TabularModel]:
    if names:
        return find_models(names.split(","))
    return [*find_models(["fewfire"]), *(TabularModel(name, build, kept, "fewfire") for name, kept in VARIANTS.items())]


def summary(apart: np.ndarray) -> dict[str, float]:
    """Mean difference, and on how many sets the first is lower; of two sets or more also its error and the tests."""
    found = {"difference": round(float(apart.mean()), 3), "lower_on": int((apart < 0).sum())}
    if len(apart) > 1:
        found["error"] = round(float(apart.std(ddof=1) / len(apart) ** 0.5), 3)
        found["p"] = round(float(ttest_1samp(apart, 0).pvalue), 3)
        found["wilcoxon"] = round(float(wilcoxon(apart).pvalue), 3)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fraction", type=float, default=0.01)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--models", default="", help="names of the recipe pareto/table2, compared with the first")
    parser.add_argument("--store")
    options = parser.parse_args()
    compared = models(options.models)
    if len(compared) < 2:
        parser.error(
            f"--models must name two models or more, the first to compare with the others; got {options.models}"
        )
    plan = MeasurementPlan(local_sets(), (options.fraction,), options.trials, compared)
    if not plan.datasets:
        print(NO_DATA)
        return 1
    opened = SqliteStore(options.store, write=True) if options.store else nullcontext(MemoryStore())
    with opened as store:
        measured, skipped = measure(plan, store, lambda text: print(text, file=sys.stderr, flush=True))
    cells = complete_sets(plan, measured, skipped)
    at_hand = [model.name for model in compared if model.name not in skipped]
    if not cells or len(at_hand) < 2:
        print("no data set has results of two models")
        return 1
    first, *others = at_hand
    errors = {model: np.array([100 * cell[model]["mean"] for cell in cells.values()]) for model in at_hand}
    found = {}
    for other in others:
        apart = errors[first] - errors[other]
        found[other] = summary(apart)
        sets = "  ".join(f"{name} {value:+.2f}" for name, value in zip(cells, apart, strict=True))
        print(f"{first} less {other}, in points: {apart.mean():+.2f}\n  {sets}")
    means = {model: round(float(of_sets.mean()), 2) for model, of_sets in errors.items()}
    print(
        json.dumps(
            {
                "name": "tabular_start",
                "ratio": round(means[others[0]] / means[first], 4),
                "means": means,
                "sets": len(cells),
                "trials": options.trials,
                "comparisons": found,
            }
        )
    )
    return int(found[others[0]]["difference"] >= 0)


if __name__ == "__main__":
    sys.exit(main())

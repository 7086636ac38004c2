"""How good are SparseInitClassifier's defaults on small tables, against forests, boosting and scikit-learn's MLP?

Protocol of pareto C.3 on the sets at hand: a random tenth of the rows for testing, a fraction of the others (at most
20,000) for training, the same rows for every model, no setting chosen by set, one thread. XGBoost and CatBoost are
measured where installed. Asked at 1%: mean errors not above a forest of 300 trees with leaves of 3 on 9 of 11 sets; at
10%: on 8 of 11; at both a better mean rank than every rival but CatBoost's, and no worse than that. Nothing is asked of
the full sets.

    FEWFIRE_DATA=folder python benchmarks/tabular_accuracy.py --fraction 0.01 --trials 10 --store table2.sqlite
    FEWFIRE_DATA=folder python benchmarks/tabular_accuracy.py --fraction 0.1 --trials 5 --store table2.sqlite

The store is that of `fewfire reproduce pareto/table2`: what it holds is not measured again, so a stopped run goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import nullcontext

from fewfire.experiments._memory_store import MemoryStore
from fewfire.experiments._sqlite_store import SqliteStore
from fewfire.experiments.tabular import Plan, find_models, mean_ranks, measure
from fewfire.experiments.tabular._table import table_rows
from fewfire.problems.tabular import DATASETS, load

MODELS = ("fewfire", "forest", "xgboost", "catboost", "mlp")


def local_sets() -> list[str]:
    """Names of the data sets that need no network."""
    found = []
    for name in DATASETS:
        try:
            load(name, download=False)
        except Exception as error:
            print(f"{name} is left out: {str(error).splitlines()[0]}")
        else:
            found.append(name)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fraction", type=float, default=0.01)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--store")
    options = parser.parse_args()
    names = local_sets()
    if not names:
        print("no data set found; name their folder in the environment variable FEWFIRE_DATA")
        return 1
    plan = Plan(names, (options.fraction,), options.trials, find_models(MODELS))
    opened = SqliteStore(options.store, write=True) if options.store else nullcontext(MemoryStore())
    with opened as store:
        measured, skipped = measure(plan, store, lambda text: print(text, file=sys.stderr, flush=True))
    rows = table_rows(measured, plan.models)
    cells = {name: {row["model"]: row for row in rows if row["dataset"] == name} for name in names}
    means = {name: {model: 100 * row["mean"] for model, row in cell.items()} for name, cell in cells.items()}
    for name, cell in cells.items():
        errors = "  ".join(f"{model} {means[name][model]:5.2f}" for model in cell)
        print(f"{name:32s} {errors}  ({cell['fewfire']['seconds']:.1f} s)")
    ranks = mean_ranks(list(means.values()))
    wins = sum(cell["fewfire"] <= cell["forest"] for cell in means.values())
    asked = {0.01: 9, 0.1: 8}.get(options.fraction, 0) / 11 * len(names)
    behind = options.fraction < 1 and any(ranks["fewfire"] > rank for rank in ranks.values())
    print(json.dumps({"name": "tabular_accuracy", "ratio": round(ranks["catboost"] / ranks["fewfire"], 2)
                      if "catboost" in ranks else None, "fraction": options.fraction, "trials": options.trials,
                      "not_above_forest": wins, "sets": len(names), "ranks": {m: round(r, 2) for m, r in ranks.items()},
                      "means": {m: round(sum(c[m] for c in means.values()) / len(means), 2) for m in ranks},
                      "skipped": skipped}))  # fmt: skip
    return int(wins < asked or behind)


if __name__ == "__main__":
    sys.exit(main())

"""How good are SparseInitClassifier's defaults on small tables, against forests, boosting and scikit-learn's MLP?

Protocol of pareto C.3 on the sets at hand: a random tenth of the rows for testing, a fraction of the others (at most
20,000) for training, the same rows for every model, no setting chosen by set, one thread. XGBoost, CatBoost and
pytabkit's RealMLP and TabM (hours without a GPU) are measured where installed. Asked at 1%: mean errors not above a
forest of 300 trees with leaves of 3 on 9 of 11 sets; at 10%: on 8 of 11; at both a better mean rank than every rival
but CatBoost's, and no worse than that. Nothing is asked of the full sets.

    FEWFIRE_DATA=folder python benchmarks/tabular_accuracy.py --fraction 0.01 --trials 10 --store table2.sqlite
    FEWFIRE_DATA=folder python benchmarks/tabular_accuracy.py --fraction 0.1 --trials 10 --store table2.sqlite

Log loss and expected calibration error, 15 bins, are told beside the errors; nothing is asked of them.
The store is that of `fewfire reproduce pareto/table2`: what it holds is not measured again, so a stopped run goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

from fewfire.experiments.store import MemoryStore, SqliteStore
from fewfire.experiments.tabular import MeasurementPlan, find_models, mean_ranks, measure
from fewfire.experiments.tabular._table import table_rows
from fewfire.problems.tabular import DATASETS, load

if TYPE_CHECKING:
    from fewfire.experiments.store import Measurement

MODELS = ("fewfire", "forest", "xgboost", "catboost", "mlp", "realmlp", "tabm")
NO_DATA = "no data set found; name their folder in the environment variable FEWFIRE_DATA"


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


def complete_sets(
    plan: MeasurementPlan, measured: list[Measurement], skipped: dict[str, str]
) -> dict[str, dict[str, dict]]:
    """Rows of the table by data set and model, of sets on which every model at hand has a result; tells of others."""
    for name, reason in skipped.items():
        print(f"{name} is left out: {reason.splitlines()[0]}")
    models = [model.name for model in plan.models if model.name not in skipped]
    rows = {(row["dataset"], row["model"]): row for row in table_rows(measured, plan.models) if "mean" in row}
    complete = {}
    for name in plan.datasets:
        lacking = [model for model in models if (name, model) not in rows]
        if not lacking:
            complete[name] = {model: rows[name, model] for model in models}
        elif name not in skipped:
            print(f"{name} is left out: {', '.join(lacking)} failed on it")
    return complete


def calibrations(cells: dict[str, dict[str, dict]]) -> dict[str, dict[str, float]]:
    """Mean log loss and expected calibration error over the sets, of models that told them on every set."""
    found = {}
    for model in next(iter(cells.values())):
        told = [cell[model]["calibration"] for cell in cells.values()]
        if all(told):
            found[model] = {key: sum(of[key] for of in told) / len(told) for key in ("log_loss", "ece")}
    return found


def behind(ranks: dict[str, float]) -> bool:
    """Whether a rival's mean rank is as good as fewfire's, or CatBoost's is better."""
    ours = ranks["fewfire"]
    return any(rank < ours or (rank == ours and model not in ("fewfire", "catboost")) for model, rank in ranks.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fraction", type=float, default=0.01)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--store")
    options = parser.parse_args()
    names = local_sets()
    if not names:
        print(NO_DATA)
        return 1
    plan = MeasurementPlan(names, (options.fraction,), options.trials, find_models(MODELS))
    opened = SqliteStore(options.store, write=True) if options.store else nullcontext(MemoryStore())
    with opened as store:
        measured, skipped = measure(plan, store, lambda text: print(text, file=sys.stderr, flush=True))
    cells = complete_sets(plan, measured, skipped)
    if not cells:
        print("no data set has results of all models")
        return 1
    means = {name: {model: 100 * row["mean"] for model, row in cell.items()} for name, cell in cells.items()}
    for name, cell in cells.items():
        errors = "  ".join(f"{model} {means[name][model]:5.2f}" for model in cell)
        print(f"{name:32s} {errors}  ({cell['fewfire']['seconds']:.1f} s)")
    calibrated = calibrations(cells)
    for model, told in calibrated.items():
        print(f"{model:32s} log loss {told['log_loss']:.4f}, expected calibration error {told['ece']:.4f}")
    ranks = mean_ranks(list(means.values()))
    wins = sum(cell["fewfire"] <= cell["forest"] for cell in means.values())
    asked = {0.01: 9, 0.1: 8}.get(options.fraction, 0) / 11 * len(cells)
    print(
        json.dumps(
            {
                "name": "tabular_accuracy",
                "ratio": round(ranks["catboost"] / ranks["fewfire"], 2) if "catboost" in ranks else None,
                "fraction": options.fraction,
                "trials": options.trials,
                "not_above_forest": wins,
                "sets": len(cells),
                "ranks": {m: round(r, 2) for m, r in ranks.items()},
                "means": {m: round(sum(c[m] for c in means.values()) / len(means), 2) for m in ranks},
                "log_loss": {m: round(told["log_loss"], 4) for m, told in calibrated.items()},
                "ece": {m: round(told["ece"], 4) for m, told in calibrated.items()},
                "skipped": skipped,
            }
        )
    )
    return int(wins < asked or (options.fraction < 1 and behind(ranks)))


if __name__ == "__main__":
    sys.exit(main())

"""How well does TabularRegressor predict, against a forest, boosting, CatBoost and XGBoost?

Regression sets that ship with scikit-learn or can be generated: diabetes (a quarter to test on), and Friedman's three
problems with noise (300 rows to train on, 2000 fresh ones to test on). Defaults throughout, one thread, the same rows for
all, splits one after the other with every model in turn. Rivals that are not installed are left out:

    pip install --no-deps -r requirements/bench.txt
    python benchmarks/tabular_regression.py [--splits 5] [--first 0] [--write docs/results/tabular.md]

Asked: the lowest mean of 1 - R² over the sets. The table is Markdown; `--write` puts it into a page, between its marks.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # read when the libraries below are loaded

import argparse  # noqa: E402
import importlib  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

import numpy as np  # noqa: E402
from scipy.stats import t as student  # noqa: E402
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3  # noqa: E402
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402

import fewfire as ff  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

sys.path.append(str(Path(__file__).parents[1] / "tools"))
from generated_part import renew  # noqa: E402

BEGIN = "<!-- Written by benchmarks/tabular_regression.py --write: run it, do not edit this. -->"
END = "<!-- The end of what is written by benchmarks/tabular_regression.py. -->"
TRAIN, TEST = 300, 2000
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def diabetes(seed: int) -> Split:
    return tuple(train_test_split(*load_diabetes(return_X_y=True), test_size=0.25, random_state=seed))


def friedman(make: Callable[..., Any], noise: float, seed: int) -> Split:
    X, y = make(TRAIN + TEST, noise=noise, random_state=seed)
    return X[:TRAIN], X[TRAIN:], y[:TRAIN], y[TRAIN:]


SETS: dict[str, Callable[[int], Split]] = {
    "diabetes": diabetes,
    "Friedman 1": partial(friedman, make_friedman1, 1.0),
    "Friedman 2": partial(friedman, make_friedman2, 125.0),
    "Friedman 3": partial(friedman, make_friedman3, 0.1),
}


def models() -> dict[str, Callable[[int], Any]]:
    found: dict[str, Callable[[int], Any]] = {
        "fewfire": lambda seed: ff.TabularRegressor(random_state=seed),
        "without trees": lambda seed: ff.TabularRegressor(trees=False, random_state=seed),
        "forest": lambda seed: RandomForestRegressor(300, min_samples_leaf=3, random_state=seed),
        "boosting": lambda seed: HistGradientBoostingRegressor(random_state=seed),
    }
    for package, name, settings in (
        ("catboost", "CatBoostRegressor", {"iterations": 500, "verbose": 0, "thread_count": 1, "random_seed": 0}),
        ("xgboost", "XGBRegressor", {"n_jobs": 1, "random_state": 0}),
    ):
        try:
            build = getattr(importlib.import_module(package), name)
        except ImportError as error:
            print(f"{package} is left out: {error}", file=sys.stderr)
            continue
        if package == "catboost":
            settings = settings | {"allow_writing_files": False}
        found[{"catboost": "CatBoost", "xgboost": "XGBoost"}[package]] = partial(_seeded, build, settings)
    return found


def _seeded(build: Callable[..., Any], settings: dict[str, Any], seed: int) -> Any:
    return build(**settings | {key: seed for key in ("random_seed", "random_state") if key in settings})


def half_width(values: list[float]) -> float:
    """Of a 95% interval of the mean over splits."""
    return float(student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    options = parser.parse_args()
    known = models()
    missed: dict[str, dict[str, list[float]]] = {name: {model: [] for model in known} for name in SETS}
    errors: dict[str, dict[str, list[float]]] = {name: {model: [] for model in known} for name in SETS}
    spent: dict[str, list[float]] = {model: [] for model in known}
    for name, make in SETS.items():
        for seed in range(options.first, options.first + options.splits):
            X, X_test, y, y_test = make(seed)
            for model, build in known.items():
                begin = time.process_time()
                fitted = build(seed).fit(X, y)
                spent[model].append(time.process_time() - begin)
                squared = float(np.mean((np.asarray(fitted.predict(X_test)) - y_test) ** 2))
                missed[name][model].append(squared / float(np.var(y_test)))
                errors[name][model].append(squared**0.5)
            print(f"{name}, split {seed}: { ({m: round(v[-1], 3) for m, v in missed[name].items()}) }", file=sys.stderr)
    means = {name: {model: float(np.mean(values)) for model, values in missed[name].items()} for name in SETS}
    lines = [f"| 1 − R² (RMSE) | {' | '.join(known)} |", f"| --- |{' --- |' * len(known)}"]
    for name in SETS:
        best = min(means[name].values())
        cells = []
        for model, values in missed[name].items():
            shown = f"{means[name][model]:.3f} ± {half_width(values):.3f}"
            rmse = f"({np.mean(errors[name][model]):.3g})"
            cells.append(f"**{shown}** {rmse}" if means[name][model] == best else f"{shown} {rmse}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    overall = {model: float(np.mean([means[name][model] for name in SETS])) for model in known}
    lines.append(f"| mean | {' | '.join(f'{value:.3f}' for value in overall.values())} |")
    seconds = {model: float(np.median(values)) for model, values in spent.items()}
    lines.append(f"| s of a fit | {' | '.join(f'{value:.1f}' for value in seconds.values())} |")
    print("\n".join(lines))
    if options.write is not None:
        part = "\n".join([BEGIN, *lines, END])
        renew(options.write, part, check=False, source="", tool="")
    rivals = {model: value for model, value in overall.items() if model not in ("fewfire", "without trees")}
    met = overall["fewfire"] <= min(rivals.values())
    print(
        json.dumps({"splits": options.splits, "first": options.first, "means": means, "seconds": seconds, "met": met})
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())

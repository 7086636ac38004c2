"""The documentation's tables: TabularClassifier's default fit on trials 0, 1, … of every set, run once.

Protocol of pareto C.3: a random tenth of the rows for testing, a fraction of the others, at most 20,000, for training,
the same rows for every model; settings are chosen elsewhere (tools/tabular_settings.py, trials from 100 on). Every
set, fraction, trial and model is one job of one thread, whose result is a line appended to a file; a stopped run goes
on. The model "networks" is the default without its trees. Rivals may be measured too (--models); where the file lacks them the table keeps what the page has for the same trials, and one that was
stopped early counts with the first trials it has of every set, compared with fewfire on those. Asked: mean errors of at
most 28.0, 21.9 and 19.4 at 1%, 10% and all rows; differences are printed with 95% bootstrap intervals over the sets.

    python benchmarks/tabular_protocol.py convert --data FOLDER_OF_PARQUET --results SETS
    python benchmarks/tabular_protocol.py measure --data SETS --results FILE --minutes 8 --workers 16
    python benchmarks/tabular_protocol.py measure --data SETS --results FILE --models realmlp,tabm --fractions 0.01,0.1,1
    python benchmarks/tabular_protocol.py tables --results FILE --write
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
import warnings
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # read when the libraries below are loaded

import numpy as np  # noqa: E402

from fewfire.papers.pareto.tables import calibration, find_models, mean_ranks  # noqa: E402
from fewfire.problems import tabular  # noqa: E402
from fewfire.problems.tabular import Dataset, split, training_rows  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TRIALS = 10
"""Of every set and fraction; a rival may have fewer."""
HEADINGS = {
    0.01: "### 1% of the training rows",
    0.1: "### 10% of the training rows",
    1.0: "### All training rows, 20,000 at most",
}
CHANCES = "### Probabilities"
SHARES = {0.01: "1%", 0.1: "10%", 1.0: "all"}
ASKED = {0.01: 28.0, 0.1: 21.9, 1.0: 19.4}
OURS = {"fewfire": "fewfire", "networks": "networks"}
RIVALS = {
    "forest": "forest",
    "xgboost": "XGBoost",
    "catboost": "CatBoost",
    "mlp": "MLP",
    "realmlp": "RealMLP",
    "tabm": "TabM",
}
"""Columns of the tables by model."""
SUMMARIES = ("mean", "mean rank", DIFFERENCE := "fewfire less the model, 95%", "trials")
"""First cells of the rows below those of the sets."""
CAP = 20_000


def load(folder: str, name: str) -> Dataset:
    """A set that `convert` stored; one of codes also has `categorical`, a mask of their columns."""
    stored = np.load(Path(folder) / f"{name}.npz")
    X, columns = stored["X"], stored["X"].shape[1]
    names = tuple(map(str, range(columns)))
    categorical = stored.get("categorical", np.zeros(columns, bool))
    return Dataset(name, X, stored["y"].astype(np.int64), "classification", names, categorical, folder)


def job(folder: str, name: str, fraction: float, trial: int, model: str) -> list[dict]:
    """Fit one model; its result."""
    data = load(folder, name)
    parts = split(data, trial, fraction, CAP)
    (chosen,) = find_models(["fewfire" if model == "networks" else model])
    estimator = chosen.build(trial, **chosen.settings)
    if model == "networks":
        estimator.set_params(trees=False)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = estimator.fit(parts.X_train, parts.y_train)
    seconds = time.process_time() - begin
    chances = fitted.predict_proba(parts.X_test)
    wrong = float(np.mean(chances.argmax(axis=1) != parts.y_test))
    told = {"set": name, "rows": len(data), "fraction": fraction, "trial": trial, "model": model, "error": wrong}
    return [told | {"seconds": seconds} | calibration(chances, parts.y_test)]


def convert(options: argparse.Namespace) -> int:
    """Parquet files as npz in the folder --results, so that measuring needs no pyarrow."""
    options.results.mkdir(parents=True, exist_ok=True)
    for path in sorted(options.data.glob("*.parquet")):
        data = tabular.load(path.stem, directory=options.data, download=False)
        np.savez_compressed(options.results / f"{path.stem}.npz", X=data.X, y=data.y.astype(np.int8))
    size = sum(path.stat().st_size for path in options.results.glob("*.npz")) / 2**20
    print(json.dumps({"name": "tabular_protocol", "ratio": None, "mebibytes": round(size, 1)}))
    return 0


def read(path: Path) -> list[dict]:
    """The results of a file; a last line that was cut off is left out."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def measure(options: argparse.Namespace) -> int:
    """Run the jobs that the file lacks, as many at a time as there are workers."""
    sizes = {path.stem: len(np.load(path)["y"]) for path in options.data.glob("*.npz")}
    known = {(of["set"], of["fraction"], of["trial"], of["model"]) for of in read(options.results)}
    jobs = [
        (name, fraction, trial, model)
        for model in options.models.split(",")
        for fraction in map(float, options.fractions.split(","))
        for trial in range(min(TRIALS, options.trials))
        for name in sorted(sizes, key=lambda name: -sizes[name])
        if name in (options.sets.split(",") if options.sets else sizes)
        if (name, fraction, trial, model) not in known
    ]
    return carry_out(partial(job, str(options.data)), jobs, options)


def carry_out(function: Callable[..., list[dict]], jobs: list[tuple], options: argparse.Namespace) -> int:
    """Call a function on the jobs' arguments in as many processes as there are workers; every result is a line at once.

    After --minutes no job is begun, and after --grace more those under way are given up.
    """
    stop = time.monotonic() + 60 * options.minutes
    print(f"{len(jobs)} jobs on {options.workers} workers", flush=True)
    failed = 0
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with (
        options.results.open("a", encoding="utf-8") as file,
        ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool,
    ):
        running: dict[Future[list[dict]], tuple] = {}
        while running or (jobs and time.monotonic() < stop):
            while jobs and len(running) < options.workers and time.monotonic() < stop:
                what = jobs.pop(0)
                running[pool.submit(function, *what)] = what
            done, _ = wait(running, 5, FIRST_COMPLETED)
            for future in done:
                what = running.pop(future)
                if future.exception() is not None:
                    failed += 1
                    print(f"failed: {what}: {future.exception()!r}", flush=True)
                    continue
                file.writelines(json.dumps(result) + "\n" for result in future.result())
                file.flush()
                print(*what, f"{future.result()[0]['seconds']:.0f} s", flush=True)
            if running and time.monotonic() > stop + 60 * options.grace:
                print(f"{len(running)} jobs given up", flush=True)
                jobs.extend(running.values())
                for process in list(pool._processes.values()):
                    process.terminate()
                break
    print(json.dumps({"name": Path(sys.argv[0]).stem, "ratio": None, "left": len(jobs), "failed": failed}))
    return int(bool(jobs or failed))


def add_limits(parser: argparse.ArgumentParser) -> None:
    """The arguments that `carry_out` goes by, but for --results."""
    parser.add_argument("--minutes", type=float, default=8.0, help="after these no job is begun")
    parser.add_argument("--grace", type=float, default=1.0, help="minutes that begun jobs then have")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))


def cells_of(text: str, heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without their bold marks."""
    lines = text.split(heading)[1].split("\n#")[0].splitlines()
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def page_rows(text: str, fraction: float) -> dict[str, dict[str, str]]:
    """By the first cell of a row and by model, the cells of the table under a fraction's heading."""
    title, _, *body = cells_of(text, HEADINGS[fraction])
    titles = {shown: model for model, shown in (OURS | RIVALS).items()}
    return {
        row[0]: {titles[head]: cell for head, cell in zip(title, row, strict=True) if head in titles} for row in body
    }


def page_figures(text: str, fraction: float) -> dict[str, dict[str, float]]:
    """By set and model, what the page's table has in %."""
    return {
        name: {model: float(cell) for model, cell in cells.items()}
        for name, cells in page_rows(text, fraction).items()
        if name not in SUMMARIES
    }


def page_trials(text: str, fraction: float) -> dict[str, int]:
    """By model, how many trials the page's table is about."""
    told = page_rows(text, fraction).get("trials", {})
    return {model: int(told.get(model) or TRIALS) for model in OURS | RIVALS}


def interval(differences: np.ndarray) -> tuple[float, float, float]:
    """The mean over the sets and its 95% bootstrap bounds."""
    draws = np.random.default_rng(0).integers(len(differences), size=(10_000, len(differences)))
    low, high = np.quantile(differences[draws].mean(axis=1), (0.025, 0.975))
    return float(differences.mean()), float(low), float(high)


def figures_of(
    results: list[dict], fraction: float, model: str, sets: Iterable[str], what: str = "error"
) -> dict[str, list[float]]:
    """By set, a model's figures, errors in %, on trials 0, 1, … up to the first that is missing."""
    figures: dict[str, list[float]] = {name: [] for name in sets}
    chosen = [of for of in results if (of["fraction"], of["model"]) == (fraction, model) and of["set"] in figures]
    for of in sorted(chosen, key=lambda of: of["trial"]):
        if of["trial"] == len(figures[of["set"]]) and what in of:
            figures[of["set"]].append(of[what] * (100 if what == "error" else 1))
    return figures


def table(
    results: list[dict], recorded: dict[str, dict[str, float]], fraction: float, trials: dict[str, int] | None = None
) -> tuple[str, dict]:
    """The table of a fraction in Markdown, and its figures; `trials` is how many the recorded ones are of, if not all."""
    errors = {model: figures_of(results, fraction, model, recorded) for model in OURS | RIVALS}
    cells = {name: {model: old[model] for model in RIVALS if model in old} for name, old in recorded.items()}
    counts = {}
    for model, found in errors.items():
        known = (trials or {}).get(model, TRIALS) if all(model in cell for cell in cells.values()) else 1
        common = min(map(len, found.values()))  # trials that the file has of every set
        counts[model] = max(common, known)
        for name, values in found.items():
            if common >= known or len(values) == TRIALS:
                cells[name][model] = float(np.mean(values[: counts[model]]))
    models = [model for model in OURS | RIVALS if all(model in cell for cell in cells.values())]
    ranked = [model for model in models if model != "networks"]
    lines = [["set", "rows", "trials", *((OURS | RIVALS)[model] for model in models), "s"]]
    lines.append(["---"] * len(lines[0]))
    for name, cell in cells.items():
        fits = [of for of in results if (of["set"], of["fraction"], of["model"]) == (name, fraction, "fewfire")]
        shown = {model: f"{cell[model]:.1f}" for model in models}
        best = min((shown[model] for model in ranked), key=float)
        marked = [f"**{of}**" if of == best and model in ranked else of for model, of in shown.items()]
        rows = training_rows(fits[0]["rows"], fraction, CAP)
        times = [of["seconds"] for of in fits if "seconds" in of]  # results of a slower machine may leave theirs out
        lines.append([name, str(rows), str(len(fits)), *marked, f"{np.mean(times):.0f}" if times else ""])
    means = {model: float(np.mean([cell[model] for cell in cells.values()])) for model in models}
    ranks = mean_ranks([{model: cell[model] for model in ranked} for cell in cells.values()])
    lines.append(["mean", "", "", *(f"{means[model]:.2f}" for model in models), ""])
    lines.append(["mean rank", "", "", *(f"{ranks[m]:.2f}" if m in ranks else "" for m in models), ""])
    bounds = {}
    for model in models:
        if model != "fewfire":
            ours = {name: np.mean(values[: counts[model]]) for name, values in errors["fewfire"].items()}
            ahead = np.array([ours[name] - cell[model] for name, cell in cells.items()])
            bounds[model] = tuple(round(value, 2) for value in interval(ahead))
    told = [f"{bounds[m][0]:+.2f} ({bounds[m][1]:+.2f} to {bounds[m][2]:+.2f})" if m in bounds else "" for m in models]
    lines.append([DIFFERENCE, "", "", *told, ""])
    if any(counts[model] < TRIALS for model in models):
        lines.append(["trials", "", "", *(str(counts[model]) for model in models), ""])
    figures = {"mean": {m: round(of, 2) for m, of in means.items()}, "rank": {m: round(r, 2) for m, r in ranks.items()}}
    return "\n".join(f"| {' | '.join(line)} |" for line in lines), figures | {"difference": bounds}


def chances(results: list[dict], text: str) -> str:
    """The table of log losses and calibration errors in Markdown; cells of models that lack results stay as they are."""
    sets = sorted({of["set"] for of in results if of["model"] == "fewfire"})
    (title, _, *body), models = cells_of(text, CHANCES), OURS | RIVALS
    before = {row[0]: dict(zip(title, row, strict=True)) for row in body}
    lines = [["rows", *models.values()], ["---"] * (1 + len(models))]
    for fraction, name in SHARES.items():
        line = [name]
        for model, shown in models.items():
            losses, gaps = (figures_of(results, fraction, model, sets, what) for what in ("log_loss", "ece"))
            trials = min(map(len, losses.values()), default=0)
            means = [np.mean([np.mean(of[:trials]) for of in each.values()]) for each in (losses, gaps) if trials]
            told = f"{means[0]:.3f} ({means[1]:.3f})" if trials else before.get(name, {}).get(shown, "")
            line.append(told + (f", {trials} trials" if 0 < trials < TRIALS else "").replace(", 1 trials", ", 1 trial"))
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def put(text: str, heading: str, made: str) -> str:
    """The page with another table under a heading."""
    before, after = text.split(heading)
    return before + heading + re.sub(r"(\|.*\n)+", lambda _: made + "\n", after, count=1)


def tables(options: argparse.Namespace) -> int:
    """Print the tables, put them into the page if asked to, and compare with what is asked."""
    text, results = options.page.read_text(encoding="utf-8"), read(options.results)
    found, missed = {}, False
    for fraction, heading in sorted(HEADINGS.items()):
        recorded = page_figures(text, fraction)
        done = {of["set"] for of in results if of["fraction"] == fraction and of["model"] == "fewfire"}
        if done != set(recorded):
            print(f"{heading}: no results yet of {', '.join(sorted(set(recorded) - done))}")
            missed = True
            continue
        made, found[fraction] = table(results, recorded, fraction, page_trials(text, fraction))
        missed |= found[fraction]["mean"]["fewfire"] > ASKED[fraction]
        print(f"{heading}\n\n{made}\n")
        text = put(text, heading, made)
    if CHANCES in text:
        made = chances(results, text)
        print(f"{CHANCES}\n\n{made}\n")
        text = put(text, CHANCES, made)
    if options.write:
        options.page.write_text(text, encoding="utf-8")
    print(json.dumps({"name": "tabular_protocol", "ratio": None, "asked": ASKED, "found": found}))
    return int(missed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("convert", "measure", "tables"))
    parser.add_argument(
        "--data",
        type=Path,
        help="folder of the sets, as `convert` writes them; of `convert` the folder of Parquet files",
    )
    parser.add_argument(
        "--results", type=Path, required=True, help="file of lines, one per result; of `convert` a folder"
    )
    parser.add_argument("--page", type=Path, default=Path(__file__).parents[1] / "docs" / "results" / "tabular.md")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    parser.add_argument("--models", default="fewfire,networks", help="names, with commas between")
    parser.add_argument("--sets", help="names, with commas between; all if not given")
    parser.add_argument("--fractions", default="1,0.1,0.01", help="of the rows, in the order of their jobs")
    parser.add_argument("--trials", type=int, default=10, help="of each fraction, at most")
    add_limits(parser)
    options = parser.parse_args()
    return {"convert": convert, "measure": measure, "tables": tables}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())

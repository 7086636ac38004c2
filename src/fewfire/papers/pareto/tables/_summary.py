"""Measurements of many trials in few numbers: errors, calibration, ranks, and what the paper prints in Table 2.

Calibration is by log loss and the expected calibration error (Guo, Pleiss, Sun and Weinberger 2017).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.stats import rankdata

from fewfire._random import Stream
from fewfire.papers._claims._recipe import grouped
from fewfire.problems.tabular import DATASETS, training_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fewfire._types import AnyArray, Float64Array
    from fewfire.papers.pareto.tables._models import TabularModel
    from fewfire.sweeps.store._protocol import Measurement

TableRow: TypeAlias = dict[str, Any]

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


def table_rows(measurements: Iterable[Measurement], models: Sequence[TabularModel]) -> list[TableRow]:
    """A row per cell, `whole` with as many rows to train on as the paper has; the best of each family comes again."""
    family = {model.name: model.family for model in models}
    cells: dict[tuple[str, float, str], list[Measurement]] = {}
    for found in measurements:
        spec = found.table
        cells.setdefault((spec["dataset"], spec["fraction"], spec["model"]["name"]), []).append(found)
    rows = []
    for (dataset, fraction, model), trials in cells.items():
        done = [found for found in trials if found.status == "done"]
        row: TableRow = {"dataset": dataset, "fraction": fraction, "model": model, "family": family[model]}
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
    return rows + _best(rows)


def _best(rows: Iterable[TableRow]) -> list[TableRow]:
    members = [row for row in rows if row["family"] and "median" in row]
    best = []
    for (_, _, family), found in grouped(members, "dataset", "fraction", "family").items():
        if len(found) > 1:
            row = min(found, key=lambda row: float(row["median"]))
            best.append(row | {"model": f"best of {family}", "family": "", "chosen": row["model"]})
    return best


def overall(rows: Iterable[TableRow]) -> list[dict[str, Any]]:
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


def text_table(rows: Sequence[TableRow], skipped: Mapping[str, str]) -> str:
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

"""Measurements as rows, one per data set, fraction and model, with what the paper prints; and as text."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.experiments.tabular._calibration import mean_calibration
from fewfire.experiments.tabular._published import TABLE_2, published
from fewfire.experiments.tabular._summaries import mean_ranks, summarise
from fewfire.problems.tabular import DATASETS, training_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fewfire.experiments.store import Measurement
    from fewfire.experiments.tabular._models import TabularModel

TableRow = dict[str, Any]

SHOWN = 4
"""Families of more models are summed up by their best one."""


def table_rows(measurements: Iterable[Measurement], models: Sequence[TabularModel]) -> list[TableRow]:
    """A row per cell: data set, fraction, model, training rows, trials, median with interval, mean, failures, seconds.

    `calibration` holds mean log loss and ECE, or None where a trial told none.
    `whole` says whether there were as many rows to train on as in the paper, so that its figures compare. Of each
    family the model of the lowest median in a cell comes again, as "best of" it, which is how the paper chooses.
    `published` and `quoted` are what Table 2 prints, in percent.
    """
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
        row["quoted"] = {"network": TABLE_2[dataset].quoted_network, "forest": TABLE_2[dataset].quoted_forest}
        row["failures"] = [found.message for found in trials if found.status == "failed"]
        if done:
            row |= asdict(summarise([found.error for found in done]))
            row["seconds"] = float(np.mean([found.seconds for found in done]))
            row["calibration"] = mean_calibration(done)
        rows.append(row)
    return rows + _best(rows)


def _best(rows: Iterable[TableRow]) -> list[TableRow]:
    cells: dict[tuple[str, float, str], list[TableRow]] = {}
    for row in rows:
        if row["family"] and "median" in row:
            cells.setdefault((row["dataset"], row["fraction"], row["family"]), []).append(row)
    best = [
        (family, min(found, key=lambda row: float(row["median"])))
        for (_, _, family), found in cells.items()
        if len(found) > 1
    ]
    return [row | {"model": f"best of {family}", "family": "", "chosen": row["model"]} for family, row in best]


def overall(rows: Iterable[TableRow]) -> list[dict[str, Any]]:
    """For each fraction the mean over data sets of each model's median error, and mean ranks.

    Only data sets on which every model was measured count; members of a family have no rank, the best of it has one.
    """
    fractions: dict[float, dict[str, dict[str, float]]] = {}
    single = set()
    for row in rows:
        if "median" in row:
            fractions.setdefault(row["fraction"], {}).setdefault(row["dataset"], {})[row["model"]] = row["median"]
            if not row["family"]:
                single.add(row["model"])
    summary = []
    for fraction, datasets in sorted(fractions.items()):
        models = {model for cell in datasets.values() for model in cell}
        cells = [cell for cell in datasets.values() if len(cell) == len(models)]
        means = {model: float(np.mean([cell[model] for cell in cells])) for cell in cells[:1] for model in cell}
        ranks = mean_ranks([{model: error for model, error in cell.items() if model in single} for cell in cells])
        summary.append({"fraction": fraction, "datasets": len(cells), "mean": means, "rank": ranks})
    return summary


def text_table(rows: Sequence[TableRow], skipped: Mapping[str, str]) -> str:
    """Medians in percent, a block per fraction, beside the paper's; then means, ranks and what was skipped."""
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

"""pareto, Table 2 and Figure 6: networks and trees on the paper's tabular data sets, on identical splits.

Quick: three small sets at 1% of their rows, 3 trials. Options choose data sets, fractions, trials and models; with a
store the work is kept, and repeating the command goes on. What the paper calls best is chosen by test error over all
settings; fewfire's default, the forest, XGBoost, CatBoost and scikit-learn's network run at one setting each. Expect
the forest within 3 points of the paper's best of 90.

`fewfire.report.plot_tabular` draws what `run` returns.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._validate import check_choice, check_integer, check_number
from fewfire.experiments._memory_store import MemoryStore
from fewfire.experiments._sqlite_store import SqliteStore
from fewfire.experiments.recipes._base import Recipe, check_scale, judgement, result
from fewfire.experiments.tabular import MeasurementPlan, find_models, measure
from fewfire.experiments.tabular._table import overall, table_rows, text_table
from fewfire.problems.tabular import DATASETS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

RECIPE = Recipe(
    name="pareto/table2",
    title="Table 2, Figure 6: wide sparse networks and trees on tabular data, on identical splits",
    seconds=60,
    expectation="forests within 3 points of the paper's; fewfire's default no worse than its best network",
    options=("datasets", "fractions", "trials", "models", "store", "data", "tell"),
)

RIVALS = ("fewfire", "forest", "xgboost", "catboost", "mlp")


def run(
    scale: str = "quick",
    *,
    datasets: Sequence[str] | None = None,
    fractions: Sequence[float] | None = None,
    trials: int | None = None,
    models: Sequence[str] | None = None,
    store: str | Path | None = None,
    data: str | Path | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """One row a data set, fraction and model.

    Parameters
    ----------
    datasets : names of `problems.tabular.DATASETS`; ("all",) is all of them
    fractions : floats in (0, 1]
    trials : int
    models : names as of `experiments.tabular.find_models`
    store : path of a store file, made when it does not exist; without it nothing is kept
    data : path of the folder of local files; see `problems.tabular.load`
    tell : called with a line of text before each training
    """
    full = check_scale(scale)
    names = tuple(datasets or (DATASETS if full else ("pol", "MagicTelescope", "bank-marketing")))
    names = tuple(DATASETS) if names == ("all",) else names
    shares = tuple(fractions or ((1.0, 0.1, 0.01) if full else (0.01,)))
    count = check_integer("trials", trials if trials is not None else 100 if full else 3, 1)
    chosen = tuple(models or (*RIVALS, *(("forest-grid", "paper-network") if full else ("sparse-100", "dense-100"))))
    for name in names:
        check_choice("datasets", name, DATASETS)
    for share in shares:
        check_number("fractions", share, 0.0, 1.0, open_low=True)
    plan = MeasurementPlan(names, shares, count, find_models(chosen), directory=data)
    opened: Any = nullcontext(MemoryStore()) if store is None else SqliteStore(store, write=True)
    with opened as kept:
        measured, skipped = measure(plan, kept, tell)
    rows = table_rows(measured, plan.models)
    parameters = {"datasets": list(names), "fractions": list(shares), "trials": count, "models": list(chosen)}
    return result(RECIPE, scale, parameters, _judge(rows), rows=rows, overall=overall(rows), skipped=skipped,
                  text=text_table(rows, skipped))  # fmt: skip


def _judge(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Claims about the models that were measured; cells with fewer training rows than the paper's do not count."""
    found = []
    for model, printed, claim, threshold in (
        ("forest", "forest", "the splits are as hard as the paper's: a forest at one setting nears its best", 3.0),
        ("fewfire", "network", "fewfire's default is no worse than the paper's best network", 0.0),
    ):
        cells = [row for row in rows if row["model"] == model and row["whole"] and "median" in row]
        cells = [row for row in cells if row["published"]]
        if cells:
            excess = [100 * row["median"] - row["published"][printed] for row in cells]
            statistic = f"mean excess over {len(cells)} cells in points"
            found.append(judgement(claim, statistic, float(np.mean(excess)), threshold))
    return found

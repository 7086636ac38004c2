"""pareto, Table 2 and Figure 6: networks and trees on the paper's tabular data sets, on identical splits.

Options choose data sets, fractions, trials and models; with a
store the work is kept, and repeating the command goes on. What the paper calls best is chosen by test error over all
settings; fewfire's default, the forest, XGBoost, CatBoost and scikit-learn's network run at one setting each. Expect
the forest within 3 points of the paper's best of 90.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._validate import check_choice, check_integer, check_number
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement
from fewfire.experiments.store import MemoryStore, SqliteStore
from fewfire.experiments.tabular import MeasurementPlan, find_models
from fewfire.experiments.tabular import measure as measure_models
from fewfire.experiments.tabular._table import overall, table_rows, text_table
from fewfire.problems.tabular import DATASETS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

RIVALS = ("fewfire", "forest", "xgboost", "catboost", "mlp")


@dataclass(frozen=True)
class Table2Settings:
    """Names of data sets and models, shares of the rows to train on, and random splits.

    Parameters
    ----------
    datasets : names of `problems.tabular.DATASETS`; ("all",) is all of them
    fractions : floats in (0, 1]
    trials : int
    models : names as of `experiments.tabular.find_models`
    """

    datasets: tuple[str, ...]
    fractions: tuple[float, ...]
    trials: int
    models: tuple[str, ...]

    def __post_init__(self) -> None:
        names = tuple(DATASETS) if tuple(self.datasets) == ("all",) else tuple(self.datasets)
        object.__setattr__(self, "datasets", names)
        object.__setattr__(self, "fractions", tuple(self.fractions))
        object.__setattr__(self, "models", tuple(self.models))
        check_integer("trials", self.trials, 1)
        for name in names:
            check_choice("datasets", name, DATASETS)
        for share in self.fractions:
            check_number("fractions", share, 0.0, 1.0, open_low=True)


def measure(
    settings: Table2Settings,
    *,
    datasets: Sequence[str] | None = None,
    fractions: Sequence[float] | None = None,
    trials: int | None = None,
    models: Sequence[str] | None = None,
    store: str | Path | None = None,
    data: str | Path | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> RecipeOutcome:
    """One row per data set, fraction and model.

    Parameters
    ----------
    settings : Table2Settings
    datasets, fractions, trials, models
        Instead of those of the settings.
    store : path of a store file, made when it does not exist; without it nothing is kept
    data : path of the folder of local files; see `problems.tabular.load`
    tell : called with a line of text before each training
    """
    chosen = Table2Settings(
        datasets=tuple(datasets or settings.datasets),
        fractions=tuple(fractions or settings.fractions),
        trials=settings.trials if trials is None else trials,
        models=tuple(models or settings.models),
    )
    plan = MeasurementPlan(chosen.datasets, chosen.fractions, chosen.trials, find_models(chosen.models), directory=data)
    opened: Any = nullcontext(MemoryStore()) if store is None else SqliteStore(store, write=True)
    with opened as kept:
        measured, skipped = measure_models(plan, kept, tell)
    rows = table_rows(measured, plan.models)
    return RecipeOutcome(
        parameters={key: list(value) if isinstance(value, tuple) else value for key, value in vars(chosen).items()},
        judgements=_judge(rows),
        data={"rows": rows, "overall": overall(rows), "skipped": skipped, "text": text_table(rows, skipped)},
    )


def _judge(rows: list[dict[str, Any]]) -> list[Judgement]:
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
            found.append(Judgement(claim, statistic, float(np.mean(excess)), threshold))
    return found


RECIPE = Recipe(
    name="pareto/table2",
    title="Table 2, Figure 6: wide sparse networks and trees on tabular data, on identical splits",
    seconds=60,
    expectation="forests within 3 points of the paper's; fewfire's default no worse than its best network",
    figure="tabular",
    scales={
        "quick": Table2Settings(
            datasets=("pol", "MagicTelescope", "bank-marketing"),
            fractions=(0.01,),
            trials=3,
            models=(*RIVALS, "sparse-100", "dense-100"),
        ),
        "paper": Table2Settings(
            datasets=("all",),
            fractions=(1.0, 0.1, 0.01),
            trials=100,
            models=(*RIVALS, "forest-grid", "paper-network"),
        ),
    },
    measure=measure,
    paper_seconds=2_000_000,
)

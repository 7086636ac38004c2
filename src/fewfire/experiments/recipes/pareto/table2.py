"""pareto, Table 2 and Figure 6: networks and trees on the paper's tabular data sets, on identical splits.

Options choose data sets, fractions, trials and models; with a
store the work is kept, and repeating the command goes on. What the paper calls best is chosen by test error over all
settings; fewfire's default, the forest, XGBoost, CatBoost and scikit-learn's network run at one setting each. Expect
the forest within 3 points of the paper's best of 90.

Each claim is judged twice. On these data sets, what varies is the split and the seed: the interval is over trials. On
sets like these, taken as a draw from many, it is over sets, and says less, since there are few. The first form and the
two points of its power were settled after the second was seen to span 0 for fewfire.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from fewfire._validate import check_choice, check_integer, check_number
from fewfire.experiments.recipes import _effects as effects
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Effect, Judgement, Power
from fewfire.experiments.recipes._power import mean_power
from fewfire.experiments.store import MemoryStore, SqliteStore
from fewfire.experiments.tabular import MeasurementPlan, find_models
from fewfire.experiments.tabular import measure as measure_models
from fewfire.experiments.tabular._table import overall, table_rows, text_table
from fewfire.problems.tabular import DATASETS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

RIVALS = ("fewfire", "forest", "xgboost", "catboost", "mlp")
SMALL = (
    "pol",
    "MagicTelescope",
    "bank-marketing",
    "credit",
    "california",
    "default-of-credit-card-clients",
    "Diabetes130US",
    "Bioresponse",
)
NOTICED = 2.0
"""Points: about what lies between the paper's best networks and its best forests at 1% of the rows."""


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
    judgements, sentences = judge(rows)
    return RecipeOutcome(
        parameters={key: list(value) if isinstance(value, tuple) else value for key, value in vars(chosen).items()},
        judgements=judgements,
        measured=sentences,
        data={"rows": rows, "overall": overall(rows), "skipped": skipped, "text": text_table(rows, skipped)},
    )


@dataclass(frozen=True)
class MeanExcess:
    """Median errors above the printed ones, in points, averaged over cells.

    Parameters
    ----------
    cells : tuple of float
        One excess per data set and fraction.
    error, freedom : float
        Standard error of the mean over these cells, from the spread over trials, and its degrees of freedom (Welch).
    """

    cells: tuple[float, ...]
    error: float
    freedom: float

    @property
    def effect(self) -> Effect:
        """With Student's interval over trials."""
        mean = float(np.mean(self.cells))
        half = float(stats.t.ppf(0.975, self.freedom)) * self.error if self.error else 0.0
        return Effect(f"mean excess over {len(self.cells)} cells [points]", mean, mean - half, mean + half)

    def power(self, effect: float) -> float:
        """The probability that the upper end is below the bound when the mean is `effect` points below it."""
        if self.error == 0.0:
            return 1.0
        return float(stats.nct.sf(stats.t.ppf(0.975, self.freedom), self.freedom, effect / self.error))


def mean_excess(cells: Sequence[dict[str, Any]], printed: str) -> MeanExcess:
    """Of rows with at least two trials each; the median of normal errors has π/2 times the variance of their mean."""
    excess = tuple(100 * row["median"] - row["published"][printed] for row in cells)
    variances = np.array([np.pi / 2 * (100 * row["deviation"]) ** 2 / row["trials"] for row in cells])
    weights = sum(v**2 / (row["trials"] - 1) for v, row in zip(variances, cells, strict=True))
    freedom = float(variances.sum() ** 2 / weights) if weights else 1.0
    return MeanExcess(excess, float(np.sqrt(variances.sum()) / len(cells)), freedom)


CLAIMS = (
    ("forest", "forest", "the splits are as hard as the paper's: a forest at one setting nears its best", 3.0),
    ("fewfire", "network", "fewfire's default is no worse than the paper's best network", 0.0),
)
"""Model, column of Table 2, claim, and how many points above the printed error the upper end may be."""


def judge(rows: list[dict[str, Any]]) -> tuple[list[Judgement], list[str]]:
    """Verdicts on the models that were measured, over trials and over data sets, and how many cells are above.

    Cells with fewer training rows than the paper's do not count; one trial has no spread, and is not judged.
    """
    judgements, measured = [], []
    for model, printed, claim, bound in CLAIMS:
        cells = [row for row in rows if row["model"] == model and row["whole"] and row.get("trials", 0) > 1]
        cells = [row for row in cells if row["published"]]
        if not cells:
            continue
        found = mean_excess(cells, printed)
        judgements.append(
            _judgement(
                f"{claim}, on these sets",
                f"mean excess over {len(cells)} cells in points, upper end of 95% over trials",
                found.effect,
                bound,
                found.power(NOTICED),
            )
        )
        of: dict[str, list[float]] = {}
        for row, excess in zip(cells, found.cells, strict=True):
            of.setdefault(row["dataset"], []).append(excess)
        sets = [float(np.mean(fractions)) for fractions in of.values()]
        if len(sets) > 1:
            judgements.append(
                _judgement(
                    f"{claim}, on sets like these",
                    f"mean excess over {len(sets)} sets in points, upper end of 95% over sets",
                    effects.mean(f"mean excess over {len(sets)} sets [points]", sets),
                    bound,
                    mean_power(NOTICED, float(np.std(sets, ddof=1)), len(sets), level=0.025),
                )
            )
        above = sum(excess > 0 for excess in found.cells)
        measured.append(f"{model}: above the paper's {printed} on {above} of {len(cells)} cells")
    return judgements, measured


def _judgement(claim: str, statistic: str, effect: Effect, bound: float, power: float) -> Judgement:
    """The upper end must be at most the bound."""
    return Judgement(
        claim,
        statistic,
        effect.high,
        bound,
        refuted_by=f"an upper end above {bound:g} points",
        effect=effect,
        power=Power(f"errors {NOTICED:g} points below that bound", power),
    )


RECIPE = Recipe(
    name="pareto/table2",
    title="Table 2, Figure 6: wide sparse networks and trees on tabular data, on identical splits",
    seconds=100,
    expectation="forests within 3 points of the paper's; fewfire's default no worse here than its best network",
    figure="tabular",
    scales={
        "quick": Table2Settings(
            datasets=SMALL,
            fractions=(0.01,),
            trials=5,
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

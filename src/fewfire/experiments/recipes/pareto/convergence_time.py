"""pareto, Figure 2 and finding (4): steps to convergence against samples; grokking and sample-wise double descent.

Expect time to fall steeply
with samples where learning is just feasible, with the training error small long before the test error (grokking); a
minimum at about 10,000 samples; more steps again with still more data, up to fresh examples every step (double
descent); and fewer steps at the larger width. The setting and the sizes compared were chosen after exploring it, so the
p-values of the first draw flatter the claims; two fresh draws of every run, made afterwards, confirm them
(docs/results.md).

Times are judged by Mann and Whitney's test, runs that did not converge counting as the longest; grokking by the sign
test: among the runs that converge from the fewest samples, most need more than twice as many steps as the training
error needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement
from fewfire.experiments.recipes._statistics import in_most, larger
from fewfire.experiments.recipes.pareto._grid import ParityGrid, cell, run_grid, times

if TYPE_CHECKING:
    from fewfire.experiments.store import MemoryStore

LAG = 2.0
CURVES, POINTS = 8, 60
"""Runs whose errors are kept for the figure, and at how many steps."""


@dataclass(frozen=True)
class ConvergenceSettings:
    """A grid, and the cells that are compared: few samples (`edge`), the best number (`middle`), the most (`end`)."""

    grid: ParityGrid
    narrow: int
    wide: int
    edge: int
    middle: int
    end: int | None = None


def measure(settings: ConvergenceSettings) -> RecipeOutcome:
    """One row per cell, and the errors of some runs at the edge."""
    rows, store = run_grid(settings.grid)
    compared = {key: getattr(settings, key) for key in ("narrow", "wide", "edge", "middle", "end")}
    return RecipeOutcome(
        parameters={**settings.grid.parameters(), **compared},
        judgements=judge(rows, settings),
        measured=_measured(rows, settings),
        data={"rows": rows, "curves": _curves(store, settings.wide, settings.edge)},
    )


def judge(rows: list[dict[str, Any]], settings: ConvergenceSettings) -> list[Judgement]:
    """The claims on times, from rows with start, width, samples, steps and train_steps."""
    narrow, wide = (
        {m: times(cell(rows, "dense", width, m)) for m in (settings.edge, settings.middle, settings.end)}
        for width in (settings.narrow, settings.wide)
    )
    lags = _lags(cell(rows, "dense", settings.wide, settings.edge))
    late, test = sum(lag > LAG for lag in lags), "p of Mann and Whitney's test"
    few, most = settings.edge, _size(settings.end)
    return [
        Judgement(
            f"data buys time: {few} samples take longer than {settings.middle} (width {settings.wide})",
            test,
            larger(wide[settings.edge], wide[settings.middle]),
            0.01,
        ),
        Judgement(
            f"double descent: {most} takes longer than {settings.middle} samples (width {settings.narrow})",
            test,
            larger(narrow[settings.end], narrow[settings.middle]),
            0.01,
        ),
        Judgement(
            f"width buys time: width {settings.narrow} takes longer than {settings.wide} ({settings.middle} samples)",
            test,
            larger(narrow[settings.middle], wide[settings.middle]),
            0.01,
        ),
        Judgement(
            f"grokking: the test error lags {LAG:.0f}-fold in most runs (width {settings.wide}, {few} samples)",
            f"p of the sign test, {late} of {len(lags)} runs",
            in_most(late, len(lags)),
            0.01,
        ),
    ]


def _lags(row: dict[str, Any]) -> list[float]:
    """Steps for the test error over steps for the training error, of the runs that converged."""
    pairs = zip(times(row), times(row, "train_steps"), strict=True)
    return [test / max(1.0, train) for test, train in pairs if np.isfinite(test)]


def _measured(rows: list[dict[str, Any]], settings: ConvergenceSettings) -> list[str]:
    lines = []
    for start in settings.grid.starts:
        for width in settings.grid.widths:
            cells = [(m, cell(rows, start, width, m)) for m in settings.grid.samples]
            medians = ", ".join(f"{_median(times(row))} at {_size(m)}" for m, row in cells)
            lines.append(f"{start} start, width {width}, median steps: {medians}")
    lags = _lags(cell(rows, "dense", settings.wide, settings.edge))
    if lags:
        lines.append(
            f"median lag of the test error at width {settings.wide} and {settings.edge}: {np.median(lags):.1f}-fold"
        )
    return lines


def _median(values: list[float]) -> str:
    """The median, which is not known when half of the runs did not converge."""
    middle = float(np.median(values)) if np.isfinite(sorted(values)[len(values) // 2]) else np.inf
    return f"{middle:.0f}" if np.isfinite(middle) else "none"


def _size(samples: int | None) -> str:
    return "online" if samples is None else f"{samples}"


def _curves(store: MemoryStore, width: int, samples: int) -> list[dict[str, Any]]:
    """Training and test error of some runs of a cell from the dense start, at steps about evenly spaced in the log."""
    setting = next(s for s in store.settings() if (s.start["name"], s.width, s.samples) == ("dense", width, samples))
    curves = []
    for row, _ in zip(store.rows(setting.id), range(CURVES), strict=False):
        last = len(row.history.step) - 1
        places = np.unique(np.concatenate([[0], np.geomspace(1, max(1, last), POINTS).astype(np.int64)]))
        places = places[places <= last]
        curves.append(
            {
                "step": row.history.step[places].tolist(),
                "train_error": np.round(row.history.train_error[places].astype(np.float64), 4).tolist(),
                "test_error": np.round(row.history.test_error[places].astype(np.float64), 4).tolist(),
            }
        )
    return curves


RECIPE = Recipe(
    name="pareto/convergence-time",
    title="Figure 2: steps to convergence against samples, with grokking and sample-wise double descent",
    seconds=25,
    expectation="time falls with samples, is least in between and rises again; test error lags where data is scarce",
    figure="convergence_time",
    scales={
        "quick": ConvergenceSettings(
            ParityGrid(
                n=75,
                k=3,
                starts=("dense",),
                widths=(30, 300),
                samples=(2000, 3000, 4000, 10_000, 30_000, None),
                trials=16,
                steps=30_000,
                evaluate=150,
            ),
            narrow=30,
            wide=300,
            edge=2000,
            middle=10_000,
        ),
        "paper": ConvergenceSettings(
            ParityGrid(
                n=100,
                k=3,
                starts=("dense", "sparse"),
                widths=(30, 100, 300, 1000),
                samples=(2000, 3000, 4000, 6000, 10_000, 20_000, 30_000, 100_000, None),
                trials=50,
                steps=100_000,
                evaluate=250,
            ),
            narrow=30,
            wide=300,
            edge=3000,
            middle=20_000,
        ),
    },
    measure=measure,
)

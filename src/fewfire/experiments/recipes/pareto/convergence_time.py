"""pareto, Figure 2 and finding (4): steps to convergence against samples; grokking and sample-wise double descent.

Takes about 25 s (quick: the (75, 3)-parity from a dense start at widths 30 and 300; paper: the (100, 3)-parity, both
starts, four widths, 50 runs a cell, hours). Expect time to fall steeply with samples where learning is just
feasible, with the training error small long before the test error (grokking); a minimum at about 10,000 samples; more
steps again with still more data, up to fresh examples every step (double descent); and fewer steps at the larger
width. The setting and the sizes compared were chosen after exploring it, so the p-values of the first draw flatter the
claims; two fresh draws of every run, made afterwards, confirm them (docs/results.md).

Times are judged by Mann and Whitney's test, runs that did not converge counting as the longest; grokking by the sign
test: among the runs that converge from the fewest samples, most need more than twice as many steps as the training
error needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.experiments.recipes._base import Recipe, check_scale, judgement, result
from fewfire.experiments.recipes._statistics import in_most, larger
from fewfire.experiments.recipes.pareto._grid import Grid, cell, run_grid, times

if TYPE_CHECKING:
    from fewfire.experiments.store import MemoryStore

RECIPE = Recipe(
    name="pareto/convergence-time",
    title="Figure 2: steps to convergence against samples, with grokking and sample-wise double descent",
    seconds=25,
    expectation="time falls with samples, is least in between and rises again; test error lags where data is scarce",
)
LAG = 2.0
CURVES, POINTS = 8, 60
"""Runs whose errors are kept for the figure, and at how many steps."""


@dataclass(frozen=True)
class Plan:
    """A grid, and the cells that are compared: few samples (`edge`), the best number (`middle`), the most (`end`)."""

    grid: Grid
    narrow: int
    wide: int
    edge: int
    middle: int
    end: int | None = None


QUICK = Plan(
    Grid(75, 3, ("dense",), (30, 300), (2000, 3000, 4000, 10_000, 30_000, None), 16, 30_000, 150),
    30, 300, 2000, 10_000,
)  # fmt: skip
PAPER = Plan(
    Grid(100, 3, ("dense", "sparse"), (30, 100, 300, 1000),
         (2000, 3000, 4000, 6000, 10_000, 20_000, 30_000, 100_000, None), 50, 100_000, 250),
    30, 300, 3000, 20_000,
)  # fmt: skip


def run(scale: str = "quick", *, plan: Plan | None = None) -> dict[str, Any]:
    """One row a cell, and the errors of some runs at the edge; a plan instead of that of the scale can be given."""
    chosen = (PAPER if check_scale(scale) else QUICK) if plan is None else plan
    rows, store = run_grid(chosen.grid)
    compared = {key: getattr(chosen, key) for key in ("narrow", "wide", "edge", "middle", "end")}
    return result(
        RECIPE,
        scale,
        {**chosen.grid.parameters(), **compared},
        judge(rows, chosen),
        measured=_measured(rows, chosen),
        rows=rows,
        curves=_curves(store, chosen.wide, chosen.edge),
    )


def judge(rows: list[dict[str, Any]], plan: Plan) -> list[dict[str, Any]]:
    """The claims on times, from rows with start, width, samples, steps and train_steps."""
    narrow, wide = (
        {m: times(cell(rows, "dense", width, m)) for m in (plan.edge, plan.middle, plan.end)}
        for width in (plan.narrow, plan.wide)
    )
    lags = _lags(cell(rows, "dense", plan.wide, plan.edge))
    late, test = sum(lag > LAG for lag in lags), "p of Mann and Whitney's test"
    return [
        judgement(
            f"data buys time: {plan.edge} samples take longer than {plan.middle} (width {plan.wide})",
            test, larger(wide[plan.edge], wide[plan.middle]), 0.01,
        ),
        judgement(
            f"double descent: {_size(plan.end)} takes longer than {plan.middle} samples (width {plan.narrow})",
            test, larger(narrow[plan.end], narrow[plan.middle]), 0.01,
        ),
        judgement(
            f"width buys time: width {plan.narrow} takes longer than {plan.wide} ({plan.middle} samples)",
            test, larger(narrow[plan.middle], wide[plan.middle]), 0.01,
        ),
        judgement(
            f"grokking: the test error lags {LAG:.0f}-fold in most runs (width {plan.wide}, {plan.edge} samples)",
            f"p of the sign test, {late} of {len(lags)} runs", in_most(late, len(lags)), 0.01,
        ),
    ]  # fmt: skip


def _lags(row: dict[str, Any]) -> list[float]:
    """Steps for the test error over steps for the training error, of the runs that converged."""
    pairs = zip(times(row), times(row, "train_steps"), strict=True)
    return [test / max(1.0, train) for test, train in pairs if np.isfinite(test)]


def _measured(rows: list[dict[str, Any]], plan: Plan) -> list[str]:
    lines = []
    for start in plan.grid.starts:
        for width in plan.grid.widths:
            cells = [(m, cell(rows, start, width, m)) for m in plan.grid.samples]
            medians = ", ".join(f"{_median(times(row))} at {_size(m)}" for m, row in cells)
            lines.append(f"{start} start, width {width}, median steps: {medians}")
    lags = _lags(cell(rows, "dense", plan.wide, plan.edge))
    if lags:
        lines.append(f"median lag of the test error at width {plan.wide} and {plan.edge}: {np.median(lags):.1f}-fold")
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

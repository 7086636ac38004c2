"""pareto, Figures 1 and 4: success of SGD over a grid of widths and samples, from a dense and from a 2-sparse start.

Expect a frontier: hardly any run learns from the fewest examples
and most do from the most; between, wide networks learn where narrow ones fail, and the sparse start needs fewer
examples than the dense one.

Width and samples are judged by Page's trend test, with the other coordinates as blocks; that no step up in width hurts
by Fisher's test on every pair of neighbours, with Bonferroni's correction; the starts by Fisher's test on all runs of
width 100 and more together, since the paper claims the benefit for wide networks. On larger problems success can fall
again as samples grow: see `pareto/convergence-time`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement
from fewfire.experiments.recipes._statistics import more_often, rising
from fewfire.experiments.recipes.pareto._grid import ParityGrid, run_grid

WIDE = 100
"""From this width on the starts are compared."""


def measure(settings: ParityGrid) -> RecipeOutcome:
    """One row per cell."""
    rows, _ = run_grid(settings)
    return RecipeOutcome(
        parameters=settings.parameters(), judgements=judge(rows), measured=_measured(rows), data={"rows": rows}
    )


def judge(rows: list[dict[str, Any]]) -> list[Judgement]:
    """The claims on success, from rows with start, width, samples, trials and successes."""
    success, trials = _table(rows), rows[0]["trials"]
    by_width = np.moveaxis(success, 1, 2).reshape(-1, success.shape[1])
    by_samples = success.reshape(-1, success.shape[2])
    falls = [
        more_often(int(lower), int(upper), trials)
        for block in by_width
        for lower, upper in pairwise(np.round(block * trials))
    ]
    wide = {
        start: [row for row in rows if row["start"] == start and row["width"] >= WIDE] for start in ("sparse", "dense")
    }
    sparse, dense = (sum(row["successes"] for row in side) for side in wide.values())
    better = more_often(sparse, dense, trials * len(wide["dense"]))
    return [
        Judgement("width buys success", "p of Page's trend test over widths", rising(by_width), 0.01),
        Judgement(
            "no step up in width hurts",
            f"smallest p of Fisher's test, times {len(falls)} pairs",
            min(1.0, min(falls) * len(falls)),
            0.05,
            "at least",
        ),
        Judgement("data buys success", "p of Page's trend test over samples", rising(by_samples), 0.01),
        Judgement("the sparse start beats the dense one", f"p of Fisher's test, widths from {WIDE}", better, 0.01),
    ]


def _table(rows: list[dict[str, Any]]) -> np.ndarray:
    """Shares of success, shape (starts, widths, samples), starts in alphabetical order."""
    axes = [sorted({row[key] for row in rows}) for key in ("start", "width", "samples")]
    table = np.empty([len(axis) for axis in axes])
    for row in rows:
        place = tuple(axis.index(row[key]) for axis, key in zip(axes, ("start", "width", "samples"), strict=True))
        table[place] = row["successes"] / row["trials"]
    return table


def _measured(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for start in sorted({row["start"] for row in rows}):
        mine = [row for row in rows if row["start"] == start]
        share = sum(row["successes"] for row in mine) / sum(row["trials"] for row in mine)
        enough = {
            width: min((row["samples"] for row in mine if row["width"] == width and _half(row)), default=None)
            for width in sorted({row["width"] for row in mine})
        }
        needs = ", ".join(f"{'none' if m is None else m} at width {width}" for width, m in enough.items())
        lines.append(f"{start} start: {share:.0%} of all runs succeed; samples at which half do: {needs}")
    return lines


def _half(row: dict[str, Any]) -> bool:
    return bool(2 * row["successes"] >= row["trials"])


RECIPE = Recipe(
    name="pareto/frontier",
    title="Figures 1 and 4: success by width and samples, sparse start beside dense",
    seconds=30,
    expectation="success rises with width and with samples; the 2-sparse start succeeds more often than the dense one",
    figure="success_frontier",
    scales={
        "quick": ParityGrid(
            n=30,
            k=3,
            starts=("dense", "sparse"),
            widths=(10, 30, 100, 300, 1000),
            samples=(300, 350, 400, 500, 700),
            trials=10,
            steps=8000,
            evaluate=250,
        ),
        "paper": ParityGrid(
            n=50,
            k=3,
            starts=("dense", "sparse"),
            widths=(10, 30, 100, 300, 1000, 3000),
            samples=(200, 300, 600, 1000, 2000, 3000),
            trials=50,
            steps=100_000,
            evaluate=1000,
        ),
    },
    measure=measure,
)

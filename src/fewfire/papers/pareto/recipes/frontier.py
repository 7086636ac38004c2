"""pareto, Figures 1 and 4: success of SGD over a grid of widths and samples, from a dense and from a 2-sparse start.

Expect a frontier: hardly any run learns from the fewest examples and most do from the most; between, wide networks
learn where narrow ones fail, and the sparse start needs fewer examples and, in wide networks, less time than the dense
one. That width never hurts has two tests: the mean fall at every step up must be shown to be small, and no single cell
may fall by more than luck explains. On larger problems success can fall again as samples grow: see
`pareto/convergence-time`.
"""

from __future__ import annotations

from dataclasses import replace

from fewfire.papers._claims import Figure, Info, Judgement, Recipe, RecipeOutcome, Row, grouped
from fewfire.papers.pareto.recipes import _grid as grids
from fewfire.papers.pareto.recipes._grid import ParityGrid, times
from fewfire.report import plot_frontier
from fewfire.report._figure import SomeAxes


def measure(settings: ParityGrid) -> RecipeOutcome:
    """One row per cell."""
    rows, _ = grids.run_grid(settings)
    return RecipeOutcome(
        parameters=settings.parameters(), judgements=judge(rows), measured=_measured(rows), data={"rows": rows}
    )


def judge(rows: list[Row]) -> list[Judgement]:
    """The claims, from rows with start, width, samples, trials, successes and steps."""
    widest = max(row["width"] for row in rows)  # a small grid compares the starts of its widest networks
    return [
        grids.buys_success(rows, "width"),
        grids.no_step_costs_success(rows),
        grids.no_cell_loses_by_width(rows),
        grids.buys_success(rows, "samples"),
        grids.sparse_beats_dense(rows, min(grids.WIDE, widest)),
        grids.sparse_saves_time(rows, min(grids.LARGE, widest)),
    ]


def _measured(rows: list[Row]) -> list[str]:
    lines = []
    for start, mine in grouped(rows, "start").items():
        share = sum(row["successes"] for row in mine) / sum(row["trials"] for row in mine)
        half = [row for row in mine if 2 * row["successes"] >= row["trials"]]
        needs = ", ".join(
            f"{min((row['samples'] for row in half if row['width'] == width), default='none')} at width {width}"
            for width in sorted({row["width"] for row in mine})
        )
        lines.append(f"{start} start: {share:.0%} of all runs succeed; samples at which half do: {needs}")
    return [*lines, starts_by_width(rows)]


def starts_by_width(rows: list[Row]) -> str:
    """The probability that a run from the dense start takes longer, width by width, the mean over samples."""
    shares = []
    for width in sorted({row["width"] for row in rows}):
        dense, sparse = (
            [times(row) for row in rows if (row["start"], row["width"]) == (start, width)]
            for start in ("dense", "sparse")
        )
        found = grids.probability_of_longer("", dense, sparse)
        shares.append(f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f}) at width {width}")
    return f"probability that a dense run takes longer than a sparse one: {', '.join(shares)}"


def plot_success_frontier(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """pareto/frontier: a heat map of success per start, with the line of even odds."""
    group = grids.group_of(info)
    label = f"{group.label}: share of {info['parameters']['trials']} runs that succeed"
    return plot_frontier(replace(group, label=label), ax=ax)


RECIPE = Recipe(
    title="Figures 1 and 4: success by width and samples, sparse and dense starts",
    seconds=(37, 4500),
    expectation="success rises with width, which nowhere hurts, and with samples; a 2-sparse start needs less of both",
    figure=plot_success_frontier,
    quick=ParityGrid(
        30, 3, (10, 30, 100, 300, 1000), samples=(300, 400, 500, 700), trials=20, steps=8000, evaluate=250
    ),
    paper=ParityGrid(
        50, 3, (10, 30, 100, 300, 1000, 3000), (200, 300, 600, 1000, 2000, 3000), 50, steps=100_000, evaluate=1000
    ),
    measure=measure,
    from_paper=("*",),
    busy=2,
)

"""Offline sparse parity (pareto, section 4.1 and C.1): width buys luck, a sparse start helps, and under what settings.

A run succeeds when its error on fresh examples falls to 10%. First at C.1's settings (rate 0.1, decay 0.01, batches of
32), with the hinge loss, which is our choice: the paper names none for its experiments. Then with other learning rates,
decays and losses, one at a time: a claim on a group of settings holds only if it is seen under each of them, so a
setting that changes what is found makes it fail. Near the frontier generalising takes about 1/(rate · decay) steps, so
those settings have steps in that proportion; without it half the rate or half the decay just runs out of time. (The
square loss diverges at this rate at width 1000.) On the paper's scale two ends come on top: 1000 examples (everything
succeeds) and 300 (narrow networks fail).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewfire._dense.losses import LossName
from fewfire.papers._claims import Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, grouped, rows_of
from fewfire.papers._effects import difference_of_shares, share
from fewfire.papers._statistics import more_often, more_often_power, share_power
from fewfire.papers.pareto.recipes._grid import NAMES, ParityGrid, cell, problem_of, run_grid
from fewfire.report._figure import MARKERS, SomeAxes, canvas, colour
from fewfire.sweeps.store._protocol import wilson_interval

LEVEL = 0.01
NOTICED = (0.8, 0.2)  # a difference worth noticing: 8 in 10 against 2 in 10


@dataclass(frozen=True)
class Variation:
    """Settings that differ from C.1's in one entry; `group` is what was changed."""

    group: str
    name: str
    learning_rate: float = 0.1
    weight_decay: float = 0.01
    loss: LossName = "hinge"

    def of(self, grid: ParityGrid) -> ParityGrid:
        """A grid with these settings, rate · decay · steps being the same."""
        product = self.learning_rate * self.weight_decay
        return replace(
            grid,
            steps=round(grid.steps * grid.learning_rate * grid.weight_decay / product) if product else grid.steps,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            loss=self.loss,
        )


VARIATIONS = (
    Variation("learning rate", "rate 0.05", learning_rate=0.05),
    Variation("learning rate", "rate 0.2", learning_rate=0.2),
    Variation("weight decay", "decay 0.005", weight_decay=0.005),
    Variation("weight decay", "decay 0.02", weight_decay=0.02),
    Variation("no weight decay", "decay 0", weight_decay=0.0),
    Variation("logistic loss", "logistic", loss="logistic"),
    Variation("absolute loss", "absolute", loss="absolute"),
)


@dataclass(frozen=True)
class OfflineParitySettings:
    """A grid at C.1's settings; its narrowest and widest networks again under `variations`; `ends` adds two ends."""

    grid: ParityGrid
    variations: tuple[Variation, ...] = VARIATIONS
    ends: bool = False


def measure(settings: OfflineParitySettings) -> RecipeOutcome:
    """One row per cell: start, width, samples, trials, successes; those of the variations by themselves."""
    grid = settings.grid
    rows, _ = run_grid(grid)
    easy = replace(grid, starts=("sparse",), widths=(1000,), samples=(1000,))
    hard = replace(grid, widths=(100,), samples=(300,))
    ends = [row for end in (easy, hard) for row in run_grid(end)[0]] if settings.ends else []
    pair = replace(grid, widths=(grid.widths[0], grid.widths[-1]))
    varied = [
        {"group": kind.group, "variation": kind.name, **row}
        for kind in settings.variations
        for row in run_grid(kind.of(pair))[0]
    ]
    for row in (*rows, *ends, *varied):
        del row["steps"], row["train_steps"]  # not of this recipe's claims; the file stays small
    starts = ("sparse", "dense")
    lines = [_counts(rows, start, f"{start} start") for start in starts]
    kinds = grouped(varied, "variation").items()
    each = [[_counts(mine, start, f"{name}, {start}") for name, mine in kinds] for start in starts]
    return RecipeOutcome(
        parameters=grid.parameters(),
        judgements=judge(rows, ends, varied),
        measured=[*lines, *("; ".join(pair) for pair in zip(*each, strict=True))],
        data={"rows": [*rows, *ends], "variations": varied},
    )


def judge(rows: list[Row], ends: list[Row], varied: list[Row]) -> list[Judgement]:
    """The claims at C.1's settings, at the ends, and under each group of variations."""
    judgements = _both_claims("", [rows])
    if ends:
        easy, *hard = ends
        failed, runs = sum(row["successes"] for row in hard), sum(row["trials"] for row in hard)
        few, many = share("share of runs that succeed", failed, runs), easy["trials"]
        most = share("share of runs that succeed", easy["successes"], many)
        judgements += [
            most.at_least(
                "1000 neurons learn from 1000 examples",
                "lower end of the share of successes",
                0.85,
                "a share that may be below 85 in 100",
                Power("a true share of 75 in 100, which refutes it", 1 - share_power(0.75, 0.85, many)),
            ),
            few.at_most(
                "100 neurons fail on 300 examples",
                "upper end of the share of successes",
                0.04,
                "a single success, of about a hundred runs",
                Power("a true share of 1 in 20, which refutes it", 1 - 0.95**runs),
            ),
        ]
    for group in grouped(varied, "group").values():
        tables = grouped(group, "variation")
        judgements += _both_claims(f", {' and '.join(tables)}", list(tables.values()))
    return judgements


def _both_claims(where: str, tables: list[list[Row]]) -> list[Judgement]:
    widest, narrowest, dense = ("sparse", max), ("sparse", min), ("dense", max)
    return [
        _wins(f"width buys luck{where}", "widest less narrowest", tables, widest, narrowest),
        _wins(f"sparse beats dense{where}", "sparse less dense", tables, widest, dense),
    ]


def _wins(claim: str, what: str, tables: list[list[Row]], first: Any, second: Any) -> Judgement:
    """One side succeeds more often than the other in every table: the largest p of Fisher's tests."""
    widths, samples = [row["width"] for row in tables[0]], tables[0][0]["samples"]
    trials = tables[0][0]["trials"]
    sides = [
        [cell(rows, start, pick(widths), samples)["successes"] for start, pick in (first, second)] for rows in tables
    ]
    won, other = max(sides, key=lambda side: more_often(side[0], side[1], trials))
    several = ("largest ", " under one of the settings", " under each")
    largest, under_one, under_each = several if len(tables) > 1 else ("", "", "")
    return Judgement(
        claim,
        f"{largest}p of Fisher's test, {won} and {other} of {trials} runs",
        more_often(won, other, trials),
        LEVEL,
        refuted_by=f"as many successes on either side{under_one}",
        effect=difference_of_shares(f"{what}, share of runs", won, trials, other, trials),
        power=Power(f"8 in 10 against 2 in 10{under_each}", more_often_power(*NOTICED, trials, LEVEL) ** len(tables)),
    )


def _counts(rows: list[Row], start: str, head: str) -> str:
    mine = [row for row in rows if row["start"] == start]
    counts = ", ".join(f"{row['successes']} at {row['width']}" for row in mine)
    return f"{head}, successes of {mine[0]['trials']} by width: {counts}"


def plot_offline_parity(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """pareto/offline-parity: success against width with Wilson's 95% intervals, and under other settings."""
    rows, varied = rows_of(info, "rows", "variations")
    sizes = [row["samples"] for row in rows]
    samples = max(set(sizes), key=sizes.count)  # the paper's scale adds two ends
    title = f"{problem_of(info)} from {samples} samples"
    figure, (axis, right) = canvas(2, size=(9.2, 4.0), ax=ax, title=title, width_ratios=(1.0, 1.15))
    for index, start in enumerate(("sparse", "dense")):
        mine = [row for row in rows if row["start"] == start and row["samples"] == samples]
        shifted = [row["width"] * 1.04 ** (2 * index - 1) for row in mine]  # or the intervals would hide each other
        share, reach = _shares(mine)
        label = f"{NAMES[start]} start"
        axis.errorbar(shifted, share, reach, color=colour(index), marker=MARKERS[index], capsize=3, label=label)
    axis.set(xscale="log", ylim=(-0.03, 1.03), xlabel="width", ylabel="share of runs that succeed, 95% interval")
    ticks = sorted({row["width"] for row in rows})
    axis.set_xticks(ticks, [f"{width}" for width in ticks])
    axis.minorticks_off()
    axis.set_title("C.1's settings", fontsize=10)
    axis.legend()
    names = list(dict.fromkeys(row["variation"] for row in varied))
    widths = min(row["width"] for row in varied), max(row["width"] for row in varied)
    kinds = (("sparse", widths[1]), ("dense", widths[1]), ("sparse", widths[0]))
    for index, (start, width) in enumerate(kinds):
        mine = [row for row in varied if (row["start"], row["width"]) == (start, width)]
        share, reach = _shares(mine)
        at = [names.index(row["variation"]) + 0.18 * (index - 1) for row in mine]
        label = f"{NAMES[start]}, width {width}"
        right.errorbar(share, at, xerr=reach, color=colour(index), marker=MARKERS[index], linestyle="", label=label)
    right.set_yticks(range(len(names)), names)
    right.invert_yaxis()
    right.set(xlim=(-0.03, 1.03), xlabel="share of runs that succeed, 95% interval")
    right.set_title("one setting changed", fontsize=10)
    right.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
    return figure


def _shares(rows: list[Row]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Shares of success, and how far their intervals reach down and up."""
    won, runs = (np.array([row[key] for row in rows]) for key in ("successes", "trials"))
    low, high = wilson_interval(won, runs)
    return won / runs, [won / runs - low, high - won / runs]


RECIPE = Recipe(
    title="Success of SGD by width and start, at C.1's settings and at others",
    seconds=(29, 1700),
    expectation="success rises with width, the 2-sparse start beats the dense one, at other rates and decays too",
    figure=plot_offline_parity,
    quick=OfflineParitySettings(ParityGrid(30, 3, (30, 100, 300), samples=(400,), trials=24, steps=8000, evaluate=500)),
    paper=OfflineParitySettings(
        ParityGrid(50, 3, (30, 100, 300, 1000, 3000), samples=(600,), trials=48, steps=20_000, evaluate=2000), ends=True
    ),
    measure=measure,
    from_paper=("width buys luck", "sparse beats dense"),
    busy=2,
)

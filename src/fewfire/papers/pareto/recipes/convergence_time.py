"""pareto, Figure 2 and finding (4): steps to convergence against samples; grokking and sample-wise double descent.

Expect time to fall steeply with samples where learning is just feasible, with the training error small long before the
test error (grokking); a minimum at about 10,000 samples; more steps again with still more data, up to fresh examples
every step (online), and in the narrowest networks fewer successes too (double descent); fewer steps at the larger
width; and, in wide networks, fewer from the sparse start. The setting and the sizes compared were chosen after
exploring it.

Times take Mann and Whitney's test, runs that did not converge counting as the longest; grokking the sign test: among
the runs that converge from the fewest samples, most need more than twice as many steps as the training error needs;
success takes Fisher's test, the starts within cells van Elteren's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from fewfire.papers import _statistics as tests
from fewfire.papers._claims import Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, grouped, rows_of
from fewfire.papers._effects import difference_of_shares, probability_of_larger, share
from fewfire.papers.pareto.recipes import _grid as grids
from fewfire.papers.pareto.recipes._grid import ParityGrid, cell, times
from fewfire.papers.pareto.recipes.frontier import starts_by_width
from fewfire.report._figure import SomeAxes, canvas, label_axes
from fewfire.report._plots import TEST, TRAIN, draw_widths

LAG = 2.0
LEVEL = 0.01
PAPER_SAMPLES = (2000, 3000, 4000, 6000, 10_000, 20_000, 30_000, 100_000, None)
CURVES, POINTS = 8, 60  # runs whose errors are kept for the figure, and at how many steps


@dataclass(frozen=True)
class ConvergenceSettings:
    """A grid, and the cells that are compared: few samples (`edge`), the best number (`middle`), and online."""

    grid: ParityGrid
    edge: int
    middle: int
    least: int = 10  # the width at which success is compared; times are at the next two
    narrow: int = 30
    wide: int = 300
    large: ParityGrid | None = None  # of wide networks from both starts, where the first grid has one start


def measure(settings: ConvergenceSettings) -> RecipeOutcome:
    """One row per cell, and the errors of some runs at the edge."""
    rows, store = grids.run_grid(settings.grid)
    if settings.large is not None:
        rows += grids.run_grid(settings.large)[0]
    compared = {key: getattr(settings, key) for key in ("least", "narrow", "wide", "edge", "middle")}
    # Errors of some runs of a cell from the dense start, at steps about evenly spaced in the log.
    setting = next(
        s for s in store.settings() if (s.start["name"], s.width, s.samples) == ("dense", settings.wide, settings.edge)
    )
    curves = []
    for row in islice(store.rows(setting.id), CURVES):
        history, chosen = row.history, grids.spaced_in_log(row.history, POINTS)
        errors = {"train_error": history.train_error, "test_error": history.test_error}
        rounded = {key: np.round(values[chosen].astype(np.float64), 4).tolist() for key, values in errors.items()}
        curves.append({"step": history.step[chosen].tolist(), **rounded})
    lines = []
    for (start, width), cells in grouped(rows, "start", "width").items():
        found = [(np.median(times(row)), row["samples"] or "online") for row in cells]
        # Unknown where half of the runs did not converge.
        medians = ", ".join(f"{steps:.0f} at {m}" if np.isfinite(steps) else f"none at {m}" for steps, m in found)
        lines.append(f"{start} start, width {width}, median steps: {medians}")
    if lags := _lags(cell(rows, "dense", settings.wide, settings.edge)):
        where = f"width {settings.wide} and {settings.edge}"
        lines.append(f"median lag of the test error at {where}: {np.median(lags):.1f}-fold")
    both = [row for row in rows if len({other["start"] for other in rows if other["width"] == row["width"]}) > 1]
    lines += [starts_by_width(both)] if both else []
    return RecipeOutcome(
        parameters={**settings.grid.parameters(), **compared, "end": None},
        judgements=judge(rows, settings),
        measured=lines,
        data={"rows": rows, "curves": curves},
    )


def judge(rows: list[Row], settings: ConvergenceSettings) -> list[Judgement]:
    """The claims, from rows with start, width, samples, successes, steps and train_steps."""
    few, best, narrow, wide = settings.edge, settings.middle, settings.narrow, settings.wide
    numbered = [{**row, "samples": np.inf if row["samples"] is None else row["samples"]} for row in rows]
    more = f"data buys time: {few} samples take longer than {best} (width {wide})"
    online = f"double descent: online takes longer than {best} samples (width {narrow})"
    wider = f"width buys time: width {narrow} takes longer than {wide} ({best} samples)"
    # Success falls again with more data, in the narrowest networks.
    narrowest, most = (cell(rows, "dense", settings.least, m) for m in (best, None))
    trials, won, less = narrowest["trials"], narrowest["successes"], most["successes"]
    name = f"from {best} samples less online, share of runs"
    lags = _lags(cell(rows, "dense", wide, few))
    late = sum(lag > LAG for lag in lags)
    return [
        _longer(more, rows, (wide, few), (wide, best)),
        _longer(online, rows, (narrow, None), (narrow, best)),
        Judgement(
            f"success falls again: online succeeds less often than {best} samples (width {settings.least})",
            f"p of Fisher's test, {less} and {won} of {trials} runs",
            tests.more_often(won, less, trials),
            LEVEL,
            refuted_by="as many successes with the most data as in between",
            effect=difference_of_shares(name, won, trials, less, trials),
            power=Power("9 in 10 against 3 in 10", tests.more_often_power(0.9, 0.3, trials, LEVEL)),
        ),
        _longer(wider, rows, (narrow, best), (wide, best)),
        Judgement(
            f"grokking: the test error lags {LAG:.0f}-fold in most runs (width {wide}, {few} samples)",
            f"p of the sign test, {late} of {len(lags)} runs",
            tests.in_most(late, len(lags)),
            LEVEL,
            refuted_by=f"half of the runs, or more, in which the test error follows within {LAG:.0f} times the steps",
            effect=share(f"share of runs that lag {LAG:.0f}-fold", late, len(lags)) if lags else None,
            power=Power("19 runs in 20 lag", tests.in_most_power(0.95, len(lags), LEVEL)),
        ),
        grids.sparse_saves_time(numbered),
    ]


def _longer(claim: str, rows: list[Row], *sides: tuple[int, int | None]) -> Judgement:
    """The first of two cells, given by width and samples, takes longer than the second."""
    slow, fast = (times(cell(rows, "dense", *side)) for side in sides)
    return Judgement(
        claim,
        "p of Mann and Whitney's test",
        tests.larger(slow, fast),
        LEVEL,
        refuted_by="times that are no longer",
        effect=probability_of_larger("probability that such a run takes longer than the other", slow, fast),
        power=Power(
            "times twice as long", tests.larger_power((len(slow), len(fast)), float(np.log(2.0)) / grids.SPREAD, LEVEL)
        ),
    )


def _lags(row: Row) -> list[float]:
    """Steps for the test error over steps for the training error, of the runs that converged."""
    pairs = zip(row["steps"], times(row, "train_steps"), strict=True)
    return [test / max(1.0, train) for test, train in pairs if test is not None]


def plot_convergence_time(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """pareto/convergence-time: median steps with quartiles against samples, and the errors of runs that grok."""
    curves, setting = rows_of(info, "curves", "parameters")
    group = grids.group_of(info)
    figure, axes = canvas(len(group.frontiers) + 1, size=(9.0, 7.0), across=2, ax=ax, title=grids.problem_of(info))
    everything = np.stack([frontier.steps for frontier in group.frontiers])
    sizes = ["online" if m is None else f"{m / 1000:g}k" if m >= 1000 else f"{m}" for m in group.samples]
    least, most = float(np.nanmin(everything)) / 1.25, float(np.nanmax(everything)) * 1.25
    for axis, frontier in zip(axes, group.frontiers, strict=False):
        low, middle, high = frontier.steps
        draw_widths(axis, group, middle, low, high)
        axis.set_xticks(axis.get_xticks(), sizes, fontsize=8)
        axis.set(xlabel="training examples (k: thousands)", ylabel="steps, median and quartiles")
        axis.set(yscale="log", ylim=(least, most))  # the same for all starts, which are to be compared
        steps = (digit * 10**power for power in range(2, 6) for digit in (1, 2, 5))
        axis.set_yticks([at for at in steps if least <= at <= most], minor=False)
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.yaxis.minorticks_off()
        axis.set_title(f"{frontier.start} start: time to convergence", fontsize=10)
        axis.legend(title="width", fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=5)
    last = axes[-1]
    for number, curve in enumerate(curves):
        for key, style, ink, name in (("train_error", "--", TRAIN, "training"), ("test_error", "-", TEST, "test")):
            last.plot(curve["step"], curve[key], style, color=ink, linewidth=1, label=None if number else name)
    last.set_xscale("symlog", linthresh=setting["evaluate"])
    label_axes(last, "steps", "error", f"grokking: width {setting['wide']}, {setting['edge']} samples")
    return figure


RECIPE = Recipe(
    title="Figure 2: steps to convergence against samples, with grokking and sample-wise double descent",
    seconds=(36, 1500),
    expectation="time falls with samples, is least in between and rises again; test error lags where data is scarce",
    figure=plot_convergence_time,
    quick=ConvergenceSettings(
        ParityGrid(
            75, 3, (10, 30, 300), (2000, 4000, 10_000, 30_000, None), 20, 30_000, evaluate=300, starts=("dense",)
        ),
        edge=2000,
        middle=10_000,
        large=ParityGrid(75, 3, (1000,), (4000, 10_000, None), trials=20, steps=30_000, evaluate=300),
    ),
    paper=ConvergenceSettings(
        ParityGrid(100, 3, (10, 30, 100, 300, 1000), PAPER_SAMPLES, trials=50, steps=100_000, evaluate=250),
        edge=3000,
        middle=20_000,
    ),
    measure=measure,
    from_paper=("*",),
    busy=2,
)

"""Findings (1) to (4) of pareto, 4.1 and C.1, as judgements on a grid: width, samples, start; success and time.

A grid is a list of plain rows as `run_grid` gives them, all with as many trials; `samples` are numbers, fresh examples
(online) being larger than any. Times that were not reached are the longest. Powers are for effects worth noticing: 30
points of success along half of the lines, 25 between the starts in the cells that are open (not all runs do alike), 10
points lost on average or 60 in a single cell by a step up in width, times half as long again where runs converge.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.experiments.recipes._effects import difference_of_shares
from fewfire.experiments.recipes._judgement import Effect, Judgement, Power
from fewfire.experiments.recipes._power import more_often_power, rising_power, simulated_power
from fewfire.experiments.recipes._statistics import more_often, rising
from fewfire.experiments.recipes.pareto._grid import times
from fewfire.experiments.recipes.pareto._strata import (
    DRAWS,
    LEVEL,
    chance_of_longer,
    gain,
    gain_power,
    longer_power,
    longer_within,
    more_often_within,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import IdArray

Rows = list[dict[str, Any]]

WIDE = 100
"""From this width on starts are compared by success."""

LARGE = 1000
"""From this width on starts are compared by time: the paper found s = 2 best "for large-width (≥ 1000) regimes"."""

MARGIN = 0.1
"""How much success a step up in width may cost, averaged over starts and samples."""

RATIO, SPREAD = 1.5, 0.5
"""Times worth noticing, and the deviation of the logarithm of the time among runs of a cell, about what is seen."""


def width_buys_success(rows: Rows) -> Judgement:
    """Finding (1): success rises with width at the same start and samples."""
    return _rises(_counts(rows).swapaxes(1, 2), _trials(rows), "width", "widest", "narrowest")


def data_buys_success(rows: Rows) -> Judgement:
    """Success rises with samples at the same start and width, over the whole range; finding (4) says not everywhere."""
    return _rises(_counts(rows), _trials(rows), "data", "most samples", "fewest")


def no_step_costs_success(rows: Rows) -> Judgement:
    """Finding (2): the mean fall at every step up in width is shown to be below `MARGIN`.

    Silence does not pass: the upper ends of the falls, together at 95%, must be below the margin.
    """
    counts, trials = _lines(_counts(rows).swapaxes(1, 2)), _trials(rows)
    steps = counts.shape[1] - 1
    falls = [_fall(counts[:, place], counts[:, place + 1], trials, steps) for place in range(steps)]
    worst = max(falls, key=lambda fall: fall.high)
    return Judgement(
        f"no step up in width costs {MARGIN:.0%} of the runs, averaged over starts and samples",
        f"largest upper end of the mean fall, {steps} steps together at 95%",
        worst.high,
        MARGIN,
        refuted_by=f"a step up in width whose mean fall may be {MARGIN:.0%} or more",
        effect=Effect("largest mean fall by a step up in width, share of runs", worst.value, worst.low, worst.high),
        power=Power(
            f"a step that costs {MARGIN:.0%} of the runs, from 60% in every cell",
            _fall_power(len(counts), trials, steps),
        ),
    )


def no_cell_loses_by_width(rows: Rows) -> Judgement:
    """Finding (2) "starting at any point": Fisher's test on every pair of neighbours, with Bonferroni's correction."""
    counts, trials = _lines(_counts(rows).swapaxes(1, 2)), _trials(rows)
    pairs = [(int(low), int(high)) for line in counts for low, high in pairwise(line)]
    chances = [more_often(*pair, trials) for pair in pairs]
    before, after = max(pairs, key=lambda pair: pair[0] - pair[1])
    return Judgement(
        "no single cell loses by a step up in width",
        f"smallest p of Fisher's test, times {len(pairs)} pairs",
        min(1.0, min(chances) * len(pairs)),
        0.05,
        "at least",
        refuted_by=f"one cell that falls by more than chance explains, such as {_example(trials, len(pairs))}",
        effect=difference_of_shares("fall in the worst cell, share of runs", before, trials, after, trials),
        power=Power(
            "a fall from 9 in 10 to 3 in 10 in one cell", more_often_power(0.9, 0.3, trials, 0.05 / len(pairs))
        ),
    )


def sparse_beats_dense(rows: Rows, least: int = WIDE) -> Judgement:
    """Finding (3), data and luck: within cells of wide networks, the sparse start succeeds more often."""
    trials = _trials(rows)
    sparse, dense = (_counts(rows, start, least).reshape(-1).tolist() for start in ("sparse", "dense"))
    unsettled = sum(0 < won + other < 2 * trials for won, other in zip(sparse, dense, strict=True))
    return Judgement(
        "the sparse start beats the dense one",
        f"p of Mantel and Haenszel's exact test, widths from {least}",
        more_often_within(sparse, dense, trials),
        LEVEL,
        refuted_by="sparse starts that succeed no more often than dense ones in the same cells",
        effect=gain("sparse less dense, share of runs, mean over cells", sparse, dense, trials),
        power=Power(
            f"75% against 50% in the {unsettled} cells that are open",
            gain_power(0.75, 0.5, unsettled, trials, LEVEL) if unsettled else 0.0,
        ),
    )


def sparse_saves_time(rows: Rows, least: int = LARGE, most: int | None = None) -> Judgement:
    """Finding (3), time: within cells of such widths, a run from the dense start takes longer."""
    chosen = [row for row in rows if least <= row["width"] and (most is None or row["width"] <= most)]
    places = sorted({(row["width"], row["samples"]) for row in chosen})
    found = {(row["start"], row["width"], row["samples"]): times(row) for row in chosen}
    dense, sparse = ([found[start, *place] for place in places] for start in ("dense", "sparse"))
    kind = (
        f"widths from {least}" if most is None else f"width {least}" if least == most else f"widths {least} to {most}"
    )
    return _longer(f"the sparse start saves time, {kind}", "dense", "sparse", dense, sparse)


def width_saves_time(rows: Rows) -> Judgement:
    """Finding (2), time: at every step up in width, start and samples being the same, narrower networks take longer."""
    widths = sorted({row["width"] for row in rows})
    cells = sorted({(row["start"], row["samples"]) for row in rows})
    found = {(row["width"], row["start"], row["samples"]): times(row) for row in rows}
    sides = {width: [found[width, *cell] for cell in cells] for width in widths}
    steps = [(sides[narrow], sides[wide]) for narrow, wide in pairwise(widths)]
    chances = [longer_within(narrow, wide) for narrow, wide in steps]
    worst = int(np.argmax(chances))
    return _longer(
        "every step up in width saves time",
        "narrower",
        "wider",
        steps[worst][0],
        steps[worst][1],
        f"largest p of van Elteren's test, {len(steps)} steps; {widths[worst]} against {widths[worst + 1]}",
    )


def more_data_hurts(rows: Rows) -> Judgement:
    """Finding (4): along a line of growing samples, success falls somewhere between neighbours."""
    trials = _trials(rows)
    pairs = [(int(low), int(high)) for line in _lines(_counts(rows)) for low, high in pairwise(line)]
    chances = [more_often(*pair, trials) for pair in pairs]
    before, after = max(pairs, key=lambda pair: pair[0] - pair[1])
    return Judgement(
        "more data can hurt",
        f"smallest p of Fisher's test on neighbours, times {len(pairs)} pairs",
        min(1.0, min(chances) * len(pairs)),
        LEVEL,
        refuted_by="no fall that chance does not explain",
        effect=difference_of_shares("largest fall between neighbours, share of runs", before, trials, after, trials),
        power=Power(
            "a fall from 9 in 10 to 4 in 10 at one place", more_often_power(0.9, 0.4, trials, LEVEL / len(pairs))
        ),
    )


def learning_comes_back(rows: Rows) -> Judgement:
    """Finding (4): along a line of growing samples, success falls and later rises again; both must be seen."""
    trials = _trials(rows)
    triples = [tuple(map(int, triple)) for line in _lines(_counts(rows)) for triple in combinations(line, 3)]
    # Both at once is as unlikely as the likelier of the two (an intersection-union test).
    chances = [max(more_often(a, b, trials), more_often(c, b, trials)) for a, b, c in triples]
    first, least, last = triples[int(np.argmin(chances))]
    level = LEVEL / len(triples)
    both = more_often_power(0.9, 0.3, trials, level) ** 2
    return Judgement(
        "with still more data learning comes back",
        f"smallest p of Fisher's tests for a fall and a later rise, times {len(triples)} triples",
        min(1.0, min(chances) * len(triples)),
        LEVEL,
        refuted_by="no fall, or no rise after it, that chance does not explain",
        effect=difference_of_shares(
            "the smaller of fall and rise, share of runs", min(first, last), trials, least, trials
        ),
        power=Power("9 in 10, 3 in 10, 9 in 10 on one line", both),
    )


def _rises(counts: IdArray, trials: int, what: str, most: str, least: str) -> Judgement:
    lines = _lines(counts)
    return Judgement(
        f"{what} buys success",
        f"p of Page's trend test over {'samples' if what == 'data' else 'widths'}",
        rising(lines),
        LEVEL,
        refuted_by=f"success that does not rise with {what}",
        effect=gain(f"{most} less {least}, share of runs, mean over lines", lines[:, -1], lines[:, 0], trials),
        power=Power("from 35% to 65% on half of the lines", _rise_power(lines.shape[1], len(lines) // 2, trials)),
    )


def _longer(
    claim: str,
    slow: str,
    fast: str,
    longer: Sequence[Any],
    shorter: Sequence[Any],
    what: str = "p of van Elteren's test",
) -> Judgement:
    trials = len(longer[0])
    unsettled = sum(bool(np.isfinite([*mine, *theirs]).any()) for mine, theirs in zip(longer, shorter, strict=True))
    return Judgement(
        claim,
        what,
        longer_within(longer, shorter),
        LEVEL,
        refuted_by=f"{slow} runs that take no longer than {fast} ones in the same cells",
        effect=chance_of_longer(f"chance that a {slow} run takes longer than a {fast} one", longer, shorter),
        power=Power(
            f"times {RATIO} as long in the {unsettled} cells where runs converge",
            longer_power(RATIO, SPREAD, unsettled, trials, LEVEL) if unsettled else 0.0,
        ),
    )


def _fall(before: Any, after: Any, trials: int, steps: int) -> Effect:
    """The mean fall; its upper end holds at 95% for all the steps together."""
    return gain("", before, after, trials, level=0.1 / steps)


@cache
def _fall_power(lines: int, trials: int, steps: int) -> float:
    def notices(rng: np.random.Generator) -> bool:
        before, after = (rng.binomial(trials, chance, lines) for chance in (0.6, 0.6 - MARGIN))
        return _fall(before, after, trials, steps).high > MARGIN

    return simulated_power(notices, DRAWS)


@cache
def _rise_power(levels: int, lines: int, trials: int) -> float:
    return rising_power(np.linspace(0.35, 0.65, levels).tolist(), 0.0, lines, LEVEL, trials)


def _example(trials: int, pairs: int) -> str:
    """The smallest fall from all runs that the test notices."""
    left = next((left for left in range(trials, -1, -1) if more_often(trials, left, trials) * pairs < 0.05), None)
    return "none at so few trials" if left is None else f"from {trials} of {trials} to {left}"


def _counts(rows: Rows, start: str | None = None, least: int = 0) -> IdArray:
    """Successes, shape (starts, widths, samples), starts in alphabetical order."""
    mine = [row for row in rows if row["width"] >= least and start in (None, row["start"])]
    keys = ("start", "width", "samples")
    axes = [sorted({row[key] for row in mine}) for key in keys]
    table = np.full([len(axis) for axis in axes], -1)
    for row in mine:
        table[tuple(axis.index(row[key]) for axis, key in zip(axes, keys, strict=True))] = row["successes"]
    return table


def _lines(counts: IdArray) -> IdArray:
    return counts.reshape(-1, counts.shape[-1])


def _trials(rows: Rows) -> int:
    return int(rows[0]["trials"])

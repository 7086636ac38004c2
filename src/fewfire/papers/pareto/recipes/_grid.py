"""Grids of runs on a parity (pareto, C.1), one sweep with one plain row per cell, and findings (1) to (4) on them.

Settings of C.1: learning rate 0.1, weight decay 0.01, batches of 32. The paper does not name the loss of its
experiments; the hinge, of its theorems, is our choice, and `pareto/offline-parity` tries others. A run has converged
when its error on test examples is at most 10%; it stops there.

Findings, 4.1 and C.1, are judgements on rows of width, samples, start; success and time. `samples` are then numbers,
fresh examples (online) being larger than any. Times that were not reached are the longest. Cells may differ in their
trials: tests and intervals take each side with its own number, trend tests take shares, and a power is that of cells
which all have the fewest.

A grid's cells differ by far more than two sides do, so pooling them all hides a difference: cells where both always or
never succeed only add noise. Two sides are compared within each cell (stratum) and added up: who succeeds more often,
and who takes longer. Differences and probabilities are means over the strata, with 95% intervals.

Powers are for effects worth noticing: 30 points of success along half of the lines, 25 between the starts in the cells
that are open (not all runs do alike), 10 points lost on average or 60 in a single cell by a step up in width, times
half as long again where runs converge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from fewfire._dense.losses import LossName
from fewfire._types import Float64Array, IdArray
from fewfire.engines import History, Phase, Schedule
from fewfire.networks import init
from fewfire.papers._claims import Effect, Info, Judgement, Power, Row, grouped, rows_of
from fewfire.papers._effects import difference_of_shares
from fewfire.papers._statistics import more_often, more_often_power, rising, rising_power, simulated_power
from fewfire.problems import Parity
from fewfire.report._frontier import Group, SuccessFrontier, even_odds
from fewfire.sweeps import Data, MemoryStore, Sweep, succeeded
from fewfire.sweeps.store._protocol import wilson_interval

NAMES = {"dense": "dense", "sparse": "2-sparse"}
STARTS = {"dense": init.dense(), "sparse": init.sparse(2)}
CONVERGED = 0.1
TESTS = 2000


@dataclass(frozen=True)
class ParityGrid:
    """Every combination of starts, widths and samples (None is online), each `trials` times."""

    n: int
    k: int
    widths: tuple[int, ...]
    samples: tuple[int | None, ...]
    trials: int
    steps: int
    evaluate: int
    starts: tuple[str, ...] = ("dense", "sparse")
    learning_rate: float = 0.1
    weight_decay: float = 0.01
    loss: LossName = "hinge"

    def sweep(self) -> Sweep:
        """The sweep of this grid."""
        phase = Phase(self.steps, self.learning_rate, weight_decay=self.weight_decay)
        return Sweep(
            problems=(Parity(self.n, self.k),),
            networks=tuple((STARTS[start], width) for start in self.starts for width in self.widths),
            data=tuple(Data(m, TESTS) for m in self.samples),
            schedules=(Schedule((phase,), loss=self.loss, evaluate=self.evaluate, stop_error=CONVERGED),),
            trials=self.trials,
            success_error=CONVERGED,
        )

    def parameters(self) -> Row:
        """For the result of a recipe."""
        keys = ("n", "k", "trials", "steps", "evaluate", "learning_rate", "weight_decay", "loss")
        return {key: getattr(self, key) for key in keys}


def run_grid(grid: ParityGrid) -> tuple[list[Row], MemoryStore]:
    """One row per cell, with None for steps where an error never was small, and the store with the histories."""
    store = MemoryStore()
    grid.sweep().run(store, keep_going=False)
    rows = []
    for setting in store.settings():
        runs = list(store.rows(setting.id))
        rows.append(
            {
                "start": setting.start["name"],
                "width": setting.width,
                "samples": setting.samples,
                "trials": len(runs),
                "successes": sum(succeeded(run.status, run.best_test_error, CONVERGED) for run in runs),
                "steps": [run.history.first_step(CONVERGED) for run in runs],
                "train_steps": [run.history.first_step(CONVERGED, "train_error") for run in runs],
            }
        )
    rows.sort(key=lambda row: (row["start"], row["width"], _size(row["samples"])))
    return rows, store


def _size(samples: int | None) -> float:
    return np.inf if samples is None else samples


def cell(rows: list[Row], start: str, width: int, samples: int | None) -> Row:
    """The row of one cell."""
    return next(row for row in rows if (row["start"], row["width"], row["samples"]) == (start, width, samples))


def times(row: Row, key: str = "steps") -> list[float]:
    """Steps to convergence, infinite where a run did not converge."""
    return [np.inf if step is None else float(step) for step in row[key]]


def spaced_in_log(history: History, count: int) -> IdArray:
    """Indices of at most so many entries of a history, the first and others about evenly spaced in the log."""
    last = len(history.step) - 1
    chosen = np.unique(np.concatenate([[0], np.geomspace(1, max(1, last), count).astype(np.int64)]))
    return chosen[chosen <= last]


def group_of(info: Info) -> Group:
    """The rows of a grid as the report's drawings take them."""
    rows, parameters = rows_of(info, "rows", "parameters")
    widths = tuple(sorted({row["width"] for row in rows}))
    samples = tuple(sorted({row["samples"] for row in rows}, key=_size))
    frontiers = tuple(_frontier(NAMES[start], mine, widths, samples) for start, mine in grouped(rows, "start").items())
    spec = {"problem": {"name": "parity", "n": parameters["n"], "k": parameters["k"]}}
    return Group(problem_of(info), "", problem_of(info), widths, samples, frontiers, spec)


def _frontier(start: str, rows: list[Row], widths: Sequence[int], samples: tuple[int | None, ...]) -> SuccessFrontier:
    shape = len(widths), len(samples)
    runs, successes, nothing = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    steps = np.full((3, *shape), np.nan)
    for row in rows:
        index = widths.index(row["width"]), samples.index(row["samples"])
        runs[index], successes[index] = row["trials"], row["successes"]
        # Runs that did not converge count as the longest: a quartile that falls among them is not drawn.
        quartiles = np.quantile(np.array(times(row)), [0.25, 0.5, 0.75], method="nearest")
        steps[(slice(None), *index)] = np.where(np.isfinite(quartiles), quartiles, np.nan)
    low, high = wilson_interval(successes, runs)
    half, interval = even_odds(runs, successes, samples)
    return SuccessFrontier(start, nothing, runs, successes, nothing, nothing, low, high, steps, half, interval)


def problem_of(info: Info) -> str:
    """How figures name the problem."""
    return f"({info['parameters']['n']}, {info['parameters']['k']})-parity"


Cell: TypeAlias = tuple[int, int]
"""Successes and trials."""

LEVEL, DRAWS = 0.01, 4000  # of the tests, and of simulated powers, whose standard error is at most 0.008
WIDE = 100  # from this width on starts are compared by success
LARGE = 1000
"""From this width on starts are compared by time: the paper found s = 2 best "for large-width (≥ 1000) regimes"."""

MARGIN = 0.1  # how much success a step up in width may cost, averaged over starts and samples
RATIO, SPREAD = 1.5, 0.5
"""Times worth noticing, and the deviation of the logarithm of the time among runs of a cell, about what is seen."""


class Lines:
    """The cells of a grid in lines along one of "width" and "samples"; `won` and `trials` have shape (lines, cells)."""

    def __init__(self, rows: list[Row], along: str) -> None:
        keys = ("start", *(key for key in ("width", "samples") if key != along), along)
        rows = sorted(rows, key=lambda row: tuple(row[key] for key in keys))
        shape = -1, len({row[along] for row in rows})
        self.won, self.trials = (np.array([row[key] for row in rows]).reshape(shape) for key in ("successes", "trials"))

    def gain(self, name: str, index: int, other: int, level: float = 0.05) -> Effect:
        """Success at one index less that at another, the mean over lines."""
        won, trials = self.won, self.trials
        return gain(name, won[:, index], won[:, other], trials[:, index], trials[:, other], level)

    def cells(self) -> list[list[Cell]]:
        """Successes and trials, line by line."""
        return np.stack([self.won, self.trials], axis=-1).tolist()  # type: ignore[no-any-return]

    def clearest_fall(self) -> tuple[Cell, Cell, float, int]:
        """The neighbours with the clearest fall, p of Fisher's test times the number of pairs, and that number."""
        pairs = [pair for line in self.cells() for pair in pairwise(line)]
        p = [more_often(won, less, trials, others) for (won, trials), (less, others) in pairs]
        return *pairs[int(np.argmin(p))], min(1.0, min(p) * len(pairs)), len(pairs)


def buys_success(rows: list[Row], along: Literal["width", "samples"]) -> Judgement:
    """Finding (1): success rises with width, and with samples over the whole range; by finding (4) not everywhere."""
    lines, trials, widths = Lines(rows, along), _fewest(rows), along == "width"
    count, length = lines.won.shape
    noticed = rising_power(tuple(np.linspace(0.35, 0.65, length).tolist()), 0.0, count // 2, LEVEL, trials)
    what, most, least = ("width", "widest", "narrowest") if widths else ("data", "most samples", "fewest")
    return Judgement(
        f"{what} buys success",
        f"p of Page's trend test over {'widths' if widths else 'samples'}",
        rising(lines.won / lines.trials),
        LEVEL,
        refuted_by=f"success that does not rise with {what}",
        effect=lines.gain(f"{most} less {least}, share of runs, mean over lines", -1, 0),
        power=Power("from 35% to 65% on half of the lines", noticed),
    )


def no_step_costs_success(rows: list[Row]) -> Judgement:
    """Finding (2): the mean fall at every step up in width is shown to be below `MARGIN`."""
    lines = Lines(rows, "width")
    count, steps = lines.won.shape[0], lines.won.shape[1] - 1
    name = "largest mean fall by a step up in width, share of runs"
    falls = [lines.gain(name, step, step + 1, 0.1 / steps) for step in range(steps)]
    worst = max(falls, key=lambda fall: fall.high)
    return worst.at_most(
        f"no step up in width costs {MARGIN:.0%} of the runs, averaged over starts and samples",
        f"largest upper end of the mean fall, {steps} steps together at 95%",
        MARGIN,
        f"a step up in width whose mean fall may be {MARGIN:.0%} or more",
        Power(
            f"a step that costs {MARGIN:.0%} of the runs, from 60% in every cell",
            _fall_power(count, _fewest(rows), steps),
        ),
    )


def no_cell_loses_by_width(rows: list[Row]) -> Judgement:
    """Finding (2) "starting at any point": Fisher's test on every pair of neighbours, with Bonferroni's correction."""
    before, after, value, pairs = Lines(rows, "width").clearest_fall()
    trials = _fewest(rows)
    # The smallest fall from all runs that the test notices.
    left = next((left for left in range(trials, -1, -1) if more_often(trials, left, trials) * pairs < 0.05), None)
    example = "none at so few trials" if left is None else f"from {trials} of {trials} to {left}"
    return Judgement(
        "no single cell loses by a step up in width",
        f"smallest p of Fisher's test, times {pairs} pairs",
        value,
        0.05,
        "at least",
        refuted_by=f"one cell that falls by more than chance explains, such as {example}",
        effect=difference_of_shares("fall in the worst cell, share of runs", *before, *after),
        power=Power("a fall from 9 in 10 to 3 in 10 in one cell", more_often_power(0.9, 0.3, trials, 0.05 / pairs)),
    )


def sparse_beats_dense(rows: list[Row], least: int = WIDE) -> Judgement:
    """Finding (3), data and luck: within cells of wide networks, the sparse start succeeds more often."""
    wide = [row for row in rows if row["width"] >= least]
    sparse, dense = (Lines([row for row in wide if row["start"] == start], "samples") for start in ("sparse", "dense"))
    sides = sparse.won.ravel(), dense.won.ravel(), sparse.trials.ravel(), dense.trials.ravel()
    together, runs = sides[0] + sides[1], sides[2] + sides[3]
    mixed = int(((together > 0) & (together < runs)).sum())
    return Judgement(
        "the sparse start beats the dense one",
        f"p of Mantel and Haenszel's exact test, widths from {least}",
        more_often_within(*sides),
        LEVEL,
        refuted_by="sparse starts that succeed no more often than dense ones in the same cells",
        effect=gain("sparse less dense, share of runs, mean over cells", *sides),
        power=Power(
            f"75% against 50% in the {mixed} cells that are open",
            gain_power(0.75, 0.5, mixed, _fewest(rows), LEVEL) if mixed else 0.0,
        ),
    )


def sparse_saves_time(rows: list[Row], least: int = LARGE, most: int | None = None) -> Judgement:
    """Finding (3), time: within cells of such widths, a run from the dense start takes longer."""
    chosen = [row for row in rows if least <= row["width"] and (most is None or row["width"] <= most)]
    found = {(row["start"], row["width"], row["samples"]): times(row) for row in chosen}
    cells = sorted({key[1:] for key in found})
    dense, sparse = ([found[start, *cell] for cell in cells] for start in ("dense", "sparse"))
    kind = f"widths from {least}" if most is None else f"widths {least} to {most}"
    return takes_longer(f"the sparse start saves time, {kind}", "dense", "sparse", dense, sparse)


def takes_longer(
    claim: str,
    slow: str,
    fast: str,
    longer: Sequence[Sequence[float]],
    shorter: Sequence[Sequence[float]],
    what: str = "p of van Elteren's test",
) -> Judgement:
    """A verdict on the times of two kinds of runs, cell by cell."""
    fewest = min(map(len, longer))
    converged = sum(bool(np.isfinite([*mine, *theirs]).any()) for mine, theirs in zip(longer, shorter, strict=True))
    return Judgement(
        claim,
        what,
        longer_within(longer, shorter),
        LEVEL,
        refuted_by=f"{slow} runs that take no longer than {fast} ones in the same cells",
        effect=probability_of_longer(f"probability that a {slow} run takes longer than a {fast} one", longer, shorter),
        power=Power(
            f"times {RATIO} as long in the {converged} cells where runs converge",
            longer_power(RATIO, SPREAD, converged, fewest, LEVEL) if converged else 0.0,
        ),
    )


@cache
def _fall_power(lines: int, trials: int, steps: int) -> float:
    def notices(rng: np.random.Generator) -> bool:
        before, after = (rng.binomial(trials, share, lines) for share in (0.6, 0.6 - MARGIN))
        return gain("", before, after, trials, level=0.1 / steps).high > MARGIN

    return simulated_power(notices, DRAWS)


def _fewest(rows: list[Row]) -> int:
    return min(int(row["trials"]) for row in rows)


def more_often_within(won: ArrayLike, other: ArrayLike, trials: ArrayLike, others: ArrayLike | None = None) -> float:
    """The exact test of Mantel and Haenszel: the first side succeeds more often; of one stratum Fisher's test."""
    strata = np.broadcast_arrays(won, other, trials, trials if others is None else others)
    probabilities, least = np.ones(1), 0
    for mine, theirs, runs, rest in zip(*(table.tolist() for table in strata), strict=True):
        probabilities = np.convolve(probabilities, _shares(mine + theirs, runs, rest))
        least += max(0, mine + theirs - rest)
    return float(min(1.0, probabilities[int(np.sum(won)) - least :].sum()))


def gain(
    name: str, won: ArrayLike, other: ArrayLike, trials: ArrayLike, others: ArrayLike | None = None, level: float = 0.05
) -> Effect:
    """The first side's share of success less the other's, the mean over strata (Agresti and Caffo's interval)."""
    sides = [(np.asarray(won), trials), (np.asarray(other), trials if others is None else others)]
    first, second = (counts / runs for counts, runs in sides)
    value = round(float((first - second).mean()), 15)  # gains that cancel are 0
    variance = 0.0
    for counts, runs in sides:
        size = np.asarray(runs) + 2
        padded = (counts + 1) / size
        variance += float((padded * (1 - padded) / size).sum())
    half = float(stats.norm.isf(level / 2) * np.sqrt(variance) / len(first))
    return Effect(name, value, value - half, value + half)


@cache
def gain_power(share: float, other: float, strata: int, trials: int, level: float = LEVEL) -> float:
    """How often `more_often_within` notices these shares in each of so many strata: simulated."""

    def notices(rng: np.random.Generator) -> bool:
        won, lost = rng.binomial(trials, share, strata), rng.binomial(trials, other, strata)
        return more_often_within(won, lost, trials) <= level

    return simulated_power(notices, DRAWS)


def longer_within(values: Sequence[ArrayLike], others: Sequence[ArrayLike]) -> float:
    """Van Elteren's test, strata weighing alike: the first side takes longer; infinite values rank last and tie."""
    shift, variance = 0.0, 0.0
    for mine, theirs in zip(values, others, strict=True):
        wins, both = _wins(mine, theirs), np.concatenate([mine, theirs])
        _, ties = np.unique(both, return_counts=True)
        shift += wins.mean() - 0.5
        scale = 1.0 - float((ties**3 - ties).sum()) / (len(both) ** 3 - len(both))
        variance += (len(both) + 1) * scale / (12 * wins.size)
    return float(stats.norm.sf(shift / np.sqrt(variance))) if variance > 0 else 1.0


def probability_of_longer(name: str, values: Sequence[ArrayLike], others: Sequence[ArrayLike]) -> Effect:
    """P(X > Y) + P(X = Y)/2, the mean over strata, with DeLong's variance within each."""
    seen, variance = [], 0.0
    for mine, theirs in zip(values, others, strict=True):
        wins = _wins(mine, theirs)
        seen.append(wins.mean())
        variance += sum(wins.mean(axis=axis).var(ddof=1) / wins.shape[1 - axis] for axis in (0, 1))
    value, half = float(np.mean(seen)), float(stats.norm.isf(0.025) * np.sqrt(variance) / len(seen))
    return Effect(name, value, max(0.0, value - half), min(1.0, value + half))


@cache
def longer_power(ratio: float, spread: float, strata: int, trials: int, level: float = LEVEL) -> float:
    """How often `longer_within` notices times `ratio` as long, log-normal with that spread in all strata: simulated."""

    def notices(rng: np.random.Generator) -> bool:
        mine, theirs = rng.standard_normal((2, strata, trials)) * spread
        return longer_within(list(mine + np.log(ratio)), list(theirs)) <= level

    return simulated_power(notices, DRAWS // 2)


@cache
def _shares(both: int, trials: int, others: int) -> Float64Array:
    """Probabilities of the first side's successes, from the fewest possible on, given both sides' together."""
    counts = np.arange(max(0, both - others), min(both, trials) + 1)
    return np.asarray(stats.hypergeom.pmf(counts, trials + others, both, trials), dtype=np.float64)


def _wins(mine: ArrayLike, theirs: ArrayLike) -> Float64Array:
    """For every pair 1 where the first is larger, ½ where they tie: shape (first, second)."""
    return np.asarray(np.greater.outer(mine, theirs) + 0.5 * np.equal.outer(mine, theirs), dtype=np.float64)

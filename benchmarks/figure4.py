"""Figure 4 of `pareto` on a GPU, in several goes: run, judge, and plan the whole of it.

The summary, one entry per cell of `examples/figure4.toml`, is all that is kept between goes: a run is decided by its
spec and the number of its trial, and a cell with t trials has those from 0 to t − 1. Up to width 30,000 a go trains
what is missing of ten trials per cell, the cheapest shapes first, and then of fifty where a cell is mixed (some of its
runs succeed, and some do not) or next to a mixed one in width or samples.

    python benchmarks/figure4.py run docs/results/figure4.json OUT.json --seconds 500    # goes on where it ends
    python benchmarks/figure4.py plan docs/results/figure4.json                # GPU-hours of the whole, from probes
    python benchmarks/figure4.py page docs/results/figure4.json docs/results/figure4.md

Needs SciPy. The last line of `run` and `plan` is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import stats
from scipy.special import xlogy

from fewfire.engines import DeviceEngine, get_engine
from fewfire.experiments import Sweep, estimate_time, make_plan, succeeded
from fewfire.experiments.executors import DeviceExecutor, InlineExecutor
from fewfire.experiments.executors._batch import batches
from fewfire.experiments.recipes._effects import difference_of_shares
from fewfire.experiments.recipes._judgement import Effect, Judgement, Power
from fewfire.experiments.recipes._power import more_often_power
from fewfire.experiments.recipes._statistics import rising
from fewfire.experiments.recipes.pareto import _claims as claims
from fewfire.experiments.recipes.pareto._grid import times
from fewfire.experiments.recipes.pareto._strata import gain_power, longer_within
from fewfire.experiments.run._plan import in_device_order, one_of_each_shape
from fewfire.experiments.store import final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fewfire._types import Float64Array, IdArray
    from fewfire.experiments import Row, RunSpec

SPEC = Path(__file__).parent.parent / "examples" / "figure4.toml"
ASKED = {"hours": 40.0, "hours_without_100000": 6.0}
FEWEST, MOST = 10, 50
"""Trials of every cell, and of those where success is neither none nor all, with their neighbours."""

WIDEST = 30_000
"""Wider cells stay as they are."""

SAVE_EVERY = 20.0
"""Seconds between copies of the summary, of which the last one outlives a go that is killed."""

Place: TypeAlias = tuple[int, int, str, int, int | str]


@dataclass
class Entry:
    """What is known of a cell: so many trials from 0 on, how many diverged, and after how many steps runs succeeded."""

    trials: int = 0
    diverged: int = 0
    times: Counter[int] = field(default_factory=Counter)

    @property
    def successes(self) -> int:
        """How many runs succeeded."""
        return self.times.total()

    @property
    def mixed(self) -> bool:
        """Whether some of its runs succeeded and some did not."""
        return 0 < self.successes < self.trials


class Summary:
    """All cells of a sweep; rows of runs come in any order, and count as soon as all trials before them do."""

    def __init__(self, sweep: Sweep, path: Path) -> None:
        self.sweep, self.failed = sweep, 0
        self.numbers = {place_of(sweep.run_at(cell)): cell for cell in range(sweep.settings)}
        self.entries = {place: Entry() for place in self.numbers}
        self._waiting: dict[Place, dict[int, Row]] = defaultdict(dict)
        for cell in json.loads(path.read_text()) if path.exists() else []:
            place = cell["n"], cell["k"], cell["start"], cell["width"], cell["samples"]
            self.entries[place] = Entry(cell["trials"], cell["diverged"], Counter(dict(cell["times"])))
        self._places = {sweep.run_at(cell).setting: place for place, cell in self.numbers.items()}

    def add(self, rows: Sequence[Row]) -> None:
        """Count these runs; failed ones are trained again by the next go."""
        self.failed += sum(not final(row.status) for row in rows)
        for row in rows:
            place = self._places[row.setting]
            if final(row.status):
                self._waiting[place][row.trial] = row
            entry, waiting = self.entries[place], self._waiting[place]
            while (known := waiting.pop(entry.trials, None)) is not None:
                entry.trials += 1
                entry.diverged += known.status == "diverged"
                if succeeded(known.status, known.best_test_error, self.sweep.success_error):
                    entry.times[known.steps] += 1

    def missing(self) -> IdArray:
        """Numbers of the runs to train next, the cheapest shapes first."""
        narrow = [place for place in self.entries if place[3] <= WIDEST]
        wanted, trials = narrow, FEWEST
        if all(self.entries[place].trials >= FEWEST for place in narrow):
            wanted, trials = self.near_mixed(narrow), MOST
        return in_device_order(
            self.sweep,
            [
                trial * self.sweep.settings + self.numbers[place]
                for place in wanted
                for trial in range(self.entries[place].trials, min(trials, self.sweep.trials))
            ],
        )

    def near_mixed(self, places: Sequence[Place]) -> list[Place]:
        """The mixed cells among these, and their neighbours in width and samples."""
        widths = sorted({place[3] for place in places})
        samples = sorted({place[4] for place in places}, key=size_of)
        near = set()
        for *line, width, size in (place for place in places if self.entries[place].mixed):
            row, column = widths.index(width), samples.index(size)
            near |= {(*line, w, size) for w in widths[max(0, row - 1) : row + 2]}
            near |= {(*line, width, m) for m in samples[max(0, column - 1) : column + 2]}
        return [place for place in places if place in near]

    def rows(self) -> list[dict[str, Any]]:
        """The cells that have runs, as they are written, in the order of problem, start, width and samples."""
        return [
            {
                **dict(zip(("n", "k", "start", "width", "samples"), place, strict=True)),
                "trials": entry.trials,
                "successes": entry.successes,
                "diverged": entry.diverged,
                "times": sorted(entry.times.items()),
            }
            for place, entry in sorted(self.entries.items(), key=lambda item: (*item[0][:4], size_of(item[0][4])))
            if entry.trials
        ]

    def write(self, path: Path) -> None:
        """One line per cell; whole or not at all."""
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in self.rows())
        beside = path.with_name(path.name + ".new")
        beside.write_text(f"[\n{lines}\n]\n")
        beside.replace(path)


def place_of(spec: RunSpec) -> Place:
    problem: Any = spec.problem
    return problem.n, problem.k, spec.start.name, spec.width, spec.samples or "online"


def size_of(samples: int | str) -> int:
    """Fresh examples count as more than any set."""
    return 10**9 if samples == "online" else int(samples)


def run(path: Path, out: Path, seconds: float, spec: Path, engine: str) -> int:
    """Train what is missing for so long; what has begun by then is trained to its end."""
    summary = Summary(Sweep.from_toml(spec), path)
    start, ran = time.monotonic(), 0
    last = saved = start
    widths: dict[int, Counter[str]] = defaultdict(Counter)
    try:
        while len(numbers := summary.missing()) and not summary.failed and time.monotonic() - start < seconds:
            print(f"{len(numbers)} runs to do", flush=True)
            for rows in trained(summary.sweep, numbers, engine, start + seconds):
                summary.add(rows)
                now = time.monotonic()
                width, steps = json.loads(rows[0].setting)["network"]["width"], sum(row.steps for row in rows)
                # Batches overlap: what passes from the end of one to the end of the next is put down to the next.
                widths[width].update({"runs": len(rows), "steps": steps, "milliseconds": round(1000 * (now - last))})
                ran, last = ran + len(rows), now
                if now - saved > SAVE_EVERY:
                    summary.write(out)
                    saved = now
                    print(f"{now - start:.0f} s: {ran} runs, now at width {width}", flush=True)
    except KeyboardInterrupt:
        print("interrupted: what has ended is kept")
    summary.write(out)
    told = {
        "name": "figure4",
        "ran": ran,
        "failed": summary.failed,
        "seconds": round(time.monotonic() - start, 1),
        "runs": sum(entry.trials for entry in summary.entries.values()),
        "cells": len(summary.rows()),
        "missing": len(summary.missing()),
        "widths": dict(sorted(widths.items())),
    }
    print(json.dumps(told))
    return int(summary.failed > 0)


def trained(sweep: Sweep, numbers: IdArray, engine: str, until: float) -> Iterator[list[Row]]:
    """The rows of these runs, batch by batch as they end; from a moment on no more are begun."""
    chosen = get_engine(engine)
    device = isinstance(chosen, DeviceEngine)
    if isinstance(chosen, DeviceEngine):
        chosen.prepare([spec.describe() for spec in one_of_each_shape(sweep, numbers)])

    def specs() -> Iterator[RunSpec]:
        for number in numbers:
            if time.monotonic() > until:
                return
            yield sweep.run_at(int(number))

    with closing(
        (DeviceExecutor() if device else InlineExecutor()).run(batches(specs(), chosen), chosen.name)
    ) as ended:
        yield from ended


def plan(path: Path, spec: Path, engine: str) -> int:
    """GPU-hours of a spec, width by width; early stops save what they save in the cells of the summary."""
    whole = Sweep.from_toml(spec)
    table = Summary(whole, path).rows()
    figures: dict[str, Any] = {}
    for width in sorted({width for _, width in whole.networks}):
        part = replace(whole, networks=tuple(network for network in whole.networks if network[1] == width))
        hours = estimate_time(part, make_plan(part), engine).device_hours
        longest = max(schedule.steps for schedule in whole.schedules)
        shares = [taken(row, longest) / longest for row in table if row["width"] == width]
        stopping = hours * sum(shares) / len(shares) if shares else None
        figures[str(width)] = {"hours": hours, "stopping": stopping}
        less = "" if stopping is None else f", {stopping:.3f} with early stops as in {len(shares)} cells"
        print(f"width {width}: {hours:.3f} GPU-hours{less}", flush=True)
    hours = sum(figure["hours"] for figure in figures.values())
    without = sum(figure["hours"] for width, figure in figures.items() if int(width) <= WIDEST)
    stops = [figure["stopping"] for figure in figures.values()]
    total = {"hours": round(hours, 2), "hours_without_100000": round(without, 2)}
    early = None if None in stops else round(sum(stops), 2)
    rounded = {
        width: {key: value and round(value, 4) for key, value in figure.items()} for width, figure in figures.items()
    }
    told = {"name": "figure4_plan", "runs": len(whole), **total, "with_early_stops": early, "asked": ASKED}
    print(json.dumps({**told, "widths": rounded}))
    return int(any(total[name] > ASKED[name] for name in ASKED))


def taken(row: dict[str, Any], longest: int) -> float:
    """The mean steps of a cell's runs; those that do not succeed go on to the end."""
    return (sum(steps * count for steps, count in row["times"]) + longest * (row["trials"] - row["successes"])) / row[
        "trials"
    ]


HEAD = """# Figure 4 of `pareto`

{runs:,} of the {all_runs:,} runs of `examples/figure4.toml` exist ({share:.0%}), in {cells:,} of its {all_cells:,} cells; `benchmarks/figure4.py`
makes them. Up to width {widest:,}, {enough:,} of {narrow:,} cells ({enough_share:.0%}) have at least {fewest} trials. The aim is {fewest} in each of
these cells, and {most} where a cell is mixed (some runs succeed, some do not) and in its neighbours in width and samples. Wider networks stay on
selected cells.

{widths}

In the tables below, by width (rows) and samples (columns), a plain number is the per cent of {most} runs that succeed: whose test error on
10,000 held-out examples falls to 10% within 10⁵ steps. Where a cell has another number of trials both are given: 7/10 is 7 of 10 runs.
Empty cells are not trained.

The paper's findings: (1) wide networks learn from few samples; (2) width never hurts; (3) the sparse start widens the
feasible regime, where the dense one no longer works; (4) success is not monotone in the samples. (2) and (3) are claimed of
time as well: steps until 10%, looked at every 2000, runs that never get there being the longest.

Each claim is judged within cells: width, start or samples differ, the rest is the same. All trials of a cell count. Cells differ in
their number of trials: some have {most} whatever came out, others because of what their first {fewest} show. Fisher's test, Mantel and Haenszel's test and the intervals take each
side with its own number; trend tests take shares; in tests on time cells weigh alike. A problem is judged on the widths that have at least
{fewest} trials in every cell. That learning comes back is judged against curves that rise up to some number of samples and fall from there
on. The best such curve of each start and width is less likely than the data's own shares; the test compares by how much with {draws:,} draws
from these curves. Power is the probability with which the test notices the effect named beside it; it is that of cells which all have the
fewest trials that one of them has. That no cell loses passes by silence, so with a power below 0.8 it stays open.

Runs repeat: on 18 November 2026 an H200 trained 63 cells of 50 trials again. 52 of them, among these all 45 of width 10 or n ≥ 150, have the
same successes and times. The other 11 come from an earlier version of the kernels, which rounds otherwise: their successes differ by 7 of 50 at
most (Fisher's p at least 0.2)."""


def page(path: Path, out: Path, spec: Path) -> int:
    """A page about a summary: what exists, success by width and samples, and the claims."""
    summary = Summary(Sweep.from_toml(spec), path)
    table = summary.rows()
    lines = [HEAD.format(widths=by_width(summary), **shares(summary))]
    problems: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for row in table:
        problems[row["n"], row["k"]].append(row)
    seen: dict[str, dict[str, list[str]]] = defaultdict(lambda: {verdict: [] for verdict in ("yes", "**no**", "open")})
    columns = len({place[4] for place in summary.entries})
    for (n, k), rows in sorted(problems.items()):
        lines.append(f"## ({n}, {k})-parity")
        for start in sorted({row["start"] for row in rows}):
            lines.append(f"{start} start:\n\n" + grid([row for row in rows if row["start"] == start]))
        full = complete(rows, columns)
        widths = sorted({row["width"] for row in full})
        if len(widths) < 3:
            lines.append("Not judged: fewer than three widths are complete.")
            continue
        judged = []
        for entry in judgements(full):
            verdict = verdict_of(entry)
            seen[entry.claim][verdict].append(f"({n}, {k})")
            asked = f"{entry.value:.2g}, {entry.rule} {entry.threshold:g}"
            judged.append(
                f"| {entry.claim} | {entry.statistic} | {asked} | {entry.effect} | {entry.power} | {verdict} |"
            )
        head = ("claim", "judged by", "value", "effect (95%)", "power", "seen")
        runs = sum(row["trials"] for row in full)
        lines.append(f"Judged on widths {', '.join(f'{width:,}' for width in widths)}: {runs:,} runs.")
        lines.append("\n".join([f"| {' | '.join(head)} |", "| --- " * len(head) + "|", *judged]))
    if seen:
        told = (
            f"| {claim} | {' | '.join(' '.join(names) for names in where.values())} |" for claim, where in seen.items()
        )
        head = "| claim | seen on | not seen on | open |\n| --- | --- | --- | --- |\n"
        lines.append(f"## Claim by claim\n\n{head}" + "\n".join(told))
    out.write_text("\n\n".join(lines) + "\n")
    return 0


def verdict_of(judgement: Judgement) -> str:
    """Where silence passes, a test that would hardly notice anything leaves the claim open."""
    if not judgement.passed:
        return "**no**"
    weak = judgement.power is not None and judgement.power.probability < ENOUGH_POWER
    return "open" if judgement.rule == "at least" and weak else "yes"


def shares(summary: Summary) -> dict[str, Any]:
    """How much of the grid exists."""
    entries = summary.entries
    narrow = [entry for place, entry in entries.items() if place[3] <= WIDEST]
    runs, enough = sum(entry.trials for entry in entries.values()), sum(entry.trials >= FEWEST for entry in narrow)
    return {
        "runs": runs,
        "all_runs": len(summary.sweep),
        "share": runs / len(summary.sweep),
        "cells": sum(entry.trials > 0 for entry in entries.values()),
        "all_cells": len(entries),
        "enough": enough,
        "narrow": len(narrow),
        "enough_share": enough / len(narrow),
        "fewest": FEWEST,
        "most": MOST,
        "widest": WIDEST,
        "draws": DRAWS,
    }


def by_width(summary: Summary) -> str:
    """Runs and cells of every width, and how many of the cells near a mixed one have all their trials."""
    places = list(summary.entries)
    near = summary.near_mixed([place for place in places if place[3] <= WIDEST])
    lines = [
        f"| width | runs | cells with at least {FEWEST} trials | mixed, or next to one | of these with {MOST} trials |"
    ]
    lines.append("| --- " * 5 + "|")
    for width in sorted({place[3] for place in places}):
        mine = [summary.entries[place] for place in places if place[3] == width]
        open_cells = [summary.entries[place] for place in near if place[3] == width]
        runs, enough = sum(entry.trials for entry in mine), sum(entry.trials >= FEWEST for entry in mine)
        most = sum(entry.trials >= MOST for entry in open_cells)
        told = f"{len(open_cells)} | {most}" if width <= WIDEST else " | "
        lines.append(f"| {width:,} | {runs:,} | {enough} of {len(mine)} | {told} |")
    return "\n".join(lines)


def complete(rows: list[dict[str, Any]], columns: int) -> list[dict[str, Any]]:
    """The cells of widths with enough trials at either start and every number of samples, as judgements take them."""
    enough = [row for row in rows if row["trials"] >= FEWEST]
    found = Counter(row["width"] for row in enough)
    starts = len({row["start"] for row in rows})
    return [
        {**row, "samples": size_of(row["samples"]), "steps": steps_of(row)}
        for row in enough
        if found[row["width"]] == starts * columns
    ]


def steps_of(row: dict[str, Any]) -> list[int | None]:
    """Steps of every run, None where it did not succeed."""
    reached = [steps for steps, count in row["times"] for _ in range(count)]
    return [*reached, *[None] * (row["trials"] - len(reached))]


def grid(rows: list[dict[str, Any]]) -> str:
    samples = sorted({row["samples"] for row in rows}, key=size_of)
    head = ["width", *(m if isinstance(m, str) else f"{m:,}" for m in samples)]
    found = {(row["width"], row["samples"]): row for row in rows}
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    for width in sorted({row["width"] for row in rows}):
        told = (success(found[width, m]) if (width, m) in found else "" for m in samples)
        lines.append(f"| {width:,} | {' | '.join(told)} |")
    return "\n".join(lines)


def success(row: dict[str, Any]) -> str:
    """Per cent where the trials are all there."""
    won, trials = row["successes"], row["trials"]
    return f"{100 * won / trials:.0f}" if trials == MOST else f"{won}/{trials}"


# The claims of the recipe pareto/frontier and more, for cells that differ in their numbers of trials.

DRAWS, ENOUGH_POWER = 2000, 0.8
LEVEL, WIDE, LARGE, MARGIN = 0.01, 100, 1000, 0.1


class Lines:
    """Successes and trials along lines, both of shape (lines, places)."""

    def __init__(self, rows: list[dict[str, Any]], along: str) -> None:
        keys = ("start", *(key for key in ("width", "samples") if key != along), along)
        rows = sorted(rows, key=lambda row: tuple(row[key] for key in keys))
        length = len({row[along] for row in rows})
        self.won, self.trials = (
            np.array([row[key] for row in rows]).reshape(-1, length) for key in ("successes", "trials")
        )

    def at(self, place: int) -> tuple[IdArray, IdArray]:
        """Successes and trials at one place of every line."""
        return self.won[:, place], self.trials[:, place]

    def counts(self) -> list[list[tuple[int, int]]]:
        """Line by line, successes and trials as pairs."""
        return [
            list(zip(won, trials, strict=True))
            for won, trials in zip(self.won.tolist(), self.trials.tolist(), strict=True)
        ]


def judgements(rows: list[dict[str, Any]]) -> list[Judgement]:
    """The four findings, as the recipe words them."""
    widths, samples, fewest = Lines(rows, "width"), Lines(rows, "samples"), min(row["trials"] for row in rows)
    found = sorted({row["width"] for row in rows})
    narrow = [width for width in found if width < LARGE]
    large = min(LARGE, found[-1])
    return [
        rises(widths, fewest, "width", "widest", "narrowest"),
        no_step_costs_success(widths, fewest),
        no_cell_loses_by_width(widths, fewest),
        rises(samples, fewest, "data", "most samples", "fewest"),
        sparse_beats_dense(rows, fewest, min(WIDE, found[-1])),
        sparse_saves_time(rows, [width for width in found if width >= large], f"widths from {large}"),
        *([sparse_saves_time(rows, narrow, f"widths {narrow[0]} to {narrow[-1]}")] if narrow else []),
        width_saves_time(rows, found),
        more_data_hurts(samples, fewest),
        learning_comes_back(samples, fewest),
    ]


def rises(lines: Lines, fewest: int, what: str, most: str, least: str) -> Judgement:
    count, length = lines.won.shape
    return Judgement(
        f"{what} buys success",
        f"p of Page's trend test over {'samples' if what == 'data' else 'widths'}",
        rising(lines.won / lines.trials),
        LEVEL,
        effect=gain(f"{most} less {least}, share of runs, mean over lines", *lines.at(-1), *lines.at(0)),
        power=Power("from 35% to 65% on half of the lines", claims._rise_power(length, count // 2, fewest)),
    )


def no_step_costs_success(lines: Lines, fewest: int) -> Judgement:
    count, steps = len(lines.won), lines.won.shape[1] - 1
    name = "largest mean fall by a step up in width, share of runs"
    # The upper ends hold at 95% for all the steps together.
    falls = [gain(name, *lines.at(place), *lines.at(place + 1), level=0.1 / steps) for place in range(steps)]
    worst = max(falls, key=lambda fall: fall.high)
    return Judgement(
        f"no step up in width costs {MARGIN:.0%} of the runs, averaged over starts and samples",
        f"largest upper end of the mean fall, {steps} steps together at 95%",
        worst.high,
        MARGIN,
        effect=worst,
        power=Power(
            f"a step that costs {MARGIN:.0%} of the runs, from 60% in every cell",
            claims._fall_power(count, fewest, steps),
        ),
    )


def no_cell_loses_by_width(lines: Lines, fewest: int) -> Judgement:
    pairs = [pair for line in lines.counts() for pair in pairwise(line)]
    chances = [fisher(*pair) for pair in pairs]
    worst = pairs[int(np.argmin(chances))]
    return Judgement(
        "no single cell loses by a step up in width",
        f"smallest p of Fisher's test, times {len(pairs)} pairs",
        min(1.0, min(chances) * len(pairs)),
        0.05,
        "at least",
        effect=fall("fall in the worst cell, share of runs", *worst),
        power=Power(
            "a fall from 9 in 10 to 3 in 10 in one cell", more_often_power(0.9, 0.3, fewest, 0.05 / len(pairs))
        ),
    )


def more_data_hurts(lines: Lines, fewest: int) -> Judgement:
    pairs = [pair for line in lines.counts() for pair in pairwise(line)]
    chances = [fisher(*pair) for pair in pairs]
    worst = pairs[int(np.argmin(chances))]
    return Judgement(
        "more data can hurt",
        f"smallest p of Fisher's test on neighbours, times {len(pairs)} pairs",
        min(1.0, min(chances) * len(pairs)),
        LEVEL,
        effect=fall("the clearest fall between neighbours, share of runs", *worst),
        power=Power(
            "a fall from 9 in 10 to 4 in 10 at one place", more_often_power(0.9, 0.4, fewest, LEVEL / len(pairs))
        ),
    )


def sparse_beats_dense(rows: list[dict[str, Any]], fewest: int, least: int) -> Judgement:
    """Mantel and Haenszel's exact test: given both sides' successes, the sparse side's are hypergeometric in a cell."""
    wide = [row for row in rows if row["width"] >= least]
    dense, sparse = (Lines([row for row in wide if row["start"] == start], "samples") for start in ("dense", "sparse"))
    sides = [(table.won.ravel(), table.trials.ravel()) for table in (sparse, dense)]
    chances, least_won = np.ones(1), 0
    for won, trials, other, others in zip(*sides[0], *sides[1], strict=True):
        both, low = int(won + other), max(0, int(won + other - others))
        possible = np.arange(low, min(both, trials) + 1)
        chances = np.convolve(chances, stats.hypergeom.pmf(possible, trials + others, both, trials))
        least_won += low
    together, all_runs = sides[0][0] + sides[1][0], sides[0][1] + sides[1][1]
    unsettled = int(((together > 0) & (together < all_runs)).sum())
    return Judgement(
        "the sparse start beats the dense one",
        f"p of Mantel and Haenszel's exact test, widths from {least}",
        min(1.0, float(chances[int(sides[0][0].sum()) - least_won :].sum())),
        LEVEL,
        effect=gain("sparse less dense, share of runs, mean over cells", *sides[0], *sides[1]),
        power=Power(
            f"75% against 50% in the {unsettled} cells that are open",
            gain_power(0.75, 0.5, unsettled, fewest, LEVEL) if unsettled else 0.0,
        ),
    )


def sparse_saves_time(rows: list[dict[str, Any]], widths: list[int], kind: str) -> Judgement:
    found = {(row["start"], row["width"], row["samples"]): times(row) for row in rows if row["width"] in widths}
    places = sorted({place[1:] for place in found})
    sides = [[found[start, *place] for place in places] for start in ("dense", "sparse")]
    return longer(f"the sparse start saves time, {kind}", "dense", "sparse", *sides)


def width_saves_time(rows: list[dict[str, Any]], widths: list[int]) -> Judgement:
    found = {(row["width"], row["start"], row["samples"]): times(row) for row in rows}
    cells = sorted({place[1:] for place in found})
    sides = {width: [found[width, *cell] for cell in cells] for width in widths}
    steps = list(pairwise(widths))
    narrow, wide = max(steps, key=lambda step: longer_within(sides[step[0]], sides[step[1]]))
    return longer(
        "every step up in width saves time",
        "narrower",
        "wider",
        sides[narrow],
        sides[wide],
        f"largest p of van Elteren's test, {len(steps)} steps; {narrow} against {wide}",
    )


def longer(
    claim: str, slow: str, fast: str, mine: Any, theirs: Any, what: str = "p of van Elteren's test"
) -> Judgement:
    """The recipe's judgement; it takes its power from the first cell, so one with the fewest trials comes first."""
    pairs = sorted(zip(mine, theirs, strict=True), key=lambda pair: len(pair[0]))
    slower, faster = zip(*pairs, strict=True)
    return claims._longer(claim, slow, fast, slower, faster, what)


def learning_comes_back(lines: Lines, fewest: int) -> Judgement:
    """A likelihood-ratio test against curves that rise and then fall, one per line."""
    varied = lines.won.any(axis=1) & (lines.won < lines.trials).any(axis=1)
    won, trials = lines.won[varied], lines.trials[varied]
    rng = np.random.default_rng(0)
    dips = np.full((DRAWS, 1), 0.9).repeat(lines.won.shape[1], axis=1)
    dips[:, lines.won.shape[1] // 2] = 0.3
    dip = short_of(rng.binomial(fewest, dips), np.full(dips.shape, fewest))[0]
    if len(won):
        lack, curves = short_of(won, trials)
        drawn = rng.binomial(trials, curves, (DRAWS, *won.shape))
        noise = short_of(drawn.reshape(-1, won.shape[1]), np.tile(trials, (DRAWS, 1)))[0].reshape(DRAWS, -1).sum(axis=1)
    else:
        lack, noise = np.zeros(1), np.zeros(DRAWS)
    chance = (1 + int((noise >= lack.sum() - 1e-9).sum())) / (1 + DRAWS)
    triples = [triple for line in lines.counts() for triple in combinations(line, 3)]
    first, least, last = max(triples, key=lambda t: min(share(t[0]), share(t[2])) - share(t[1]))
    edge = min(first, last, key=share)
    return Judgement(
        "with still more data learning comes back",
        "p of a likelihood-ratio test against curves that rise and then fall",
        chance,
        LEVEL,
        effect=fall("the deepest dip, share of runs", edge, least),
        power=Power(
            "9 in 10 but for 3 in 10 at one place, on one line",
            float((noise + dip > np.quantile(noise, 1 - LEVEL)).mean()),
        ),
    )


def short_of(won: IdArray, trials: IdArray) -> tuple[Float64Array, Float64Array]:
    """Twice the log-likelihood that the best curve that rises and then falls lacks, line by line, and that curve.

    Up to some place it is the best rising curve, from there on the best falling one, whichever place is best.
    """
    length = won.shape[1]
    rising_fits, falling = rising_curves(won, trials), rising_curves(won[:, ::-1], trials[:, ::-1])
    best, curve = np.full(len(won), -np.inf), np.zeros(won.shape)
    for place in range(length + 1):
        parts = [rising_fits[place], falling[length - place][:, ::-1]]
        fit = np.concatenate(parts, axis=1)
        likelihood = (xlogy(won, fit) + xlogy(trials - won, 1 - fit)).sum(axis=1)
        better = likelihood > best
        best, curve = np.where(better, likelihood, best), np.where(better[:, None], fit, curve)
    own = won / trials
    return 2 * ((xlogy(won, own) + xlogy(trials - won, 1 - own)).sum(axis=1) - best), curve


def rising_curves(won: IdArray, trials: IdArray) -> list[Float64Array]:
    """The best rising curve through the first 0, 1, 2, … places of each line.

    Its value at a place is the largest, over beginnings up to there, of the least mean from the beginning to an end.
    """
    length = won.shape[1]
    sums, sizes = (np.concatenate([np.zeros((len(won), 1)), table.cumsum(axis=1)], axis=1) for table in (won, trials))
    curves = [np.zeros((len(won), 0))]
    for end in range(1, length + 1):
        curve = np.zeros((len(won), end))
        least = np.full((len(won), end), np.inf)  # by beginning
        for place in reversed(range(end)):
            begins = slice(0, place + 1)
            mean = (sums[:, [place + 1]] - sums[:, begins]) / (sizes[:, [place + 1]] - sizes[:, begins])
            least = np.minimum(least[:, begins], mean)
            curve[:, place] = least.max(axis=1)
        curves.append(np.clip(curve, 0.0, 1.0))
    return curves


def share(cell: tuple[int, int]) -> float:
    return cell[0] / cell[1]


def fisher(cell: tuple[int, int], other: tuple[int, int]) -> float:
    """Fisher's exact test: the first cell succeeds more often."""
    won, trials = cell
    return float(stats.hypergeom.sf(won - 1, trials + other[1], won + other[0], trials))


def fall(name: str, cell: tuple[int, int], other: tuple[int, int]) -> Effect:
    return difference_of_shares(name, *cell, *other)


def gain(name: str, won: IdArray, trials: IdArray, other: IdArray, others: IdArray, level: float = 0.05) -> Effect:
    """The first side's share less the other's, the mean over cells (Agresti and Caffo's interval)."""
    value = float((won / trials - other / others).mean())
    padded = [((won + 1) / (trials + 2), trials + 2), ((other + 1) / (others + 2), others + 2)]
    variance = sum((chance * (1 - chance) / size).sum() for chance, size in padded)
    half = float(stats.norm.isf(level / 2) * np.sqrt(variance) / len(won))
    return Effect(name, value, value - half, value + half)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["run", "plan", "page"])
    parser.add_argument("summary", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--spec", type=Path, default=SPEC)
    parser.add_argument("--engine", default="cuda")
    given = parser.parse_args()
    if given.verb == "run":
        return run(given.summary, given.out or given.summary, given.seconds, given.spec, given.engine)
    if given.verb == "plan":
        return plan(given.summary, given.spec, given.engine)
    return page(given.summary, given.out or given.summary.with_suffix(".md"), given.spec)


if __name__ == "__main__":
    sys.exit(main())

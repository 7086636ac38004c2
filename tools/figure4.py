"""Figure 4 of `pareto` on a GPU, in several sessions: run it, test the claims, and estimate the cost of all of it.

The summary, one entry per cell of `examples/figure4.toml`, is all that is kept between sessions: a run is decided by
its spec and the number of its trial, and a cell with t trials has those from 0 to t − 1. Up to width 30,000 a session
trains what is missing of ten trials per cell, the cheapest shapes first, and then of fifty where a cell is mixed (some
of its runs succeed, and some do not) or next to a mixed one in width or samples.

    python tools/figure4.py run docs/results/figure4.json OUT.json --seconds 500    # continues the summary
    python tools/figure4.py plan docs/results/figure4.json                # GPU-hours of the whole, from probes
    python tools/figure4.py page docs/results/figure4.json docs/results/figure4.md

The last line of `run` and `plan` is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from fewfire._atomic import write_text
from fewfire.engines import DeviceEngine, get_engine
from fewfire.papers._claims import Judgement, Power
from fewfire.papers._effects import difference_of_shares
from fewfire.papers._statistics import more_often_power
from fewfire.papers.pareto.recipes import _grid as claims
from fewfire.papers.pareto.recipes import frontier
from fewfire.papers.pareto.recipes._grid import LEVEL, longer_within, times
from fewfire.sweeps import Sweep, estimate_time, make_plan, succeeded
from fewfire.sweeps.executors import InlineExecutor
from fewfire.sweeps.executors._device import DeviceExecutor
from fewfire.sweeps.run._plan import batches, in_device_order, one_of_each_shape
from fewfire.sweeps.store._row import final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fewfire._types import Float64Array, IdArray
    from fewfire.sweeps import RunSpec
    from fewfire.sweeps.store._row import Row

SPEC = Path(__file__).resolve().parents[1] / "examples" / "figure4.toml"
ASKED = {"hours": 40.0, "hours_without_100000": 6.0}
FEWEST, MOST = 10, 50
"""Trials of every cell, and of those where success is neither none nor all, with their neighbours."""

WIDEST = 30_000
"""Wider cells stay as they are."""

SAVE_EVERY = 20.0
"""Seconds between copies of the summary, of which the last one outlives a session that is killed."""

DRAWS, ENOUGH_POWER = 2000, 0.8
"""Draws of the test on curves, and the power from which a lack of evidence counts."""


class GridCell(NamedTuple):
    """A cell of the sweep; `samples` is "online" for fresh examples."""

    n: int
    k: int
    start: str
    width: int
    samples: int | str


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
        self.numbers = {cell_of(sweep.run_at(number)): number for number in range(sweep.settings)}
        self.entries = {cell: Entry() for cell in self.numbers}
        self._waiting: dict[GridCell, dict[int, Row]] = defaultdict(dict)
        for row in json.loads(path.read_text()) if path.exists() else []:
            cell = GridCell(*(row[key] for key in GridCell._fields))
            self.entries[cell] = Entry(row["trials"], row["diverged"], Counter(dict(row["times"])))
        self._cells = {sweep.run_at(number).setting: cell for cell, number in self.numbers.items()}

    def add(self, rows: Sequence[Row]) -> None:
        """Count these runs; failed ones are trained again by the next session."""
        self.failed += sum(not final(row.status) for row in rows)
        for row in rows:
            cell = self._cells[row.setting]
            if final(row.status):
                self._waiting[cell][row.trial] = row
            entry, waiting = self.entries[cell], self._waiting[cell]
            while (known := waiting.pop(entry.trials, None)) is not None:
                entry.trials += 1
                entry.diverged += known.status == "diverged"
                if succeeded(known.status, known.best_test_error, self.sweep.success_error):
                    entry.times[known.steps] += 1

    def missing(self) -> IdArray:
        """Numbers of the runs to train next, the cheapest shapes first."""
        narrow = [cell for cell in self.entries if cell.width <= WIDEST]
        wanted, trials = narrow, FEWEST
        if all(self.entries[cell].trials >= FEWEST for cell in narrow):
            wanted, trials = self.near_mixed(narrow), MOST
        return in_device_order(
            self.sweep,
            [
                trial * self.sweep.settings + self.numbers[cell]
                for cell in wanted
                for trial in range(self.entries[cell].trials, min(trials, self.sweep.trials))
            ],
        )

    def near_mixed(self, cells: Sequence[GridCell]) -> list[GridCell]:
        """The mixed cells among these, and their neighbours in width and samples."""
        widths = sorted({cell.width for cell in cells})
        samples = sorted({cell.samples for cell in cells}, key=size_of)
        near = set()
        for cell in (cell for cell in cells if self.entries[cell].mixed):
            row, column = widths.index(cell.width), samples.index(cell.samples)
            near |= {cell._replace(width=width) for width in widths[max(0, row - 1) : row + 2]}
            near |= {cell._replace(samples=size) for size in samples[max(0, column - 1) : column + 2]}
        return [cell for cell in cells if cell in near]

    def rows(self) -> list[dict[str, Any]]:
        """The cells that have runs, as they are written, in the order of problem, start, width and samples."""
        return [
            {
                **cell._asdict(),
                "trials": entry.trials,
                "successes": entry.successes,
                "diverged": entry.diverged,
                "times": sorted(entry.times.items()),
            }
            for cell, entry in sorted(self.entries.items(), key=lambda item: (*item[0][:4], size_of(item[0].samples)))
            if entry.trials
        ]

    def write(self, path: Path) -> None:
        """One line per cell; whole or not at all."""
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in self.rows())
        write_text(path, f"[\n{lines}\n]\n")


def cell_of(spec: RunSpec) -> GridCell:
    """The cell of a run."""
    problem: Any = spec.problem
    return GridCell(problem.n, problem.k, spec.start.name, spec.width, spec.samples or "online")


def size_of(samples: int | str) -> int:
    """Fresh examples count as more than any set."""
    return 10**9 if samples == "online" else int(samples)


def run(path: Path, out: Path, seconds: float, spec: Path, engine: str) -> int:
    """Train what is missing for so many seconds; batches that have begun by then are finished."""
    summary = Summary(Sweep.from_toml(spec), path)
    start, ran = time.monotonic(), 0
    saved = start
    try:
        while len(numbers := summary.missing()) and not summary.failed and time.monotonic() - start < seconds:
            print(f"{len(numbers)} runs to do", flush=True)
            for rows in trained(summary.sweep, numbers, engine, start + seconds):
                summary.add(rows)
                ran += len(rows)
                if time.monotonic() - saved > SAVE_EVERY:
                    summary.write(out)
                    saved = time.monotonic()
                    print(f"{saved - start:.0f} s: {ran} runs", flush=True)
    except KeyboardInterrupt:
        print("interrupted: runs that have ended are kept")
    summary.write(out)
    result = {
        "name": "figure4",
        "ran": ran,
        "failed": summary.failed,
        "seconds": round(time.monotonic() - start, 1),
        "runs": sum(entry.trials for entry in summary.entries.values()),
        "cells": len(summary.rows()),
        "missing": len(summary.missing()),
    }
    print(json.dumps(result))
    return int(summary.failed > 0)


def trained(sweep: Sweep, numbers: IdArray, engine: str, until: float) -> Iterator[list[Row]]:
    """The rows of these runs, batch by batch as they end; none begins after `until`."""
    chosen, executor = get_engine(engine), InlineExecutor()
    if isinstance(chosen, DeviceEngine):
        chosen.prepare([spec.describe() for spec in one_of_each_shape(sweep, numbers)])
        executor = DeviceExecutor()

    def specs() -> Iterator[RunSpec]:
        for number in numbers:
            if time.monotonic() > until:
                return
            yield sweep.run_at(int(number))

    with closing(executor.run(batches(specs(), chosen), chosen.name)) as ended:
        yield from ended


def plan(path: Path, spec: Path, engine: str) -> int:
    """GPU-hours of a spec, width by width; early stops save what they save in the cells of the summary."""
    whole = Sweep.from_toml(spec)
    table = Summary(whole, path).rows()
    hours: dict[int, float] = {}
    stopping: dict[int, float | None] = {}
    for width in sorted({width for _, width in whole.networks}):
        part = replace(whole, networks=tuple(network for network in whole.networks if network[1] == width))
        hours[width] = estimate_time(part, make_plan(part), engine).device_hours
        longest = max(schedule.steps for schedule in whole.schedules)
        shares = [taken(row, longest) / longest for row in table if row["width"] == width]
        stopping[width] = hours[width] * sum(shares) / len(shares) if shares else None
        less = f", {stopping[width]:.3f} with early stops as in {len(shares)} cells" if shares else ""
        print(f"width {width}: {hours[width]:.3f} GPU-hours{less}", flush=True)
    without = sum(value for width, value in hours.items() if width <= WIDEST)
    total = {"hours": round(sum(hours.values()), 2), "hours_without_100000": round(without, 2)}
    stops = [value for value in stopping.values() if value is not None]
    result = {
        "name": "figure4_plan",
        "runs": len(whole),
        **total,
        "with_early_stops": round(sum(stops), 2) if len(stops) == len(hours) else None,
        "asked": ASKED,
        "widths": {width: {"hours": hours[width], "stopping": stopping[width]} for width in hours},
    }
    print(json.dumps(result))
    return int(any(total[name] > ASKED[name] for name in ASKED))


def taken(row: dict[str, Any], longest: int) -> float:
    """The mean steps of a cell's runs; those that do not succeed take all."""
    reached = sum(steps * count for steps, count in row["times"])
    return float(reached + longest * (row["trials"] - row["successes"])) / float(row["trials"])


HEAD = """# Figure 4 of `pareto`

For readers of pareto who ask whether its Figure 4 comes out again, cell by cell.

{runs:,} of the {all_runs:,} runs of `examples/figure4.toml` exist ({share:.0%}), in {cells:,} of its {all_cells:,}
cells; `tools/figure4.py` makes them. Up to width {widest:,}, {enough:,} of {narrow:,} cells
({enough_share:.0%}) have at least {fewest} trials. The aim is {fewest} in each of these cells, and {most} where a
cell is mixed (some runs succeed, some do not) and in its neighbours in width and samples. Wider networks stay on
selected cells.

{widths}

In the tables below, by width (rows) and samples (columns), a plain number is the per cent of {most} runs that
succeed: whose test error on 10,000 held-out examples falls to 10% within 10⁵ steps. Where a cell has another number
of trials both are given: 7/10 is 7 of 10 runs. Empty cells are not trained.

The paper's findings: (1) wide networks learn from few samples; (2) width never hurts; (3) the sparse start widens
the feasible regime, where the dense one no longer works; (4) success is not monotone in the samples. (2) and (3) are
claimed of time as well: steps until 10%, looked at every 2000, runs that never get there being the longest.

Each claim is tested within cells: width, start or samples differ, the rest is the same. All trials of a cell count.
Cells differ in their number of trials: some have {most} whatever came out, others because of what their first
{fewest} show. Fisher's test, Mantel and Haenszel's test and the intervals take each side with its own number; trend
tests take shares; in tests on time cells weigh alike. A problem is tested on the widths that have at least {fewest}
trials in every cell. That learning comes back is tested against curves that rise up to some number of samples and
fall from there on. The best such curve of each start and width is less likely than the data's own shares; the test
compares by how much with {draws:,} draws from these curves. Power is the probability with which the test notices the
effect named with it; it is that of cells which all have the fewest trials that one of them has. That no cell loses
passes where nothing is noticed, so with a power below 0.8 it stays open.

Runs repeat: on 18 November 2026 an H200 trained 63 cells of 50 trials again. 52 of them, among these all 45 of width
10 or n ≥ 150, have the same successes and times. The other 11 come from an earlier version of the kernels, which
rounds otherwise: their successes differ by 7 of 50 at most (Fisher's p at least 0.2)."""


def page(path: Path, out: Path, spec: Path) -> int:
    """A page about a summary: what exists, success by width and samples, and the claims."""
    summary = Summary(Sweep.from_toml(spec), path)
    table = summary.rows()
    lines = [HEAD.format(widths=by_width(summary), **shares(summary))]
    problems: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for row in table:
        problems[row["n"], row["k"]].append(row)
    seen: dict[str, dict[str, list[str]]] = defaultdict(lambda: {verdict: [] for verdict in ("yes", "**no**", "open")})
    columns = len({cell.samples for cell in summary.entries})
    for (n, k), rows in sorted(problems.items()):
        lines.append(f"## ({n}, {k})-parity")
        for start in sorted({row["start"] for row in rows}):
            lines.append(f"{start} start:\n\n" + grid([row for row in rows if row["start"] == start]))
        full = complete(rows, columns)
        widths = sorted({row["width"] for row in full})
        if len(widths) < 3:
            lines.append("Not tested: fewer than three widths are complete.")
            continue
        verdicts = []
        for entry in judgements(full):
            verdict = verdict_of(entry)
            seen[entry.claim][verdict].append(f"({n}, {k})")
            asked = f"{entry.value:.2g}, {entry.rule} {entry.threshold:g}"
            verdicts.append((entry.claim, entry.statistic, asked, entry.effect, entry.power, verdict))
        runs = sum(row["trials"] for row in full)
        lines.append(f"Tested on widths {', '.join(f'{width:,}' for width in widths)}: {runs:,} runs.")
        lines.append(markdown(("claim", "test", "value", "effect (95%)", "power", "seen"), verdicts))
    if seen:
        found = [(claim, *map(" ".join, where.values())) for claim, where in seen.items()]
        lines.append("## Claim by claim\n\n" + markdown(("claim", "seen on", "not seen on", "open"), found))
    out.write_text("\n\n".join(lines) + "\n")
    return 0


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(map(str, cells))} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "| --- " * len(head) + "|", *lines[1:]])


def verdict_of(judgement: Judgement) -> str:
    """Where a lack of evidence passes, a test of little power leaves the claim open."""
    if not judgement.passed:
        return "**no**"
    weak = judgement.power is not None and judgement.power.probability < ENOUGH_POWER
    return "open" if judgement.rule == "at least" and weak else "yes"


def shares(summary: Summary) -> dict[str, Any]:
    """How much of the grid exists."""
    entries = summary.entries
    narrow = [entry for cell, entry in entries.items() if cell.width <= WIDEST]
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
    near = summary.near_mixed([cell for cell in summary.entries if cell.width <= WIDEST])
    rows = []
    for width in sorted({cell.width for cell in summary.entries}):
        mine = [entry for cell, entry in summary.entries.items() if cell.width == width]
        open_cells = [summary.entries[cell] for cell in near if cell.width == width]
        runs, enough = sum(entry.trials for entry in mine), sum(entry.trials >= FEWEST for entry in mine)
        most = sum(entry.trials >= MOST for entry in open_cells)
        ended = (len(open_cells), most) if width <= WIDEST else ("", "")
        rows.append((f"{width:,}", f"{runs:,}", f"{enough} of {len(mine)}", *ended))
    mixed = "mixed, or next to one", f"of these with {MOST} trials"
    return markdown(("width", "runs", f"cells with at least {FEWEST} trials", *mixed), rows)


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
    """Success by width and samples, one start of one problem."""
    samples = sorted({row["samples"] for row in rows}, key=size_of)
    head = ["width", *(m if isinstance(m, str) else f"{m:,}" for m in samples)]
    found = {(row["width"], row["samples"]): success(row) for row in rows}
    widths = sorted({row["width"] for row in rows})
    return markdown(head, ((f"{width:,}", *(found.get((width, m), "") for m in samples)) for width in widths))


def success(row: dict[str, Any]) -> str:
    """Per cent where the trials are all there."""
    won, trials = row["successes"], row["trials"]
    return f"{100 * won / trials:.0f}" if trials == MOST else f"{won}/{trials}"


# The claims of the recipe pareto/frontier and those on finding (4).


def judgements(rows: claims.Rows) -> list[Judgement]:
    """The four findings, in the words of the recipe."""
    widths = sorted({row["width"] for row in rows})
    narrow = [width for width in widths if width < claims.LARGE]
    return [
        *frontier.judge(rows),
        *([claims.sparse_saves_time(rows, narrow[0], narrow[-1])] if narrow else []),
        width_saves_time(rows, widths),
        more_data_hurts(rows),
        learning_comes_back(rows),
    ]


def width_saves_time(rows: list[dict[str, Any]], widths: list[int]) -> Judgement:
    """Whether every step up in width needs fewer steps; the least clear one counts."""
    found = {(row["width"], row["start"], row["samples"]): times(row) for row in rows}
    cells = sorted({key[1:] for key in found})
    sides = {width: [found[width, *cell] for cell in cells] for width in widths}
    steps = list(pairwise(widths))
    narrow, wide = max(steps, key=lambda step: longer_within(sides[step[0]], sides[step[1]]))
    return claims.takes_longer(
        "every step up in width saves time",
        "narrower",
        "wider",
        sides[narrow],
        sides[wide],
        f"largest p of van Elteren's test, {len(steps)} steps; {narrow} against {wide}",
    )


def more_data_hurts(rows: claims.Rows) -> Judgement:
    """Whether success falls somewhere from one number of samples to the next."""
    before, after, value, pairs = claims.Lines(rows, "samples").clearest_fall()
    fewest = min(row["trials"] for row in rows)
    return Judgement(
        "more data can hurt",
        f"smallest p of Fisher's test on neighbours, times {pairs} pairs",
        value,
        LEVEL,
        effect=difference_of_shares("the clearest fall between neighbours, share of runs", *before, *after),
        power=Power("a fall from 9 in 10 to 4 in 10 at one place", more_often_power(0.9, 0.4, fewest, LEVEL / pairs)),
    )


def learning_comes_back(rows: claims.Rows) -> Judgement:
    """A likelihood-ratio test against curves that rise and then fall, one per line."""
    lines, fewest = claims.Lines(rows, "samples"), min(row["trials"] for row in rows)
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
    p = (1 + int((noise >= lack.sum() - 1e-9).sum())) / (1 + DRAWS)

    def share(cell: claims.Cell) -> float:
        return cell[0] / cell[1]

    triples = [triple for line in lines.cells() for triple in combinations(line, 3)]
    first, least, last = max(triples, key=lambda t: min(share(t[0]), share(t[2])) - share(t[1]))
    edge = min(first, last, key=share)
    return Judgement(
        "with still more data learning comes back",
        "p of a likelihood-ratio test against curves that rise and then fall",
        p,
        LEVEL,
        effect=difference_of_shares("the deepest dip, share of runs", *edge, *least),
        power=Power(
            "9 in 10 but for 3 in 10 at one place, on one line",
            float((noise + dip > np.quantile(noise, 1 - LEVEL)).mean()),
        ),
    )


def short_of(won: IdArray, trials: IdArray) -> tuple[Float64Array, Float64Array]:
    """Twice the log-likelihood that the best curve that rises and then falls lacks, line by line, and that curve.

    Up to some index it is the best rising curve, from there on the best falling one, at the best of these indices.
    """
    length = won.shape[1]
    rising_fits, falling = rising_curves(won, trials), rising_curves(won[:, ::-1], trials[:, ::-1])
    best, curve = np.full(len(won), -np.inf), np.zeros(won.shape)
    for turn in range(length + 1):
        parts = [rising_fits[turn], falling[length - turn][:, ::-1]]
        fit = np.concatenate(parts, axis=1)
        likelihood = (xlogy(won, fit) + xlogy(trials - won, 1 - fit)).sum(axis=1)
        better = likelihood > best
        best, curve = np.where(better, likelihood, best), np.where(better[:, None], fit, curve)
    own = won / trials
    return 2 * ((xlogy(won, own) + xlogy(trials - won, 1 - own)).sum(axis=1) - best), curve


def rising_curves(won: IdArray, trials: IdArray) -> list[Float64Array]:
    """The best rising curve through the first 0, 1, 2, … cells of each line.

    Its value at a cell is the largest, over beginnings up to there, of the least mean from the beginning to an end.
    """
    length = won.shape[1]
    sums, sizes = (np.concatenate([np.zeros((len(won), 1)), table.cumsum(axis=1)], axis=1) for table in (won, trials))
    curves = [np.zeros((len(won), 0))]
    for end in range(1, length + 1):
        curve = np.zeros((len(won), end))
        least = np.full((len(won), end), np.inf)  # by beginning
        for index in reversed(range(end)):
            begins = slice(0, index + 1)
            mean = (sums[:, [index + 1]] - sums[:, begins]) / (sizes[:, [index + 1]] - sizes[:, begins])
            least = np.minimum(least[:, begins], mean)
            curve[:, index] = least.max(axis=1)
        curves.append(np.clip(curve, 0.0, 1.0))
    return curves


def main() -> int:
    """Run, plan or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    raise SystemExit(main())

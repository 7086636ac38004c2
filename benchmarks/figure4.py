"""Figure 4 of `pareto` on a GPU, in several goes: run, summarise per cell, judge, and plan the whole of it.

Runs go into one store per problem, so that none gets too large to carry; between goes the stores are kept compressed in
a folder. Where there is work for more than minutes the cheapest shapes come first: a go that ends early has whole widths.

    python benchmarks/figure4.py run FOLDER --seconds 500       # goes on where the stores in FOLDER end
    python benchmarks/figure4.py plan FOLDER                    # GPU-hours of the whole of Figure 4, from probes
    python benchmarks/figure4.py page FOLDER docs/results       # figure4.json and figure4.md; needs SciPy

`--spec` names another part of Figure 4 among the examples; its folder may lie within the first one's, and the page then
shows both.

The last line of `run` and `plan` is one JSON object.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.experiments import COLUMNS, SqliteStore, Sweep, cells, estimate_time, make_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fewfire.experiments import Progress, Row, SweepRecord
    from fewfire.experiments.recipes import Judgement

EXAMPLES = Path(__file__).parent.parent / "examples"
ASKED = {"hours": 40.0, "hours_without_100000": 6.0}
WIDEST = 100_000


HEAD = """# Figure 4 of `pareto`

{runs} runs in {cells} cells: `benchmarks/figure4.py`, `examples/figure4_part.toml`. In the tables the per cent of runs whose
test error on 10,000 held-out examples falls to 10% within 10⁵ steps, by width (rows) and samples (columns); 50 runs per cell.

The paper's findings: (1) wide networks learn from few samples; (2) width never hurts; (3) the sparse start widens the
feasible regime, where the dense one no longer works; (4) success is not monotone in the samples. (2) and (3) are claimed of
time as well: steps until 10%, looked at every 2000, runs that never get there being the longest.

Each claim is judged within cells: width, start or samples differ, the rest is the same. Power is the probability with which
the test notices the effect named beside it."""


class StorePerProblem:
    """The stores of a folder as one: what `Sweep.run` and plans ask of a store."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._records: list[SweepRecord] = []
        self.stores: dict[str, SqliteStore] = {}
        for path in sorted(folder.glob("figure4-*.sqlite")):
            self.stores[path.name] = stack.enter_context(SqliteStore(path, write=True))

    def add(self, rows: list[Row]) -> None:
        """Each row goes to the store of its problem."""
        parts: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            problem = json.loads(row.setting)["problem"]
            parts[f"figure4-n{problem['n']}-k{problem['k']}.sqlite"].append(row)
        for name, part in parts.items():
            if name not in self.stores:
                self.stores[name] = self._stack.enter_context(SqliteStore(self._folder / name, write=True))
                for record in self._records:
                    self.stores[name].record_sweep(record)
            self.stores[name].add(part)

    def columns(self) -> dict[str, Any]:
        """Those of all stores; settings are numbered within each."""
        tables = [store.columns() for store in self.stores.values()]
        return {
            name: np.concatenate([table[name] for table in tables] or [np.array([], COLUMNS[name])]) for name in COLUMNS
        }

    def record_sweep(self, record: SweepRecord) -> None:
        """Every store notes the sweep that it holds a part of."""
        self._records.append(record)
        for store in self.stores.values():
            store.record_sweep(record)


@contextmanager
def unpacked(folder: Path, *, keep: bool) -> Iterator[StorePerProblem]:
    """The stores of a folder, opened; at the end they are packed again where they may have changed."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        for packed in folder.glob("figure4-*.sqlite.gz"):
            with gzip.open(packed) as source, (Path(place) / packed.stem).open("wb") as target:
                shutil.copyfileobj(source, target)
        try:
            with ExitStack() as stack:
                yield StorePerProblem(Path(place), stack)
        finally:
            for path in Path(place).glob("figure4-*.sqlite") if keep else ():
                with path.open("rb") as source, gzip.open(folder / f"{path.name}.gz", "wb", 5) as target:
                    shutil.copyfileobj(source, target)


class OutOfTime(Exception):
    """The go is over."""


def run(folder: Path, out: Path, seconds: float, spec: str, engine: str) -> int:
    sweep, start, told = Sweep.from_toml(EXAMPLES / spec), time.monotonic(), [time.monotonic()]
    state: Progress | None = None
    if out != folder and folder.exists():
        # Files that came back may be read-only; their copies must not be.
        shutil.copytree(folder, out, dirs_exist_ok=True, copy_function=shutil.copyfile)

    def progress(now: Progress) -> None:
        nonlocal state
        state = now
        if time.monotonic() - told[0] > 15:
            told[0] = time.monotonic()
            print(f"{now.done} of {now.total} runs, {now.seconds:.0f} s, {now.failed} failed", flush=True)
        if time.monotonic() - start > seconds:
            raise OutOfTime

    with unpacked(out, keep=True) as stores:
        try:
            sweep.run(stores, engine=engine, progress=progress)  # type: ignore[arg-type]
        except OutOfTime:
            print("time is up")
        table = summary(stores)
    (out / "figure4.json").write_text(json.dumps(table, separators=(",", ":")) + "\n")
    assert state is not None
    done = {"done": state.done, "total": state.total, "ran": state.ran, "failed": state.failed}
    sizes = {path.name: path.stat().st_size for path in sorted(out.glob("figure4-*.sqlite.gz"))}
    print(
        json.dumps(
            {"name": "figure4", **done, "seconds": round(state.seconds, 1), "engine": state.engine, "bytes": sizes}
        )
    )
    return int(state.failed > 0)


def summary(stores: StorePerProblem) -> list[dict[str, Any]]:
    """One entry per cell; `steps` is the median of the runs that succeeded, `taken` the mean of all.

    `times` has pairs: so many steps, and how many runs succeeded after as many.
    """
    found = []
    for store in stores.stores.values():
        columns = store.columns()
        good = (columns["status"] == "done") & (columns["best_test_error"] <= 0.1)
        for cell in cells(store, 0.1):
            mine = columns["setting"] == cell.setting.id
            reached = columns["steps"][mine & good]
            problem = cell.setting.problem
            found.append(
                {
                    "n": problem["n"],
                    "k": problem["k"],
                    "start": cell.setting.start["name"],
                    "width": cell.setting.width,
                    "samples": cell.setting.samples or "online",
                    "trials": cell.runs,
                    "successes": cell.successes,
                    "diverged": cell.diverged,
                    "failed": cell.failed,
                    "steps": int(np.median(reached)) if len(reached) else None,
                    "taken": round(float(columns["steps"][mine].mean())),
                    "times": np.transpose(np.unique(reached, return_counts=True)).tolist(),
                }
            )
    return sorted(found, key=order_of)


def order_of(entry: dict[str, Any]) -> tuple[Any, ...]:
    return entry["n"], entry["k"], entry["start"], entry["width"], samples_of(entry)


def samples_of(entry: dict[str, Any]) -> int:
    """Fresh examples count as more than any set."""
    return 10**9 if entry["samples"] == "online" else int(entry["samples"])


def plan(folder: Path, spec: str, engine: str) -> int:
    """GPU-hours of a spec, width by width, with and without early stops as the stores of the folder have them."""
    whole = Sweep.from_toml(EXAMPLES / spec)
    figures: dict[str, Any] = {}
    with unpacked(folder, keep=False) as stores:
        for width in sorted({width for _, width in whole.networks}):
            part = replace(whole, networks=tuple(network for network in whole.networks if network[1] == width))
            told = estimate_time(part, make_plan(part), engine, measured=list(stores.stores.values()))
            stopping = told.stopping_device_hours
            figures[str(width)] = {"hours": told.device_hours, "stopping": stopping}
            less = "" if stopping is None else f", {stopping:.3f} with early stops as in {told.measured_runs} runs"
            print(f"width {width}: {told.device_hours:.3f} GPU-hours{less}", flush=True)
    hours = sum(figure["hours"] for figure in figures.values())
    without = sum(figure["hours"] for width, figure in figures.items() if int(width) < WIDEST)
    stops = [figure["stopping"] for figure in figures.values()]
    total = {"hours": round(hours, 2), "hours_without_100000": round(without, 2)}
    early = None if None in stops else round(sum(stops), 2)
    rounded = {
        width: {key: value and round(value, 4) for key, value in figure.items()} for width, figure in figures.items()
    }
    print(
        json.dumps(
            {
                "name": "figure4_plan",
                "runs": len(whole),
                **total,
                "with_early_stops": early,
                "asked": ASKED,
                "widths": rounded,
            }
        )
    )
    return int(any(total[name] > ASKED[name] for name in ASKED))


def page(folder: Path, out: Path) -> int:
    """The summary of all stores below a folder and a page about it, judged by the frontier recipe's tests and more."""
    table: list[dict[str, Any]] = []
    for place in sorted({path.parent for path in folder.rglob("figure4-*.sqlite.gz")}):
        with unpacked(place, keep=False) as stores:
            table += summary(stores)
    table.sort(key=order_of)
    (out / "figure4.json").write_text(json.dumps(table, separators=(",", ":")) + "\n")
    problems: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for entry in table:
        problems[entry["n"], entry["k"]].append(entry)
    seen: dict[str, dict[str, list[str]]] = defaultdict(lambda: {"seen": [], "not seen": []})
    lines = [HEAD.format(runs=sum(entry["trials"] for entry in table), cells=len(table))]
    for (n, k), entries in sorted(problems.items()):
        lines.append(f"## ({n}, {k})-parity")
        for start in sorted({entry["start"] for entry in entries}):
            lines.append(f"{start} start:\n\n" + grid([entry for entry in entries if entry["start"] == start]))
        full = [{**entry, "samples": samples_of(entry), "steps": steps_of(entry)} for entry in complete(entries)]
        if len({entry["width"] for entry in full}) < 3:
            lines.append("Not judged: fewer than three widths are complete.")
            continue
        rows = []
        for entry in judgements(full):
            seen[entry.claim]["seen" if entry.passed else "not seen"].append(f"({n}, {k})")
            asked = f"{entry.value:.2g}, {entry.rule} {entry.threshold:g}"
            verdict = "yes" if entry.passed else "**no**"
            rows.append(f"| {entry.claim} | {entry.statistic} | {asked} | {entry.effect} | {entry.power} | {verdict} |")
        head = ("claim", "judged by", "value", "effect (95%)", "power", "seen")
        lines.append("\n".join([f"| {' | '.join(head)} |", "| --- " * len(head) + "|", *rows]))
    if seen:
        told = (
            f"| {claim} | {' '.join(where['seen'])} | {' '.join(where['not seen'])} |" for claim, where in seen.items()
        )
        lines.append("## Claim by claim\n\n| claim | seen on | not seen on |\n| --- | --- | --- |\n" + "\n".join(told))
    (out / "figure4.md").write_text("\n\n".join(lines) + "\n")
    return 0


def judgements(rows: list[dict[str, Any]]) -> list[Judgement]:
    """The frontier recipe's claims; those on time at other widths; and the two halves of finding (4)."""
    from fewfire.experiments.recipes.pareto import _claims as claims  # SciPy
    from fewfire.experiments.recipes.pareto.frontier import judge

    widths = sorted({row["width"] for row in rows})
    narrow = [width for width in widths if width < claims.LARGE]
    return [
        *judge(rows),
        *([claims.sparse_saves_time(rows, narrow[0], narrow[-1])] if narrow else []),
        claims.width_saves_time(rows),
        claims.more_data_hurts(rows),
        claims.learning_comes_back(rows),
    ]


def steps_of(entry: dict[str, Any]) -> list[int | None]:
    """Steps of every run, None where it did not succeed."""
    reached = [steps for steps, count in entry["times"] for _ in range(count)]
    return [*reached, *[None] * (entry["trials"] - len(reached))]


def complete(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cells of widths that have every start and sample size, with as many trials each."""
    trials = max(entry["trials"] for entry in entries)
    cells_of = defaultdict(list)
    for entry in entries:
        if entry["trials"] - entry["failed"] == trials:
            cells_of[entry["width"]].append(entry)
    most = max((len(found) for found in cells_of.values()), default=0)
    return [entry for found in cells_of.values() if len(found) == most for entry in found]


def grid(entries: list[dict[str, Any]]) -> str:
    samples = sorted({samples_of(entry) for entry in entries})
    head = ["width", *("online" if m == 10**9 else f"{m:,}" for m in samples)]
    shares = {
        (entry["width"], samples_of(entry)): 100 * entry["successes"] / max(1, entry["trials"]) for entry in entries
    }
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    for width in sorted({entry["width"] for entry in entries}):
        told = (f"{shares[width, m]:.0f}" if (width, m) in shares else "" for m in samples)
        lines.append(f"| {width:,} | {' | '.join(told)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["run", "plan", "page"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--spec", default="")
    parser.add_argument("--engine", default="cuda")
    given = parser.parse_args()
    if given.verb == "run":
        return run(
            given.folder, given.out or given.folder, given.seconds, given.spec or "figure4_part.toml", given.engine
        )
    if given.verb == "plan":
        return plan(given.folder, given.spec or "figure4.toml", given.engine)
    return page(given.folder, given.out or given.folder)


if __name__ == "__main__":
    sys.exit(main())

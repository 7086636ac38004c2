"""What sweeps cost on top of training, and how large stores behave.

* Overhead: 2000 runs of width 100 as a sweep (spec, hashes, drawing, processes, store) against the engine alone on the
  same runs drawn beforehand, half of them before the sweep and half after; asked for: at most 5% more processor time,
  and 5% more on the clock, which counts only when nothing else uses the machine.
* Planning 100,000 runs of the (50, 3)-parity, m = 1000, width 100, and describing each: asked for: under 2 s of processor
  time and 200 MB.
* A store of 200,000 rows opens, plans, aggregates and gives histories in under 30 s and 2 GiB.

    python benchmarks/sweep.py
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from fewfire.engines import CpuEngine
from fewfire.sweeps import MemoryStore, SqliteStore, Sweep, cells, export, make_plan

if TYPE_CHECKING:
    from collections.abc import Callable

CORES = len(os.sched_getaffinity(0))
RUNS, ROWS, TRIALS = 2000, 200_000, 100
ASKED = {"overhead": 0.05, "seconds": 30.0, "gib": 2.0, "plan_seconds": 2.0, "plan_megabytes": 200.0}
PLANNED, REPEATS = 100_000, 3

FRONTIER = {
    "problem": {"name": "parity", "n": 50, "k": 3},
    "network": {"start": ["dense", {"name": "sparse", "s": 2}], "width": 100},
    "data": {"samples": [500, 1000]},
    "training": {"steps": 10_000, "learning_rate": 0.1, "weight_decay": 0.01, "evaluate": 1000},
    "trials": RUNS // 4,
}
LARGE = {
    "problem": {"name": "parity", "n": 50, "k": 3},
    "network": {"start": ["dense", {"name": "sparse", "s": 2}], "width": {"log": [10, 10_000], "points": 25}},
    "data": {"samples": {"log": [100, 10_000], "points": 40}},
    "training": {"steps": 20_000, "learning_rate": 0.1, "weight_decay": 0.01, "evaluate": 500},
    "trials": TRIALS,
}


def clocks() -> tuple[float, float]:
    """Seconds on the clock, and of processor time of this process and of its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return time.perf_counter(), sum(one.ru_utime + one.ru_stime for one in used)


def overhead(folder: Path) -> dict[str, float]:
    specs = list(Sweep.from_dict(FRONTIER).runs())
    alone, seconds = [0.0, 0.0], [0.0, 0.0]
    for half in (specs[: RUNS // 2], None, specs[RUNS // 2 :]):
        runs = [spec.describe() for spec in half] if half else []
        start = clocks()
        if half:
            CpuEngine().train(runs)
        else:
            state = Sweep.from_dict(FRONTIER).run(folder / "runs.sqlite", engine="cpu")
            assert state.ran == RUNS and state.failed == 0 and state.executor == "processes"
        spent = alone if half else seconds
        spent[:] = [total + end - begin for total, begin, end in zip(spent, start, clocks(), strict=True)]
    clock, processor = (mine / theirs - 1 for mine, theirs in zip(seconds, alone, strict=True))
    print(f"{RUNS} runs: engine alone {alone[0]:.1f} s ({alone[1]:.1f} s of processor time), "
          f"as a sweep {seconds[0]:.1f} s ({seconds[1]:.1f} s): {clock:+.1%} on the clock, {processor:+.1%} of processor time")  # fmt: skip
    return {"clock": clock, "processor": processor}


def planning(answers: multiprocessing.SimpleQueue[dict[str, float]]) -> None:
    """In a process of its own, whose peak memory is then that of planning."""
    spec = {
        "problem": {"name": "parity", "n": 50, "k": 3},
        "network": {"start": {"name": "sparse", "s": 2}, "width": 100},
        "data": {"samples": 1000},
        "training": {"steps": 100_000, "batch_size": 32},
        "trials": PLANNED,
    }
    took = []
    for _ in range(REPEATS):
        start = time.process_time()
        sweep = Sweep.from_dict(spec)
        runs = [sweep.run_at(int(number)).describe() for number in make_plan(sweep).pending]
        took.append(time.process_time() - start)
        assert runs[0].sample is not None and runs[-1].sample is not None
        assert len({run.stream.key for run in runs}) == PLANNED
        del runs
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answers.put({"plan_seconds": sorted(took)[REPEATS // 2], "plan_megabytes": megabytes})


def apart(work: Callable[..., None], *arguments: object) -> dict[str, float]:
    """What a function answers in a process of its own."""
    context = multiprocessing.get_context("spawn")
    answers = context.SimpleQueue()
    process = context.Process(target=work, args=(*arguments, answers))
    process.start()
    figures: dict[str, float] = answers.get()
    process.join()
    return figures


def fill(path: Path) -> float:
    """Write 200,000 rows that look like those of a sweep; gives the seconds."""
    sweep, start = Sweep.from_dict(LARGE), time.perf_counter()
    once = MemoryStore()
    replace(Sweep.from_dict(FRONTIER), trials=1).run(once, engine="cpu", executor="inline")
    like = next(iter(once.rows()))
    like = replace(like, history=type(like.history)(*(curve.repeat(2)[:41] for curve in vars(like.history).values())))
    with SqliteStore(path, write=True) as store:
        rows = []
        for spec in sweep.runs():
            rows.append(replace(like, hash=spec.hash, setting=spec.setting, trial=spec.trial,
                                best_test_error=(spec.trial % 10) / 20))  # fmt: skip
            if len(rows) == 1000:
                store.add(rows)
                rows = []
        store.add(rows)
    return time.perf_counter() - start


def read(path: Path, answers: multiprocessing.SimpleQueue[dict[str, float]]) -> None:
    """In a process of its own, whose peak memory is then that of reading."""
    times = [time.perf_counter()]
    with SqliteStore(path) as store:
        sweep = Sweep.from_dict(LARGE)
        times.append(time.perf_counter())
        plan = make_plan(sweep, store)
        assert plan.finished == ROWS and not len(plan.pending)
        times.append(time.perf_counter())
        table = cells(store, 0.1)
        assert len(table) == ROWS // TRIALS and all(cell.successes == 30 for cell in table)
        times.append(time.perf_counter())
        curves = [row.history.test_error[-1] for cell in table[::100] for row in store.rows(cell.setting.id)]
        assert len(curves) == ROWS // 100
        times.append(time.perf_counter())
        report = times[-1] - times[0]
        export(store, path.with_suffix(".csv"))
        times.append(time.perf_counter())
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    parts = dict(
        zip(("open", "plan", "aggregate", "histories", "csv"), (b - a for a, b in pairwise(times)), strict=True)
    )
    answers.put({"seconds": report, "gib": gib} | parts)


def large_store(folder: Path) -> dict[str, float]:
    path = folder / "large.sqlite"
    filled = fill(path)
    figures = apart(read, path)
    parts = ", ".join(f"{name} {figures[name]:.2f} s" for name in ("open", "plan", "aggregate", "histories"))
    print(f"{ROWS} rows: {path.stat().st_size / 2**20:.0f} MiB written in {filled:.1f} s; {parts}: {figures['seconds']:.1f} s "
          f"and {figures['gib']:.2f} GiB; CSV {figures['csv']:.1f} s")  # fmt: skip
    return figures | {"fill": filled}


def main() -> int:
    quiet = os.getloadavg()[0] < 0.3 * CORES
    with tempfile.TemporaryDirectory() as folder:
        cost, store, plan = overhead(Path(folder)), large_store(Path(folder)), apart(planning)
    print(f"{PLANNED:,} runs planned and described in {plan['plan_seconds']:.2f} s of processor time (median of {REPEATS}), "
          f"{plan['plan_megabytes']:.0f} MB at most")  # fmt: skip
    judged = max(cost.values()) if quiet else cost["processor"]
    missed = judged > ASKED["overhead"] or any(
        (store | plan)[name] > asked for name, asked in ASKED.items() if name != "overhead"
    )
    figures = {name: round(value, 3) for name, value in (cost | store | plan).items()}
    print(
        json.dumps({"name": "sweep", "ratio": round(1 + judged, 3), "quiet": quiet, "figures": figures, "asked": ASKED})
    )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

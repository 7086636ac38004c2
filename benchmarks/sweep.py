"""What sweeps cost on top of training, and how large stores behave.

* Overhead: 2000 runs of width 100 as a sweep (spec, hashes, drawing, processes, store) against the engine alone on the
  same runs drawn beforehand, half of them before the sweep and half after; asked for: at most 5% more processor time,
  and 5% more on the clock, which counts only when nothing else uses the machine.
* Planning 100,000 runs of the (50, 3)-parity, m = 1000, width 100, and describing each: asked for: under 2 s of processor
  time and 200 MB.
* A store of 200,000 rows opens, plans, aggregates and gives histories in under 30 s and 2 GiB.
* `dask`: what a million runs cost besides training, through a Dask scheduler and eight workers on this machine. Their engine
  answers at once, so that hashes, specs, messages, rows and the store are all that is measured; asked for: 3000 runs per
  second, sweep and scheduler each below 2 GiB, then the store's page in 5 s and its `status` in 1 s. The last lines give the
  processor time per run of each part, and of hashing and storing alone.

    python benchmarks/sweep.py
    python benchmarks/sweep.py dask [--runs 1000000]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from fewfire.engines import Counters, CpuEngine, History, Result, register_engine
from fewfire.sweeps import MemoryStore, SqliteStore, Sweep, cells, export, make_plan

if TYPE_CHECKING:
    from collections.abc import Callable

CORES = len(os.sched_getaffinity(0))
RUNS, ROWS, TRIALS = 2000, 200_000, 100
ASKED = {"overhead": 0.05, "seconds": 30.0, "gib": 2.0, "plan_seconds": 2.0, "plan_megabytes": 200.0}
PLANNED, REPEATS, WORKERS = 100_000, 3, 8

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


class InstantEngine:
    """Answers at once: a curve of eleven records that all runs share, a success for two trials of three."""

    name = "instant"
    draws_problems = frozenset({"parity"})
    draws_starts = frozenset({"dense", "sparse"})
    batch_cost, batch_runs, side_by_side = 1e18, 512, False

    def unusable(self) -> str | None:
        """It runs everywhere."""
        return None

    def train(self, runs, *, keep_networks=True, on_divergence="raise", progress=None) -> list[Result]:
        """A result per run."""
        histories = [History.of([(1000 * i, 0.5, 0.5, end, 1, 1, 0.5, 0.5) for i in range(11)]) for end in (0.01, 0.4)]
        work = Counters(10_000, 320_000, 10**7, 10**9)
        return [Result(None, histories[i % 3 == 0], work, "steps", self.name) for i, _ in enumerate(runs)]


def make_instant(threads: int | None) -> InstantEngine:
    return InstantEngine()


def used(pids: list[int]) -> dict[int, tuple[float, float]]:
    """Seconds of processor time and GiB at the peak of processes, where the system shows them."""
    found = {}
    for pid in pids:
        numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        peak = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
        found[pid] = sum(map(int, numbers[11:13])) / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) / 2**20
    return found


def through_dask(runs: int) -> int:
    """A sweep of so many runs through a scheduler and eight workers, then its store's page and status."""
    from sweep import make_instant as found_by_workers  # under a name that they can import too

    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    register_engine("instant", found_by_workers)
    sweep = replace(Sweep.from_dict(LARGE), trials=runs // Sweep.from_dict(LARGE).settings)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ends:
        path, contact = Path(folder) / "runs.sqlite", Path(folder) / "scheduler.json"
        scheduler, worker = ("distributed.cli.dask_scheduler", "distributed.cli.dask_worker")
        begin = [
            sys.executable,
            "-m",
            scheduler,
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(contact),
        ]
        commands = [begin] + [
            [
                sys.executable,
                "-m",
                worker,
                "--host",
                "127.0.0.1",
                "--nthreads",
                "1",
                "--no-dashboard",
                "--scheduler-file",
                str(contact),
            ]
        ] * WORKERS
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        processes = [ends.enter_context(subprocess.Popen(command, **quiet)) for command in commands]
        for process in processes:
            ends.callback(process.terminate)
        while not contact.exists():
            time.sleep(0.1)
        address = json.loads(contact.read_text())["address"]
        pids = [os.getpid(), *(process.pid for process in processes)]
        start, before = time.perf_counter(), used(pids)
        state = sweep.run(path, engine="instant", executor=address)
        seconds, after = time.perf_counter() - start, used(pids)
        assert state.ran == len(sweep) and state.failed == 0, state
        head, middle, *others = (1e6 * (after[pid][0] - before[pid][0]) / state.ran for pid in pids)
        gib = [after[pid][1] for pid in pids[:2]]
        first = time.perf_counter()
        specs = [sweep.run_at(number) for number in range(20_000)]
        assert len({spec.hash for spec in specs}) == len(specs)
        hashing = 1e6 * (time.perf_counter() - first) / len(specs)
        with SqliteStore(path) as store, SqliteStore(Path(folder) / "copy.sqlite", write=True) as copy:
            rows = [row for row, _ in zip(store.rows(), range(20_000), strict=False)]
            first = time.perf_counter()
            for number in range(0, len(rows), 512):
                copy.add(rows[number : number + 512])
            storing = 1e6 * (time.perf_counter() - first) / len(rows)
        ends.close()
        times = {}
        for name, words in {"status": ["sweep", "status"], "page": ["report"]}.items():
            out = ["-o", str(Path(folder) / "page.html")] if name == "page" else []
            first = time.perf_counter()
            subprocess.run([sys.executable, "-m", "fewfire", *words, str(path), *out], check=True, **quiet)
            times[name] = time.perf_counter() - first
        size = path.stat().st_size / 2**20
    figures = {
        "runs": state.ran,
        "per_second": state.ran / seconds,
        "head_gib": gib[0],
        "scheduler_gib": gib[1],
        "page_seconds": times["page"],
        "status_seconds": times["status"],
    }
    kept = figures["per_second"] >= 3000 and max(gib) < 2 and times["page"] <= 5 and times["status"] <= 1
    print(
        f"{state.ran} runs by {WORKERS} workers and a scheduler on {CORES} cores: {seconds:.0f} s; a store of {size:.0f} MiB"
    )
    print(f"processor time per run, µs: sweep {head:.0f}, of which hashes {hashing:.0f} and the store {storing:.0f} (on the clock, "
          f"alone); scheduler {middle:.0f}; all workers {sum(others):.0f}")  # fmt: skip
    parts = {"sweep": head, "hashing": hashing, "storing": storing, "scheduler": middle, "workers": sum(others)}
    shown = {name: round(value, 2) for name, value in figures.items()}
    microseconds = {name: round(value) for name, value in parts.items()}
    ratio = round(figures["per_second"] / 3000, 2)
    print(json.dumps({"name": "sweep dask", "ratio": ratio, "figures": shown, "microseconds": microseconds}))
    return int(not kept)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("machinery", "dask"), default="machinery")
    parser.add_argument("--runs", type=int, default=10**6)
    chosen = parser.parse_args()
    if chosen.what == "dask":
        return through_dask(chosen.runs)
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

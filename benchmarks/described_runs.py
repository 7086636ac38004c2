"""Planning 100,000 runs of the (50, 3)-parity, m = 1000, width 100, and cutting them into batches of described runs.

Asked for: under 2 s (of processor time) and under 200 MB. There is no rival: the figure is what a sweep costs before it trains anything.

    python benchmarks/described_runs.py
"""

from __future__ import annotations

import json
import resource
import time

from fewfire.engines import ReferenceEngine
from fewfire.experiments import Sweep, make_plan
from fewfire.experiments.run import batches

RUNS, REPEATS, SECONDS, MEGABYTES = 100_000, 3, 2.0, 200.0


class Device(ReferenceEngine):
    """An engine that takes thousands of runs at a time."""

    batch_cost, batch_runs, side_by_side = float("inf"), 4096, True


def main() -> int:
    """Time, memory, and the check that nothing is missing and nothing is drawn."""
    spec = {
        "problem": {"name": "parity", "n": 50, "k": 3},
        "network": {"start": {"name": "sparse", "s": 2}, "width": 100},
        "data": {"samples": 1000},
        "training": {"steps": 100_000, "batch_size": 32},
        "trials": RUNS,
    }
    took = []
    for _ in range(REPEATS):
        start = time.process_time()
        sweep = Sweep.from_dict(spec)
        plan = make_plan(sweep)
        specs = (sweep.run_at(int(number)) for number in plan.pending)
        described = [[one.describe() for one in batch] for batch in batches(specs, Device())]
        took.append(time.process_time() - start)
        runs = [run for batch in described for run in batch]
        assert len(runs) == RUNS and not any(run.is_drawn for run in (runs[0], runs[-1]))
        assert len({run.stream.key for run in runs}) == RUNS
        del described, runs
    seconds = sorted(took)[REPEATS // 2]
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{RUNS:,} runs planned and described in {seconds:.2f} s of processor time (median of {REPEATS}), {megabytes:.0f} MB at most"
    )
    result = {"name": "described_runs", "seconds": seconds, "megabytes": megabytes, "ratio": SECONDS / seconds}
    print(json.dumps(result))
    return 0 if seconds < SECONDS and megabytes < MEGABYTES else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""What does a sweep on the GPU cost on top of its steps?

(50, 3)-parity, widths 10 … 1000, 200 … 2000 samples, dense and sparse start, 50 trials, at most 10⁵ steps, early stops:
the time of the whole sweep with its draws, checkpoints, rows and store against the steps that its runs took, at the
microseconds per step and run that `train_cuda.py` measures for that width in this very run. Asked for: at most 1.25
times. Kernels are compiled before, as they are once per machine.

    python benchmarks/sweep_cuda.py
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import train_cuda
from fewfire._cuda import current_device
from fewfire.engines import get_engine
from fewfire.engines.cuda._batch import Batch
from fewfire.experiments import SqliteStore, Sweep

ASKED = 1.25
WIDTHS = (10, 30, 100, 300, 1000)
SPEC: dict[str, Any] = {
    "problem": {"name": "parity", "n": 50, "k": 3},
    "network": {"start": ["dense", {"name": "sparse", "s": 2}], "width": list(WIDTHS)},
    "data": {"samples": [200, 300, 600, 1000, 2000]},
    "training": {"steps": 100_000, "learning_rate": 0.1, "weight_decay": 0.01, "evaluate": 1000, "stop_error": 0.1},
    "trials": 50,
}


def microseconds() -> dict[int, float]:
    """Per step and run, for each width."""
    found = {}
    for width in WIDTHS:
        train_cuda.ROWS.setdefault((50, width), (512, 4000, 0, 0.0, 0.0, 0.0))
        found[width], shape, runs = train_cuda.measure(50, width)
        print(f"(50, {width}) × {runs}: {found[width]:.5f} µs per step and run; {shape}", flush=True)
    return found


def watched(batch: Batch, progress: Any, busy: list[float], train: Any = Batch.train) -> None:
    """A batch that notes the seconds for which it keeps the device busy."""
    train(batch, progress)
    busy.append(batch.seconds)


def train(sweep: Sweep, path: Path) -> tuple[float, float, dict[int, int], int]:
    """Seconds of the sweep and of the device, the steps that the runs of each width took, and how many runs there were."""
    busy: list[float] = []
    Batch.train = lambda batch, progress: watched(batch, progress, busy)  # type: ignore[method-assign]
    start = time.perf_counter()
    state = sweep.run(path, engine="cuda")
    seconds = time.perf_counter() - start
    assert state.failed == 0 and state.ran == len(sweep), state
    with SqliteStore(path) as store:
        columns, steps = store.columns(), dict.fromkeys(WIDTHS, 0)
        for setting in store.settings():
            steps[setting.width] += int(columns["steps"][columns["setting"] == setting.id].sum())
    return seconds, sum(busy), steps, state.ran


def main() -> int:
    pace, sweep = microseconds(), Sweep.from_dict(SPEC)
    with tempfile.TemporaryDirectory() as folder:
        # The first runs of every width load what is compiled; they are no part of the measured sweep.
        get_engine("cuda").train([sweep.run_at(cell).describe() for cell in range(sweep.settings)], keep_networks=False)
        seconds, busy, steps, runs = train(sweep, Path(folder) / "runs.sqlite")
    floor = sum(1e-6 * steps[width] * pace[width] for width in WIDTHS)
    share = sum(steps.values()) / (runs * 100_000)
    print(
        f"{runs} runs took {share:.0%} of their steps: {seconds:.2f} s, of which steps alone {floor:.2f} s: {seconds / floor:.2f}×; the device was busy for {busy:.2f} s"
    )
    told = {
        "ratio": round(seconds / floor, 3),
        "asked": ASKED,
        "seconds": round(seconds, 2),
        "steps_seconds": round(floor, 2),
        "device_seconds": round(busy, 2),
    }
    paces = {width: round(value, 5) for width, value in pace.items()}
    print(
        json.dumps(
            {"name": "sweep_cuda", **told, "runs": runs, "device": current_device().name, "us": paces, "steps": steps}
        )
    )
    return int(seconds > ASKED * floor)


if __name__ == "__main__":
    sys.exit(main())

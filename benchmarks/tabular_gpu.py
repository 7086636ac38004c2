"""Is a default fit of 10,000 × 50 on a GPU four times as fast as on all threads of its machine?

First the same steps by both engines: gradient descent on the three variants of a periodic encoding, probabilities within 1e-4. Then default fits
by engine="cpu" with `--threads` threads and by engine="torch", in turns, median of `--repeats`; both must predict fresh rows about as well (within a
point). `--profile` tells where the time of one fit by each engine goes; phases overlap where threads do, and nest where one calls another. The exit
status is 1 when a part fails, the engines disagree, or the GPU is less than four times as fast.

    python benchmarks/tabular_gpu.py --profile
    python benchmarks/tabular_gpu.py --device cpu --rows 500    # a trial run without a GPU
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import sys
import threading
import time
import traceback
from collections import defaultdict

import numpy as np
from sklearn.datasets import make_classification

ASKED = 4.0
ENGINES = ("cpu", "torch")
PHASES = {
    "_base": ["columns_for", "SparseInitBase._begin", "SparseInitBase._finish"],
    "_preprocessing": ["EncodedTable._encode"],
    "_examples": ["explained_shares"],
    "_ensemble": [
        "Ensemble._hold_trial",
        "Ensemble._train_groups",
        "Ensemble._cool_down",
        "Ensemble._weigh",
        "Ensemble._divide",
        "Ensemble._grow_trees",
        "mixing_weights",
        "best_temperature",
        "tree_shares",
    ],
    "_race": ["Race.__call__"],
    "_group": ["NetworkGroup.train", "NetworkGroup._network", "NetworkGroup._set_weights"],
    "_held_out": ["HeldOut.__init__", "HeldOut.pool", "HeldOut.score"],
    "_training": ["TrainedNetwork.advance", "TrainedNetwork.train_epoch", "TrainedNetwork.values"],
    "_trees": ["ExtraTrees.train", "Boosting.train", "ExtraTrees._fit", "Boosting._fit", "Boosting._grow"],
    "_torch": ["advance_together", "TorchTrainer.keep", "TorchTrainer.release", "BatchRunner.__call__"],
    "_device_batch": [
        "DeviceBatch.__init__",
        "DeviceBatch.advance",
        "DeviceBatch._stack",
        "DeviceBatch._prepare",
        "DeviceBatch._drop",
        "NetworkSeat.draw",
        "DeviceBatch._launch",
        "DeviceBatch.leave",
        "DeviceBatch._fill",
        "DeviceBatch._fill_beside",
        "DeviceBatch._read",
    ],
}


def table(rows: int, columns: int):
    """Training rows with their labels, and 2000 fresh rows with theirs."""
    X, y = make_classification(rows + 2000, columns, n_informative=min(8, columns - 2), flip_y=0.05, random_state=0)
    return X[:rows], y[:rows], X[rows:], y[rows:]


def disagreement() -> float:
    """Largest difference of probabilities after the same steps; few epochs: where a row meets a kink, paths part."""
    import fewfire as ff
    from fewfire.tabular import SGD

    X, y, *_ = table(601, 10)
    settings = {
        "hidden": (64, 16),
        "members": 2,
        "scaling": "periodic",
        "trees": False,
        "optimiser": SGD(0.05, batch_size=50, epochs=5),
        "random_state": 0,
    }
    ours, theirs = (ff.SparseInitClassifier(engine=engine, **settings).fit(X, y) for engine in ENGINES)
    return float(np.abs(ours.predict_proba(X) - theirs.predict_proba(X)).max())


def fit(engine: str, threads: int, data, **settings):
    """Seconds of a default fit, the share of fresh rows that are right, and the model."""
    import fewfire as ff

    X, y, fresh, labels = data
    model = ff.SparseInitClassifier(engine=engine, random_state=0, n_jobs=threads, **settings)
    begin = time.perf_counter()
    model.fit(X, y)
    taken = time.perf_counter() - begin
    return taken, float(np.mean(model.predict(fresh) == labels)), model


class Phases:
    """Seconds and calls of functions of fewfire.tabular while it is entered."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self.spans: dict[str, tuple[float, float]] = {}
        self.lock, self.before, self.begin = threading.Lock(), [], 0.0

    def __enter__(self) -> Phases:
        import importlib

        self.begin = time.perf_counter()
        for file, names in PHASES.items():
            module = importlib.import_module(f"fewfire.tabular.{file}")
            for name in names:
                owner, _, last = name.rpartition(".")
                holder = getattr(module, owner, None) if owner else module
                found = getattr(holder, last, None)
                if found is not None:
                    self.before.append((holder, last, found))
                    setattr(holder, last, self.timed(f"{file}.{name}", found))
        return self

    def __exit__(self, *_: object) -> None:
        for holder, name, found in reversed(self.before):
            setattr(holder, name, found)

    def timed(self, name: str, function):
        """The function, its time taken."""

        @functools.wraps(function)
        def call(*args, **kwargs):
            begin = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                end = time.perf_counter()
                with self.lock:
                    self.seconds[name] += end - begin
                    self.calls[name] += 1
                    first = self.spans.get(name, (begin - self.begin, 0.0))[0]
                    self.spans[name] = first, end - self.begin

        return call

    def tell(self) -> None:
        """Print a table, longest first."""
        print(f"  {'phase':48s} {'calls':>6s} {'seconds':>8s}  first begin, last end")
        for name, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
            first, last = self.spans[name]
            print(f"  {name:48s} {self.calls[name]:6d} {seconds:8.3f}  {first:6.2f} {last:6.2f}")


def profile(threads: int, data, **settings) -> None:
    for engine in ENGINES:
        with Phases() as phases:
            taken, right, model = fit(engine, threads, data, **settings)
        print(f"{engine}: {taken:.2f} s, {right:.1%} right", flush=True)
        phases.tell()
        print(model.summary(), flush=True)


def profile_kernels(threads: int, data) -> None:
    """What the device did, by kernel."""
    import torch
    from torch.profiler import ProfilerActivity

    if not torch.cuda.is_available():
        return
    with torch.profiler.profile(activities=[ProfilerActivity.CUDA]) as seen:
        taken, *_ = fit("torch", threads, data, trees=False)
    print(f"torch, kernels recorded: {taken:.2f} s")
    print(seen.key_averages().table(sort_by="self_device_time_total", row_limit=32, max_name_column_width=90))


def measure(repeats: int, threads: int, data, **settings) -> dict[str, dict[str, float]]:
    taken: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    right: dict[str, float] = {}
    for _ in range(repeats):
        for engine in ENGINES:
            seconds, right[engine], model = fit(engine, threads, data, **settings)
            taken[engine].append(seconds)
            spent = ", ".join(f"{name} {value:.2f}" for name, value in model._ensemble.seconds.items())
            print(f"  {engine}: {seconds:.2f} s ({spent}), {right[engine]:.2%} right", flush=True)
    return {engine: {"seconds": statistics.median(taken[engine]), "right": right[engine]} for engine in ENGINES}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--threads", type=int, default=-1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    if chosen.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import torch

    from fewfire._cores import job_count
    from fewfire._extension import load

    if chosen.device == "cuda" and not torch.cuda.is_available():
        print("there is no GPU; --device cpu is a trial run without one", file=sys.stderr)
        return 1
    device = torch.cuda.get_device_name() if chosen.device == "cuda" else "processor"
    threads = job_count(None if chosen.threads == 1 else chosen.threads)
    found: dict[str, object] = {"name": "tabular_gpu", "device": device, "threads": threads, "torch": torch.__version__}
    found |= {"extension": load() is not None, "rows": chosen.rows, "columns": chosen.columns}
    print(json.dumps(found), flush=True)
    data, failed = table(chosen.rows, chosen.columns), []

    def attempt(name: str, part):
        """What a part returns; its traceback, and on to the next, where it fails."""
        begin = time.perf_counter()
        print(f"== {name}", flush=True)
        try:
            return part()
        except Exception:
            traceback.print_exc(file=sys.stdout)
            failed.append(name)
            return None
        finally:
            print(f"   ({time.perf_counter() - begin:.1f} s)", flush=True)

    apart = attempt("the same steps", disagreement)
    print(f"probabilities differ by at most {apart}", flush=True)
    small = table(600, 10)
    for engine in ENGINES:  # all is loaded
        attempt(f"warm-up of {engine}", lambda engine=engine: fit(engine, threads, small))
    bare = attempt("without trees", lambda: measure(chosen.repeats, threads, data, trees=False))
    result = attempt("default fits", lambda: measure(chosen.repeats, threads, data))
    if chosen.profile:
        attempt("profile", lambda: profile(threads, data))
        attempt("profile without trees", lambda: profile(threads, data, trees=False))
        attempt("kernels", lambda: profile_kernels(threads, data))
    ratio, level = 0.0, False
    for name, figures in (("default", result), ("without_trees", bare)):
        if figures is not None:
            cpu, ours = (figures[engine] for engine in ENGINES)
            found[name] = {**figures, "ratio": round(cpu["seconds"] / ours["seconds"], 2)}
            if name == "default":
                ratio, level = cpu["seconds"] / ours["seconds"], abs(cpu["right"] - ours["right"]) <= 0.01
    print(json.dumps({**found, "disagreement": apart, "asked": ASKED, "failed": failed}))
    return int(bool(failed) or apart is None or apart > 1e-4 or not level or ratio < ASKED)


if __name__ == "__main__":
    sys.exit(main())

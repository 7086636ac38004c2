"""How fast does the CPU engine train, against JAX, PyTorch eager and scikit-learn's MLP?

Minibatch SGD on a two-layer ReLU network, batch 32, hinge loss (log loss for scikit-learn, which has no other),
(50, 3)-parity data. fewfire trains as many runs as there are cores, one core per run, and is charged wall time per step
and run; PyTorch trains one run on all cores, the way a script would; JAX some runs at once on all cores (`vmap`, `scan`, one
compiled function: `jax_microseconds` of train_cuda.py). Each is a user's throughput on this machine.
At the end one run on one thread, by processor time, on every instruction set that this processor has.
Asked: (n, width) = (50,100) 40×, (50,1000) 12×, (200,1000) 5×, (200,10000) 5× over PyTorch, and 5, 3, 3, 3× over the faster
of PyTorch and JAX, which is the headline.

    python benchmarks/train_cpu.py
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import warnings

import numpy as np
import torch
from sklearn.neural_network import MLPClassifier

import fewfire as ff
from fewfire.engines import CpuEngine, Phase, ReferenceEngine, Run, Schedule
from train_cuda import jax_microseconds

CORES = len(os.sched_getaffinity(0))
ASKED = {(50, 100): 40.0, (50, 1000): 12.0, (200, 1000): 5.0, (200, 10000): 5.0}
ASKED_OF_FASTEST = {(50, 100): 5.0, (50, 1000): 3.0, (200, 1000): 3.0, (200, 10000): 3.0}
JAX_RUNS = {(50, 100): 16, (50, 1000): 16, (200, 1000): 16, (200, 10000): 4}
STEPS = {(50, 100): 40_000, (50, 1000): 4000, (200, 1000): 1500, (200, 10000): 400}
REPEATS = 5


def setting(n: int, width: int, steps: int, seed: int) -> Run:
    X, y = ff.problems.Parity(n, 3).sample(1000, seed=seed)
    schedule = Schedule(Phase(steps, 0.1, weight_decay=0.01), evaluate=steps)
    return Run(ff.networks.init.dense()(n, width, seed=seed), schedule, X, y, seed=seed)


def check_same_training(n: int, width: int) -> int:
    """Neurons whose weights differ from the reference engine's by more than 1e-5, relatively, after 100 steps.

    A neuron whose score comes within rounding of 0 once may fire in one engine only, and then differs by one example's
    gradient; among millions of scores a few do.
    """
    run = setting(n, width, 100, 0)
    fast, slow = CpuEngine(1).train([run])[0].network, ReferenceEngine().train([run])[0].network
    difference = np.abs(fast.hidden - slow.hidden).max(axis=1) / np.abs(slow.hidden).max()
    return int(np.count_nonzero(difference > 1e-5))


def fewfire_seconds(n: int, width: int) -> float:
    steps = STEPS[n, width]
    runs = [setting(n, width, steps, seed) for seed in range(CORES)]
    start = time.perf_counter()
    CpuEngine(CORES).train(runs)
    return (time.perf_counter() - start) / (steps * CORES)


def torch_seconds(n: int, width: int) -> float:
    run, steps = setting(n, width, 1, 0), max(20, STEPS[n, width] // 40)
    X, y = torch.tensor(run.X.astype(np.float32)), torch.tensor(run.y)
    model = torch.nn.Sequential(torch.nn.Linear(n, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.01)
    for step in range(-10, steps):
        if step == 0:
            start = time.perf_counter()
        chosen = torch.randint(0, len(X), (32,))
        optimiser.zero_grad()
        torch.clamp(1 - y[chosen] * model(X[chosen])[:, 0], min=0).mean().backward()
        optimiser.step()
    return (time.perf_counter() - start) / steps


def sklearn_seconds(n: int, width: int) -> float:
    run, epochs = setting(n, width, 1, 0), 3 if width >= 10_000 else 10
    model = MLPClassifier((width,), solver="sgd", batch_size=32, learning_rate_init=0.1, momentum=0, alpha=0.01,
                          max_iter=epochs, tol=0, n_iter_no_change=10**6)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model.fit(run.X.astype(np.float32), run.y)
    return (time.perf_counter() - start) / (epochs * -(-len(run.X) // 32))


def gemm_peak() -> float:
    """GFLOP/s of a large float32 matrix product on all cores."""
    a = np.random.default_rng(0).random((3000, 3000), dtype=np.float32)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        a @ a
        times.append(time.perf_counter() - start)
    return 2 * 3000**3 / min(times) / 1e9


def alone() -> dict[str, float]:
    """µs per step of one run on one thread, by processor time."""
    found = {}
    for (n, width), steps in STEPS.items():
        run, times = setting(n, width, steps // 5, 0), []
        for _ in range(3):
            start = time.process_time()
            CpuEngine(1).train([run])
            times.append(time.process_time() - start)
        found[f"{n}x{width}"] = round(min(times) / (steps // 5) * 1e6, 1)
    return found


def by_instruction_set() -> dict[str, dict[str, float]]:
    """The same in a process each; instruction sets that this processor has not are refused there, and left out."""
    found = {}
    for name in ("baseline", "avx2", "avx512"):
        environment = {**os.environ, "FEWFIRE_ISA": name}
        done = subprocess.run([sys.executable, __file__, "--alone"], env=environment, capture_output=True, text=True)
        if done.returncode == 0:
            found[name] = json.loads(done.stdout)
            print(f"{name}, one thread, µs per step: {found[name]}")
    return found


def main() -> int:
    if sys.argv[1:] == ["--alone"]:
        print(json.dumps(alone()))
        return 0
    torch.set_num_threads(CORES)
    peak, figures, missed = gemm_peak(), {}, False
    print(f"{CORES} cores; float32 GEMM peak {peak:.0f} GFLOP/s; torch {torch.__version__} on {CORES} threads")
    for (n, width), asked in ASKED.items():
        apart = check_same_training(n, width)
        assert apart <= width // 1000, f"{apart} of {width} neurons differ from the reference engine"
        mine, theirs, sklearns, jaxes = [], [], [], []
        for _ in range(REPEATS):
            mine.append(fewfire_seconds(n, width))
            theirs.append(torch_seconds(n, width))
            sklearns.append(sklearn_seconds(n, width))
            jaxes.append(jax_microseconds(n, width, JAX_RUNS[n, width], max(20, STEPS[n, width] // 200)))
        ours, pytorch, sklearn = (statistics.median(times) * 1e6 for times in (mine, theirs, sklearns))
        jax = statistics.median(jaxes) if jaxes[0] is not None else None
        fastest = min(pytorch, jax or pytorch)
        # Products of a dense step: 32·n·width forward and as many backward, 2 operations each.
        share = 4 * 32 * n * width / (ours * 1e3) / peak
        print(f"n={n} width={width}: fewfire {ours:.2f} µs a step and run, JAX "
              f"{'not installed' if jax is None else f'{jax:.1f} ({jax / ours:.1f}×)'}, PyTorch {pytorch:.0f} ({pytorch / ours:.1f}×), "
              f"scikit-learn {sklearn:.0f} ({sklearn / ours:.1f}×); {share:.0%} of GEMM peak in dense-equivalent work; "
              f"asked {asked:.0f}× PyTorch, {ASKED_OF_FASTEST[n, width]:.0f}× the faster")  # fmt: skip
        figures[f"{n}x{width}"] = {"us": round(ours, 2), "torch_us": round(pytorch, 1), "ratio": round(pytorch / ours, 1),
                                   "jax_us": jax, "fastest_ratio": round(fastest / ours, 1),
                                   "sklearn_ratio": round(sklearn / ours, 1), "peak_share": round(share, 2), "asked": asked}  # fmt: skip
        missed |= pytorch / ours < asked or fastest / ours < ASKED_OF_FASTEST[n, width]
    worst = min(
        figure["fastest_ratio"] / ASKED_OF_FASTEST[pair] for pair, figure in zip(ASKED, figures.values(), strict=True)
    )
    print(
        json.dumps(
            {
                "name": "train_cpu",
                "ratio": round(worst, 2),
                "cores": CORES,
                "figures": figures,
                "instructions": by_instruction_set(),
            }
        )
    )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

"""How fast does the CUDA engine train many runs at once, does it agree with the cpu engine, what does a sweep add?

    python benchmarks/train_cuda.py [50x100 …]         # against PyTorch `bmm` in a CUDA graph, and JAX
    python benchmarks/train_cuda.py sweep              # a whole sweep against its steps alone
    python benchmarks/train_cuda.py agree cpu FILE     # a few minutes of one core; then, on the GPU:
    python benchmarks/train_cuda.py agree cuda FILE    # or jax, wherever that runs

Speed: minibatch SGD on two-layer ReLU networks, batch 32, hinge loss, weight decay, (n, 3)-parity data of 1000 examples,
drawn on the device; the device's seconds per step and run, as `CudaEngine.pace` measures them. Correctness first: weights
after 200 steps against the reference engine in float64. The rival is what a careful PyTorch user would write: all runs
stacked along the first axis, gradients by hand, updates in place, 50 steps to a graph. It has to come within 20% of the
figure it is known for. Asked: the ratios of ROWS. Where JAX is installed there is a second rival (`vmap` over runs, `scan` over steps,
float32 products), which is the faster one on an H200; the last line has the ratio to it.

Sweep: (50, 3)-parity, widths 10 … 1000, 200 … 2000 samples, dense and sparse start, 50 trials, at most 10⁵ steps, early
stops: the time of the whole sweep with its draws, checkpoints, rows and store against the steps that its runs took, at
the seconds per step measured in this very run. Asked: at most 1.25 times. Kernels are compiled before, as they are once per machine.

Agreement: 200 runs on each of ten cells of parities whose success lies between 0 and 1, on four layouts of the kernels,
training sets and fresh examples. Each cell is tested by Fisher's exact test, two-sided; the smallest p, times the number
of cells, has to be above 0.01 (Bonferroni). Both engines train the very same runs, so runs that end differently are
counted too. Two halves, because a machine with a GPU need not have the C++ part.
"""

from __future__ import annotations

import functools
import json
import statistics
import sys
import tempfile
import time
from math import comb, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from fewfire.engines import Phase, ReferenceEngine, Run, Sample, Schedule, Start, get_engine
from fewfire.networks import TwoLayer, init
from fewfire.problems import Parity
from fewfire.sweeps import RunSpec, SqliteStore, Sweep

try:
    import torch
except ImportError:  # `agree` needs none
    torch = None  # type: ignore[assignment]

# (n, width): steps, runs of the peer, µs the peer is known for, ratio asked and aimed at.
ROWS = {
    (50, 10): (4000, 1024, 0.093, 80.0, 150.0),
    (50, 100): (4000, 512, 0.25, 45.0, 80.0),
    (50, 1000): (2000, 256, 1.47, 28.0, 45.0),
    (200, 1000): (2000, 50, 4.0, 18.0, 30.0),
    (200, 10000): (1000, 16, 31.0, 12.0, 25.0),
    (200, 100000): (600, 4, 285.0, 5.0, 12.0),
}


def setting(n: int, width: int, steps: int, seed: int) -> Run:
    """One run, described."""
    schedule = Schedule(Phase(steps, 0.1, weight_decay=0.01), evaluate=steps)
    return Run(Start(init.dense(), n, width, seed), schedule, sample=Sample(Parity(n, 3), 1000, seed), seed=seed)


def neurons_apart(n: int, width: int, steps: int) -> int:
    """Neurons off by more than 1e-5 of the largest weight after `steps` steps, against float64.

    A neuron whose score comes within rounding of 0 once may fire on one side only and then differs by one example.
    """
    run = setting(n, width, steps, 0)
    fast = get_engine("cuda").train([run])[0].network
    drawn = run.drawn()
    start = drawn.network
    assert isinstance(start, TwoLayer)
    exact = TwoLayer(start.hidden.astype(np.float64), start.bias, start.output, start.offset)
    slow = ReferenceEngine().train([Run(exact, run.schedule, drawn.X, drawn.y, seed=run.seed)])[0].network
    difference = np.abs(fast.hidden - slow.hidden).max(axis=1) / np.abs(slow.hidden).max()
    return int(np.count_nonzero(difference > 1e-5))


def measure(n: int, width: int, steps: int) -> float:
    """Microseconds of the device per step and run."""
    return 1e6 * float(get_engine("cuda").pace(setting(n, width, steps, 0)).step)


def floor(n: int, width: int, products: float) -> float:
    """Microseconds per step and run that the products take at the measured ceiling: two forward, one backward."""
    return 3 * 32 * (n + 1) * width / (products * 1e6)


GRAPH_STEPS = 50
RATE, DECAY, BATCH, EXAMPLES = 0.1, 0.01, 32, 1000


class StackedRuns:
    """The rival: `runs` two-layer ReLU networks on (n, 3)-parity data, hinge loss."""

    def __init__(self, n: int, width: int, runs: int) -> None:
        torch.backends.cuda.matmul.allow_tf32 = False
        make = torch.Generator("cuda").manual_seed(1)
        self.X = torch.randint(0, 2, (runs, EXAMPLES, n), device="cuda", generator=make).float() * 2 - 1
        self.y = self.X[:, :, :3].prod(2, keepdim=True)
        self.W = (torch.rand((runs, n, width), device="cuda", generator=make) * 2 - 1) / n**0.5
        self.b = (torch.rand((runs, 1, width), device="cuda", generator=make) * 2 - 1) / n**0.5
        self.u = (torch.rand((runs, width, 1), device="cuda", generator=make) * 2 - 1) / width**0.5
        self.o = torch.zeros((runs, 1, 1), device="cuda")
        self.row = torch.arange(runs, device="cuda")[:, None]

    def step(self) -> None:
        """One update of every run."""
        keep = 1 - RATE * DECAY
        chosen = torch.randint(0, EXAMPLES, (len(self.X), BATCH), device="cuda")
        x, y = self.X[self.row, chosen], self.y[self.row, chosen]
        h = torch.baddbmm(self.b, x, self.W).relu_()
        f = torch.baddbmm(self.o, h, self.u)
        g = torch.where(y * f < 1, -y / BATCH, 0.0)
        through = torch.bmm(g, self.u.transpose(1, 2)) * (h > 0)
        self.u.mul_(keep).baddbmm_(h.transpose(1, 2), g, alpha=-RATE)
        self.W.mul_(keep).baddbmm_(x.transpose(1, 2), through, alpha=-RATE)
        self.b.mul_(keep).sub_(through.sum(1, keepdim=True), alpha=RATE)
        self.o.mul_(keep).sub_(g.sum(1, keepdim=True), alpha=RATE)


def torch_microseconds(n: int, width: int, runs: int, repeats: int = 5) -> float:
    """Per step and run: the median over replays of a captured graph."""
    model = StackedRuns(n, width, runs)
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            model.step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(GRAPH_STEPS):
            model.step()
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / (GRAPH_STEPS * runs))
    del graph, model
    torch.cuda.empty_cache()
    return statistics.median(times)


def jax_microseconds(n: int, width: int, runs: int, steps: int, repeats: int = 3) -> float | None:
    """Per step and run as users of JAX train many networks at once, on its default device; None without JAX."""
    try:
        import jax
    except ImportError:
        return None
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.PRNGKey(1), 5)
    X = jnp.where(jax.random.bernoulli(keys[0], 0.5, (runs, EXAMPLES, n)), 1.0, -1.0)
    y = X[:, :, :3].prod(axis=2)
    W = jax.random.uniform(keys[1], (runs, n, width), minval=-1, maxval=1) / n**0.5
    u = jax.random.uniform(keys[2], (runs, width), minval=-1, maxval=1) / width**0.5
    start = (W, jnp.zeros((runs, width)), u, jnp.zeros(runs))

    def loss(weights: Any, x: Any, sign: Any) -> Any:
        W, b, u, o = weights
        hidden = jax.nn.relu(jnp.matmul(x, W, precision="highest") + b)
        return jnp.maximum(1 - sign * (jnp.matmul(hidden, u, precision="highest") + o), 0).mean()

    slopes = jax.vmap(jax.grad(loss))

    @functools.partial(jax.jit, donate_argnums=0)
    def train(weights: Any, X: Any, y: Any, keys: Any) -> Any:
        def step(weights: Any, key: Any) -> Any:
            chosen = jax.random.randint(key, (runs, BATCH), 0, EXAMPLES)
            x, sign = jnp.take_along_axis(X, chosen[:, :, None], 1), jnp.take_along_axis(y, chosen, 1)
            found = slopes(weights, x, sign)
            return jax.tree.map(lambda w, g: (1 - RATE * DECAY) * w - RATE * g, weights, found), None

        return jax.lax.scan(step, weights, keys)[0]

    times, weights = [], jax.block_until_ready(train(start, X, y, jax.random.split(keys[3], steps)))  # compiles
    for key in jax.random.split(keys[4], repeats):
        drawn = jax.block_until_ready(jax.random.split(key, steps))
        begin = time.perf_counter()
        weights = jax.block_until_ready(train(weights, X, y, drawn))
        times.append(time.perf_counter() - begin)
    return 1e6 * min(times) / steps / runs


def product_ceiling() -> float:
    """Multiply-adds per second of a large half-precision matrix product, in units of 1e12."""
    a, b = (torch.randn((8192, 8192), device="cuda", dtype=torch.float16) for _ in range(2))
    return 8192**3 / _seconds(lambda: a @ b) / 1e12


def copy_ceiling() -> float:
    """Bytes per second of a large copy, read and written, in units of 1e12."""
    a = torch.empty(1 << 30, device="cuda", dtype=torch.float32)
    b = torch.empty_like(a)
    return 2 * a.nbytes / _seconds(lambda: b.copy_(a)) / 1e12


def _seconds(call: object) -> float:
    times = []
    for _ in range(8):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()  # type: ignore[operator]
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return statistics.median(times[3:])


def speed(shapes: list[str]) -> int:
    """Against the rival, shape by shape."""
    products, copies = product_ceiling(), copy_ceiling()
    print(
        f"{torch.cuda.get_device_name()}: {products:.0f}e12 multiply-adds/s in half precision, copy {copies:.2f} TB/s"
    )
    figures, missed = {}, False
    chosen = [tuple(map(int, pair.split("x"))) for pair in shapes] or list(ROWS)
    for n, width in chosen:
        length, peer_runs, known, asked, aim = ROWS[n, width]
        steps = 200 if width < 100000 else 50
        apart = neurons_apart(n, width, steps)
        assert apart <= max(1, 3 * width // 1000), f"{apart} of {width} neurons differ from float64 after {steps} steps"
        ours = measure(n, width, length)
        peer, jax = torch_microseconds(n, width, peer_runs), jax_microseconds(n, width, peer_runs, length // 4)
        ratio, share = peer / ours, floor(n, width, products) / ours
        fastest = min(peer, jax or peer)
        print(
            f"({n}, {width}): {ours:.5f} µs per step and run, PyTorch {peer:.4f} (known {known}), {ratio:.1f}× "
            f"(asked {asked:.0f}, aim {aim:.0f}), JAX {'not installed' if jax is None else f'{jax:.4f}'}, "
            f"{fastest / ours:.1f}× the faster; {share:.0%} of the products' ceiling; {apart} neurons at a tie",
            flush=True,
        )
        figures[f"{n}x{width}"] = {
            "us": round(ours, 5), "torch_us": round(peer, 4), "known_us": known, "ratio": round(ratio, 1), "asked": asked,
            "aim": aim, "products_share": round(share, 3), "apart": apart, "jax_us": jax, "fastest_ratio": round(fastest / ours, 1),
        }  # fmt: skip
        missed |= ratio < asked or peer > 1.2 * known
    worst = min(figure["ratio"] / figure["asked"] for figure in figures.values())  # type: ignore[operator]
    told = {"name": "train_cuda", "ratio": round(worst, 2), "device": torch.cuda.get_device_name(), "figures": figures}
    print(json.dumps({**told, "products_e12": round(products), "copy_tb_s": round(copies, 2)}))
    return int(missed)


ASKED = 1.25
WIDTHS = (10, 30, 100, 300, 1000)
SPEC: dict[str, Any] = {
    "problem": {"name": "parity", "n": 50, "k": 3},
    "network": {"start": ["dense", {"name": "sparse", "s": 2}], "width": list(WIDTHS)},
    "data": {"samples": [200, 300, 600, 1000, 2000]},
    "training": {"steps": 100_000, "learning_rate": 0.1, "weight_decay": 0.01, "evaluate": 1000, "stop_error": 0.1},
    "trials": 50,
}


def sweep_cost() -> int:
    """A whole sweep against its steps alone."""
    paces, spec = {width: measure(50, width, 4000) for width in WIDTHS}, Sweep.from_dict(SPEC)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.sqlite"
        # The first runs of every width load what is compiled; they are no part of the measured sweep.
        get_engine("cuda").train([spec.run_at(cell).describe() for cell in range(spec.settings)], keep_networks=False)
        start = time.perf_counter()
        state = spec.run(path, engine="cuda")
        seconds = time.perf_counter() - start
        assert state.failed == 0 and state.ran == len(spec), state
        with SqliteStore(path) as store:
            columns, steps = store.columns(), dict.fromkeys(WIDTHS, 0)
            for cell in store.settings():
                steps[cell.width] += int(columns["steps"][columns["setting"] == cell.id].sum())
    alone = sum(1e-6 * steps[width] * paces[width] for width in WIDTHS)
    share = sum(steps.values()) / (state.ran * 100_000)
    print(
        f"{state.ran} runs took {share:.0%} of their steps: {seconds:.2f} s, "
        f"of which steps alone {alone:.2f} s: {seconds / alone:.2f}×"
    )
    told = {"name": "train_cuda sweep", "ratio": round(seconds / alone, 3), "asked": ASKED, "runs": state.ran}
    figures = {"seconds": round(seconds, 2), "steps_seconds": round(alone, 2), "steps": steps}
    print(json.dumps({**told, **figures, "us": {width: round(pace, 5) for width, pace in paces.items()}}))
    return int(seconds > ASKED * alone)


TRIALS, LEVEL, SUCCESS = 200, 0.01, 0.1
SPARSE = {"name": "sparse", "s": 2}
# n, k, width, start, samples, steps
CELLS: tuple[tuple[int, int, int, Any, int | str, int], ...] = (
    (30, 3, 10, "dense", 600, 5000),
    (30, 3, 100, SPARSE, 450, 5000),
    (30, 3, 300, SPARSE, 450, 4000),
    (40, 3, 30, "dense", 1000, 5000),
    (40, 3, 30, SPARSE, 1000, 5000),
    (20, 4, 100, "dense", 250, 5000),
    (30, 4, 10, "dense", 1000, 5000),
    (30, 4, 10, SPARSE, "online", 5000),
    (30, 4, 100, "dense", 700, 5000),
    (30, 4, 100, SPARSE, 600, 5000),
)


def label(cell: tuple[Any, ...]) -> str:
    n, k, width, start, samples, _ = cell
    kind = start if isinstance(start, str) else start["name"]
    return f"({n}, {k}) width {width} {kind} m = {samples}"


def specs(cell: tuple[Any, ...]) -> list[RunSpec]:
    n, k, width, start, samples, steps = cell
    sweep = Sweep.from_dict(
        {
            "problem": {"name": "parity", "n": n, "k": k},
            "network": {"start": start, "width": width},
            "data": {"samples": samples, "test_samples": 1000},
            "training": {
                "steps": steps,
                "learning_rate": 0.1,
                "weight_decay": 0.01,
                "evaluate": 250,
                "stop_error": SUCCESS,
            },
            "trials": TRIALS,
        }
    )
    return list(sweep.runs())


def successes(engine: str) -> dict[str, str]:
    """For each cell a digit per run: 1 for a success."""
    trainer, found = get_engine(engine, threads=1 if engine == "cpu" else None), {}
    for cell in CELLS:
        results = trainer.train([spec.describe() for spec in specs(cell)], keep_networks=False, on_divergence="record")
        found[label(cell)] = "".join(str(int(result.stopped == "test_error")) for result in results)
        print(f"{label(cell)}: {found[label(cell)].count('1')} of {TRIALS} with the {engine} engine", flush=True)
    return found


def fisher(a: int, b: int, trials: int) -> float:
    """Fisher's exact test of a against b successes out of as many trials, two-sided, in whole numbers."""
    total = a + b
    ways = {i: comb(trials, i) * comb(trials, total - i) for i in range(max(0, total - trials), min(trials, total) + 1)}
    return sum(way for way in ways.values() if way <= ways[a]) / sum(ways.values())


def noticed(share: float, trials: int, level: float, power: float = 0.8) -> float:
    """The difference from this share that a two-sided test at this level would notice with this power."""
    z = NormalDist().inv_cdf
    return (z(1 - level / 2) + z(power)) * sqrt(2 * share * (1 - share) / trials)


def judge(cpu: dict[str, str], other: dict[str, str], engine: str = "cuda") -> int:
    figures: dict[str, Any] = {}
    for cell in CELLS:
        name = label(cell)
        a, b = cpu[name].count("1"), other[name].count("1")
        differ = sum(one != two for one, two in zip(cpu[name], other[name], strict=True))
        figures[name] = {"cpu": a, engine: b, "p": round(fisher(a, b, TRIALS), 4), "runs_that_differ": differ}
        print(f"{name}: cpu {a}, {engine} {b} of {TRIALS}, p = {figures[name]['p']}; {differ} runs end differently")
        assert 0 < a < TRIALS, "a cell where all or none succeed tests nothing"
    worst = min(1.0, min(figure["p"] for figure in figures.values()) * len(CELLS))
    difference = noticed(0.5, TRIALS, LEVEL / len(CELLS))
    print(f"A difference of {difference:.0%} around one half would be noticed in 8 of 10 tries")
    verdict = {"name": f"train_{engine} agree", "p": round(worst, 4), "asked": LEVEL, "noticed": round(difference, 3)}
    print(json.dumps({**verdict, "trials": TRIALS, "figures": figures}))
    return int(worst <= LEVEL)


def agree(engine: str, path: Path) -> int:
    """One half of the agreement; the second one compares."""
    if engine == "cpu":
        path.write_text(json.dumps(successes("cpu"), indent=1) + "\n")
        return 0
    return judge(json.loads(path.read_text()), successes(engine), engine)


def main() -> int:
    """One of the three questions."""
    verb, *more = sys.argv[1:] or ["speed"]
    if verb in ("-h", "--help"):
        print(__doc__)
        return 0
    if verb == "sweep":
        return sweep_cost()
    if verb == "agree":
        return agree(more[0], Path(more[1]))
    return speed([] if verb == "speed" else [verb, *more])


if __name__ == "__main__":
    sys.exit(main())

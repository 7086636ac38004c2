"""The grids of `fewfire demo`: where a parity of 3 bits among 30 turns from hopeless to easy."""

from __future__ import annotations

from dataclasses import dataclass

from fewfire._random import Stream
from fewfire.engines import Phase, Run, Schedule
from fewfire.experiments import Sweep
from fewfire.networks import init
from fewfire.problems import Parity

WIDTH, SAMPLES, TESTS = 300, 2000, 10_000
"""Of the one network that is looked into at the end."""


@dataclass(frozen=True)
class Grid:
    """Widths × samples × two starts × trials."""

    widths: tuple[int, ...]
    samples: tuple[int, ...]
    trials: int

    def __str__(self) -> str:
        return f"{len(self.widths)} widths × {len(self.samples)} sample sizes × 2 starts × {self.trials} trials"


FULL = Grid((10, 30, 100, 300, 1000), (300, 350, 400, 500, 700, 1000), 10)
SMALL = Grid((10, 30, 100), (400, 600, 1000), 3)
"""For a look in passing, and for the reference engine, which is an order of magnitude slower."""


def hidden_parity(n: int, k: int, seed: int) -> Parity:
    """A parity of k bits that the seed chooses."""
    return Parity(n, k, support=sorted(Stream(seed, "demo/support").subsets(1, n, min(k, n))[0].tolist()))


def sweep_of(problem: Parity, grid: Grid, steps: int) -> Sweep:
    """Every cell of the grid from a dense and a 2-sparse start, stopped as soon as the test error is 10%."""
    starts = (init.dense(), init.sparse(2))
    return Sweep(
        problems=(problem,),
        networks=tuple((start, width) for start in starts for width in grid.widths),
        data=tuple((samples, 2000) for samples in grid.samples),
        schedules=(_schedule(steps, evaluate=250, stop_error=0.1),),
        trials=grid.trials,
        name=f"A parity of {problem.k} hidden bits among {problem.n}",
        success_error=0.1,
    )


def final_run(problem: Parity, steps: int, seed: int) -> Run:
    """One network with plenty of examples, trained until it makes hardly any errors."""
    X, y = problem.sample(SAMPLES, Stream(seed, "data"))
    X_test, y_test = problem.sample(TESTS, Stream(seed, "test"))
    network = init.sparse(2)(problem.n, WIDTH, Stream(seed, "init"))
    return Run(network, _schedule(steps, evaluate=500, stop_error=0.001), X, y, X_test, y_test, seed=seed)


def _schedule(steps: int, evaluate: int, stop_error: float) -> Schedule:
    phase = Phase(steps, learning_rate=0.1, weight_decay=0.01, batch_size=32)
    return Schedule((phase,), evaluate=evaluate, stop_error=stop_error)

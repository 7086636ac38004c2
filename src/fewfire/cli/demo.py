"""`fewfire demo`: learn a sparse parity, and name the coordinates that were found."""

from __future__ import annotations

import time

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from fewfire._random import Stream
from fewfire.engines import Phase, Result, Run, Schedule, get_engine
from fewfire.networks import init, relevance
from fewfire.problems import Parity

WIDTH, SAMPLES, TESTS = 300, 2000, 10_000


def demo(
    n: int = typer.Option(30, help="Number of input bits."),
    k: int = typer.Option(3, help="Number of bits in the parity."),
    steps: int = typer.Option(20_000, help="Most SGD steps to take."),
    seed: int = typer.Option(0, help="Changes the hidden bits, the data and the initial weights."),
    engine: str = typer.Option("auto", help="Which engine trains the network."),
) -> None:
    """Learn a parity of k hidden bits among n with a wide, sparsely initialised network."""
    console = Console()
    support = sorted(Stream(seed, "demo/support").subsets(1, n, min(k, n))[0].tolist())
    problem = Parity(n, k, support=support)
    console.print(f"Task: the product of {k} hidden bits among {n}, from {SAMPLES} labelled examples.")
    console.print(f"Network: {WIDTH} ReLU neurons, each starting with 2 non-zero weights; SGD on the hinge loss.")
    start = time.perf_counter()
    result = _train(problem, steps, seed, engine, console)
    found = tuple(sorted(relevance(result.network).largest(k)))
    seconds, taken, error = time.perf_counter() - start, result.counters.steps, result.test_error
    console.print(f"Trained {taken} steps in {seconds:.1f} s on the {result.engine} engine.")
    console.print(f"Hidden bits:     {problem.support}", highlight=False)
    console.print(f"Learned support: {found}", highlight=False)
    console.print(f"Test error: {error:.2%} on {TESTS} fresh examples.", highlight=False)
    if error > 0.1 or found != problem.support:
        console.print("Not learned. Remedy: more --steps, a smaller --k or another --seed.")
        raise typer.Exit(1)


def _train(problem: Parity, steps: int, seed: int, engine: str, console: Console) -> Result:
    X, y = problem.sample(SAMPLES, Stream(seed, "data"))
    X_test, y_test = problem.sample(TESTS, Stream(seed, "test"))
    network = init.sparse(2)(problem.n, WIDTH, Stream(seed, "init"))
    schedule = Schedule(
        (Phase(steps, learning_rate=0.1, weight_decay=0.01, batch_size=32),), evaluate=500, stop_error=0.001
    )
    run = Run(network, schedule, X, y, X_test, y_test, seed=seed)
    columns = TextColumn("Training"), BarColumn(), TextColumn("{task.completed}/{task.total} steps")
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task("", total=steps)
        chosen = get_engine(engine)
        return chosen.train([run], progress=lambda done, total: bar.update(task, completed=done, total=total))[0]

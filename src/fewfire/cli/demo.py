"""`fewfire demo`: a success frontier of a sparse parity in a minute or two, as text and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fewfire._errors import invalid
from fewfire.cli._demo_grid import FULL, SAMPLES, SMALL, TESTS, WIDTH, final_run, hidden_parity, sweep_of
from fewfire.cli._heat_map import heat_maps
from fewfire.cli._sweep_bar import SweepBar, duration
from fewfire.cli.report import in_words
from fewfire.engines import get_engine
from fewfire.experiments import SqliteStore
from fewfire.networks import relevance
from fewfire.report import findings_info, frontier_info, read_results, write_page

if TYPE_CHECKING:
    from fewfire.experiments import Sweep
    from fewfire.problems import Parity

LONGER = 3
"""The last network may take so many times the steps of the others."""


def demo(
    n: Annotated[int, typer.Option(help="Number of input bits.")] = 30,
    k: Annotated[int, typer.Option(help="Number of bits in the parity.")] = 3,
    steps: Annotated[int, typer.Option(help="Most SGD steps a run takes.")] = 8000,
    seed: Annotated[int, typer.Option(help="Changes the hidden bits, the data and the initial weights.")] = 0,
    engine: Annotated[str, typer.Option(help="Which engine trains the networks.")] = "auto",
    quick: Annotated[bool, typer.Option("--quick", help="A small grid: seconds instead of a minute or two.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("frontier.html"),
) -> None:
    """Learn a parity of k hidden bits among n with networks of many widths, and see what width and data buy."""
    console = Console(highlight=False, soft_wrap=True)
    store = output.with_suffix(".sqlite")
    if store == output:
        raise invalid("output", "must not end in .sqlite, where the runs are kept", str(output), "choose a .html")
    problem, name = hidden_parity(n, k, seed), get_engine(engine).name
    grid = SMALL if quick or name == "reference" else FULL
    sweep = sweep_of(problem, grid, steps)
    console.print(f"Task: the product of {k} hidden bits among {n}, from labelled examples.")
    console.print(f"Networks: ReLU neurons, all weights random (dense) or 2 non-zero ones a neuron (sparse); "
                  f"at most {steps:,} steps of SGD on the hinge loss.")  # fmt: skip
    console.print(f"Runs: {grid}, {len(sweep)} in all, on the {name} engine.")
    if grid is SMALL and not quick:
        console.print("Without the C++ part this is a small grid; 'fewfire doctor' says how to get the full one.")
    _train(console, sweep, store, name)
    _show(console, sweep, store, output)
    learned = _look_inside(console, problem, steps, seed, name)
    size = in_words(output.stat().st_size)
    console.print(f"Wrote {output} ({size}): open it in a browser. The runs are kept in {store}.", markup=False)
    if not learned:
        raise typer.Exit(1)


def _train(console: Console, sweep: Sweep, store: Path, engine: str) -> None:
    with SweepBar(console) as bar:
        try:
            state = sweep.run(store, engine=engine, progress=bar.show)
        except KeyboardInterrupt:
            done = bar.state.done if bar.state is not None else 0
            console.print(f"Stopped. {done} of {len(sweep)} runs are kept in {store}.", markup=False)
            console.print("Give the same command again to go on from there.")
            raise typer.Exit(130) from None
    before = f" {state.already} were there already." if state.already else ""
    console.print(f"Trained {state.ran} networks in {duration(state.seconds)}.{before}")


def _show(console: Console, sweep: Sweep, store: Path, output: Path) -> None:
    """The text heat map, what it says, and the page."""
    with SqliteStore(store) as opened:
        results = read_results(opened, sweep.success_error, only={run.setting for run in sweep.runs()})
        write_page(results, output, title=sweep.name)
    group = frontier_info(results)[0]
    console.print("\nShare of runs that succeed, by width and number of examples\n")
    console.print(heat_maps(group))
    console.print()
    for finding in findings_info(group):
        if finding.start.startswith("sparse"):
            console.print(finding.text, markup=False)


def _look_inside(console: Console, problem: Parity, steps: int, seed: int, engine: str) -> bool:
    """Train one network to the end and name what it looks at; whether that is the parity."""
    with console.status(f"One more network: {WIDTH} neurons, {SAMPLES:,} examples"):
        result = get_engine(engine).train([final_run(problem, LONGER * steps, seed)])[0]
    found = tuple(sorted(relevance(result.network).largest(problem.k)))
    taken = f"{result.counters.steps:,} steps"
    console.print(f"Inside one more network ({WIDTH} neurons, sparse start, {SAMPLES:,} examples, {taken}):")
    console.print(f"Hidden bits:     {problem.support}")
    console.print(f"Learned support: {found}")
    console.print(f"Test error: {result.test_error:.2%} on {TESTS} fresh examples.")
    if result.test_error > 0.1 or found != problem.support:
        console.print("Not learned. Remedy: more --steps, a smaller --k or another --seed.")
        return False
    return True

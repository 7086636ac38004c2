"""`fewfire demo`: a success frontier of a sparse parity in a minute or two, as text and as a page.

The grids lie where a parity of 3 bits among 30 turns from impossible to easy. Text frontiers are a table per start,
side by side where they fit, coloured where colours are shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.columns import Columns
from rich.style import Style
from rich.table import Table
from rich.text import Text

import fewfire as ff
from fewfire._errors import invalid
from fewfire._extension import load
from fewfire._validate import counted
from fewfire.cli._output import PlainConsole, check_file, file_size, run_sweep, say
from fewfire.sweeps.run._progress import duration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from fewfire.engines import Schedule
    from fewfire.problems import Parity
    from fewfire.report._frontier import Group, SuccessFrontier
    from fewfire.sweeps import Sweep

LONGER = 3
"""The last network may take so many times the steps of the others."""

WIDTH, SAMPLES, TESTS = 300, 2000, 10_000
"""Of the one network that is looked into at the end."""


@dataclass(frozen=True)
class DemoGrid:
    """Widths × samples × two starts × trials."""

    widths: tuple[int, ...]
    samples: tuple[int, ...]
    trials: int

    def __str__(self) -> str:
        return f"{len(self.widths)} widths × {len(self.samples)} sample sizes × 2 starts × {self.trials} trials"


FULL = DemoGrid((10, 30, 100, 300, 1000), (300, 350, 400, 500, 700, 1000), 10)
SMALL = DemoGrid((10, 200), (350, 450, 600), 5)
"""For a look in passing, and for engines that are an order of magnitude slower."""


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
    console = PlainConsole(soft_wrap=True)
    store = output.with_suffix(".sqlite")
    if store == output:
        raise invalid("output", "must not end in .sqlite, where the runs are kept", str(output), "choose a .html")
    check_file("--output", output)
    problem, trainer = hidden_parity(n, k, seed), ff.engines.get_engine(engine)
    name, slow = trainer.name, trainer.batch_cost < ff.engines.CpuEngine.batch_cost
    grid = SMALL if quick or slow else FULL
    sweep = sweep_of(problem, grid, steps)
    console.print(f"Task: the product of {k} hidden bits among {n}, from labelled examples.")
    starts = "all weights random (dense) or 2 non-zero ones per neuron (sparse)"
    console.print(f"Networks: ReLU neurons, {starts}; at most {steps:,} steps of SGD on the hinge loss.")
    console.print(f"Runs: {grid}, {len(sweep)} in all, on the {name} engine.")
    if slow and load() is None and not quick:
        console.print("Without the C++ part this is a small grid; 'fewfire doctor' says how to get the full one.")
    state = run_sweep(console, sweep, store, engine=name)
    before = f" {state.already} were there already." if state.already else ""
    console.print(f"Trained {counted(state.ran, 'network')} in {duration(state.seconds)}.{before}")
    _show(console, sweep, store, output)
    learned = _look_inside(console, problem, steps, seed, name)
    size = file_size(output.stat().st_size)
    say(f"Wrote {output} ({size}): open it in a browser. The runs are kept in {store}.", console)
    if not learned:
        raise typer.Exit(1)


def _show(console: Console, sweep: Sweep, store: Path, output: Path) -> None:
    """The text heat map, what it says, and the page."""
    from fewfire.report._results import read_results

    with ff.sweeps.SqliteStore(store) as opened:
        results = read_results(opened, sweep.success_error, only={run.setting for run in sweep.runs()})
        ff.report.write_page(results, output, title=sweep.name)
    group = ff.report.frontier_info(results)[0]
    console.print("\nShare of runs that succeed, by width and number of examples\n")
    console.print(heat_maps(group))
    console.print()
    for finding in ff.report.findings_info(group):
        if finding.start.startswith("sparse"):
            console.print(finding.text)


def _look_inside(console: Console, problem: Parity, steps: int, seed: int, engine: str) -> bool:
    """Train one network to the end and name what it looks at; whether that is the parity."""
    with console.status(f"One more network: {WIDTH} neurons, {SAMPLES:,} examples"):
        X, y = problem.sample(SAMPLES, ff.Stream(seed, "data"))
        X_test, y_test = problem.sample(TESTS, ff.Stream(seed, "test"))
        network = ff.networks.init.sparse(2)(problem.n, WIDTH, ff.Stream(seed, "init"))
        schedule = _schedule(LONGER * steps, evaluate=500, stop_error=0.001)
        run = ff.engines.Run(network, schedule, X, y, X_test, y_test, seed=seed)
        result = ff.engines.get_engine(engine).train([run])[0]
    found = tuple(sorted(ff.networks.relevance(result.network).largest(problem.k)))
    taken = f"{result.counters.steps:,} steps"
    console.print(f"Inside one more network ({WIDTH} neurons, sparse start, {SAMPLES:,} examples, {taken}):")
    console.print(f"Hidden bits:     {problem.support}")
    console.print(f"Learned support: {found}")
    console.print(f"Test error: {result.test_error:.2%} on {TESTS} fresh examples.")
    if result.test_error > 0.1 or found != problem.support:
        console.print("Not learned. Remedy: more --steps, a smaller --k or another --seed.")
        return False
    return True


def hidden_parity(n: int, k: int, seed: int) -> Parity:
    """A parity of k bits that the seed chooses."""
    chosen = ff.Stream(seed, "demo/support").subsets(1, n, min(k, n))[0]
    return ff.problems.Parity(n, k, support=sorted(chosen.tolist()))


def sweep_of(problem: Parity, grid: DemoGrid, steps: int) -> Sweep:
    """Every cell of the grid from a dense and a 2-sparse start, stopped as soon as the test error is 10%."""
    starts = (ff.networks.init.dense(), ff.networks.init.sparse(2))
    return ff.sweeps.Sweep(
        problems=(problem,),
        networks=tuple((start, width) for start in starts for width in grid.widths),
        data=tuple(ff.sweeps.Data(samples) for samples in grid.samples),
        schedules=(_schedule(steps, evaluate=250, stop_error=0.1),),
        trials=grid.trials,
        name=f"A parity of {problem.k} hidden bits among {problem.n}",
        success_error=0.1,
    )


def _schedule(steps: int, evaluate: int, stop_error: float) -> Schedule:
    phase = ff.engines.Phase(steps, learning_rate=0.1, weight_decay=0.01, batch_size=32)
    return ff.engines.Schedule((phase,), evaluate=evaluate, stop_error=stop_error)


def heat_maps(group: Group) -> RenderableType:
    """The maps of a group; widths downwards from the widest, samples to the right."""
    return Columns([_heat_map(group, frontier) for frontier in group.frontiers], padding=(0, 4))


def _heat_map(group: Group, frontier: SuccessFrontier) -> Table:
    title = f"{frontier.start} start"
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 0),
        pad_edge=False,
        min_width=len(title),
    )
    table.add_column("width ", justify="right", style="dim", header_style="dim")
    for samples in group.samples:
        table.add_column(
            "online" if samples is None else f"{samples}", justify="right", header_style="dim", min_width=5
        )
    for width, row in reversed(list(zip(group.widths, frontier.success, strict=True))):
        table.add_row(f"{width} ", *(_cell(float(share)) for share in row))
    return table


def _cell(share: float) -> Text:
    from fewfire.report._plots import RAMP

    if np.isnan(share):
        return Text("–")
    # Dark letters up to the middle of the ramp, light ones from there: at least 4.5 times as light or dark.
    step = round(share * (len(RAMP) - 1))
    ink = "#000000" if step < 3 else "#ffffff"
    return Text(f"{share:>5.0%}", style=Style(color=ink, bgcolor=RAMP[step]))

"""`fewfire sweep`: plan and run grids of training runs; what is done with stores is in `sweep_store`."""

from __future__ import annotations

import json
import math
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.table import Table

from fewfire import experiments
from fewfire._cores import usable_cores
from fewfire.cli import sweep_compare, sweep_store
from fewfire.cli._output import PlainConsole, run_sweep, say, wide_console
from fewfire.experiments.run._bar import duration

if TYPE_CHECKING:
    from rich.console import Console

    from fewfire.experiments import FoundFrontier, FrontierSearch, Plan, Progress, RunSpec, Sweep, TimeEstimate

app = typer.Typer(
    help="Grids of training runs from one TOML file: plan, run, resume; and the stores that keep them.",
    no_args_is_help=True,
)

Spec = Annotated[Path, typer.Argument(help="The TOML file that describes the sweep.", show_default=False)]
Engine = Annotated[str, typer.Option(help="Which engine trains the runs.")]


@app.command()
def plan(
    spec: Spec,
    store: Annotated[Path | None, typer.Option(help="Count what this store already has.")] = None,
    engine: Engine = "auto",
    probe: Annotated[bool, typer.Option(help="Train a few runs for a moment to estimate the time.")] = True,
    measured: Annotated[
        list[Path] | None,
        typer.Option(help="A store whose runs tell how early runs stop, besides --store; may be given several times."),
    ] = None,
) -> None:
    """Say how many runs a spec stands for, how many are done, and about how long the rest will take."""
    console = PlainConsole()
    sweep = experiments.Sweep.from_toml(spec)
    with ExitStack() as stack:
        opened = stack.enter_context(experiments.SqliteStore(store)) if store is not None and store.exists() else None
        found = experiments.make_plan(sweep, opened)
        stores = [stack.enter_context(experiments.SqliteStore(path)) for path in measured or ()]
        stores += [opened] if opened else []
        wanted = probe and len(found.pending)
        probed = experiments.estimate_time(sweep, found, engine, measured=stores) if wanted else None
    say(sweep.name, console)
    if sweep.search is None:
        problems, networks, data, schedules = map(len, (sweep.problems, sweep.networks, sweep.data, sweep.schedules))
        axes = f"{problems} problems × {networks} networks × {data} data sizes × {schedules} schedules"
        say(f"{found.total} runs: {axes} × {sweep.trials} trials", console)
        say(f"{found.finished} done, {len(found.pending)} to do", console)
    else:
        for line in _search_plan(sweep, sweep.search, found):
            say(line, console)
    if probed is not None:
        say(_time(probed, any(schedule.stop_error is not None for schedule in sweep.schedules)), console)


def _search_plan(sweep: Sweep, search: FrontierSearch, found: Plan) -> tuple[str, str]:
    """What a search looks for and how many runs it will take, which is a guess."""
    lines = len(search.lines(sweep))
    frontiers = f"{lines} frontier{'s' if lines > 1 else ''}"
    what = f"{search.axis} at which {search.target:.0%} of the runs succeed, {search.low:,g} to {search.high:,g}"
    most = f"at most {lines * search.budget:,}"
    return (
        f"{frontiers}: {what}, to ±{search.precision:.0%} at {search.level:.0%}",
        f"About {found.total:,} runs ({most}): {found.finished:,} done, about {len(found.pending):,} to do",
    )


def _time(probed: TimeEstimate, stops: bool) -> str:
    """How long the rest will take, in words: GPU-hours where a device trains."""
    hours, stopping = probed.device_hours, probed.stopping_device_hours
    if probed.devices:
        devices = "device" if probed.devices == 1 else "devices"
        text = f"About {hours:.3g} GPU-hours, {duration(probed.seconds)} on {probed.devices} {devices}"
    else:
        text = f"About {duration(probed.seconds)} on {usable_cores()} cores"
    text += f" with the {probed.engine} engine"
    if not stops:
        return text
    if probed.stopping_seconds is None:
        return f"{text}, less with early stops"
    less = duration(probed.stopping_seconds) if stopping is None or not probed.devices else f"{stopping:.3g} GPU-hours"
    return f"{text}; {less} with early stops as in {probed.measured_runs} finished runs"


@app.command()
def run(
    spec: Spec,
    store: Annotated[Path, typer.Option(help="The file to keep results in; made when it does not exist.")],
    engine: Engine = "auto",
    dask: Annotated[
        str | None,
        typer.Option(help='Address of a Dask scheduler (tcp://…), or "local".'),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes on this machine; one per core or GPU by default.")
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going/--fail-fast", help="Record runs that diverge or fail, or stop at the first.")
    ] = True,
) -> None:
    """Train every run that the store does not have yet. Stop it with Ctrl-C; repeat the command to go on."""
    console = PlainConsole()
    sweep = experiments.Sweep.from_toml(spec)
    executor = "local" if dask is None else "dask" if dask == "local" else dask
    command = ["fewfire", "sweep", "run", str(spec), "--store", str(store), *(["--dask", dask] if dask else [])]
    resume = f"Resume with: {shlex.join(command)}"
    state = run_sweep(
        console, sweep, store, resume, engine=engine, executor=executor, workers=workers, keep_going=keep_going
    )
    _summarise(console, state, store, sweep.success_error)
    if sweep.search is not None:
        wide_console().print(_frontier_table(sweep.search, experiments.found_frontiers(sweep, store)))
    if state.failed:
        raise typer.Exit(1)


def _frontier_table(search: FrontierSearch, found: list[FoundFrontier]) -> Table:
    """A row per frontier: what tells it from the others, where it is, and how many runs that took."""
    from fewfire.report._settings import varying

    table = Table(title=f"{search.axis} at which {search.target:.0%} of the runs succeed", title_justify="left")
    table.box, table.pad_edge = None, False
    flat = [_leaves(one.spec) for one in found]
    telling = varying(flat) if len(flat) > 1 else []
    for path in telling:
        table.add_column(path.rpartition(".")[2])
    table.add_column("frontier")
    table.add_column("runs", justify="right")
    for leaves, one in zip(flat, found, strict=True):
        end = "" if one.settled else ", budget spent" if one.over else ", waits for failed runs"
        table.add_row(*(leaves.get(path, "–") for path in telling), f"{one.estimate}{end}", f"{one.estimate.runs}")
    return table


def _leaves(spec: RunSpec) -> dict[str, str]:
    """The keys of a run with their values as texts, the start by one name."""
    from fewfire.report._settings import flatten, start_name

    table = json.loads(spec.setting)
    table["network"]["start"] = start_name(table["network"]["start"])
    return flatten(table)


def _first_failure(store: Path) -> str:
    """The message of the failed run that comes first in the store's grid."""
    with experiments.SqliteStore(store) as opened:
        columns = opened.columns()
    failed = np.flatnonzero(columns["status"] == "failed")
    first = min(failed, key=lambda place: (columns["setting"][place], columns["trial"][place]))
    return str(columns["message"][first])


def _summarise(console: Console, state: Progress, store: Path, success_error: float) -> None:
    how = f"{duration(state.seconds)} ({state.rate:.1f} runs/s, {state.engine} engine, {state.executor})"
    done = f"{state.done} of {state.total} runs in {store}: {state.already} from before"
    lines = [f"{done}, {state.ran} trained in {how}" if state.ran else done]
    if not math.isnan(state.success):
        lines.append(f"{state.success:.1%} reached a test error of {success_error:g}; {state.diverged} diverged")
    if state.failed:
        lines.append(f"{state.failed} failed with an error (column message). Repeat the command to try them again")
        lines.append(f"The first: {_first_failure(store)}")
    for line in lines:
        say(line, console)


app.command()(sweep_store.status)
app.command("merge")(sweep_store.merge_)
app.command()(sweep_compare.compare)
app.command("export")(sweep_store.export_)

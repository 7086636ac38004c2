"""`fewfire sweep`: plan and run grids of training runs; look at their stores, merge, compare and export them."""

from __future__ import annotations

import json
import math
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from fewfire import sweeps
from fewfire._atomic import same_file
from fewfire._errors import invalid
from fewfire._threads import usable_cores
from fewfire._validate import check_number, counted, did_you_mean
from fewfire.cli._output import PlainConsole, check_file, file_size, plain_table, run_sweep, say, wide_console
from fewfire.sweeps.run._progress import about, duration

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fewfire._types import IdArray
    from fewfire.sweeps import FrontierSearch
    from fewfire.sweeps.run._estimate import TimeEstimate
    from fewfire.sweeps.run._progress import Progress
    from fewfire.sweeps.run._search import FoundFrontier
    from fewfire.sweeps.store._protocol import Cell, SweepRecord


app = typer.Typer(
    help="Grids of training runs from one TOML file: plan, run, resume; and the stores that keep them.",
    no_args_is_help=True,
)

Spec = Annotated[Path, typer.Argument(help="The TOML file that describes the sweep.", show_default=False)]
Engine = Annotated[str, typer.Option(help="Which engine trains the runs.")]


Tags = Annotated[
    list[str] | None, typer.Option("--tag", help="A word to find the sweep by; may be given several times.")
]
StoreFile = Annotated[Path, typer.Argument(help="The store file.", show_default=False)]
REASONS = 3
"""At most so many messages of runs that went wrong."""


@app.command()
def plan(
    spec: Spec,
    store: Annotated[Path | None, typer.Option(help="Count what this store already has.")] = None,
    engine: Engine = "auto",
    probe: Annotated[bool, typer.Option(help="Train a few runs for a moment to estimate the time.")] = True,
    measured: Annotated[
        list[Path] | None,
        typer.Option(help="A store to measure early stops on, in addition to --store; may be given several times."),
    ] = None,
) -> None:
    """Print how many runs a spec stands for, how many are done, and about how long the rest will take."""
    console = PlainConsole()
    sweep = sweeps.Sweep.from_toml(spec)
    with ExitStack() as stack:
        opened = stack.enter_context(sweeps.SqliteStore(store)) if store is not None and store.exists() else None
        found = sweeps.make_plan(sweep, opened)
        stores = [stack.enter_context(sweeps.SqliteStore(path)) for path in measured or ()]
        stores += [opened] if opened else []
        wanted = probe and len(found.pending)
        probed = sweeps.estimate_time(sweep, found, engine, measured=stores) if wanted else None
    say(sweep.name, console)
    if sweep.search is None:
        sizes = map(len, (sweep.problems, sweep.networks, sweep.data, sweep.schedules, range(sweep.trials)))
        named = zip(sizes, ("problem", "network", "data size", "schedule", "trial"), strict=True)
        axes = " × ".join(counted(size, name) for size, name in named)
        say(f"{counted(found.total, 'run')}: {axes}", console)
        say(f"{found.finished} done, {len(found.pending)} to do", console)
    else:
        search, lines = sweep.search, len(sweep.search.lines(sweep))
        what = f"{search.axis} at which {search.target:.0%} of the runs succeed, {search.low:,g} to {search.high:,g}"
        frontiers = f"{counted(lines, 'frontier')}: {what}"
        say(f"{frontiers}, to ±{search.precision:.0%} at {search.level:.0%}", console)
        # How many runs a search takes is a guess.
        total = f"About {counted(found.total, 'run')} (at most {lines * search.budget:,})"
        say(f"{total}: {found.finished:,} done, about {len(found.pending):,} to do", console)
    if probed is not None:
        say(_time(probed, any(schedule.stop_error is not None for schedule in sweep.schedules)), console)


def _time(probed: TimeEstimate, stops: bool) -> str:
    """How long the rest will take, in words: GPU-hours where a device trains."""
    if probed.devices:
        hours, devices = f"{probed.device_hours:.3g} GPU-hours", counted(probed.devices, "device")
        text = f"About {hours}, {duration(probed.seconds)} on {devices}"
    else:
        text = f"{about(probed.seconds).capitalize()} on {counted(usable_cores(), 'core')}"
    text += f" with the {probed.engine} engine"
    if not stops:
        return text
    if probed.stopping_seconds is None:
        return f"{text}, less with early stops"
    less = duration(probed.stopping_seconds)
    if probed.devices:
        less = f"{probed.stopping_seconds * probed.devices / 3600:.3g} GPU-hours"
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
    note: Annotated[str, typer.Option(help="Text to keep with the sweep; the page and exports show it.")] = "",
    tag: Tags = None,
) -> None:
    """Train every run that the store does not have yet. Stop it with Ctrl-C; repeat the command to go on."""
    console = PlainConsole()
    sweep = sweeps.Sweep.from_toml(spec)
    if dask is not None and dask != "local" and "://" not in dask:
        raise invalid("--dask", 'must be "local" or the address of a scheduler', dask, "write it as tcp://HOST:8786")
    executor = "local" if dask is None else "dask" if dask == "local" else dask
    options: dict[str, Any] = {"engine": engine, "executor": executor, "workers": workers, "keep_going": keep_going}
    state = run_sweep(console, sweep, store, **options, note=note, tags=tag or ())
    _summarise(console, state, store, sweep.success_error)
    if sweep.search is not None:
        wide_console().print(_frontier_table(sweep.search, sweeps.found_frontiers(sweep, store)))
    if state.failed:
        raise typer.Exit(1)


def _frontier_table(search: FrontierSearch, found: list[FoundFrontier]) -> Table:
    """A row per frontier: how it differs from the others, where it is, and how many runs that took."""
    names, labels = _differing([one.spec.setting for one in found])
    table = plain_table(*names, "frontier", "runs", right=1)
    table.title, table.title_justify = f"{search.axis} at which {search.target:.0%} of the runs succeed", "left"
    for label, one in zip(labels, found, strict=True):
        end = "" if one.settled else ", budget spent" if one.over else ", waits for failed runs"
        table.add_row(*label, f"{one.estimate}{end}", f"{one.estimate.runs}")
    return table


def _differing(settings: list[str]) -> tuple[list[str], list[list[str]]]:
    """The names of the keys in which settings differ, and their values in each setting as texts."""
    from fewfire.report._settings import flatten, varying
    from fewfire.sweeps.spec._run_spec import start_name

    tables = [json.loads(setting) for setting in settings]
    for table in tables:
        table["network"]["start"] = start_name(table["network"]["start"])
    flat = [flatten(table) for table in tables]
    keys = varying(flat) if len(flat) > 1 else []
    return [key.rpartition(".")[2] for key in keys], [[leaves.get(key, "–") for key in keys] for leaves in flat]


def _summarise(console: Console, state: Progress, store: Path, success_error: float) -> None:
    lines = [state.summary(f" in {store}")]
    if not math.isnan(state.success):
        lines.append(f"{state.success:.1%} reached a test error of {success_error:g}; {state.diverged} diverged")
    if state.failed:
        lines.append(f"{state.failed} failed with an error (column message). Repeat the command to try them again")
        with sweeps.SqliteStore(store) as opened:
            columns = opened.columns()
        failed = np.flatnonzero(columns["status"] == "failed")
        first = min(failed, key=lambda index: (columns["setting"][index], columns["trial"][index]))
        lines.append(f"The first: {columns['message'][first]}")
    for line in lines:
        say(line, console)


@app.command()
def status(
    store: StoreFile,
    spec: Annotated[Path | None, typer.Option(help="Also say how much of this sweep the store has.")] = None,
) -> None:
    """Print what a store holds: runs by status, sweeps, engines, and why runs diverged or failed."""
    from fewfire.sweeps.store._protocol import newest_success_error

    console = PlainConsole()
    sweep = None if spec is None else sweeps.Sweep.from_toml(spec)
    with sweeps.SqliteStore(store) as opened:
        counts, columns, records, grid = opened.counts(), opened.columns(), opened.sweeps(), opened.settings()
        plan = None if sweep is None else sweeps.make_plan(sweep, opened)
    by_status = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    content = f"{counted(sum(counts.values()), 'run')} in {counted(len(grid), 'cell')}: {by_status}"
    say(f"{store} ({file_size(store.stat().st_size)}): {content}", console)
    for record in records:
        _say_record(record, console)
    error = newest_success_error(records)
    ended = counts["done"] + counts["diverged"]
    if ended:
        share = sweeps.succeeded(columns["status"], columns["best_test_error"], error).sum() / ended
        say(f"{share:.1%} reached a test error of {error:g}", console)
    engines = Counter(columns["engine"].tolist())
    if engines:
        trained = (f"{name} ({counted(runs, 'run')})" for name, runs in sorted(engines.items()))
        say(f"Engines: {', '.join(trained)}", console)
    wrong = columns["status"] != "done"
    reasons = Counter(zip(columns["status"][wrong].tolist(), columns["message"][wrong].tolist(), strict=True))
    for (ending, message), runs in reasons.most_common(REASONS):
        say(f"{runs:,} {ending}: {message}", console)
    if len(reasons) > REASONS:
        left = sum(reasons.values()) - sum(runs for _, runs in reasons.most_common(REASONS))
        say(f"{left:,} more with {len(reasons) - REASONS:,} other reasons (column message)", console)
    if plan is not None:
        say(f"Of {spec}: {plan.finished:,} of {plan.total:,} runs are final, {len(plan.pending):,} to do", console)


def _say_record(record: SweepRecord, console: Console) -> None:
    tags = f" [{', '.join(record.tags)}]" if record.tags else ""
    say(f"Sweep: {record.name}{tags} (success: a test error of at most {record.success_error:g})", console)
    for line in record.note.splitlines():
        say(f"  {line}", console)


@app.command("note")
def note_(
    store: StoreFile,
    text: Annotated[str | None, typer.Argument(help='The new note; "" removes it.', show_default=False)] = None,
    tag: Tags = None,
    untag: Annotated[list[str] | None, typer.Option(help="A tag to remove; may be given several times.")] = None,
    sweep: Annotated[str | None, typer.Option(help="The name of the sweep; by default the newest.")] = None,
) -> None:
    """Give a sweep of a store a note and tags; print those of all sweeps."""
    from fewfire.sweeps.store._notes import check_tags

    tags, gone = check_tags(tag or ()), check_tags(untag or ())
    with sweeps.SqliteStore(store) as opened:  # refuses what is no store before anything is made
        records = opened.sweeps()
    named = [record for record in records if sweep in (None, record.name)]
    if not named:
        remedy = did_you_mean(sweep or "", [record.name for record in records])
        raise invalid("--sweep", "must be the name of one in the store", sweep or "a store without sweeps", remedy)
    if text is not None or tags or gone:
        new = replace(named[-1], tags=tuple(sorted({*named[-1].tags, *tags} - {*gone})))
        with sweeps.SqliteStore(store, write=True) as opened:
            opened.record_sweep(new if text is None else replace(new, note=text.strip()))
            records = opened.sweeps()
    for record in records:
        _say_record(record, PlainConsole())


@app.command("merge")
def merge_(
    target: Annotated[Path, typer.Argument(help="The store to add to; made when it does not exist.")],
    sources: Annotated[list[Path], typer.Argument(help="Stores whose runs are added.")],
) -> None:
    """Add the runs of stores to another one. A run that both have is kept as it is; the sources are not changed.

    Runs that both have and that differ are counted: with other arithmetic, or as contradictions (exit status 1).
    """
    for source in sources:
        if same_file(source, target):
            raise invalid("TARGET", "must not be one of the stores that are added", str(target), "choose another file")
    with ExitStack() as stack:
        opened = [stack.enter_context(sweeps.SqliteStore(source)) for source in sources]
        written = stack.enter_context(sweeps.SqliteStore(target, write=True))
        before = len(written.sweeps())
        merged = sweeps.merge(written, opened)
        total, records = sum(written.counts().values()), written.sweeps()
    say(f"Added {counted(merged.new, 'run')} from {counted(len(sources), 'store')}: {target} has {total:,}")
    if merged.rounded:
        say(f"{merged.rounded:,} runs differ from those in {target}, with another engine or arithmetic; those are kept")
    for mine, other in merged.sweeps:
        kept, left = (f"{record.name!r} with success at {record.success_error:g}" for record in (mine, other))
        say(f"The sweep {kept} is also called {left}; the first is kept")
    if len(records) > before and len({record.success_error for record in records}) > 1:
        errors = ", ".join(f"{record.name!r} at {record.success_error:g}" for record in records)
        say(f"The sweeps of {target} count success differently: {errors}. The last counts, or --success-error")
    if merged.contradicting:
        first = ", ".join(merged.contradicting[:REASONS])
        say(
            f"{len(merged.contradicting):,} runs contradict those in {target}, with the same engine and arithmetic; "
            f"those are kept. First: {first}. Remedy: repeat them into a new store, and compare"
        )
        raise typer.Exit(1)


@app.command("export")
def export_(
    store: StoreFile,
    output: Annotated[
        Path, typer.Argument(help="The file to write: .csv, .parquet (with histories), or .tex (a row per cell).")
    ],
) -> None:
    """Write all runs of a store as one table."""
    check_file("OUTPUT", output)
    with sweeps.SqliteStore(store) as opened:
        count = sweeps.export(opened, output)
    say(f"Wrote {counted(count, 'cell' if output.suffix == '.tex' else 'run')} to {output}")


SHOWN = 20
"""At most so many cells, those that differ most."""

DECIDED = ("status", "stopped", "test_error", "best_test_error", "train_error", "train_loss", "steps", "multiply_adds")
"""Columns in which two trainings of one run agree when they are the same."""


@app.command()
def compare(
    first: StoreFile,
    second: Annotated[Path, typer.Argument(help="The one to compare it with.", show_default=False)],
    success_error: Annotated[
        float | None, typer.Option(help="The test error that counts as success; by default that of the first store.")
    ] = None,
) -> None:
    """Compare the success of the cells that two stores share, and print whether they differ clearly.

    Runs that both stores have are compared as pairs. The others are compared cell by cell.
    """
    from fewfire.report._findings import CLEAR, compared_z, is_comparable, pair_counts, shared_runs
    from fewfire.sweeps.store._protocol import newest_success_error

    console = wide_console()
    if success_error is not None:
        check_number("--success-error", success_error, 0, 1, open_low=True, open_high=True, remedy="pass 0.1 for 10%")
    with sweeps.SqliteStore(first) as one, sweeps.SqliteStore(second) as other:
        error = success_error or newest_success_error(one.sweeps())
        ours, theirs = ({cell.setting.text: cell for cell in sweeps.cells(store, error)} for store in (one, other))
        columns, more = one.columns(), other.columns()
        wanted = newest_success_error(other.sweeps())
    shared = [text for text in ours if text in theirs and ours[text].runs and theirs[text].runs]
    only = len(ours) - len(shared), len(theirs) - len(shared)
    say(f"{counted(len(shared), 'cell')} in both; {only[0]:,} only in {first}, {only[1]:,} only in {second}", console)
    if success_error is None and wanted != error:
        say(f"{second} counts a test error of {wanted:g} as success, {first} {error:g}, which counts here", console)
    if not shared:
        return
    cells = [(ours[text], theirs[text]) for text in shared]
    won, runs, other_won, other_runs = (
        np.array([getattr(pair[side], name) for pair in cells]) for side in (0, 1) for name in ("successes", "runs")
    )
    indices = shared_runs(columns, more)
    good, bad = (
        sweeps.succeeded(table["status"][index], table["best_test_error"][index], error)
        for table, index in zip((columns, more), indices, strict=True)
    )
    cell = {pair[0].setting.id: number for number, pair in enumerate(cells)}
    numbers = np.array([cell[id] for id in columns["setting"][indices[0]].tolist()], dtype=np.int64)
    pairs = pair_counts(good, bad, numbers, len(cells))
    same = np.ones(len(indices[0]), dtype=bool)
    for name in DECIDED:
        a, b = columns[name][indices[0]], more[name][indices[1]]
        same &= (a == b) | ((a != a) & (b != b))  # NaN where nothing was measured
    console.print(_table(shared, cells, (str(first), str(second))))
    if len(cells) > SHOWN:
        say(f"{SHOWN} of {len(cells):,} cells are shown, those that differ most", console)
    say(_shared(pairs, int(same.sum()), (str(first), str(second))), console)
    shares = f"{won.sum() / runs.sum():.1%} and {other_won.sum() / other_runs.sum():.1%} succeed"
    opening = f"Test error of at most {error:g}: {shares}"
    if not is_comparable(runs, other_runs, pairs):
        alone = (runs + other_runs).sum() == 2 * pairs.sum()
        alike = "they hold the same runs" if alone else "shared runs end alike, and no cell has others in both"
        say(f"{opening}; whether the stores differ is open: {alike}", console)
        return
    z = compared_z(won, runs, other_won, other_runs, pairs)
    verdict = "differ clearly" if abs(z) > CLEAR else "do not differ clearly"
    say(f"{opening}; the stores {verdict} (z = {z:.2f})", console)


def _shared(pairs: IdArray, same: int, names: tuple[str, str]) -> str:
    """What the runs that both stores have are, in a sentence."""
    count, only, other = int(pairs.sum()), int(pairs[1, 0].sum()), int(pairs[0, 1].sum())
    if not count:
        return "No run is in both stores"
    text = f"{counted(count, 'run')} in both stores: {same:,} of them agree in every number"
    return f"{text}; {only:,} succeed only in {names[0]}, {other:,} only in {names[1]}"


def _table(texts: list[str], pairs: list[tuple[Cell, Cell]], names: tuple[str, str]) -> Table:
    """The cells whose success differs most, by the settings in which they differ."""
    keys, labels = _differing(texts)
    table = plain_table(*keys, *names, "difference", right=3)
    apart = [pair[1].success - pair[0].success for pair in pairs]
    for index in sorted(range(len(pairs)), key=lambda index: -abs(apart[index]))[:SHOWN]:
        shares = (f"{cell.successes}/{cell.runs}" for cell in pairs[index])
        table.add_row(*labels[index], *shares, f"{apart[index]:+.0%}")
    return table

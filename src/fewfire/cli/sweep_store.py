"""`fewfire sweep status`, `merge` and `export`: what is in stores, several in one, a store as a table."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from fewfire import experiments
from fewfire._atomic import same_file
from fewfire._errors import invalid
from fewfire.cli._output import PlainConsole, file_size, say
from fewfire.cli._places import check_file

StoreFile = Annotated[Path, typer.Argument(help="The store file.", show_default=False)]
SUCCESS_ERROR = 0.1
"""What counts as success in a store that no sweep was recorded in."""

REASONS = 3
"""At most so many messages of runs that went wrong."""


def status(
    store: StoreFile,
    spec: Annotated[Path | None, typer.Option(help="Also say how much of this sweep the store has.")] = None,
) -> None:
    """Say what a store holds: runs by status, sweeps, engines, and why runs diverged or failed."""
    console = PlainConsole()
    sweep = None if spec is None else experiments.Sweep.from_toml(spec)
    with experiments.SqliteStore(store) as opened:
        counts, columns, sweeps, grid = opened.counts(), opened.columns(), opened.sweeps(), opened.settings()
        plan = None if sweep is None else experiments.make_plan(sweep, opened)
    told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    say(
        f"{store} ({file_size(store.stat().st_size)}): {sum(counts.values()):,} runs in {len(grid):,} cells: {told}",
        console,
    )
    for record in sweeps:
        say(f"Sweep: {record.name} (success: a test error of at most {record.success_error:g})", console)
    error = sweeps[-1].success_error if sweeps else SUCCESS_ERROR
    ended = counts["done"] + counts["diverged"]
    if ended:
        share = experiments.succeeded(columns["status"], columns["best_test_error"], error).sum() / ended
        say(f"{share:.1%} reached a test error of {error:g}", console)
    engines = Counter(columns["engine"].tolist())
    if engines:
        say(f"Engines: {', '.join(f'{name} ({runs:,} runs)' for name, runs in sorted(engines.items()))}", console)
    wrong = columns["status"] != "done"
    reasons = Counter(zip(columns["status"][wrong].tolist(), columns["message"][wrong].tolist(), strict=True))
    for (ending, message), runs in reasons.most_common(REASONS):
        say(f"{runs:,} {ending}: {message}", console)
    if plan is not None:
        say(f"Of {spec}: {plan.finished:,} of {plan.total:,} runs are final, {len(plan.pending):,} to do", console)


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
        opened = [stack.enter_context(experiments.SqliteStore(source)) for source in sources]
        written = stack.enter_context(experiments.SqliteStore(target, write=True))
        merged = experiments.merge(written, opened)
        total = sum(written.counts().values())
    say(f"Added {merged.new:,} runs from {len(sources)} store{'s' if len(sources) > 1 else ''}: {target} has {total:,}")
    if merged.rounded:
        say(f"{merged.rounded:,} runs differ from those in {target}, with another engine or arithmetic; those are kept")
    for mine, other in merged.sweeps:
        kept, left = (f"{record.name!r} with success at {record.success_error:g}" for record in (mine, other))
        say(f"The sweep {kept} is also called {left}; the first is kept")
    if merged.contradicting:
        first = ", ".join(merged.contradicting[:REASONS])
        say(
            f"{len(merged.contradicting):,} runs contradict those in {target}, with the same engine and arithmetic; "
            f"those are kept. First: {first}. Remedy: repeat them into a new store, and compare"
        )
        raise typer.Exit(1)


def export_(
    store: StoreFile,
    output: Annotated[
        Path, typer.Argument(help="The file to write: .csv, .parquet (with histories), or .tex (a row per cell).")
    ],
) -> None:
    """Write all runs of a store as one table."""
    check_file("OUTPUT", output)
    with experiments.SqliteStore(store) as opened:
        count = experiments.export(opened, output)
    say(f"Wrote {count} {'cells' if output.suffix == '.tex' else 'runs'} to {output}")

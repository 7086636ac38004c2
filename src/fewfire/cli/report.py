"""`fewfire report`: stores as one page to look at, as figures for papers, or as a page that follows a sweep."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import fewfire as ff
from fewfire._atomic import same_file
from fewfire._errors import invalid
from fewfire._optional import require
from fewfire._validate import check_integer, check_number, counted
from fewfire.cli._output import check_file, check_folder, file_size, read_json, say, terminated_as_interrupted

OUTPUT = Path("report.html")


def report(
    stores: Annotated[
        list[Path], typer.Argument(help="The store that a sweep wrote; several are compared side by side.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page to write.", show_default=str(OUTPUT))
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Also write the figures as PNG into this folder.")] = None,
    pdf: Annotated[Path | None, typer.Option(help="Also write the figures as PDF into this folder.")] = None,
    success_error: Annotated[
        float | None, typer.Option(help="The test error that counts as success; by default that of the newest sweep.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page; by default the sweep's name.")] = None,
    profile: Annotated[
        Path | None,
        typer.Option(help="Add a section on a model's activity, from the file of `fewfire profile --json`."),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Write nothing: serve the page on this machine and follow running sweeps.")
    ] = False,
    port: Annotated[int, typer.Option(help="Where --watch listens; 0 takes a free port.")] = 0,
) -> None:
    """Write a store as one page that needs nothing else: success frontiers, training curves, every setting."""
    if success_error is not None:
        check_number("--success-error", success_error, 0, 1, open_low=True, open_high=True, remedy="pass 0.1 for 10%")
    if watch:
        written = {"--output": output, "--png": png, "--pdf": pdf, "--profile": profile}
        for option, path in written.items():
            if path is not None:
                raise invalid(option, "must be left out with --watch, which writes nothing", str(path))
        _watch(stores, success_error, title, port)
        return
    if port:
        raise invalid("--port", "goes with --watch", port, "add --watch, or leave it out")
    output = OUTPUT if output is None else output
    check_file("--output", output)
    for option, folder in (("--png", png), ("--pdf", pdf)):
        check_folder(option, folder)
        if folder is not None:
            require("matplotlib.figure", "plot", option)
    for store in stores:
        if same_file(output, store):
            raise invalid("output", "must not be the store itself", str(output), "choose another file")
    from fewfire.report._results import read_results

    with ExitStack() as stack:
        opened = {name: stack.enter_context(ff.sweeps.SqliteStore(path)) for name, path in _named(stores).items()}
        results = read_results(opened, success_error)
        command = "fewfire profile MODULE:FACTORY --json > FILE"
        activity = None if profile is None else read_json("--profile", profile, command)
        size = ff.report.write_page(results, output, title=title, profile=activity)
        runs, cells = len(results.columns["hash"]), len(results.settings)
        console = Console(stderr=output == Path("/dev/stdout"))  # where the page goes, nothing else does
        say(f"Wrote {output} ({file_size(size)}): {counted(runs, 'run')} in {counted(cells, 'cell')}.", console)
        for folder, suffix in ((png, "png"), (pdf, "pdf")):
            if folder is not None:
                count = len(ff.report.save_figures(results, folder, (suffix,)))
                say(f"Wrote {counted(count, 'figure')} as {suffix.upper()} to {folder}.", console)


def _watch(stores: list[Path], success_error: float | None, title: str | None, port: int) -> None:
    """Serve until Ctrl-C, or until a batch system asks to stop."""
    check_integer("--port", port, 0, 65535)
    page = ff.report.LivePage(_named(stores), success_error, title=title)
    with ff.report.PageServer(page, port) as server:
        for store in stores:
            if not store.exists():
                say(f"There is no store {store} yet. Run a sweep into it in another terminal; the page waits for it.")
        say(f"Watching {', '.join(map(str, stores))}: open {server.url} in a browser on this machine. Ctrl-C ends it.")
        try:
            with terminated_as_interrupted():
                server.serve_forever()
        except KeyboardInterrupt:
            say("Stopped watching. The stores are as they were.")


def _named(stores: list[Path]) -> dict[str, Path]:
    """Stores by name: that of the file, with its folder where files of one name are compared."""
    names = [path.name for path in stores]
    named = {path.name if names.count(path.name) == 1 else str(path): path for path in stores}
    for path in stores[1:]:
        if sum(same_file(path, other) for other in stores) > 1:
            raise invalid("STORES", "must be different files", str(path), "name each store once")
    return named

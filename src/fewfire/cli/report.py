"""`fewfire report`: a store as one page to look at, and as figures for papers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from fewfire._atomic import same_file
from fewfire._errors import invalid
from fewfire._optional import require
from fewfire._validate import check_number
from fewfire.cli._output import file_size, say
from fewfire.cli._places import check_file, check_folder
from fewfire.experiments import SqliteStore
from fewfire.report import read_results, save_figures, write_page


def report(
    store: Annotated[Path, typer.Argument(help="The store file that a sweep wrote.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
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
) -> None:
    """Write a store as one page that needs nothing else: success frontiers, training curves, every setting."""
    if success_error is not None:
        check_number("--success-error", success_error, 0, 1, open_low=True, open_high=True, remedy="pass 0.1 for 10%")
    check_file("--output", output)
    for option, folder in (("--png", png), ("--pdf", pdf)):
        check_folder(option, folder)
        if folder is not None:
            require("matplotlib.figure", "plot", option)
    if same_file(output, store):
        raise invalid("output", "must not be the store itself", str(output), "choose another file")
    with SqliteStore(store) as opened:
        results = read_results(opened, success_error)
        size = write_page(results, output, title=title, profile=None if profile is None else _read_profile(profile))
        runs, cells = len(results.columns["hash"]), len(results.settings)
        console = Console(stderr=output == Path("/dev/stdout"))  # where the page goes, nothing else does
        say(f"Wrote {output} ({file_size(size)}): {runs:,} runs in {cells:,} cells.", console)
        for folder, suffix in ((png, "png"), (pdf, "pdf")):
            if folder is not None:
                count = len(save_figures(results, folder, (suffix,)))
                say(f"Wrote {count} figures as {suffix.upper()} to {folder}.", console)


def _read_profile(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        remedy = "write it with: fewfire profile MODULE:FACTORY --json > FILE"
        raise invalid("--profile", f"must be a file of JSON ({error})", str(path), remedy) from None
    if not isinstance(data, dict):
        raise invalid("--profile", "must hold a profile of a model", f"a {type(data).__name__}")
    return data

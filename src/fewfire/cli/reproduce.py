"""`fewfire reproduce`: list and run the recipes, one per claim, figure or theorem of the papers."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import fewfire as ff
from fewfire._atomic import write_text
from fewfire._cores import usable_cores
from fewfire._errors import invalid
from fewfire._optional import is_installed
from fewfire.cli._output import say, visible, wide_console
from fewfire.cli._places import check_folder
from fewfire.cli._side_by_side import RecipeTask, SideBySide
from fewfire.experiments import recipes
from fewfire.experiments.run._bar import duration

if TYPE_CHECKING:
    from fewfire.experiments.recipes import Judgement, RecipeResult, Scale

TABULAR = "Options of pareto/table2"
NOT_STATED = "not stated"


def reproduce(
    names: list[str] | None = typer.Argument(None, help="Recipes to run, such as pareto/over-sparse; none lists them."),
    scale: str = typer.Option("quick", help='"quick" (seconds to a minute each) or "paper" (the papers\' sizes).'),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="Folder for a JSON file and a figure (PNG, with the extra plot) per recipe."
    ),
    pdf: bool = typer.Option(False, "--pdf", help="Also write each figure as PDF, for papers."),
    everything: bool = typer.Option(False, "--all", help="Run every recipe, one per core at a time."),
    settings: bool = typer.Option(False, "--settings", help="List the settings of both scales as well."),
    datasets: str | None = typer.Option(None, help='Data sets, such as pol,credit, or "all".', rich_help_panel=TABULAR),
    fractions: str | None = typer.Option(None, help="Shares of the rows, such as 0.01,0.1,1.", rich_help_panel=TABULAR),
    trials: int | None = typer.Option(None, help="Random splits.", rich_help_panel=TABULAR),
    models: str | None = typer.Option(
        None,
        help="Models, such as fewfire,forest,xgboost,catboost,mlp,sparse-1000,dense-1000,forest-grid.",
        rich_help_panel=TABULAR,
    ),
    store: Path | None = typer.Option(
        None, help="File to keep measurements in; repeat the command to go on.", rich_help_panel=TABULAR
    ),
    data: Path | None = typer.Option(
        None, help="Folder of NAME.parquet files; else FEWFIRE_DATA, else OpenML.", rich_help_panel=TABULAR
    ),
) -> None:
    """List the recipes, or run some: whether each claim held, by which test, with which effect and which power.

    Several run side by side, one per core.
    """
    given = {
        "datasets": _texts(datasets),
        "fractions": _numbers(fractions),
        "trials": trials,
        "models": _texts(models),
        "store": store,
        "data": data,
    }
    options = {name: value for name, value in given.items() if value is not None}
    console = wide_console()
    chosen = list(recipes.RECIPES) if everything else names or []
    if not chosen:
        _list(console, settings)
        return
    for name in chosen:
        recipes.find(name).check_options(options, scale)  # refuse a wrong name before anything runs
    check_folder("--output", output)
    if pdf and output is None:
        raise invalid("--pdf", "needs a folder to write to", "no --output", "add -o FOLDER")
    if len(chosen) > 1 and usable_cores() > 1:
        failed = _run_side_by_side(console, chosen, scale, output, options, pdf)
    else:
        failed = [name for name in chosen if not _run(console, name, scale, output, options, pdf)]
    if failed:
        console.print(Text.assemble(("Not confirmed:", "bold red"), f" {', '.join(failed)}"))
        raise typer.Exit(1)


def _list(console: Console, settings: bool) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("recipe", "shows", "seconds", "expect"):
        table.add_column(title, no_wrap=title == "recipe")
    for name in recipes.RECIPES:
        recipe = recipes.find(name)
        table.add_row(name, recipe.title, str(recipe.seconds), recipe.expectation)
    console.print(table)
    if settings:
        for name in recipes.RECIPES:
            for scale, chosen in recipes.find(name).scales.items():
                console.print(f"{name}, {scale}: {chosen}", soft_wrap=True)
    console.print("Run one with: fewfire reproduce NAME [--scale paper], or all with --all.")


def _texts(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _numbers(text: str | None) -> list[float] | None:
    try:
        return None if text is None else [float(part) for part in _texts(text) or []]
    except ValueError:
        raise invalid("--fractions", "must be numbers with commas between them", text, "pass 0.01,0.1,1") from None


def _run_side_by_side(
    console: Console, names: list[str], scale: str, output: Path | None, options: dict[str, Any], pdf: bool
) -> list[str]:
    """The recipes of which a claim failed; each is told in one piece when it ends."""
    found = {name: recipes.find(name) for name in names}
    work = {name: recipe.work(scale) for name, recipe in found.items()}
    together = min(len(names), usable_cores())
    about = max(sum(work.values()) / usable_cores(), max(work.values()) / (usable_cores() // together))
    console.print(f"{len(names)} recipes, {together} at a time, longest first: about {duration(about)}")
    plain = {key: str(value) if isinstance(value, Path) else value for key, value in options.items()}
    folder = None if output is None else str(output)
    tasks = [RecipeTask(name, scale, folder, pdf, plain) for name in sorted(found, key=lambda name: -work[name])]
    ended: dict[str, int] = {}
    try:
        with console.status("starting") as status:

            def show(running: list[str]) -> None:
                status.update(Text(f"{len(ended)} of {len(tasks)} have ended; running {', '.join(running)}"))

            with closing(SideBySide(console, show).run(tasks)) as results:
                for result in results:
                    ended[result.name] = result.status
                    console.print(Text.from_ansi(result.text.rstrip()), soft_wrap=True)
    except KeyboardInterrupt:
        say(f"Stopped: {len(ended)} of {len(tasks)} recipes had ended.", console)
        raise typer.Exit(130) from None
    broken = [name for name in names if ended[name] not in (0, 1)]
    if broken:
        console.print(Text.assemble(("Broke off:", "bold red"), f" {', '.join(broken)}"))
        raise typer.Exit(2)
    return [name for name in names if ended[name] == 1]


def run_task(task: RecipeTask) -> bool:
    """Run one recipe of several, in a process beside others: whether its claims held."""
    output = None if task.output is None else Path(task.output)
    return _run(wide_console(), task.name, task.scale, output, task.options, task.pdf)


def _run(
    console: Console, name: str, scale: str, output: Path | None, options: dict[str, Any], pdf: bool = False
) -> bool:
    recipe = recipes.find(name)
    console.print(Text.assemble((name, "bold"), f": {recipe.title}"))
    console.print(f"  takes: {recipe.takes(scale)}\n  expect: {recipe.expectation}")
    start = time.perf_counter()
    with console.status("running") as status:
        telling = {"tell": lambda told: status.update(Text(visible(told)))} if "tell" in recipe.options else {}
        result = recipes.run(name, cast("Scale", scale), **options, **telling)
    for line in result.measured:
        console.print(f"  measured: {line}")
    if "text" in result.data:
        console.print(result.data["text"], soft_wrap=True)
    for entry in result.judgements:
        console.print(_verdict(entry))
    console.print(f"  took {time.perf_counter() - start:.0f} s")
    if output is not None:
        _write(console, result, output / f"{name.replace('/', '-')}.json", (".png", ".pdf") if pdf else (".png",))
    return result.passed


def _verdict(entry: Judgement) -> Table:
    """The claim beside its verdict, and below it by what it was judged; long texts wrap within their column."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_row(Text("  holds", "green") if entry.passed else Text("  fails", "red"), Text(entry.claim, "bold"))
    table.add_row("  test", entry.test)
    table.add_row("  effect", str(entry.effect or NOT_STATED))
    table.add_row("  power", str(entry.power or NOT_STATED))
    table.add_row("  refuted by", entry.refuted_by or NOT_STATED)
    return table


def _write(console: Console, result: RecipeResult, path: Path, figures: tuple[str, ...]) -> None:
    """The result, and its figure beside it; an earlier result stays when there was no data to measure on."""
    if result.data.get("rows") == []:
        console.print(f"  nothing measured, so {path} is left as it is")
        return
    drawn = is_installed("matplotlib")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(result.to_dict()) + "\n")
        if "text" in result.data:
            write_text(path.with_suffix(".txt"), result.data["text"])
        for suffix in figures if drawn else ():
            ff.report.save_recipe(result, path.with_suffix(suffix))
    except OSError as error:
        rule = f"must be a folder that can be written to ({error.strerror})"
        raise invalid("--output", rule, str(path.parent)) from None
    console.print(f"  written to {path}")
    if drawn:
        console.print(f"  drawn in {', '.join(str(path.with_suffix(suffix)) for suffix in figures)}")
    else:
        console.print("  not drawn: pip install 'fewfire[plot]'", markup=False)

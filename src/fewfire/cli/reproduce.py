"""`fewfire reproduce`: list and run the recipes, one per claim, figure or theorem of the papers."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import fewfire as ff
from fewfire._atomic import write_text
from fewfire._errors import invalid
from fewfire._optional import is_installed
from fewfire._threads import usable_cores
from fewfire.cli._output import check_folder, plain_table, say, visible, wide_console
from fewfire.cli._recipe_processes import RecipePool, RecipeTask
from fewfire.papers import recipes
from fewfire.sweeps.run._progress import about

if TYPE_CHECKING:
    from fewfire.papers.recipes import Judgement, RecipeResult, Scale

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
) -> None:
    """List the recipes, or run some: whether each claim holds, by which test, with which effect and which power.

    Several run side by side, one per core.
    """
    console = wide_console()
    chosen = list(recipes.RECIPES) if everything else names or []
    if not chosen:
        _list(console, settings)
        return
    for name in chosen:
        recipes.find(name).check_options((), scale)  # refuse a wrong name before anything runs
    check_folder("--output", output)
    if pdf and output is None:
        raise invalid("--pdf", "needs a folder to write to", "no --output", "add -o FOLDER")
    tasks = [RecipeTask(name, scale, None if output is None else str(output), pdf) for name in chosen]
    if len(tasks) > 1 and usable_cores() > 1:
        failed = _run_together(console, tasks)
    else:
        failed = [task.name for task in tasks if not run_task(console, task)]
    if failed:
        console.print(Text.assemble(("Not confirmed:", "bold red"), f" {', '.join(failed)}"))
        raise typer.Exit(1)


def _list(console: Console, settings: bool) -> None:
    table = plain_table("recipe", "shows", "seconds", "expect")
    table.columns[0].no_wrap = True
    for name in recipes.RECIPES:
        recipe = recipes.find(name)
        table.add_row(name, recipe.title, str(recipe.seconds[0]), recipe.expectation)
    console.print(table)
    if settings:
        for name in recipes.RECIPES:
            for scale, chosen in recipes.find(name).scales.items():
                console.print(f"{name}, {scale}: {chosen}", soft_wrap=True)
    console.print("Run one with: fewfire reproduce NAME [--scale paper], or all with --all.")


def _run_together(console: Console, tasks: list[RecipeTask]) -> list[str]:
    """Run recipes in processes; gives those of which a claim failed. Each is printed in one piece when it ends."""
    work = {task.name: recipes.find(task.name).work(task.scale) for task in tasks}
    together = min(len(tasks), usable_cores())
    seconds = max(sum(work.values()) / usable_cores(), max(work.values()) / (usable_cores() // together))
    console.print(f"{len(tasks)} recipes, {together} at a time, longest first: {about(seconds)}")
    ended: dict[str, int] = {}
    try:
        with console.status("starting") as status:

            def show(running: list[str]) -> None:
                status.update(Text(f"{len(ended)} of {len(tasks)} have ended; running {', '.join(running)}"))

            with closing(RecipePool(console, show).run(sorted(tasks, key=lambda task: -work[task.name]))) as results:
                for result in results:
                    ended[result.name] = result.status
                    console.print(Text.from_ansi(result.text.rstrip()), soft_wrap=True)
    except KeyboardInterrupt:
        say(f"Stopped: {len(ended)} of {len(tasks)} recipes had ended.", console)
        raise typer.Exit(130) from None
    broken = [task.name for task in tasks if ended[task.name] not in (0, 1)]
    if broken:
        console.print(Text.assemble(("Broke off:", "bold red"), f" {', '.join(broken)}"))
        raise typer.Exit(2)
    return [task.name for task in tasks if ended[task.name] == 1]


def run_task(console: Console, task: RecipeTask) -> bool:
    """Run one recipe, print and write its result: whether its claims hold."""
    recipe = recipes.find(task.name)
    console.print(Text.assemble((task.name, "bold"), f": {recipe.title}"))
    console.print(f"  takes: {recipe.takes(task.scale)}\n  expect: {recipe.expectation}")
    start = time.perf_counter()
    with console.status("running") as status:
        shown = {"progress": lambda line: status.update(Text(visible(line)))} if "progress" in recipe.options else {}
        result = recipes.run(task.name, cast("Scale", task.scale), **shown)
    for line in result.measured:
        console.print(f"  measured: {line}")
    if "text" in result.data:
        console.print(result.data["text"], soft_wrap=True)
    for entry in result.judgements:
        console.print(_verdict(entry, recipe.whose(entry.claim)))
    console.print(f"  took {time.perf_counter() - start:.0f} s")
    if task.output is not None:
        path = Path(task.output) / f"{task.name.replace('/', '-')}.json"
        _write(console, result, path, (".png", ".pdf") if task.pdf else (".png",))
    return result.passed


def _verdict(entry: Judgement, whose: str) -> Table:
    """The claim and whose it is by its verdict, below it test, effect and power; long texts wrap in their column."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    claim = Text(f"{entry.claim} ({whose})", "bold")
    table.add_row(Text("  holds", "green") if entry.passed else Text("  fails", "red"), claim)
    table.add_row("  test", entry.test)
    table.add_row("  effect", str(entry.effect or NOT_STATED))
    table.add_row("  power", str(entry.power or NOT_STATED))
    table.add_row("  refuted by", entry.refuted_by or NOT_STATED)
    return table


def _write(console: Console, result: RecipeResult, path: Path, figures: tuple[str, ...]) -> None:
    """The result, and its figure next to it; an earlier result stays when there was no data to measure on."""
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
            ff.papers.recipes.save_figure(result, path.with_suffix(suffix))
    except OSError as error:
        rule = f"must be a folder that can be written to ({error.strerror})"
        raise invalid("--output", rule, str(path.parent)) from None
    console.print(f"  written to {path}")
    if drawn:
        console.print(f"  drawn in {', '.join(str(path.with_suffix(suffix)) for suffix in figures)}")
    else:
        console.print("  not drawn: pip install 'fewfire[plot]'", markup=False)

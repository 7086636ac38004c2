"""`fewfire reproduce`: list and run the recipes, one a claim, figure or theorem of the papers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from fewfire._optional import is_installed
from fewfire.experiments import recipes
from fewfire.report import save_recipe


def reproduce(
    names: list[str] | None = typer.Argument(None, help="Recipes to run, such as pareto/over-sparse; none lists them."),
    scale: str = typer.Option("quick", help='"quick" (seconds to a minute each) or "paper" (the papers\' sizes).'),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="Folder for a JSON file and a figure (PNG, with the extra plot) a recipe."
    ),
    everything: bool = typer.Option(False, "--all", help="Run every recipe."),
) -> None:
    """List the recipes, or run some: what each shows, what was measured, and whether the paper's claim held."""
    console = Console(width=max(100, Console().width))
    chosen = list(recipes.RECIPES) if everything else names or []
    if not chosen:
        _list(console)
        return
    for name in chosen:
        recipes.find(name)  # refuse a wrong name before anything runs
    failed = [name for name in chosen if not _run(console, name, scale, output)]
    if failed:
        console.print(f"[bold red]Not confirmed:[/] {', '.join(failed)}", highlight=False)
        raise typer.Exit(1)


def _list(console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("recipe", "shows", "seconds", "expect"):
        table.add_column(title, no_wrap=title == "recipe")
    for name in recipes.RECIPES:
        recipe = recipes.find(name)
        table.add_row(name, recipe.title, str(recipe.seconds), recipe.expectation)
    console.print(table, highlight=False)
    console.print("Run one with: fewfire reproduce NAME [--scale paper], or all with --all.", highlight=False)


def _run(console: Console, name: str, scale: str, output: Path | None) -> bool:
    recipe = recipes.find(name)
    console.print(f"[bold]{name}[/]: {recipe.title}", highlight=False)
    usual = f"about {recipe.seconds} s on two cores" if scale == "quick" else "minutes to hours"
    console.print(f"  takes: {usual}\n  expect: {recipe.expectation}", highlight=False)
    start = time.perf_counter()
    with console.status("running"):
        outcome: dict[str, Any] = recipes.run(name, scale)
    for line in outcome["measured"]:
        console.print(f"  measured: {line}", highlight=False, markup=False)
    for entry in outcome["judgement"]:
        verdict = "[green]holds[/]" if entry["passed"] else "[red]fails[/]"
        measured = f"{entry['statistic']} = {entry['value']:.4g}, {entry['rule']} {entry['threshold']:.4g}"
        console.print(f"  {verdict}  {entry['claim']} ({measured})", highlight=False)
    console.print(f"  took {time.perf_counter() - start:.0f} s", highlight=False)
    if output is not None:
        _write(console, outcome, output / f"{name.replace('/', '-')}.json")
    return bool(outcome["passed"])


def _write(console: Console, outcome: dict[str, Any], path: Path) -> None:
    """The result, and its figure beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(outcome) + "\n")
    console.print(f"  written to {path}", highlight=False)
    if is_installed("matplotlib"):
        save_recipe(outcome, path.with_suffix(".png"))
        console.print(f"  drawn in {path.with_suffix('.png')}", highlight=False)
    else:
        console.print("  not drawn: pip install 'fewfire[plot]'", highlight=False, markup=False)

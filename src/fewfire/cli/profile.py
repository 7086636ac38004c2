"""`fewfire profile`: which neurons of a PyTorch model's MLP blocks fire, and what a sparse path would gain here."""

from __future__ import annotations

import inspect
import itertools
import json
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

import fewfire as ff
from fewfire._errors import invalid
from fewfire._optional import require
from fewfire._validate import check_integer, counted, did_you_mean
from fewfire.cli._output import check_file, file_size, plain_table, say, wide_console

ROWS = 16
"""Of a batch that is made up."""


def profile(
    factory: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FACTORY",
            help="A function without arguments that gives a model, or a model and its batches.",
            show_default=False,
        ),
    ],
    batches: Annotated[int, typer.Option(help="Run at most this many.")] = 32,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON instead of a table.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write a page to this file.")] = None,
    gains: Annotated[bool, typer.Option(help="Measure what a sparse path gains.")] = True,
) -> None:
    """Count how many neurons of a PyTorch model fire, block by block, and measure what `sparsify` would gain."""
    check_integer("--batches", batches, 1)
    check_file("--output", output)
    torch = require("torch", "torch", "fewfire profile")
    model, fed = _made(factory, torch)
    made_up = fed is None
    seen = ff.torch.profile(model, _made_up(model, torch) if made_up else fed, gains=gains, max_batches=batches)
    note = f"The factory gave no batches: {ROWS} standard normal rows each were made up."
    if as_json:
        print(json.dumps(seen.to_dict()))
    else:
        console = wide_console()
        heads, *rows = seen.rows()
        table = plain_table(*heads, right=len(heads) - 3)
        for column in table.columns[1:]:
            column.no_wrap = True
        for row in rows:
            table.add_row(*row)
        console.print(table)
        for text in _legend(seen, made_up and note):
            say(text, console)
    if output is not None:
        size = ff.report.write_page(None, output, title=f"Activity of {seen.model}", profile=seen)
        if not as_json:
            say(f"Wrote {output} ({file_size(size)}).")


def _legend(seen: Any, note: str | bool) -> Iterator[str]:
    """What the table means, and what is not in it."""
    tokens = max(one.tokens for one in seen.blocks)
    batches = f"{seen.batches} batch{'es' * (seen.batches != 1)}, up to {counted(tokens, 'token')} per block"
    yield f"{batches}; gains with {counted(seen.threads, 'thread')}."
    yield "fire: mean share on a token; union: on some token of a call; 90% by: neurons that make 90% of all firing;"
    yield "k: the most on one token; ×1, ×16: dense time over sparse time at 1 and 16 rows."
    if note:
        yield str(note)
    if seen.seconds is not None:
        sparse, dense = seen.seconds
        takes = f"{1e3 * dense:.3g} ms on the first batch, about {1e3 * sparse:.3g} ms after sparsify"
        yield f"The whole model takes {takes}: {seen.gain:.2f} times as fast."
    for one in seen.blocks:
        if one.block.reason:
            yield f"{one.block.label} cannot be made sparse: {one.block.reason}."
    for name in seen.missed:
        yield f"{name} looks like a block, but did not run as one in these batches."


def _made(text: str, torch: Any) -> tuple[Any, Any]:
    """The model, and its batches or None."""
    module, _, name = text.partition(":")
    if not module or not name:
        raise invalid("MODULE:FACTORY", "must be a module and a name in it", text, "write mymodels:build")
    sys.path.insert(0, "")  # as python -m does: modules of the current folder
    try:
        found: Any = pkgutil.resolve_name(text)
    except (ImportError, ValueError) as error:  # ValueError: no name of a module, unless the module itself raises it
        if isinstance(error, ValueError) and all(part.isidentifier() for part in text.replace(":", ".").split(".")):
            raise
        raise invalid("MODULE:FACTORY", f"must name a module that can be imported ({error})", text) from None
    except AttributeError as error:
        remedy = did_you_mean(error.name, dir(error.obj))
        raise invalid("MODULE:FACTORY", f"must name something in module {module}", text, remedy) from None
    finally:
        sys.path.remove("")
    made = found
    if callable(found) and not isinstance(found, torch.nn.Module):
        if needed := _arguments(found):
            remedy = f"write a function that returns {name}(…), and name that"
            raise invalid("MODULE:FACTORY", "must need no arguments", f"one that needs {', '.join(needed)}", remedy)
        made = found()
    if isinstance(made, torch.nn.Module):
        return made, None
    if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module):
        return made
    got = f"a {type(made).__name__}"
    raise invalid(
        "MODULE:FACTORY", "must give a torch.nn.Module, or one and its batches", got, "return (model, batches)"
    )


def _arguments(function: Any) -> list[str]:
    """The names of the arguments that a function cannot be called without."""
    try:
        known = inspect.signature(function).parameters.values()
    except ValueError:  # written in C
        return []
    optional = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return [one.name for one in known if one.default is one.empty and one.kind not in optional]


def _made_up(model: Any, torch: Any) -> Iterator[Any]:
    """Standard normal rows for a model that takes rows."""
    first = next((m for m in model.modules() if isinstance(m, torch.nn.Linear)), None)
    rows = torch.Generator().manual_seed(0)
    size = (ROWS, 1 if first is None else first.in_features)
    draws = (torch.randn(size, generator=rows) for _ in itertools.count())
    trial = next(draws)
    try:
        with torch.no_grad():
            model(trial)
    except Exception as error:  # the model is the user's, and the rows are not what it was made for
        rule = f"must give batches too, because the model does not take rows of {size[1]} numbers ({error})"
        raise invalid("MODULE:FACTORY", rule, "a model alone", "return (model, batches)") from None
    return itertools.chain([trial], draws)

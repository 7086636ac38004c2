"""`fewfire law`: fit the law of data to stores, and predict from it before anything runs."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.table import Table

from fewfire import experiments
from fewfire._atomic import write_text
from fewfire._errors import FileFormatError, invalid
from fewfire.cli._output import say, wide_console
from fewfire.cli._places import check_file

if TYPE_CHECKING:
    from fewfire.experiments import FrontierLaw

app = typer.Typer(
    help="The law of data of sparse parities: fitted to stores, asked before a run.", no_args_is_help=True
)

SHOWN = 8
"""Frontiers with the largest residuals that are printed."""

Stores = Annotated[list[Path], typer.Argument(help="Stores of sweeps of parities.", show_default=False)]


@app.command()
def fit(
    stores: Stores,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the law as JSON, for predict.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Count successes within so many steps; by default each run's.")
    ] = None,
    success_error: Annotated[
        float | None, typer.Option(help="The test error that counts as success; by default each store's own.")
    ] = None,
) -> None:
    """Fit the examples that half of the runs need to the frontiers of stores, and say how well that predicts."""
    from fewfire.experiments.laws import LEVEL, merged_cells

    check_file("--output", output)
    with ExitStack() as stack:
        opened = [stack.enter_context(experiments.SqliteStore(path)) for path in stores]
        cells = merged_cells(cell for store in opened for cell in experiments.parity_cells(store, success_error))
    law = experiments.fit_law(cells, steps=steps)
    console = wide_console()
    left = f"; {law.unlocated} lines whose values do not bracket theirs are left out" if law.unlocated else ""
    say(f"log m* by {len(law.points)} frontiers of {sum(point.runs for point in law.points):,} runs{left}.", console)
    table = Table("term", "coefficient", f"{LEVEL:.0%} interval", box=None, pad_edge=False)
    for term, value, (low, high) in zip(law.terms, law.coefficients, law.intervals().T, strict=True):
        table.add_row(term, f"{value:.3f}", f"{low:.3f} to {high:.3f}")
    console.print(table)
    residuals = law.residuals
    error = float(np.median([point.error for point in law.points]))
    say(f"Beside the law frontiers scatter by {law.spread:.0%}; each is measured to {error:.0%} (median).", console)
    worst = sorted(zip(residuals, law.points, strict=True), key=lambda pair: -abs(pair[0]))[:SHOWN]
    table = Table("largest residuals", "measured", "measured / law", box=None, pad_edge=False)
    for residual, point in worst:
        place = f"({point.n}, {point.k}), width {point.width:,}, {point.start}"
        table.add_row(place, f"{point.samples:,.0f} ± {point.error:.0%}", f"{np.exp(residual):.2f}")
    console.print(table)
    for by in ("frontier", "n", "width"):
        held = law.held_out(by)
        if held:
            inside = sum(one.inside for one in held)
            say(f"Held out by {by}: {inside} of {len(held)} inside the {LEVEL:.0%} predictive interval.", console)
    if output is not None:
        write_text(output, json.dumps(law.to_dict()) + "\n")
        say(f"Wrote {output}.", console)


@app.command()
def predict(
    n: int = typer.Option(..., help="Number of input bits."),
    k: int = typer.Option(..., help="Number of bits in the parity."),
    width: int = typer.Option(..., help="Hidden neurons of the two-layer network."),
    init: str = typer.Option(
        "sparse", help='The start: "sparse" (two inputs per neuron), "dense", or a name the law has.'
    ),
    law: Annotated[
        Path | None, typer.Option(help="A law that `fewfire law fit` wrote; by default the shipped one.")
    ] = None,
    level: float | None = typer.Option(
        None, help="The probability that the interval holds the frontier; 0.9 unless given."
    ),
    extrapolate: bool = typer.Option(False, help="Also beyond the n and the widths that were fitted."),
) -> None:
    """Predict the examples with which half of the runs will succeed, with an interval."""
    from fewfire.experiments.laws import LEVEL

    told = experiments.shipped_law() if law is None else _read(law)
    found = told.predict(n, k, width, init, level=LEVEL if level is None else level, extrapolate=extrapolate)
    say(f"({n}, {k})-parity, width {width:,}, {init} start: half of the runs need {found}.")


def _read(path: Path) -> FrontierLaw:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        remedy = "write it with: fewfire law fit STORE -o FILE"
        raise invalid("--law", f"must be a file of JSON ({error})", str(path), remedy) from None
    if not isinstance(table, dict):
        raise FileFormatError(f"{path} is no law: it holds a {type(table).__name__}.")
    return experiments.FrontierLaw.from_dict(table)

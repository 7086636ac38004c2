"""`fewfire law`: fit the law of data to stores, and predict from it before anything runs."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from fewfire import sweeps
from fewfire._atomic import write_text
from fewfire._errors import InvalidArgument, invalid
from fewfire._validate import counted
from fewfire.cli._output import check_file, plain_table, read_json, say, wide_console

app = typer.Typer(
    help="The law of data of sparse parities: fitted to stores, for predictions before a run.", no_args_is_help=True
)

SHOWN = 8
"""Frontiers with the largest residuals that are printed."""


@app.command()
def fit(
    stores: Annotated[list[Path], typer.Argument(help="Stores of sweeps of parities.", show_default=False)],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the law as JSON, for predict.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Count successes within so many steps; by default each run's.")
    ] = None,
    success_error: Annotated[
        float | None, typer.Option(help="The test error that counts as success; by default each store's own.")
    ] = None,
) -> None:
    """Fit the examples that half of the runs need to the frontiers of stores, and say how well that predicts."""
    from fewfire.sweeps.laws._cells import merged_cells, parity_cells
    from fewfire.sweeps.laws._frontier_law import LEVEL, fit_law

    check_file("--output", output)
    with ExitStack() as stack:
        opened = [stack.enter_context(sweeps.SqliteStore(path)) for path in stores]
        hashes = [hash for store in opened for hash in store.finished()]
        if twice := len(hashes) - len(set(hashes)):
            remedy = "fewfire sweep merge makes one store of them"
            raise invalid("STORES", "must not share runs, which would count twice", f"{twice:,} shared runs", remedy)
        cells = merged_cells(cell for store in opened for cell in parity_cells(store, success_error))
    law = fit_law(cells, steps=steps)
    console = wide_console()
    left = f"; left out, outside the samples that were run: {law.unlocated}" if law.unlocated else ""
    say(
        f"log m* by {counted(len(law.points), 'frontier')} of {sum(point.runs for point in law.points):,} runs{left}.",
        console,
    )
    table = plain_table("term", "coefficient", f"{LEVEL:.0%} interval")
    for term, value, (low, high) in zip(law.terms, law.coefficients, law.intervals().T, strict=True):
        table.add_row(term, f"{value:.3f}", f"{low:.3f} to {high:.3f}")
    console.print(table)
    residuals = law.residuals
    error = float(np.median([point.error for point in law.points]))
    say(f"Around the law frontiers scatter by {law.spread:.0%}; each is measured to {error:.0%} (median).", console)
    worst = sorted(zip(residuals, law.points, strict=True), key=lambda pair: -abs(pair[0]))[:SHOWN]
    table = plain_table("largest residuals", "measured", "measured / law")
    for residual, point in worst:
        label = f"({point.n}, {point.k}), width {point.width:,}, {point.start}"
        table.add_row(label, f"{point.samples:,.0f} ± {point.error:.0%}", f"{np.exp(residual):.2f}")
    console.print(table)
    for by in ("frontier", "n", "width"):
        left_out = law.held_out(by)
        if left_out:
            inside = sum(one.inside for one in left_out)
            say(f"Held out by {by}: {inside} of {len(left_out)} inside the {LEVEL:.0%} predictive interval.", console)
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
    from fewfire.sweeps.laws._frontier_law import LEVEL, FrontierLaw, shipped_law

    chosen = shipped_law()
    if law is not None:
        chosen = FrontierLaw.from_dict(read_json("--law", law, "fewfire law fit STORE -o FILE"))
    try:
        found = chosen.predict(n, k, width, init, level=LEVEL if level is None else level, extrapolate=extrapolate)
    except InvalidArgument as error:
        raise InvalidArgument(str(error).replace("extrapolate=True", "--extrapolate")) from None
    say(f"({n}, {k})-parity, width {width:,}, {init} start: half of the runs need {found}.")

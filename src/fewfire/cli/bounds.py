"""`fewfire bounds`: the bounds of a paper beside what is measured on a random member of the class."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from fewfire import experiments
from fewfire.cli import bounds_pareto, bounds_parities, bounds_sublinear
from fewfire.cli._output import wide_console

if TYPE_CHECKING:
    from fewfire.experiments.sparse_activations import Comparison

app = typer.Typer(no_args_is_help=True, help="Bounds of a paper beside measured quantities.")


@app.callback()
def _group() -> None:
    """Bounds of a paper beside measured quantities; one command per paper."""


app.command("pareto")(bounds_pareto.pareto)
app.command("parities")(bounds_parities.parities)
app.command("sublinear")(bounds_sublinear.sublinear)


@app.command("sparse-activations")
def sparse_activations(
    n: int = typer.Option(12, help="Inputs."),
    s: int = typer.Option(16, help="Hidden neurons."),
    k: int = typer.Option(1, help="Neurons active on any input, at most."),
    W: float | None = typer.Option(None, "--W", help="Largest ‖u‖_∞·‖w_j‖; the member's own unless given."),
    B: float | None = typer.Option(None, "--B", help="Largest ‖u‖_∞·|b_j|; the member's own unless given."),
    epsilon: float = typer.Option(0.1, help="Accuracy."),
    delta: float = typer.Option(0.05, help="Failure probability."),
    rho: float = typer.Option(0.9, help="Correlation of the noise sensitivity, in [0, 1)."),
    samples: int | None = typer.Option(None, help="Add the Rademacher complexity on this many uniform inputs."),
    kind: str = typer.Option("dense", help='Neurons with "dense" weights, or "junta": those of an address alone.'),
    seed: int = typer.Option(0, help="Changes the random member and everything sampled."),
) -> None:
    """Bounds for networks of n inputs and s neurons, at most k active, beside a random one of them."""
    net = experiments.sparse_activations.scaled_member(n, s, k, seed, kind, W, B)
    own = net.norms()
    W, B = own.W if W is None else W, own.B if B is None else B
    rows = experiments.sparse_activations.compare_member(
        net, k, epsilon, delta, W=W, B=B, rho=rho, samples=samples, seed=seed
    )
    console = wide_console()
    console.print(f"Class: n = {n}, s = {s}, k = {k}, W = {W:.4g}, B = {B:.4g}; ε = {epsilon:g}, δ = {delta:g}.")
    console.print(f"Member: random, {kind}, seed {seed}, W = {own.W:.4g}, B = {own.B:.4g}.")
    console.print(_table(rows))
    console.print("Constants the paper leaves open are 1; sharp and explicit bounds have none.")
    broken = [row for row in rows if row.holds is False]
    for row in broken:
        console.print(f"Exceeded: {row.quantity}, {row.statement} with constant 1.")


def _table(rows: list[Comparison]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title, side in (("quantity", "left"), ("measured", "right"), ("bound", "right"), ("statement", "left")):
        table.add_column(title, justify=side)  # type: ignore[arg-type]
    previous = ""
    for row in rows:
        repeated = row.quantity == previous
        previous = row.quantity
        bound = _number(row.bound, row.log10_bound)
        table.add_row(*(("", "") if repeated else (row.quantity, _measured(row))), bound, row.statement)
    return table


def _measured(row: Comparison) -> str:
    if row.measured is None:
        return ""
    value = _number(row.measured)
    if row.low is not None and row.high is not None:
        return f"{value} [{row.low:.3g}, {row.high:.3g}]"
    if row.low is not None:
        return f"≥ {value}"
    return value if row.high is None else f"≤ {value}"


def _number(value: float, logarithm: float | None = None) -> str:
    """Three to four digits; a power of ten where digits mean nothing."""
    if logarithm is not None and logarithm >= 15:
        return "∞" if math.isinf(logarithm) else f"10^{logarithm:.4g}"
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.4g}"

"""`fewfire bounds pareto`: which resource is short for a sparse parity, and what would buy success (pareto)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.table import Table

import fewfire as ff
from fewfire.cli._output import wide_console

if TYPE_CHECKING:
    from fewfire.theory.pareto import Diagnosis


def pareto(
    n: int = typer.Option(..., help="Number of input bits."),
    k: int = typer.Option(..., help="Number of bits in the parity."),
    width: int = typer.Option(..., help="Hidden neurons of the two-layer network."),
    samples: int = typer.Option(..., help="Labelled examples."),
    steps: int = typer.Option(..., help="Gradient steps."),
    init: str = typer.Option("sparse", help='The start: "sparse" (two inputs per neuron) or "dense".'),
    delta: float = typer.Option(0.99, help="Probability of success wanted of the statements."),
    noise: float = typer.Option(0.0, help="Probability that a label is flipped; used by the limits of all methods."),
    error: float = typer.Option(0.1, help="Error wanted of Theorem 4."),
    adversarial: bool = typer.Option(
        False, help="Gradients are bounded by 1 and their noise may be adversarial, as Proposition 3 assumes."
    ),
    runs: int = typer.Option(20, help="Runs that the 90% intervals of the sweeps' predictions are for."),
) -> None:
    """Say which of data, width, steps and luck is short for a parity of k among n bits, by sweeps and by theorems."""
    advised = ff.experiments.diagnose(
        n,
        k,
        width=width,
        samples=samples,
        steps=steps,
        init=init,
        noise=noise,
        success=delta,
        error=error,
        adversarial=adversarial,
        runs=runs,
    )
    findings = list(advised.theory)
    console = wide_console()
    size = ff.theory.pareto.network_parameters(n, width)
    console.print(
        f"Parity of {k} among {n} bits; width {width:,} ({size:,} parameters), {samples:,} examples, {steps:,} steps.",
    )
    for line in advised.lines():
        console.print(line)
    console.print(f"\nThe statements of pareto, success wanted with probability {delta:g}:")
    table = Table(box=None, pad_edge=False)
    for title in ("statement", "verdict", "reason"):
        table.add_column(title)
    for finding in findings:
        table.add_row(finding.statement, finding.verdict, finding.reason)
    console.print(table)
    for line in advice(findings):
        console.print(line)


def advice(findings: list[Diagnosis]) -> list[str]:
    """What is short and what would buy it, one line per statement; lower bounds first, since nothing gets past them."""
    lines = [
        f"{finding.statement}: short of {' or '.join(finding.short)}. Lifted by: {_ways(finding)}."
        for finding in findings
        if finding.verdict == "excluded"
    ]
    lines = lines or ["No lower bound that applies stands in the way."]
    lines += [
        f"{finding.statement}: short of {' and '.join(finding.short)}. Bought by: {_ways(finding)}."
        for finding in findings
        if finding.verdict in ("not promised", "not met")
    ]
    promised = [finding.statement for finding in findings if finding.verdict == "promised"]
    return [*lines, f"Success is promised by: {', '.join(promised)}."] if promised else lines


def _ways(finding: Diagnosis) -> str:
    ways = [", ".join(f"{name} {_number(value)}" for name, value in way.items()) for way in finding.remedies]
    return "; or ".join(ways) or "nothing that could be counted"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value < 1e7 else f"{value:.3g}"

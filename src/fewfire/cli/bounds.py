"""`fewfire bounds`: the bounds of a paper next to measured quantities; one command per paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import typer
from rich.table import Table

import fewfire as ff
from fewfire._validate import check_number
from fewfire.cli._output import plain_table, wide_console

if TYPE_CHECKING:
    from fewfire.papers.sparse_activations.members import Comparison


app = typer.Typer(no_args_is_help=True, help="Bounds of a paper next to measured quantities.")


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
    """Bounds for networks of n inputs and s neurons, at most k active, and a random one of them measured."""
    from fewfire.papers.sparse_activations.members import compare_member, scaled_member

    net = scaled_member(n, s, k, seed, kind, W, B)
    own = net.norms()
    W, B = own.W if W is None else W, own.B if B is None else B
    rows = compare_member(net, k, epsilon, delta, W=W, B=B, rho=rho, samples=samples, seed=seed)
    console = wide_console()
    console.print(f"Class: n = {n}, s = {s}, k = {k}, W = {W:.4g}, B = {B:.4g}; ε = {epsilon:g}, δ = {delta:g}.")
    console.print(f"Member: random, {kind}, seed {seed}, W = {own.W:.4g}, B = {own.B:.4g}.")
    table, previous = _table(), ""
    for row in rows:
        repeated, previous = row.quantity == previous, row.quantity
        bound = _number(row.bound, row.log10_bound)
        table.add_row(*(("", "") if repeated else (row.quantity, _measured(row))), bound, row.statement)
    console.print(table)
    console.print("Constants the paper leaves open are 1; sharp and explicit bounds have none.")
    for row in rows:
        if row.holds is False:
            console.print(f"Exceeded: {row.quantity}, {row.statement} with constant 1.")


def _table(value: str = "measured") -> Table:
    table = plain_table("quantity", value, "bound", right=2)
    table.add_column("statement")
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


@app.command()
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
    """Report which of data, width, steps and luck is short for a parity of k among n bits, by sweeps and theorems."""
    from fewfire.papers.pareto.statements._diagnosis import advice, network_parameters
    from fewfire.sweeps.laws import diagnose

    statements = ff.papers.pareto
    have = statements.Resources(width, samples, steps, delta)
    findings = statements.verdicts(n, k, have, noise, error, adversarial=adversarial)
    advised = diagnose(n, k, width=width, samples=samples, steps=steps, init=init, noise=noise, runs=runs)
    console = wide_console()
    size = f"width {width:,} ({network_parameters(n, width):,} parameters)"
    console.print(f"Parity of {k} among {n} bits; {size}, {samples:,} examples, {steps:,} steps.")
    for line in advised.lines():
        console.print(line)
    console.print(f"\nThe statements of pareto, success wanted with probability {delta:g}:")
    table = plain_table("statement", "verdict", "reason")
    for finding in findings:
        table.add_row(finding.statement, finding.verdict, finding.reason)
    console.print(table)
    for line in advice(findings):
        console.print(line)


@app.command()
def parities(
    n: int = typer.Option(101, help="Inputs."),
    k: int = typer.Option(3, help="Bits of the parity, odd."),
    width: int = typer.Option(400, help="Hidden neurons, even."),
    steps: int = typer.Option(500, help="Gradient steps T after the first."),
    examples: int = typer.Option(100_000, help="Sample whose first step is compared with the exact one."),
    learning_rate: float = typer.Option(0.5, help="Practical rates fall from it to 0."),
    seed: int = typer.Option(0, help="Changes weights and examples."),
) -> None:
    """Bounds on the way to Theorem 2, and a network measured that learns the parity of k among n inputs on D_A."""
    from fewfire.papers.parities.proof import compare_proof

    rows = compare_proof(n, k, width, steps, examples=examples, learning_rate=learning_rate, seed=seed)
    own = ff.papers.parities.learning_rates(n, k, width // 2, steps).later
    console = wide_console()
    console.print(
        f"Parity of {k} among {n} inputs on D_A; {width:,} neurons, {steps:,} steps at rates from {learning_rate:g} "
        f"to 0 (the theorem's: {own:.3g}), seed {seed}.",
    )
    table = _table()
    for row in rows:
        sign = {"at most": "≤ ", "at least": "≥ ", None: ""}[row.rule]
        table.add_row(
            row.quantity, f"{row.measured:.3g}" if row.quantity else "", f"{sign}{row.bound:.3g}", row.statement
        )
    console.print(table)
    for condition in ff.papers.parities.theorem_2(n, k, width // 2, steps).violated:
        console.print(f"Theorem 2 asks for {condition}.")
    for row in rows:
        if row.holds is False:
            console.print(f"Exceeded: {row.quantity.strip()}, {row.statement}.")
    console.print("Lemma 9 and what builds on it ask for networks far wider; constants the paper leaves open are 1.")


@app.command()
def sublinear(
    width: int = typer.Option(100_000, help="Hidden neurons m."),
    n: int = typer.Option(100, help="Examples."),
    d: int = typer.Option(50, help="Inputs, at least 2."),
    activity: float = typer.Option(0.03, help="Share of the neurons that fires at the start, in (0, 1/2]."),
    scale: float = typer.Option(1.0, "--K", help="K: weights stay within K/m^(4/5) of the start."),
    gamma: float = typer.Option(0.3, help="γ of the separation of the examples."),
    rho: float = typer.Option(0.1, help="Radius of the adversary."),
    epsilon: float = typer.Option(0.1, help="Robust loss wanted."),
    attack_steps: int = typer.Option(0, help="Gradient steps of the adversary for each example."),
) -> None:
    """What the shifted ReLU saves in adversarial training: exact values and the bounds of the paper."""
    from fewfire.papers.sublinear.statements._table import compare_saving

    check_number("activity", activity, 0.0, 0.5, open_low=True, remedy="a threshold of 0 leaves half active")
    threshold = ff.networks.init.activity_threshold(width, activity * width)
    console = wide_console()
    console.print(
        f"Network: {width:,} neurons, {d} inputs of norm 1, threshold τ = {threshold:.4g}; {n:,} examples, "
        f"γ = {gamma:g}, ρ = {rho:g}, ε = {epsilon:g}.",
    )
    table = _table("value")
    for row in compare_saving(width, n, d, activity, scale, gamma, rho, epsilon, attack_steps):
        table.add_row(*row)
    console.print(table)
    console.print("Values are exact for the Gaussian start, or built; constants the paper leaves open are 1.")
    console.print(
        "The theorems are proved for τ = O(1/m), which leaves half of the neurons active; "
        f"here τ·m = {threshold * width:.3g}.",
    )

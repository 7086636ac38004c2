"""What the recipes of pareto's Theorems 4 and 5 share: grids of runs, powers fitted to them, and verdicts on powers.

By a theorem the width and the examples grow with powers of n and s. A claim "as n^k" holds if the whole 95%
interval of the fitted power lies within 1/2 of k: a power off by 1 is another theorem. A claim "no faster than n²"
holds if the upper end is at most 2. The powers are those of the theorem's leading terms; at the sizes that can be run
the exact ones, such as of C(n, k)/C(s, k) for (n/s)^k, differ from them by up to about 0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb, isfinite
from typing import Any

from sklearn.utils.parallel import Parallel, delayed

from fewfire._threads import usable_cores
from fewfire.papers import _effects as effects
from fewfire.papers._claims import Axes, Effect, Figure, Info, Judgement, Power, Row, grouped, rows_of
from fewfire.papers.pareto.trade_offs import FittedPower, NeededRun, fit_exponents
from fewfire.report._figure import SomeAxes, canvas, colour, marked

WITHIN = 0.5  # how far from the theorem's power the interval may reach
OFF = 1.0  # the error in a power whose detection is stated


@dataclass(frozen=True)
class Fits:
    """Fits of the theorem's learner: the parity, ones per neuron, width, examples, and steps where it descends."""

    n: int
    k: int
    s: int
    width: int
    examples: int
    seeds: int
    steps: int = 0


@dataclass(frozen=True)
class SweptCells:
    """All pairs of these n and s at one k, and how many runs each."""

    k: int
    n: tuple[int, ...]
    s: tuple[int, ...]
    runs: int

    def measure(self, needed: Callable[..., NeededRun], **options: Any) -> list[NeededRun]:
        """Every run, in order; one process per core."""
        runs = [(n, self.k, s, seed) for n in self.n for s in self.s for seed in range(self.runs)]
        processes = Parallel(n_jobs=usable_cores(), batch_size=4)
        found: list[NeededRun] = processes(delayed(needed)(*run, **options) for run in runs)
        return found


def cells(runs: Iterable[NeededRun], **labels: Any) -> list[Row]:
    """For each (n, k, s) what half of the runs need, with its 95% interval; `labels` go into every row."""
    rows = []
    for (n, k, s), mine in grouped(map(vars, runs), "n", "k", "s").items():
        half = effects.median("", [run["value"] for run in mine])
        given = sorted(run["other"] for run in mine)[len(mine) // 2]
        ends = {"needed": half.value, "low": half.low, "high": half.high}
        rows.append({**labels, "n": n, "k": k, "s": s, "runs": len(mine), **ends, "given": given})
    return rows


def powers(runs: Sequence[NeededRun], *names: str) -> dict[str, FittedPower]:
    """The powers of "n", "s", "n − s" or "C(n, k)" in what the runs needed."""
    values: dict[str, Callable[[NeededRun], float]] = {
        "n": lambda run: run.n,
        "s": lambda run: run.s,
        "n − s": lambda run: run.n - run.s,
        "C(n, k)": lambda run: comb(run.n, run.k),
    }
    return fit_exponents([run.value for run in runs], {name: [values[name](run) for run in runs] for name in names})


def claim(
    what: str,
    fitted: Mapping[str, FittedPower],
    name: str,
    theorem: float,
    *,
    at_most: bool = False,
    within: float = WITHIN,
    **labels: Any,
) -> tuple[Judgement, dict[str, Any]]:
    """The verdict that `what` grows with the theorem's power of the quantity `name` (or at most), and both powers."""
    found, quantity = fitted[name], f"({name})" if "−" in name else name
    effect = Effect(f"power of {quantity}", found.value, found.low, found.high)
    if at_most:
        claimed, statistic = f"no faster than {quantity}^{theorem:g}", "upper end of the 95% interval of the power"
        seen, bound, refuted = found.high, theorem, f"not below {theorem:g}"
        power = Power(f"a power of {theorem + OFF:g}", found.power_above(OFF))
    else:
        claimed = f"as {quantity}^{theorem:g}"
        statistic = f"how far from {theorem:g} the 95% interval of the power reaches"
        seen, bound, refuted = found.farthest(theorem), within, f"not within {within:g} of {theorem:g}"
        power = Power(f"a power off by {2 * within:g}", found.power(2 * within, within))
    refuted_by = f"a 95% interval of the power that is {refuted}"
    judgement = Judgement(
        f"{what} {claimed}", statistic, seen, bound, refuted_by=refuted_by, effect=effect, power=power
    )
    ends = {"power": found.value, "low": found.low, "high": found.high, "theorem": theorem}
    return judgement, {**labels, "quantity": name, **ends, "rule": "at most" if at_most else "equal"}


def power_sentence(row: Row) -> str:
    """A row of `claim` as text."""
    start = f", s = {row['s']}" if "s" in row else ""
    own = " (the theorem's step)" if row["method"] == "theorem" else ""
    bound = "" if row["rule"] == "equal" else "at most "
    beyond = " (s = k, beyond the theorem)" if row.get("s") == row["k"] else ""
    return (
        f"k = {row['k']}{start}, {row['resource']}{own}: {row['quantity']} to the power {row['power']:.2f} "
        f"({row['low']:.2f} to {row['high']:.2f}); the theorem has {bound}{row['theorem']:g}{beyond}"
    )


def plot_trade_off(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """pareto/over-sparse, /under-sparse: width by n, examples by s or n, and every power with its 95% interval."""
    cells, powers, name = rows_of(info, "cells", "powers", "recipe")
    figure, (left, middle, right) = canvas(3, size=(9.0, 8.0), across=2, ax=ax)
    by_s = name == "pareto/over-sparse"
    _draw_cells(left, [row for row in cells if row["resource"] == "width"], "n")
    _draw_cells(middle, [row for row in cells if row["resource"] == "examples"], "s" if by_s else "n")
    left.set_ylabel("width that half of the runs need")
    middle.set_ylabel("examples that half of the runs need")
    theorem = "Theorem 4, over-sparse starts" if by_s else "Theorem 5, under-sparse starts"
    left.set_title(f"pareto, {theorem}: width", fontsize=10)
    middle.set_title("examples", fontsize=10)
    # One line per power; the theorem's is a bar, or the end of an arrow where it is an upper bound.
    labels = []
    for index, row in enumerate(powers):
        shade = colour(0 if row["resource"] == "width" else 1)
        if isfinite(row["power"]):
            ends = [[row["power"] - row["low"]], [row["high"] - row["power"]]]
            right.errorbar(row["power"], index, xerr=ends, color=shade, marker="o", capsize=3, markersize=5)
        exact = row["rule"] == "equal"
        right.plot(row["theorem"], index, color="black", marker="|" if exact else "<", markersize=14 if exact else 7)
        start = f", s = {row['s']}" if "s" in row else (", s = k" if row["quantity"] == "C(n, k)" else "")
        step = ", theorem's step" if row["method"] == "theorem" else ""
        labels.append(f"k = {row['k']}{start}{step}:\n{row['resource']} in {row['quantity']}")
    right.set_yticks(range(len(powers)), labels, fontsize=8)
    right.set_ylim(len(powers) - 0.5, -0.5)
    right.grid(axis="x", alpha=0.3)
    right.set_xlabel("power with 95% interval\nblack: the theorem's, ◂ at most", fontsize=9)
    right.set_title("powers fitted to all runs", fontsize=10)
    return figure


def _draw_cells(axis: Axes, rows: list[Row], along: str) -> None:
    """A line per k, method and the other of n and s, with the 95% interval of every median."""
    other = "s" if along == "n" else "n"
    labelled = [{**row, "other": row["k" if row["method"] == "s = k" else other]} for row in rows]
    for index, ((k, value, method), found) in enumerate(grouped(labelled, "k", "other", "method").items()):
        mine = [row for row in found if isfinite(row["needed"])]
        label = f"k = {k}, {other} = {value}" + (", the theorem's step" if method == "theorem" else "")
        axis.errorbar(
            [row[along] for row in mine],
            [row["needed"] for row in mine],
            yerr=[
                [row["needed"] - row["low"] if isfinite(row["low"]) else 0.0 for row in mine],
                [row["high"] - row["needed"] if isfinite(row["high"]) else 0.0 for row in mine],
            ],
            linestyle="--" if method == "theorem" else "-",
            **marked(index, capsize=2, label=label),
        )
    axis.set(xscale="log", yscale="log", xlabel="ones per neuron, s" if along == "s" else "inputs, n")
    ticks = sorted({row[along] for row in rows})
    shown = [tick for i, tick in enumerate(ticks) if i == 0 or tick >= 1.15 * ticks[i - 1] or i == len(ticks) - 1]
    axis.set_xticks(shown, [str(tick) for tick in shown], fontsize=8)
    axis.minorticks_off()
    axis.legend(frameon=False, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)

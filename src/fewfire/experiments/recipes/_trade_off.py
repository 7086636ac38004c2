"""What the recipes of pareto's Theorems 4 and 5 share: grids of runs, powers fitted to them, and verdicts on powers.

A theorem says with which power of n and s the width and the examples grow. A claim "as n^k" holds if the whole 95%
interval of the fitted power lies within 1/2 of k: a power off by 1 is another theorem. A claim "no faster than n²"
holds if the upper end is at most 2. The powers are those of the theorem's leading terms; at the sizes that can be run
the exact ones, such as of C(n, k)/C(s, k) for (n/s)^k, differ from them by up to about 0.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Any

from sklearn.utils.parallel import Parallel, delayed

from fewfire._cores import usable_cores
from fewfire.experiments.recipes import _effects as effects
from fewfire.experiments.recipes._judgement import Effect, Judgement, Power
from fewfire.experiments.trade_offs import fit_exponents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fewfire.experiments.trade_offs import FittedPower, NeededRun

WITHIN = 0.5
"""How far from the theorem's power the interval may reach."""

OFF = 1.0
"""The error in a power whose detection is stated."""


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


def cells(runs: Iterable[NeededRun], **labels: Any) -> list[dict[str, Any]]:
    """For each (n, k, s) what half of the runs need, with its 95% interval; `labels` go into every row."""
    groups: dict[tuple[int, int, int], list[NeededRun]] = {}
    for run in runs:
        groups.setdefault((run.n, run.k, run.s), []).append(run)
    rows = []
    for (n, k, s), mine in groups.items():
        half = effects.median("", [run.value for run in mine])
        given = sorted(run.other for run in mine)[len(mine) // 2]
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


def grows_as(what: str, quantity: str, found: FittedPower, theorem: float, within: float = WITHIN) -> Judgement:
    """A verdict on "what is needed grows as quantity^theorem"."""
    return Judgement(
        f"{what} as {quantity}^{theorem:g}",
        f"how far from {theorem:g} the 95% interval of the power reaches",
        found.farthest(theorem),
        within,
        refuted_by=f"a 95% interval of the power that is not within {within:g} of {theorem:g}",
        effect=_effect(quantity, found),
        power=Power(f"a power off by {2 * within:g}", found.power(2 * within, within)),
    )


def no_faster_than(what: str, quantity: str, found: FittedPower, most: float) -> Judgement:
    """A verdict on "what is needed grows no faster than quantity^most"."""
    return Judgement(
        f"{what} no faster than {quantity}^{most:g}",
        "upper end of the 95% interval of the power",
        found.high,
        most,
        refuted_by=f"a 95% interval of the power that is not below {most:g}",
        effect=_effect(quantity, found),
        power=Power(f"a power of {most + OFF:g}", found.power_above(OFF)),
    )


def exponent_row(found: FittedPower, theorem: float, exact: bool, **labels: Any) -> dict[str, Any]:
    """A power beside the theorem's, which is an upper bound where not `exact`: plain data."""
    return {
        **labels,
        "power": found.value,
        "low": found.low,
        "high": found.high,
        "theorem": theorem,
        "rule": "equal" if exact else "at most",
    }


def _effect(quantity: str, found: FittedPower) -> Effect:
    return Effect(f"power of {quantity}", found.value, found.low, found.high)

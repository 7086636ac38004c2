"""What an iteration costs by width and inputs (sublinear, Theorem 1.1 and Lemma 6.3): by drift lists and as printed.

m^0.6 neurons are active on an example at the start, whatever m. Each iteration evaluates f and its gradient at the
examples, moves them by ρ along it (one step of the fast gradient method, within the slice) and descends there. Work is
counted, not timed, after the first iteration, which scores everything once. Seconds are recorded beside.

Drift lists: all multiply-adds of an iteration. Half-space reporting, Algorithm 1 as printed: what a search reads, the
points it scores and 16 bounds per node of the tree, in multiply-adds; building and updating the tree is not counted.
The paper's search costs m^(1 − 1/⌊d/2⌋) + active neurons (Corollary 6.2), with partition trees that nobody builds. The
ball tree of `halfspace.Index` has no worst-case bound; this is what it does on the weights of a training. Exponents are
slopes of log work in log width, one per seed (start and examples), with Student's interval over the seeds. A tree reads
everything until there are enough points for its dimension, so its exponent is taken between the two largest widths.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np

from fewfire._sphere import on_slice
from fewfire.engines import get_loss, robust
from fewfire.experiments.recipes import _effects as effects
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement, Power
from fewfire.experiments.recipes._power import mean_power, rising_power
from fewfire.experiments.recipes.sublinear._exponents import Exponent, exponent, rises
from fewfire.halfspace._plan import CHILDREN
from fewfire.networks import init
from fewfire.problems import SphereSlice
from fewfire.robustness import SliceCap
from fewfire.theory.sublinear import cost_exponent

EXPONENT, RHO, RATE = 0.6, 0.1, 0.5
BELOW, EFFECT, FEW = 0.8, 0.05, 4

CostMethod = Literal["dense", "lists", "tree", "scan"]
"""A trainer, or a method of the index for the trainer "index"."""


def attacked(trainer: robust.ActiveTrainer, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Every example moved by about ρ against its label, with norm 1 and last coordinate 1/2 again."""
    _, gradients = trainer.evaluate(X)
    moved = SliceCap(RHO).ascend(X, -y[:, None] * gradients, 0.95 * RHO)
    return on_slice(moved[:, :-1]).astype(np.float32)


def cost(method: CostMethod, width: int, d: int, examples: int, iterations: int, seed: int = 0) -> dict[str, Any]:
    """Counts per iteration of one trainer, averaged over all but the first."""
    X, y = SphereSlice(examples, d, separation=0.01).sample(seed=seed)
    net = init.ntk(exponent=EXPONENT)(d, width, seed=seed)
    if method in ("dense", "lists"):
        trainer = robust.trainer(method, net, X, RHO)
    else:
        trainer = robust.trainer("index", net, X, RHO, index_method=method)
    before, read, start = trainer.counters, _read(trainer), 0.0
    active: list[float] = []
    for iteration in range(iterations + 1):
        if iteration == 1:
            before, read, start, active = trainer.counters, _read(trainer), perf_counter(), []
        moved = attacked(trainer, X, y)
        slopes = get_loss("logistic").slope(trainer.values(moved), y) / examples
        active.append(float(trainer.active_counts.mean()))
        trainer.step(moved, slopes, RATE * width**-0.6)
    seconds, spent = (perf_counter() - start) / iterations, trainer.counters - before
    return {
        "method": method,
        "width": width,
        "d": d,
        "seed": seed,
        "multiply_adds": spent.multiply_adds / iterations,
        "search": (_read(trainer) - read) * d / iterations,
        "dense_multiply_adds": spent.dense_multiply_adds / iterations,
        "active": float(np.mean(active)),
        "seconds": round(seconds, 4),
    }


def _read(trainer: robust.ActiveTrainer) -> int:
    """Points scored and children of nodes bounded by the searches so far; 0 for trainers that do not search."""
    if not isinstance(trainer, robust.IndexTrainer):
        return 0
    searched = trainer.index.counters
    return searched.points + CHILDREN * searched.nodes


@dataclass(frozen=True)
class CostGrid:
    """Widths, inputs, examples, and iterations that are counted."""

    widths: tuple[int, ...]
    inputs: tuple[int, ...]
    examples: int
    iterations: int


@dataclass(frozen=True)
class CostSettings:
    """What is measured with drift lists, what with a tree, and how many seeds."""

    lists: CostGrid
    tree: CostGrid
    seeds: int


def measure(settings: CostSettings) -> RecipeOutcome:
    """One row per method, width, dimension and seed."""
    grids: dict[CostMethod, CostGrid] = {"lists": settings.lists, "tree": settings.tree}
    rows = [
        cost(method, width, d, grid.examples, grid.iterations, seed)
        for method, grid in grids.items()
        for d in grid.inputs
        for width in grid.widths
        for seed in range(settings.seeds)
    ]
    examples = {method: grid.examples for method, grid in grids.items()}
    parameters = {"exponent": EXPONENT, "rho": RHO, "examples": examples, "seeds": settings.seeds}
    return judge(rows, parameters)


def judge(rows: list[dict[str, Any]], parameters: dict[str, Any]) -> RecipeOutcome:
    """Verdicts on intervals of exponents: a claim that some exponent is small needs its upper end to be small."""
    lists = _fits(rows, "lists", "multiply_adds")
    overall, tree = _fits(rows, "tree", "search"), _fits(rows, "tree", "search", latest=2)
    saved = {d: _saved([row for row in rows if row["method"] == "lists" and row["d"] == d]) for d in lists}
    worst = max(lists, key=lambda d: lists[d].high)
    few = max((d for d in tree if d <= FEW), key=lambda d: tree[d].high)
    excess = {d: tree[d].low - paper_exponent(d) for d in tree}
    furthest = max(excess, key=lambda d: excess[d])
    least = min(saved, key=lambda d: min(saved[d]))
    trend = np.array([tree[d].seeds for d in sorted(tree)]).T
    judgements = [
        Judgement(
            "an iteration costs o(mnd)",
            f"largest exponent of multiply-adds in the width with drift lists, at d = {worst}, upper end of 95%",
            lists[worst].high,
            BELOW,
            refuted_by=f"an exponent of lists, at any d, that is not surely below {BELOW}",
            effect=lists[worst].effect(f"exponent at d = {worst}"),
            power=Power(f"an exponent {EFFECT} below that", lists[worst].power(EFFECT, 0.025)),
        ),
        Judgement(
            "it does less than a dense one",
            f"least saving at the largest width, times, at d = {least}, lower end of 95%",
            effects.mean("", saved[least]).low,
            5.0,
            "at least",
            refuted_by="a saving that is not surely above 5 times",
            effect=effects.mean(f"dense work over work at d = {least}", saved[least]),
            power=Power("a saving of 10 times", _mean_power(5.0, saved[least])),
        ),
        Judgement(
            f"half-space reporting searches o(m) for d up to {FEW}",
            f"largest exponent of what a tree reads, at d = {few}, upper end of 95%",
            tree[few].high,
            BELOW,
            refuted_by=f"an exponent of the tree at d up to {FEW} that is not surely below {BELOW}",
            effect=tree[few].effect(f"exponent at d = {few}"),
            power=Power(f"an exponent {EFFECT} below that", tree[few].power(EFFECT, 0.025)),
        ),
        Judgement(
            "its exponent rises with d",
            "p of Page's trend test over the seeds",
            rises([tree[d] for d in sorted(tree)]),
            0.01,
            refuted_by="exponents in no order of d, or falling",
            effect=effects.mean(
                f"exponent at d = {max(tree)} less that at d = {min(tree)}", trend[:, -1] - trend[:, 0]
            ),
            power=Power(f"{EFFECT} more with every d", _trend_power(trend)),
        ),
        Judgement(
            "a ball tree has the exponents of Corollary 6.2",
            f"largest excess over max(1 − 1/⌊d/2⌋, {EXPONENT}), at d = {furthest}, lower end of 95%",
            excess[furthest],
            EFFECT,
            refuted_by=f"an exponent, at any d, surely above the corollary's by more than {EFFECT}",
            effect=Exponent(tuple(seed - paper_exponent(furthest) for seed in tree[furthest].seeds)).effect(
                f"excess at d = {furthest}"
            ),
            power=Power(f"an excess of {2 * EFFECT}", tree[furthest].power(EFFECT, 0.025)),
        ),
    ]
    power = min(fit.power(EFFECT) for fit in (*lists.values(), *tree.values()))
    measured = [
        *(
            f"lists, d = {d}: work grows as m^{fit}; {min(saved[d]):.0f} times less than dense at the largest width"
            for d, fit in lists.items()
        ),
        *(
            f"tree, d = {d}: a search reads m^{fit} between the two largest widths, m^{overall[d].value:.2f} over all; "
            f"Corollary 6.2 has m^{paper_exponent(d):.2f}"
            for d, fit in tree.items()
        ),
    ]
    fits = [
        {"method": name, "d": d, **fit.to_dict(), "paper": paper_exponent(d)}
        for name, table in (("lists", lists), ("tree", tree))
        for d, fit in table.items()
    ]
    data = {"rows": rows, "fits": fits, "power": power}
    return RecipeOutcome(parameters=parameters, judgements=judgements, measured=measured, data=data)


def paper_exponent(d: int) -> float:
    """Corollary 6.2, part 1: a query of n^(1 − 1/⌊d/2⌋) + reported, with m^0.6 reported."""
    return cost_exponent(d, EXPONENT, None)


def _fits(rows: list[dict[str, Any]], method: str, what: str, *, latest: int = 0) -> dict[int, Exponent]:
    """Exponents by dimension, over all widths or over the `latest` largest."""
    mine = [row for row in rows if row["method"] == method]
    widths = sorted({row["width"] for row in mine})[-latest:]
    mine = [row for row in mine if row["width"] in widths]
    return {d: exponent([row for row in mine if row["d"] == d], what) for d in dict.fromkeys(row["d"] for row in mine)}


def _saved(rows: list[dict[str, Any]]) -> list[float]:
    """Dense work over work at the largest width, by seed."""
    largest = max(row["width"] for row in rows)
    return [float(row["dense_multiply_adds"] / row["multiply_adds"]) for row in rows if row["width"] == largest]


def _mean_power(effect: float, values: list[float]) -> float:
    """Of a mean over seeds `effect` beyond the bound, at the spread that was seen."""
    return mean_power(effect, float(np.std(values, ddof=1)), len(values), level=0.025)


def _trend_power(table: np.ndarray) -> float:
    """Of exponents that rise by `EFFECT` from one dimension to the next, seeds spread as these do."""
    spread = float(table.std(axis=0, ddof=1).max())
    return rising_power([EFFECT * place for place in range(table.shape[1])], spread, len(table), level=0.01)


RECIPE = Recipe(
    name="sublinear/cost",
    title="Work of robust training by width: drift lists for d from 4 to 256, half-space reporting for d from 4 to 16",
    seconds=31,
    expectation="lists: the width to the power 0.6 to 0.8; a tree: 0.5 at d = 4, rising to almost 1 at d = 16",
    figure="cost",
    scales={
        "quick": CostSettings(
            lists=CostGrid(tuple(2**k for k in range(12, 17)), (4, 16, 64, 256), examples=64, iterations=4),
            tree=CostGrid(tuple(4**k for k in range(6, 11)), (4, 6, 8, 12, 16), examples=16, iterations=1),
            seeds=4,
        ),
        "paper": CostSettings(
            lists=CostGrid(tuple(2**k for k in range(14, 20)), (4, 16, 64, 256), examples=256, iterations=20),
            tree=CostGrid(tuple(4**k for k in range(6, 13)), (3, 4, 6, 8, 12, 16, 24), examples=64, iterations=2),
            seeds=5,
        ),
    },
    measure=measure,
    paper_seconds=9500,
    busy=1.5,
)

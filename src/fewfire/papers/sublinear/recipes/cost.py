"""What an iteration costs by width and inputs (sublinear, Theorem 1.1 and Lemma 6.3): by drift lists and as printed.

m^0.6 neurons are active on an example at the start. Each iteration moves the examples by ρ along the gradient of f
(one step of the fast gradient method, within the slice) and descends there. Work is counted, not timed, after the first
iteration, which scores everything once.

Drift lists: all multiply-adds of an iteration. Half-space reporting, Algorithm 1 as printed: the points that a search
scores and 16 bounds per node of the ball tree of `halfspace.Index`, without a worst-case bound; the paper's search
costs m^(1 − 1/⌊d/2⌋) + active neurons (Corollary 6.2). Exponents are slopes of log work in log width by seed, with
Student's interval; that of the tree is between the two largest widths, since it reads everything until there are
enough points for its dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from time import perf_counter
from typing import Any, Literal

import numpy as np

from fewfire._dense.losses import LOSSES
from fewfire._sphere import on_slice
from fewfire.engines import robust
from fewfire.engines.robust._index import IndexTrainer
from fewfire.halfspace._plan import CHILDREN
from fewfire.networks import init
from fewfire.papers import _effects as effects
from fewfire.papers._claims import Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, grouped, rows_of
from fewfire.papers._statistics import rising, rising_power, spread_power
from fewfire.papers.sublinear import cost_exponent
from fewfire.problems import SphereSlice
from fewfire.report._figure import SomeAxes, canvas, colour, label_axes, marked
from fewfire.robustness import SliceCap

EXPONENT, RHO, RATE = 0.6, 0.1, 0.5
BELOW, EFFECT, FEW = 0.8, 0.05, 4

CostMethod = Literal["dense", "lists", "tree", "scan"]  # a trainer, or a method of the index for the trainer "index"


def attacked(trainer: robust.ActiveTrainer, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Every example moved by about ρ against its label, with norm 1 and last coordinate 1/2 again."""
    _, gradients = trainer.evaluate(X)
    moved = SliceCap(RHO).ascend(X, -y[:, None] * gradients, 0.95 * RHO)
    return on_slice(moved[:, :-1]).astype(np.float32)


def cost(method: CostMethod, width: int, d: int, examples: int, iterations: int, seed: int = 0) -> Row:
    """Counts per iteration of one trainer, averaged over all but the first."""
    X, y = SphereSlice(examples, d, separation=0.01).sample(seed=seed)
    net = init.ntk(exponent=EXPONENT)(d, width, seed=seed)
    if method in ("dense", "lists"):
        trainer = robust.trainer(method, net, X, RHO)
    else:
        trainer = robust.trainer("index", net, X, RHO, index_method=method)

    def iterate() -> float:
        """One iteration; the mean number of active neurons."""
        moved = attacked(trainer, X, y)
        slopes = LOSSES["logistic"].slope(trainer.values(moved), y) / examples
        active = float(trainer.active_counts.mean())
        trainer.step(moved, slopes, RATE * width**-0.6)
        return active

    iterate()  # scores everything once
    before, read, start = trainer.counters, _read(trainer), perf_counter()
    active = [iterate() for _ in range(iterations)]
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
    if not isinstance(trainer, IndexTrainer):
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


def judge(rows: list[Row], parameters: dict[str, Any]) -> RecipeOutcome:
    """Verdicts on intervals of exponents: a claim that some exponent is small needs its upper end to be small."""
    lists, tree = _exponents(rows, "lists", "multiply_adds"), _exponents(rows, "tree", "search", latest=2)
    # Corollary 6.2, part 1: a query of n^(1 − 1/⌊d/2⌋) + reported, with m^0.6 reported.
    paper = {d: cost_exponent(d, EXPONENT, None) for d in (*lists, *tree)}
    overall = _exponents(rows, "tree", "search")
    largest = max(row["width"] for row in rows if row["method"] == "lists")
    widest = grouped((row for row in rows if (row["method"], row["width"]) == ("lists", largest)), "d")
    # Dense work over work at the largest width, by seed.
    saved = {d: [float(row["dense_multiply_adds"] / row["multiply_adds"]) for row in widest[d]] for d in lists}
    excess = {d: [seed - paper[d] for seed in tree[d]] for d in tree}
    furthest = max(excess, key=lambda d: effects.mean("", excess[d]).low)
    over = effects.mean(f"excess at d = {furthest}", excess[furthest])
    least = min(saved, key=lambda d: min(saved[d]))
    saving = effects.mean(f"dense work over work at d = {least}", saved[least])
    trend = np.array([tree[d] for d in sorted(tree)]).T
    # Of exponents that rise by `EFFECT` from one dimension to the next, seeds spread as these do.
    spread, rise = float(trend.std(axis=0, ddof=1).max()), tuple(EFFECT * index for index in range(trend.shape[1]))
    noticed = rising_power(rise, spread, len(trend), level=0.01)
    judgements = [
        _below("an iteration costs o(mnd)", "multiply-adds in the width with drift lists", lists, "lists, at any d,"),
        saving.at_least(
            "it does less than a dense one",
            f"least saving at the largest width, times, at d = {least}, lower end of 95%",
            5.0,
            "a saving that is not surely above 5 times",
            Power("a saving of 10 times", spread_power(saved[least], 5.0, 0.025)),
        ),
        _below(
            f"half-space reporting searches o(m) for d up to {FEW}",
            "what a tree reads",
            {d: seeds for d, seeds in tree.items() if d <= FEW},
            f"the tree at d up to {FEW}",
        ),
        Judgement(
            "its exponent rises with d",
            "p of Page's trend test over the seeds",
            rising(trend),
            0.01,
            refuted_by="exponents in no order of d, or falling",
            effect=effects.mean(
                f"exponent at d = {max(tree)} less that at d = {min(tree)}", trend[:, -1] - trend[:, 0]
            ),
            power=Power(f"{EFFECT} more with every d", noticed),
        ),
        Judgement(
            "a ball tree has the exponents of Corollary 6.2",
            f"largest excess over max(1 − 1/⌊d/2⌋, {EXPONENT}), at d = {furthest}, lower end of 95%",
            over.low,
            EFFECT,
            refuted_by=f"an exponent, at any d, surely above the corollary's by more than {EFFECT}",
            effect=over,
            power=Power(f"an excess of {2 * EFFECT}", spread_power(tree[furthest], EFFECT, 0.025)),
        ),
    ]
    fits: list[Row] = []
    for method, table in (("lists", lists), ("tree", tree)):
        for d, seeds in table.items():
            seen = effects.mean("", seeds)
            ends = {"exponent": seen.value, "low": seen.low, "high": seen.high}
            fits.append({"method": method, "d": d, **ends, "seeds": seeds, "paper": paper[d]})
    shown = {(fit["method"], fit["d"]): "m^{exponent:.3f} ({low:.3f} to {high:.3f})".format(**fit) for fit in fits}
    measured = [
        *(
            f"lists, d = {d}: work grows as {shown['lists', d]}; {min(saved[d]):.0f} times less than dense at the "
            "largest width"
            for d in lists
        ),
        *(
            f"tree, d = {d}: a search reads {shown['tree', d]} between the two largest widths, "
            f"m^{np.mean(overall[d]):.2f} over all; Corollary 6.2 has m^{paper[d]:.2f}"
            for d in tree
        ),
    ]
    power = min(spread_power(seeds, EFFECT, 0.05) for seeds in (*lists.values(), *tree.values()))
    data = {"rows": rows, "fits": fits, "power": power}
    return RecipeOutcome(parameters=parameters, judgements=judgements, measured=measured, data=data)


def power_of_width(widths: Sequence[int], work: Sequence[float]) -> float:
    """e of work = c·m^e, by least squares of logarithms."""
    return float(np.polyfit(np.log(widths), np.log(work), 1)[0])


def powers_by_seed(rows: list[Row], what: str) -> list[float]:
    """The power of row["width"] in row[what], one per row["seed"]: independent, so Student's interval holds."""
    of_seed = grouped(rows, "seed").values()
    return [power_of_width([row["width"] for row in mine], [row[what] for row in mine]) for mine in of_seed]


def _below(claim: str, what: str, exponents: Mapping[int, list[float]], where: str) -> Judgement:
    """The largest exponent over dimensions is surely below BELOW."""
    means = {d: effects.mean(f"exponent at d = {d}", seeds) for d, seeds in exponents.items()}
    worst = max(means, key=lambda d: means[d].high)
    return means[worst].at_most(
        claim,
        f"largest exponent of {what}, at d = {worst}, upper end of 95%",
        BELOW,
        f"an exponent of {where} that is not surely below {BELOW}",
        Power(f"an exponent {EFFECT} below that", spread_power(exponents[worst], EFFECT, 0.025)),
    )


def _exponents(rows: list[Row], method: str, what: str, *, latest: int = 0) -> dict[int, list[float]]:
    """One per seed by dimension, over all widths or over the `latest` largest."""
    mine = [row for row in rows if row["method"] == method]
    widths = sorted({row["width"] for row in mine})[-latest:]
    mine = [row for row in mine if row["width"] in widths]
    return {d: powers_by_seed(found, what) for d, found in grouped(mine, "d").items()}


def plot_cost(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """sublinear/cost: multiply-adds with drift lists and what a search reads, by width; exponents against d."""
    rows, fits = rows_of(info, "rows", "fits")
    title = "Robust training with $m^{0.6}$ active neurons: work by width"
    figure, (left, middle, right) = canvas(3, size=(9.0, 7.2), across=2, ax=ax, title=title)
    panels = ((left, "lists", "multiply_adds", 5, "dense: m"), (middle, "tree", "search", 2, "scan: m"))
    for axis, method, what, times, name in panels:
        for index, fit in enumerate(fit for fit in fits if fit["method"] == method):
            mine = [row for row in rows if row["method"] == method and row["d"] == fit["d"]]
            widths = sorted({row["width"] for row in mine})
            means = [fmean(row[what] / row["d"] for row in mine if row["width"] == width) for width in widths]
            label = f"d = {fit['d']}: $m^{{{fit['exponent']:.2f}}}$"
            axis.plot(widths, means, **marked(index), label=label)
        widths = sorted({row["width"] for row in rows if row["method"] == method})
        pairs = times * info["parameters"]["examples"][method]
        axis.plot(widths, [pairs * width for width in widths], "--", color="black", label=name)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
    label_axes(left, "width m", "multiply-adds per iteration and input", "drift lists, a whole iteration")
    label_axes(
        middle, "width m", "neurons and bounds read per iteration", "half-space reporting by a ball tree, searches"
    )
    names = {"lists": "drift lists, a whole iteration", "tree": "ball tree, searches, at the largest widths"}
    for index, (method, name) in enumerate(names.items()):
        mine = sorted((fit for fit in fits if fit["method"] == method), key=lambda fit: int(fit["d"]))
        d, means = [fit["d"] for fit in mine], [fit["exponent"] for fit in mine]
        ends = [[fit["exponent"] - fit["low"] for fit in mine], [fit["high"] - fit["exponent"] for fit in mine]]
        right.errorbar(d, means, ends, **marked(index, capsize=3), label=name)
    right.plot(d, [fit["paper"] for fit in mine], ":", color=colour(2), label="Corollary 6.2")
    right.axhline(1.0, color="black", linestyle="--", label="scan, dense")
    right.set_xscale("log", base=2)
    right.set_xticks([4, 8, 16, 64, 256], ["4", "8", "16", "64", "256"])
    right.set_ylim(0.4, 1.08)
    label_axes(right, "inputs d", "exponent of m, 95% over seeds", "how fast work grows")
    return figure


RECIPE = Recipe(
    title="Work of robust training by width: drift lists for d from 4 to 256, half-space reporting for d from 4 to 16",
    seconds=(31, 9500),
    expectation="lists: the width to the power 0.6 to 0.8; a tree: 0.5 at d = 4, rising to almost 1 at d = 16",
    figure=plot_cost,
    quick=CostSettings(
        lists=CostGrid(tuple(2**k for k in range(12, 17)), (4, 16, 64, 256), examples=64, iterations=4),
        tree=CostGrid(tuple(4**k for k in range(6, 11)), (4, 6, 8, 12, 16), examples=16, iterations=1),
        seeds=4,
    ),
    paper=CostSettings(
        lists=CostGrid(tuple(2**k for k in range(14, 20)), (4, 16, 64, 256), examples=256, iterations=20),
        tree=CostGrid(tuple(4**k for k in range(6, 13)), (3, 4, 6, 8, 12, 16, 24), examples=64, iterations=2),
        seeds=5,
    ),
    measure=measure,
    from_paper=("an iteration costs o(mnd)", "half-space reporting searches*", "its exponent rises*"),
    busy=1.5,
)

"""pareto, Theorem 4/16, as a trade-off: how width and examples grow with n and s from rows of s ones.

The theorem: width (n/s)^k, examples (s/k)^(k−1)·n² log n. Measured is what each run needs: the width with examples to
spare, the examples at a width in proportion to (n/s)^k; needed means half of the runs succeed (test error 10%). Powers
of n and s are fitted to the runs.

- The practical step (truncation) at k = 2 and 4; the theorem's own (none) at k = 2. The n² of the theorem pays for
  noise in n weights per neuron, which truncation removes: expect a power near 0 with it, near 1 without.
- s = k exactly, beyond the theorem: neurons are random sets of k inputs, and width grows as C(n, k).
- The random-subset version of exhaustive search: a share q of the C(n, k) sets succeeds in a share q of the
  trials. Compute against luck, one to one.
- What the theorem's own steps reach, Lemma 14's descent included: two bits, but not four at s = 17, where the theorem
  asks for s above 10⁹.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from scipy import stats

from fewfire.learners.baselines import ExhaustiveParity
from fewfire.papers import _effects as effects
from fewfire.papers._claims import Judgement, Power, Recipe, RecipeOutcome, Row, grouped
from fewfire.papers.pareto import samples_sufficient
from fewfire.papers.pareto.algorithms import OverSparseParityClassifier
from fewfire.papers.pareto.recipes import _trade_off as trade_off
from fewfire.papers.pareto.recipes._trade_off import Fits, SweptCells, cells, claim, powers
from fewfire.papers.pareto.trade_offs import NeededRun, over_sparse_samples, over_sparse_width
from fewfire.problems import Parity

GOOD = 4.0  # neurons around the support to be expected for each bias where examples are looked for
AMPLE_AT_K = 9.0
"""Examples at s = k, three times as many as elsewhere: a feature that fires at one value of the sum is soon lost."""

SHARES = (0.25, 0.5, 0.75)  # of the C(n, k) sets
LEARNED = 0.1  # the test error at which the theorem's own steps count as having learned


@dataclass(frozen=True)
class OverSparseSettings:
    """What is measured: widths, examples with and without truncation, s = k, the search, and what is reached."""

    widths: tuple[SweptCells, ...]
    examples: tuple[SweptCells, ...]
    theorem: SweptCells
    subsets: tuple[SweptCells, ...]
    search: tuple[int, int]
    trials: int
    reach: tuple[Fits, ...]


def measure(settings: OverSparseSettings) -> RecipeOutcome:
    """Rows of what half of the runs need, the powers fitted to all runs, and what the theorem's own steps reach."""
    widths = {part.k: part.measure(over_sparse_width) for part in settings.widths}
    examples = {part.k: part.measure(over_sparse_samples, good=GOOD) for part in settings.examples}
    theorem = settings.theorem.measure(over_sparse_samples, good=GOOD, method="theorem")
    subsets = {part.k: part.measure(over_sparse_width, ample=AMPLE_AT_K) for part in settings.subsets}
    # How often a random share of the sets holds the support.
    n, k = settings.search
    enough, sets = samples_sufficient(n, k), comb(n, k)
    found = []
    for share in SHARES:
        hits = 0
        for trial in range(settings.trials):
            problem = Parity(n, k)
            X, y = problem.sample(enough, seed=trial)
            model = ExhaustiveParity(k=k, max_sets=round(share * sets), random_state=trial).fit(X, y)
            hits += model.support_ == problem.support
        found.append({"n": n, "k": k, "share": share, "sets": sets, "found": hits, "trials": settings.trials})
    reached = [row for reach in settings.reach for row in reach_of(reach)]
    parameters = {"share": 0.5, "error": LEARNED, "good": GOOD, "search": [*settings.search], "trials": settings.trials}
    return judge(widths, examples, theorem, subsets, found, reached, parameters)


def judge(
    widths: dict[int, list[NeededRun]],
    examples: dict[int, list[NeededRun]],
    theorem: list[NeededRun],
    subsets: dict[int, list[NeededRun]],
    searched: list[Row],
    reached: list[Row],
    parameters: dict[str, Any],
) -> RecipeOutcome:
    """Verdicts on powers, by k, and on the search."""
    found, rows = [], []
    labels: dict[str, Any]
    for k, runs in widths.items():
        fitted, labels = powers(runs, "n", "s"), {"resource": "width", "method": "practical", "k": k}
        found.append(claim(f"k = {k}: width grows", fitted, "n", k, **labels))
        found.append(claim(f"k = {k}: width grows", fitted, "s", -k, **labels))
        rows += cells(runs, resource="width", method="practical")
    for k, method, runs in [*((k, "practical", runs) for k, runs in examples.items()), (2, "theorem", theorem)]:
        names = ("n", "s") if len({run.n for run in runs}) > 1 else ("s",)
        fitted, labels = powers(runs, *names), {"resource": "examples", "method": method, "k": k}
        own = "" if method == "practical" else ", the theorem's step"
        found.append(claim(f"k = {k}{own}: examples grow", fitted, "s", k - 1, **labels))
        if "n" in names:
            found.append(claim(f"k = {k}{own}: examples grow", fitted, "n", 2, at_most=True, **labels))
        rows += cells(runs, resource="examples", method=method)
    for k, runs in subsets.items():
        fitted, labels = powers(runs, "C(n, k)"), {"resource": "width", "method": "practical", "k": k}
        found.append(claim(f"s = k = {k}: width grows", fitted, "C(n, k)", 1, within=0.25, **labels))
        rows += cells(runs, resource="width", method="s = k")
    judgements, table = zip(*found, strict=True)
    sentences = [
        f"s = k = {row['k']}, n = {row['n']}: half of the networks need {row['needed'] / 2:,.0f} pairs of neurons "
        f"({row['low'] / 2:,.0f} to {row['high'] / 2:,.0f}), {row['needed'] / 2 / comb(row['n'], row['k']):.2f} of the "
        f"{comb(row['n'], row['k']):,} sets"
        for row in rows
        if row["method"] == "s = k"
    ]
    for (n, k, s, method, second), mine in grouped(reached, "n", "k", "s", "method", "second_layer").items():
        errors, losses = ([row[key] for row in mine] for key in ("error", "loss"))
        sentences.append(
            f"({n}, {k}), s = {s}, {mine[0]['examples']:,} examples: step {method}, second layer {second}: test error "
            f"{min(errors):.3f} to {max(errors):.3f}, hinge loss {min(losses):.2f} to {max(losses):.2f}"
        )
    # A share q of the sets succeeds with probability q: the χ² test of all shares together.
    expected = [(row["share"], row["found"], row["trials"]) for row in searched]
    total = sum((won - q * tried) ** 2 / (q * (1 - q) * tried) for q, won, tried in expected)
    # Were success no more likely than at two thirds of the share, each term would be shifted by this.
    shift = sum((q / 3) ** 2 * tried / (q * (1 - q)) for q, _, tried in expected)
    freedom = len(expected)
    power = float(stats.ncx2.sf(stats.chi2.isf(0.05, freedom), freedom, shift))
    search = Judgement(
        "a random share of the sets succeeds as often as the share",
        "p of the χ² test that success is the share",
        float(stats.chi2.sf(total, freedom)),
        0.05,
        "at least",
        refuted_by="shares of successes that differ from the shares of sets, p below 0.05",
        effect=effects.mean("success less share, mean", [won / tried - q for q, won, tried in expected]),
        power=Power("success at two thirds of the share", power),
    )
    # The theorem's own steps, first layer and second, at two bits.
    descents = [row for row in reached if row["k"] == 2 and row["second_layer"] == "descent"]
    won, total = sum(row["error"] <= LEARNED for row in descents), len(descents)
    reach = Judgement(
        "the theorem's own steps, Lemma 14's descent included, learn two bits",
        f"seeds with a test error of at most {LEARNED:g}",
        won / total,
        1.0,
        "at least",
        refuted_by=f"a seed with a test error above {LEARNED:g}",
        effect=effects.share("share of seeds", won, total),
        power=Power("failure of every fourth run", 1 - 0.75**total),
    )
    return RecipeOutcome(
        parameters=parameters,
        judgements=[*judgements, search, reach],
        measured=[*map(trade_off.power_sentence, table), *sentences],
        data={"cells": rows, "powers": list(table), "search": searched, "reached": reached},
    )


def reach_of(reach: Fits) -> list[Row]:
    """Test error and hinge loss of every seed, with each method and second layer."""
    modes = (("practical", "solver"), ("theorem", "solver"), ("theorem", "descent"))
    rows = []
    for seed in range(reach.seeds):
        problem = Parity(reach.n, reach.k)
        X, y = problem.sample(reach.examples, seed=2 * seed)
        fresh, labels = problem.sample(5000, seed=2 * seed + 1)
        for method, second_layer in modes:
            options: dict[str, Any] = {"method": method, "second_layer": second_layer, "random_state": seed}
            model = OverSparseParityClassifier(
                reach.k, sparsity=reach.s, width=reach.width, max_steps=reach.steps, **options
            )
            values = model.fit(X, y).decision_function(fresh)
            setting = {key: getattr(reach, key) for key in ("n", "k", "s", "examples", "width")}
            steps = reach.steps if second_layer == "descent" else 0
            kind = {"steps": steps, "method": method, "second_layer": second_layer, "seed": seed}
            error = float(np.mean((values > 0) != (labels > 0)))
            rows.append({**setting, **kind, "error": error, "loss": float(np.mean(np.maximum(1 - labels * values, 0)))})
    return rows


RECIPE = Recipe(
    title="Theorem 4 as a trade-off: powers of n and s in width and examples",
    seconds=(43, 4 * 3600),
    expectation="width as (n/s)^k, examples as s^(k−1) and no faster than n²; at s = k width as C(n, k)",
    figure=trade_off.plot_trade_off,
    quick=OverSparseSettings(
        widths=(SweptCells(2, (48, 72, 108), (9, 15, 23), 60),),
        examples=(SweptCells(2, (24, 40, 64), (9, 13, 19), 12), SweptCells(4, (40,), (17, 37), 28)),
        theorem=SweptCells(2, (24, 40, 64), (9, 13, 19), 20),
        subsets=(SweptCells(2, (12, 20, 34), (2,), 140), SweptCells(4, (8, 10, 13), (4,), 45)),
        search=(16, 3),
        trials=100,
        reach=(Fits(50, 2, 25, 100, 5000, 10, 500), Fits(30, 4, 17, 200, 300_000, 1, 30)),
    ),
    paper=OverSparseSettings(
        widths=(SweptCells(2, (48, 72, 108, 160), (9, 15, 23), 200), SweptCells(4, (36, 48, 64), (17, 25), 100)),
        examples=(SweptCells(2, (24, 40, 64, 100), (9, 13, 19), 40), SweptCells(4, (40, 60), (17, 25, 37), 30)),
        theorem=SweptCells(2, (24, 40, 64, 100), (9, 13, 19), 40),
        subsets=(SweptCells(2, (12, 20, 34, 58), (2,), 200), SweptCells(4, (8, 11, 15, 20), (4,), 100)),
        search=(24, 4),
        trials=400,
        reach=(Fits(50, 2, 25, 400, 100_000, 20, 10_000), Fits(30, 4, 17, 800, 2_000_000, 3, 3000)),
    ),
    measure=measure,
    from_paper=("k = *", "the theorem's own steps*"),
    busy=1.6,
)

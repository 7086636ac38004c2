"""pareto, Theorem 5/21, as a trade-off: how width and examples grow with n from rows of s < k ones and ε elsewhere.

The theorem: width (n/k)^s, examples (n/k)^(k−s−1), as the proof has it (n − s)^(k−s−1), for one truncated step to leave
a subnetwork of correlation ½ with the parity. So the neurons that start inside the support are looked at, and no
others. Each pair (k, s) is a point of the trade-off: what one more bit of s saves in examples it costs in width.

Examples are divided by log n before powers are fitted: noise must stay below the truncation in n weights at once, and
the union bound over them, which the theorem leaves out and `papers.pareto.theorem_21` has, is seen in the numbers.

- s = k exactly, beyond the theorem: nothing is left to find, examples do not grow with n, and width does as C(n, k):
  the random-subset version of exhaustive search.
- Beyond the theorem, which ends with the existence of a subnetwork: the learner, which does not know the support, fits
  the second layer on all neurons that moved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb, log, log2
from typing import Any

from fewfire.papers import _effects as effects
from fewfire.papers._claims import Power, Recipe, RecipeOutcome, Row
from fewfire.papers._statistics import share_power
from fewfire.papers.pareto.algorithms import UnderSparseParityClassifier
from fewfire.papers.pareto.recipes import _trade_off as trade_off
from fewfire.papers.pareto.recipes._trade_off import Fits, SweptCells, cells, claim, powers
from fewfire.papers.pareto.trade_offs import NeededRun, under_sparse_samples, under_sparse_width
from fewfire.problems import Parity

GOOD = 3  # neurons inside the support for each bias where examples are looked for
AMPLE, AMPLE_AT_K = 2.0, 6.0
"""Examples where width is looked for, in units of log(n/p) over the squared gradient, for s < k and s = k.

At s = k the gradient off the support is nearer to that on it.
"""

CORRELATED = 0.25  # the test error of correlation ½
OFTEN = 0.8
"""In which share of the runs, at least, the learner is to succeed; the theorem promises 0.99 of its subnetwork."""


@dataclass(frozen=True)
class UnderSparseSettings:
    """What is measured: widths and examples, each grid with one k and one s, and the learner."""

    widths: tuple[SweptCells, ...]
    examples: tuple[SweptCells, ...]
    learned: tuple[Fits, ...]


def measure(settings: UnderSparseSettings) -> RecipeOutcome:
    """Rows of what half of the runs need, the powers fitted to all runs, and the fits of the learner."""
    widths = [
        (part.k, part.s[0], part.measure(under_sparse_width, ample=AMPLE if part.s[0] < part.k else AMPLE_AT_K))
        for part in settings.widths
    ]
    examples = [(part.k, part.s[0], part.measure(under_sparse_samples, good=GOOD)) for part in settings.examples]
    fits = []
    for part in settings.learned:
        for seed in range(part.seeds):
            problem = Parity(part.n, part.k)
            X, y = problem.sample(part.examples, seed=2 * seed)
            model = UnderSparseParityClassifier(part.k, sparsity=part.s, width=part.width, random_state=seed)
            error = 1 - float(model.fit(X, y).score(*problem.sample(5000, seed=2 * seed + 1)))
            setting = {key: getattr(part, key) for key in ("n", "k", "s", "width", "examples")}
            fits.append({**setting, "seed": seed, "error": error, "support_found": model.support_ == problem.support})
    return judge(widths, examples, fits, {"share": 0.5, "error": CORRELATED, "good": GOOD})


def judge(
    widths: list[tuple[int, int, list[NeededRun]]],
    examples: list[tuple[int, int, list[NeededRun]]],
    fits: list[Row],
    parameters: dict[str, Any],
) -> RecipeOutcome:
    """Verdicts on the powers of each (k, s), and on the learner."""
    found, rows = [], []
    labels: dict[str, Any]
    for k, s, runs in widths:
        labels = {"resource": "width", "method": "practical", "k": k, "s": s}
        found.append(claim(f"k = {k}, s = {s}: width grows", powers(runs, "n"), "n", s, **labels))
        rows += cells(runs, resource="width", method="practical")
    for k, s, runs in examples:
        fitted = powers([replace(run, value=run.value / log(run.n)) for run in runs], "n − s")
        labels = {"resource": "examples / log n", "method": "practical", "k": k, "s": s}
        what, power = f"k = {k}, s = {s}: examples / log n grow", max(k - s - 1, 0)
        found.append(claim(what, fitted, "n − s", power, at_most=s >= k, **labels))
        rows += cells(runs, resource="examples", method="practical")
    judgements, table = zip(*found, strict=True)
    # Where both were measured: the multiply-adds of the step over the sets and labels of exhaustive search.
    needed = {(row["resource"], row["n"], row["k"], row["s"]): row["needed"] for row in rows}
    sentences = []
    for (resource, n, k, s), width in needed.items():
        sampled = needed.get(("examples", n, k, s))
        if resource == "width" and sampled is not None:
            sets = comb(n, k)
            sentences.append(
                f"compute at n = {n}, k = {k}, s = {s}: width {width:,.0f} times {sampled:,.0f} examples is "
                f"{width * sampled / (sets * log2(sets)):,.0f} times what exhaustive search looks at ({sets:,} sets, "
                f"{log2(sets):.0f} examples)"
            )
    won, total = sum(row["error"] <= CORRELATED for row in fits), len(fits)
    seen = effects.share("share of the fits", won, total)
    learner = seen.at_least(
        "the learner finds the subnetwork without knowing the support",
        f"lower end of the 95% interval for the share of fits with test error at most {CORRELATED:g}",
        OFTEN,
        f"a 95% interval of the share that is not above {OFTEN:g}",
        Power("a share of 0.6", 1 - share_power(0.6, OFTEN, total)),
    )
    return RecipeOutcome(
        parameters=parameters,
        judgements=[*judgements, learner],
        measured=[*map(trade_off.power_sentence, table), *sentences],
        data={"cells": rows, "powers": list(table), "fits": fits},
    )


RECIPE = Recipe(
    title="Theorem 5 as a trade-off: powers of n in width and examples",
    seconds=(36, 20 * 60),
    expectation="width as n^s, examples / log n as (n − s)^(k−s−1), at s = k no growth; the learner succeeds",
    figure=trade_off.plot_trade_off,
    quick=UnderSparseSettings(
        widths=(
            SweptCells(4, (41, 81, 161), (2,), 60),
            SweptCells(4, (41, 81, 161), (4,), 80),
            SweptCells(6, (41, 81, 161), (4,), 30),
        ),
        examples=(
            SweptCells(4, (21, 41, 81), (2,), 12),
            SweptCells(4, (21, 41, 81), (4,), 12),
            SweptCells(6, (17, 35), (2,), 30),
            SweptCells(6, (21, 41, 81), (4,), 12),
        ),
        learned=(Fits(21, 4, 2, 1000, 10_000, 20), Fits(31, 4, 2, 1600, 20_000, 12)),
    ),
    paper=UnderSparseSettings(
        widths=(
            SweptCells(4, (41, 81, 161, 321), (2,), 100),
            SweptCells(4, (41, 81, 161, 321), (4,), 100),
            SweptCells(6, (41, 81, 161), (4,), 100),
            SweptCells(8, (41, 81, 161), (6,), 100),
        ),
        examples=(
            SweptCells(4, (21, 41, 81, 161), (2,), 40),
            SweptCells(4, (21, 41, 81, 161), (4,), 40),
            SweptCells(6, (21, 31, 45, 61), (2,), 20),
            SweptCells(6, (21, 41, 81, 161), (4,), 40),
            SweptCells(8, (21, 41, 81, 161), (6,), 40),
        ),
        learned=(Fits(21, 4, 2, 1000, 10_000, 100), Fits(41, 4, 2, 3000, 50_000, 50)),
    ),
    measure=measure,
    from_paper=("k = 4, s = 2: *", "k = 6, *"),
    busy=1.7,
)

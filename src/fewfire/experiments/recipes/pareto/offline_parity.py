"""Offline sparse parity (pareto, section 4.1 and C.1): width buys data and luck, and a sparse start helps.

A run succeeds when its error on fresh examples falls to 10%. Settings of C.1: hinge loss, rate 0.1, decay 0.01, batches
of 32. Quick: the (30, 3)-parity from 350 examples. Paper: the (50, 3)-parity, from 600 examples, and the two ends 1000
(everything succeeds) and 300 (narrow networks fail).
"""

from __future__ import annotations

from typing import Any

from fewfire.engines import Phase, Run, Schedule, get_engine
from fewfire.experiments.recipes._base import Recipe, check_scale, judgement, result
from fewfire.experiments.recipes._statistics import more_often
from fewfire.networks import init
from fewfire.problems import Parity

RECIPE = Recipe(
    name="pareto/offline-parity",
    title="Success of SGD by width, samples and start",
    seconds=30,
    expectation="success rises with width at a fixed sample, and the 2-sparse start beats the dense one",
)
STARTS = {"sparse": init.sparse(2), "dense": init.dense()}


def successes(problem: Parity, start: str, width: int, samples: int, trials: int, steps: int) -> int:
    """How many of the trials reach 10% error on fresh examples."""
    schedule = Schedule((Phase(steps, 0.1, weight_decay=0.01),), evaluate=max(1, steps // 10), stop_error=0.1)
    test = problem.sample(10_000, seed=10**6)
    runs = []
    for trial in range(trials):
        X, y = problem.sample(samples, seed=trial)
        network = STARTS[start](problem.n, width, seed=trial)
        runs.append(Run(network, schedule, X, y, *test, seed=trial))
    return sum(outcome.test_error <= 0.1 for outcome in get_engine().train(runs))


def run(scale: str = "quick") -> dict[str, Any]:
    """One row a cell: start, width, samples, trials, successes."""
    paper = check_scale(scale)
    problem = Parity(50, 3) if paper else Parity(30, 3)
    samples, trials, steps = (600, 48, 20_000) if paper else (350, 24, 10_000)
    widths = (30, 100, 300, 1000, 3000) if paper else (30, 100, 300, 1000)
    cells = [(start, width, samples) for start in STARTS for width in widths]
    if paper:
        cells += [("sparse", 1000, 1000), ("sparse", 100, 300), ("dense", 100, 300)]
    counts = {cell: successes(problem, *cell, trials, steps) for cell in cells}
    narrow, wide = counts["sparse", widths[0], samples], counts["sparse", widths[-1], samples]
    from_300 = [width for width in widths if width >= 300]
    sparse, dense = (sum(counts[start, width, samples] for width in from_300) for start in STARTS)
    pooled = more_often(sparse, dense, trials * len(from_300))
    judgements = [
        judgement(
            "width buys luck", "p of Fisher's test, widest against narrowest", more_often(wide, narrow, trials), 0.01
        ),
        judgement("sparse beats dense", "p of Fisher's test, widths from 300", pooled, 0.05),
    ]
    if paper:
        share = counts["sparse", 1000, 1000] / trials
        failed = counts["sparse", 100, 300] + counts["dense", 100, 300]
        judgements += [
            judgement("1000 neurons learn from 1000 examples", "share of successes", share, 0.95, at_most=False),
            judgement("100 neurons fail on 300 examples", "successes", failed, 0),
        ]
    rows = [
        {"start": start, "width": width, "samples": m, "trials": trials, "successes": count}
        for (start, width, m), count in counts.items()
    ]
    measured = [
        f"{start} start, successes of {trials} by width: "
        + ", ".join(f"{counts[start, width, samples]} at {width}" for width in widths)
        for start in STARTS
    ]
    parameters = {"n": problem.n, "k": problem.k, "steps": steps}
    return result(RECIPE, scale, parameters, judgements, measured=measured, rows=rows)

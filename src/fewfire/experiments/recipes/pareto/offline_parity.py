"""Offline sparse parity (pareto, section 4.1 and C.1): width buys data and luck, and a sparse start helps.

A run succeeds when its error on fresh examples falls to 10%. Settings of C.1: hinge loss, rate 0.1, decay 0.01, batches
of 32. On the paper's scale two ends come on top: 1000 examples (everything succeeds) and 300 (narrow networks fail).
"""

from __future__ import annotations

from dataclasses import dataclass

from fewfire.engines import Phase, Run, Schedule, get_engine
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement
from fewfire.experiments.recipes._statistics import more_often
from fewfire.networks import init
from fewfire.problems import Parity

STARTS = {"sparse": init.sparse(2), "dense": init.dense()}
CONVERGED = 0.1
WIDE = 300
"""From this width on the starts are compared."""


@dataclass(frozen=True)
class OfflineParitySettings:
    """A parity of k among n bits from `samples` examples at several widths; `ends` adds the two ends."""

    n: int
    k: int
    samples: int
    widths: tuple[int, ...]
    trials: int
    steps: int
    ends: bool = False


def successes(problem: Parity, start: str, width: int, samples: int, trials: int, steps: int) -> int:
    """How many of the trials reach 10% error on fresh examples."""
    phase = Phase(steps, 0.1, weight_decay=0.01)
    schedule = Schedule((phase,), evaluate=max(1, steps // 10), stop_error=CONVERGED)
    test = problem.sample(10_000, seed=10**6)
    runs = []
    for trial in range(trials):
        X, y = problem.sample(samples, seed=trial)
        network = STARTS[start](problem.n, width, seed=trial)
        runs.append(Run(network, schedule, X, y, *test, seed=trial))
    return sum(outcome.history.first_step(CONVERGED) is not None for outcome in get_engine().train(runs))


def measure(settings: OfflineParitySettings) -> RecipeOutcome:
    """One row per cell: start, width, samples, trials, successes."""
    problem, trials = Parity(settings.n, settings.k), settings.trials
    samples, widths = settings.samples, settings.widths
    cells = [(start, width, samples) for start in STARTS for width in widths]
    if settings.ends:
        cells += [("sparse", 1000, 1000), ("sparse", 100, 300), ("dense", 100, 300)]
    counts = {cell: successes(problem, *cell, trials, settings.steps) for cell in cells}
    narrow, wide = counts["sparse", widths[0], samples], counts["sparse", widths[-1], samples]
    compared = [width for width in widths if width >= WIDE]
    sparse, dense = (sum(counts[start, width, samples] for width in compared) for start in STARTS)
    pooled = more_often(sparse, dense, trials * len(compared))
    judgements = [
        Judgement(
            "width buys luck", "p of Fisher's test, widest against narrowest", more_often(wide, narrow, trials), 0.01
        ),
        Judgement("sparse beats dense", f"p of Fisher's test, widths from {WIDE}", pooled, 0.05),
    ]
    if settings.ends:
        share = counts["sparse", 1000, 1000] / trials
        failed = counts["sparse", 100, 300] + counts["dense", 100, 300]
        judgements += [
            Judgement("1000 neurons learn from 1000 examples", "share of successes", share, 0.95, "at least"),
            Judgement("100 neurons fail on 300 examples", "successes", failed, 0),
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
    parameters = {"n": settings.n, "k": settings.k, "steps": settings.steps}
    return RecipeOutcome(parameters=parameters, judgements=judgements, measured=measured, data={"rows": rows})


RECIPE = Recipe(
    name="pareto/offline-parity",
    title="Success of SGD by width, samples and start",
    seconds=30,
    expectation="success rises with width at a fixed sample, and the 2-sparse start beats the dense one",
    figure="offline_parity",
    scales={
        "quick": OfflineParitySettings(n=30, k=3, samples=350, widths=(30, 100, 300, 1000), trials=24, steps=10_000),
        "paper": OfflineParitySettings(
            n=50, k=3, samples=600, widths=(30, 100, 300, 1000, 3000), trials=48, steps=20_000, ends=True
        ),
    },
    measure=measure,
)

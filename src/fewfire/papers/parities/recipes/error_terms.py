"""parities, Theorem 2, term by term: the error of the best iterate as inputs, bits, neurons, steps and examples change.

One resource changes at a time from a common size that just suffices; the network descends on both layers as in
`parities/theorem-2`, with fresh examples, or with a sample of m of which a fifth chooses the iterate. The sum of the
four terms is above 1 at every size here, so the claims are that errors move as the leading terms do: down with inputs,
which fails, with neurons and with steps, up with bits; and down with the examples, which the theorem leaves out.

Trends over seeds are tested by Page's test at level 0.01. The power is for seeds that learn at the last level only,
each with probability 3/4, from the best half-space to nothing at all.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from fewfire._random import Stream
from fewfire.papers import _effects, parities
from fewfire.papers._claims import Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, grouped, rows_of
from fewfire.papers._statistics import rising
from fewfire.papers.parities.algorithms import CorrelatedParityClassifier, learn_correlated_parity
from fewfire.problems import CorrelatedParity
from fewfire.report._figure import MARKERS, SomeAxes, canvas, colour, legend_below

Resource: TypeAlias = Literal["n", "k", "width", "steps", "examples"]
TESTS, BATCH_SIZE, LEARNING_RATE, LEVEL = 5000, 64, 0.5, 0.01
LEARNS = 0.75  # the probability with which a seed learns at the last level, of the power


@dataclass(frozen=True)
class ErrorSize:
    """One size of Theorem 2: inputs, bits, neurons, steps T; examples of a sample, or None for fresh ones."""

    n: int
    k: int
    width: int
    steps: int
    examples: int | None = None


@dataclass(frozen=True)
class ErrorTermSettings:
    """The common size, the values that each resource takes in turn, and the seeds of every cell."""

    base: ErrorSize
    n: tuple[int, ...]
    k: tuple[int, ...]
    width: tuple[int, ...]
    steps: tuple[int, ...]
    examples: tuple[int, ...]
    seeds: int


CLAIMS: dict[Resource, tuple[str, int]] = {
    "n": ("more inputs, a smaller error, as qk/√n falls", -1),
    "width": ("more neurons, a smaller error, as k¹⁰/q and k⁸/√q fall", -1),
    "steps": ("more steps, a smaller error, as k²√q/T falls", -1),
    "k": ("more bits, a larger error, as all four terms rise", 1),
    "examples": ("more examples, a smaller error", -1),
}

TERMS = {"separator_norm": "k¹⁰/q", "drift": "k⁸/√q", "initial_output": "qk/√n", "step_size": "k²√q/T"}
"""Terms of the bound, in the paper's symbols."""


def measure(settings: ErrorTermSettings) -> RecipeOutcome:
    """Rows of resource, size, the errors of all seeds and the four terms."""
    rows: list[Row] = []
    tables: dict[str, np.ndarray] = {}
    for resource in CLAIMS:
        sizes = [replace(settings.base, **{resource: value}) for value in getattr(settings, resource)]
        found = [descent_errors(size, settings.seeds) for size in sizes]
        for size, errors in zip(sizes, found, strict=True):
            bound = parities.theorem_2(size.n, size.k, size.width // 2, size.steps)
            terms = {name: getattr(bound, name) for name in TERMS}
            rows.append({"resource": resource, **asdict(size), "errors": errors, **terms})
        tables[resource] = np.array(found).T
    means = ", ".join(f"{mean:.3f}" for mean in tables["n"].mean(axis=0))
    return RecipeOutcome(
        parameters={**asdict(settings.base), "seeds": settings.seeds, "tests": TESTS, "learning_rate": LEARNING_RATE},
        judgements=judge(tables),
        measured=[
            f"as n goes through {', '.join(map(str, settings.n))} the mean error is {means} (rising: p = "
            f"{rising(tables['n']):.2g}, falling: p = {rising(-tables['n']):.2g}); the theorem's term qk/√n falls."
        ],
        data={"rows": rows},
    )


def judge(tables: Mapping[str, np.ndarray]) -> list[Judgement]:
    """The claims on errors of shape (seeds, levels) by resource."""
    judgements = []
    for resource, (claim, sign) in CLAIMS.items():
        table = tables[resource]
        seeds, levels = table.shape
        judgements.append(
            Judgement(
                claim,
                "Page's trend test over seeds, p",
                rising(sign * table),
                LEVEL,
                refuted_by="errors that do not move, or move the other way",
                effect=_effects.mean("error at the last level less that at the first", table[:, -1] - table[:, 0]),
                power=Power(
                    f"each seed changes at the last level with probability {LEARNS:g}", _step_power(seeds, levels)
                ),
            )
        )
    return judgements


def _step_power(seeds: int, levels: int) -> float:
    """Exact: over how many seeds step up at the last level, the others not varying."""
    step = np.eye(levels)[-1]
    seen = [count > 1 and rising(np.tile(step, (count, 1))) <= LEVEL for count in range(seeds + 1)]
    return float(stats.binom.pmf(np.arange(seeds + 1), seeds, LEARNS) @ np.array(seen))


def descent_errors(size: ErrorSize, seeds: int) -> list[float]:
    """Test errors of the iterates chosen, one per seed."""
    problem = CorrelatedParity(size.n, size.k)
    options: Row = {"width": size.width, "batch_size": BATCH_SIZE, "learning_rate": LEARNING_RATE}
    if size.examples is None:
        seen = learn_correlated_parity(problem, problem.support, steps=size.steps, seeds=range(seeds), **options)
        return [best.error(problem, TESTS, seed) for seed, best in enumerate(seen)]
    options |= {"second_layer": "descent", "restarts": 0, "validation_fraction": 0.2}
    errors = []
    for seed in range(seeds):
        model = CorrelatedParityClassifier(size.k, max_steps=size.steps, random_state=seed, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # runs that stay at the half-space are part of the mean
            model.fit(*problem.sample(size.examples, Stream(seed, "data")))
        errors.append(1 - float(model.score(*problem.sample(TESTS, Stream(seed, "test")))))
    return errors


def plot_error_terms(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """parities/error-terms: every seed's error as one resource changes, above the four terms of the bound."""
    (rows,) = rows_of(info, "rows")
    resources = grouped(rows, "resource")
    title, across = "parities, Theorem 2: the error, and the terms that bound it", len(resources)
    figure, axes = canvas(2 * across, size=(9.2, 4.6), across=across, ax=ax, title=title, sharey="row")
    for index, (resource, mine) in enumerate(resources.items()):
        values = [row[resource] for row in mine]
        above, below = axes[index], axes[across + index]
        for value, row in zip(values, mine, strict=True):
            above.scatter([value] * len(row["errors"]), row["errors"], color=colour(1), s=10, clip_on=False)
        above.plot(values, [sum(row["errors"]) / len(row["errors"]) for row in mine], color=colour(0), label="mean")
        for number, (name, label) in enumerate(TERMS.items()):
            below.plot(values, [row[name] for row in mine], color=colour(number), marker=MARKERS[number], label=label)
        for axis in (above, below):
            axis.set(xscale="log", xlabel=resource)
            axis.set_xticks(values, [str(value) for value in values], fontsize=7)
            axis.minorticks_off()
    axes[0].set(ylabel="test error", ylim=(0, None))
    axes[across].set(ylabel="terms of the bound", yscale="log")
    legend_below(axes[across], ax, ncols=4)
    return figure


RECIPE = Recipe(
    title="Theorem 2, term by term: the error as inputs, bits, neurons, steps and examples change",
    seconds=(35, 700),
    expectation="error falls with neurons, steps and examples and rises with bits (Page's test, p at most 0.01)",
    figure=plot_error_terms,
    quick=ErrorTermSettings(
        base=ErrorSize(101, 3, 400, 300),
        n=(51, 101, 201, 401),
        k=(3, 5, 7),
        width=(20, 60, 200, 600),
        steps=(30, 100, 300, 900),
        examples=(1000, 4000, 16_000, 64_000),
        seeds=9,
    ),
    paper=ErrorTermSettings(
        base=ErrorSize(201, 3, 400, 300),
        n=(51, 101, 201, 401, 801),
        k=(3, 5, 7, 9),
        width=(20, 60, 200, 600, 2000),
        steps=(30, 100, 300, 900, 2700),
        examples=(1000, 4000, 16_000, 64_000, 256_000),
        seeds=30,
    ),
    measure=measure,
    busy=1.1,
)

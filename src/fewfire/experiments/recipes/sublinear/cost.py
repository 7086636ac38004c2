"""What an iteration costs by width (sublinear, Theorem 1.1 and Lemma 6.3): o(mnd) when few neurons are active.

m^0.6 neurons are active on an example at the start, whatever m. Each iteration evaluates f and its gradient at the
examples, moves them by ρ along it (one step of the fast gradient method, within the slice) and descends there. Work is
counted, not timed: multiply-adds per iteration, after the first one, which scores everything once. Seconds are recorded
beside.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from fewfire._sphere import on_slice
from fewfire.engines import get_loss, robust
from fewfire.experiments.recipes._base import Judgement, Recipe, RecipeOutcome
from fewfire.networks import init
from fewfire.problems import SphereSlice
from fewfire.robustness import SliceCap

EXPONENT, RHO, RATE = 0.6, 0.1, 0.5


def attacked(trainer: robust.ActiveTrainer, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Every example moved by about ρ against its label, with norm 1 and last coordinate 1/2 again."""
    _, gradients = trainer.evaluate(X)
    moved = SliceCap(RHO).ascend(X, -y[:, None] * gradients, 0.95 * RHO)
    return on_slice(moved[:, :-1]).astype(np.float32)


def cost(method: robust.TrainerMethod, width: int, d: int, examples: int, iterations: int) -> dict[str, Any]:
    """Counts per iteration of one trainer, averaged over all but the first."""
    X, y = SphereSlice(examples, d, separation=0.01).sample(seed=0)
    net = init.ntk(exponent=EXPONENT)(d, width, seed=0)
    trainer = robust.trainer(method, net, X, RHO)
    before, start = trainer.counters, 0.0
    active: list[float] = []
    for iteration in range(iterations + 1):
        if iteration == 1:
            before, start, active = trainer.counters, perf_counter(), []
        moved = attacked(trainer, X, y)
        slopes = get_loss("logistic").slope(trainer.values(moved), y) / examples
        active.append(float(trainer.active_counts.mean()))
        trainer.step(moved, slopes, RATE * width**-0.6)
    seconds, spent = (perf_counter() - start) / iterations, trainer.counters - before
    return {
        "method": method,
        "width": width,
        "d": d,
        "multiply_adds": spent.multiply_adds / iterations,
        "dense_multiply_adds": spent.dense_multiply_adds / iterations,
        "neurons_touched": spent.neurons_touched / iterations,
        "active": float(np.mean(active)),
        "seconds": seconds,
    }


def exponent(rows: list[dict[str, Any]], what: str) -> float:
    """The slope of log work in log width."""
    widths, work = (np.log([row[key] for row in rows]) for key in ("width", what))
    return float(np.polyfit(widths, work, 1)[0])


@dataclass(frozen=True)
class CostSettings:
    """Widths, inputs, examples, and iterations that are counted."""

    widths: tuple[int, ...]
    inputs: tuple[int, ...]
    examples: int
    iterations: int


def measure(settings: CostSettings) -> RecipeOutcome:
    """One row per trainer, width and dimension."""
    examples, iterations = settings.examples, settings.iterations
    rows = [cost("lists", width, d, examples, iterations) for d in settings.inputs for width in settings.widths]
    return judge(rows, {"exponent": EXPONENT, "rho": RHO, "examples": examples, "iterations": iterations})


def judge(rows: list[dict[str, Any]], parameters: dict[str, Any]) -> RecipeOutcome:
    """The verdict: a fitted exponent below 0.8 in every dimension, against 1 of the dense iteration."""
    fits = []
    for d in dict.fromkeys(row["d"] for row in rows):
        mine = [row for row in rows if row["d"] == d]
        widest = max(mine, key=lambda row: row["width"])
        saved = widest["dense_multiply_adds"] / widest["multiply_adds"]
        fits.append(
            {
                "d": d,
                "lists": exponent(mine, "multiply_adds"),
                "dense": exponent(mine, "dense_multiply_adds"),
                "active": exponent(mine, "active"),
                "saved": saved,
            }
        )
    worst = max(fits, key=lambda fit: fit["lists"])
    judgements = [
        Judgement(
            "an iteration costs o(mnd)",
            f"largest fitted exponent of multiply-adds in the width, at d = {worst['d']}",
            worst["lists"],
            0.8,
        ),
        Judgement(
            "it does less than a dense one",
            "least saving at the largest width, times",
            min(fit["saved"] for fit in fits),
            5.0,
            "at least",
        ),
    ]
    measured = [
        f"d = {fit['d']}: work grows as m^{fit['lists']:.2f}, active neurons as m^{fit['active']:.2f}; "
        f"{fit['saved']:.0f} times less than dense at the largest width"
        for fit in fits
    ]
    data = {"rows": rows, "fits": fits}
    return RecipeOutcome(parameters=parameters, judgements=judgements, measured=measured, data=data)


RECIPE = Recipe(
    name="sublinear/cost",
    title="Multiply-adds of an iteration of robust training by width, dense and sparse, d from 4 to 256",
    seconds=20,
    expectation="work grows as the width to the power 0.6 to 0.8 with drift lists, as the width without",
    figure="cost",
    scales={
        "quick": CostSettings(
            widths=tuple(2**k for k in range(12, 17)), inputs=(4, 16, 64, 256), examples=64, iterations=10
        ),
        "paper": CostSettings(
            widths=tuple(2**k for k in range(14, 20)), inputs=(4, 16, 64, 256), examples=256, iterations=20
        ),
    },
    measure=measure,
)

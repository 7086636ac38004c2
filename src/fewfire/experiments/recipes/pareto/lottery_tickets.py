"""pareto, C.2 and Figure 5: the neurons that end up large were lucky from the start.

Networks of 100 neurons learn a parity of 50 bits online; of each the 5 largest neurons are rewound and trained alone
under other minibatches, beside 5 freshly drawn ones. The trial is the wide network: one rewound and one redrawn
training per network, judged in pairs by the sign test, where re-trainings of a single network would only say how lucky
that network was. k = 5 is the figure's. Which choices matter is measured in docs/results/figure5.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._effects import mean, share
from fewfire.experiments.recipes._judgement import Judgement, Power
from fewfire.experiments.recipes._power import in_most_power, simulated_power
from fewfire.experiments.recipes._statistics import in_most
from fewfire.learners import lottery_tickets
from fewfire.problems import Parity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import Float64Array

LEARNED, BEGUN = 0.1, 0.3
"""Test errors of a training that has learned, and of one that has found much of the parity."""
ALONE = ("rewound", "redrawn")
LEVEL = 0.01
CURVES = 14
"""Networks whose errors are kept for the figure."""


@dataclass(frozen=True)
class LotterySettings:
    """The parity of k among n bits, wide networks and how many, how many neurons are kept, and steps of both kinds."""

    n: int
    k: int
    width: int
    keep: int
    networks: int
    steps: int
    retrain_steps: int
    evaluate: int = 1000


def measure(settings: tuple[LotterySettings, ...]) -> RecipeOutcome:
    """Per parity: steps to 10% error of every network and training, None where it never came, and some curves."""
    parities = [_parity(entry) for entry in settings]
    return RecipeOutcome(
        parameters={"parities": [asdict(entry) for entry in settings]},
        judgements=[entry for table in parities for entry in judge(table)],
        measured=[line for table in parities for line in _measured(table)],
        data={"parities": parities},
    )


def judge(table: dict[str, Any]) -> list[Judgement]:
    """The claims of C.2 on one parity, from its steps: "wide", "rewound" and "redrawn", one entry per network."""
    wide, rewound, redrawn = (_learned(table[key]) for key in ("wide", "rewound", "redrawn"))
    networks, k = len(wide), table["k"]
    better, worse = int(np.sum(rewound > redrawn)), int(np.sum(rewound < redrawn))
    return [
        _most(f"the wide networks learn (k = {k})", wide, "half of the wide networks, or more, that never learn"),
        Judgement(
            f"rewound neurons beat redrawn ones (k = {k})",
            f"p of the sign test, {better} networks against {worse}",
            in_most(better, better + worse),
            LEVEL,
            refuted_by="networks whose rewound neurons learn and redrawn ones do not, no more common than the reverse",
            effect=mean("rewound less redrawn, share of trainings that learn, per wide network", rewound - redrawn),
            power=Power("45% of rewound and 10% of redrawn learn", _sign_power(0.45, 0.1, networks)),
        ),
        _most(f"most rewound trainings learn (k = {k})", rewound, "half of the rewound trainings, or more, that fail"),
        _most(
            f"most redrawn trainings fail (k = {k})", 1 - redrawn, "half of the redrawn trainings, or more, that learn"
        ),
    ]


def _most(claim: str, shares: Float64Array, refuted_by: str) -> Judgement:
    count, total = int(shares.sum()), len(shares)
    return Judgement(
        claim,
        f"p of the sign test, {count} of {total}",
        in_most(count, total),
        LEVEL,
        refuted_by=refuted_by,
        effect=share("share that do", count, total),
        power=Power("3 in 4 do", in_most_power(0.75, total, LEVEL)),
    )


@cache
def _sign_power(chance: float, other: float, networks: int) -> float:
    def notices(rng: np.random.Generator) -> bool:
        rewound, redrawn = rng.random(networks) < chance, rng.random(networks) < other
        better, worse = int((rewound & ~redrawn).sum()), int((~rewound & redrawn).sum())
        return in_most(better, better + worse) <= LEVEL

    return simulated_power(notices, 4000)


def _parity(settings: LotterySettings) -> dict[str, Any]:
    found = lottery_tickets(
        Parity(settings.n, settings.k),
        settings.n,
        networks=settings.networks,
        width=settings.width,
        keep=settings.keep,
        steps=settings.steps,
        retrain_steps=settings.retrain_steps,
        evaluate=settings.evaluate,
        stop_error=LEARNED,
        test_examples=4000,
    )
    groups = {
        "wide": found.wide,
        "rewound": [trials[0] for trials in found.rewound],
        "redrawn": [trials[0] for trials in found.redrawn],
    }
    return {
        "n": settings.n,
        "k": settings.k,
        **{name: [history.first_step(LEARNED) for history in group] for name, group in groups.items()},
        "last": {name: [round(float(history.test_error[-1]), 3) for history in groups[name]] for name in ALONE},
        "curves": {name: [_curve(history) for history in group[:CURVES]] for name, group in groups.items()},
    }


def _curve(history: Any) -> dict[str, list[float]]:
    """Steps and test errors at about evenly spaced places in the log."""
    last = len(history.step) - 1
    places = np.unique(np.concatenate([[0], np.geomspace(1, max(1, last), 24).astype(np.int64)]))
    places = places[places <= last]
    return {"step": history.step[places].tolist(), "error": np.round(history.test_error[places], 3).tolist()}


def _learned(steps: Sequence[int | None]) -> Float64Array:
    return np.array([step is not None for step in steps], dtype=np.float64)


def _measured(table: dict[str, Any]) -> list[str]:
    told = []
    for name in ("wide", "rewound", "redrawn"):
        reached = [step for step in table[name] if step is not None]
        middle = f", after {np.median(reached):.0f} steps in the median" if reached else ""
        told.append(f"{len(reached)} of {len(table[name])} {name} learn{middle}")
    moved = (f"{sum(error <= BEGUN for error in table['last'][name])} {name}" for name in ALONE)
    return [
        f"({table['n']}, {table['k']})-parity: {'; '.join(told)}",
        f"(n, k) = ({table['n']}, {table['k']}), at most {BEGUN:.0%} error at the end: {' and '.join(moved)}",
    ]


RECIPE = Recipe(
    name="pareto/lottery-tickets",
    title="Figure 5: rewound neurons beat redrawn ones, over many wide networks",
    seconds=30,
    expectation="wide networks learn; neurons that end up large learn alone more often than redrawn ones",
    figure="lottery",
    scales={
        "quick": (
            LotterySettings(n=50, k=4, width=100, keep=5, networks=40, steps=40_000, retrain_steps=60_000),
            LotterySettings(n=50, k=5, width=100, keep=5, networks=40, steps=60_000, retrain_steps=150_000),
        ),
        "paper": (
            LotterySettings(n=50, k=4, width=100, keep=5, networks=100, steps=100_000, retrain_steps=100_000),
            LotterySettings(n=50, k=5, width=100, keep=5, networks=100, steps=300_000, retrain_steps=300_000),
        ),
    },
    measure=measure,
    paper_seconds=400,
    busy=2,
)

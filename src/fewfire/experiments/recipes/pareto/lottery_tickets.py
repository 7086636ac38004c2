"""pareto, C.2 and Figure 5: the neurons that end up large were lucky from the start.

100 neurons learn a parity of 50 bits online; the 5 of largest norm are rewound and trained alone under other
minibatches, beside 5 freshly drawn ones. Paper: k = 5, as in the figure.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement
from fewfire.experiments.recipes._statistics import more_often
from fewfire.learners import lottery_tickets
from fewfire.problems import Parity


@dataclass(frozen=True)
class LotterySettings:
    """The parity of k among n bits, the width, how many neurons are kept, steps of a run, and trials of each kind."""

    n: int
    k: int
    width: int
    keep: int
    steps: int
    trials: int


def measure(settings: LotterySettings) -> RecipeOutcome:
    """The error of every trial at the recorded steps."""
    trials = settings.trials
    found = lottery_tickets(
        Parity(settings.n, settings.k),
        settings.n,
        width=settings.width,
        keep=settings.keep,
        trials=trials,
        steps=settings.steps,
    )
    won, drawn = (round(share * trials) for share in found.success())
    return RecipeOutcome(
        parameters=asdict(settings),
        judgements=[
            Judgement("the wide network learns", "its test error", float(found.wide.test_error[-1]), 0.1),
            Judgement("rewound beats redrawn", "p of Fisher's test", more_often(won, drawn, trials), 0.01),
        ],
        measured=[f"{won} of {trials} rewound trials learn, and {drawn} of {trials} redrawn ones"],
        data={
            "step": found.wide.step.tolist(),
            "wide": _plain(found.wide.test_error),
            "rewound": [_plain(history.test_error) for history in found.rewound],
            "redrawn": [_plain(history.test_error) for history in found.redrawn],
            "successes": {"rewound": won, "redrawn": drawn},
        },
    )


def _plain(values: Any) -> list[float]:
    return [float(value) for value in np.round(values, 4)]


RECIPE = Recipe(
    name="pareto/lottery-tickets",
    title="Figure 5: rewound neurons beat redrawn ones",
    seconds=10,
    expectation="the wide network and most rewound trials learn; few redrawn trials do",
    figure="lottery",
    scales={
        "quick": LotterySettings(n=50, k=4, width=100, keep=5, steps=30_000, trials=20),
        "paper": LotterySettings(n=50, k=5, width=100, keep=5, steps=300_000, trials=30),
    },
    measure=measure,
)

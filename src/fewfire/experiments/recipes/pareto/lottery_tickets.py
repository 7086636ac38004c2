"""pareto, C.2 and Figure 5: the neurons that end up large were lucky from the start.

100 neurons learn a parity of 50 bits online; the 5 of largest norm are rewound and trained alone under other
minibatches, beside 5 freshly drawn ones. Quick: k = 4. Paper: k = 5, as in the figure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewfire.experiments.recipes._base import Recipe, check_scale, judgement, result
from fewfire.experiments.recipes._statistics import more_often
from fewfire.learners import lottery_tickets
from fewfire.problems import Parity

RECIPE = Recipe(
    name="pareto/lottery-tickets",
    title="Figure 5: rewound neurons beat redrawn ones",
    seconds=10,
    expectation="the wide network and most rewound trials learn; few redrawn trials do",
)


def run(scale: str = "quick") -> dict[str, Any]:
    """The error of every trial at the recorded steps."""
    paper = check_scale(scale)
    k, steps, trials = (5, 300_000, 30) if paper else (4, 30_000, 20)
    found = lottery_tickets(Parity(50, k), 50, trials=trials, steps=steps)
    won, drawn = (round(share * trials) for share in found.success())
    pvalue = more_often(won, drawn, trials)
    judgements = [
        judgement("the wide network learns", "its test error", float(found.wide.test_error[-1]), 0.1),
        judgement("rewound beats redrawn", "p of Fisher's test", pvalue, 0.01),
    ]
    return result(
        RECIPE,
        scale,
        {"n": 50, "k": k, "width": 100, "keep": 5, "steps": steps, "trials": trials},
        judgements,
        measured=[f"{won} of {trials} rewound trials learn, and {drawn} of {trials} redrawn ones"],
        step=found.wide.step.tolist(),
        wide=_plain(found.wide.test_error),
        rewound=[_plain(history.test_error) for history in found.rewound],
        redrawn=[_plain(history.test_error) for history in found.redrawn],
        successes={"rewound": won, "redrawn": drawn},
    )


def _plain(values: Any) -> list[float]:
    return [float(value) for value in np.round(values, 4)]

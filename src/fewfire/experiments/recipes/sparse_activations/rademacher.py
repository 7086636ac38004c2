"""Lower estimates of the Rademacher complexity of H(n, s, k) over s and over k, under the bounds of section 5.

Takes about 5 s (quick). Expect every estimate below Conjecture 20 with constant 1, close to it at s = k = 1 (about
0.9 of it), falling behind as s grows: addresses that keep neurons apart use up the scale W. Theorem 19 stands one to
two orders of magnitude above. An estimate is only ever from below, so it can refute a bound and not prove one.

`fewfire.report.plot_rademacher` draws what `run` returns.
"""

from __future__ import annotations

from typing import Any

from fewfire._random import Stream
from fewfire.experiments.recipes._base import Recipe, check_scale, judgement, result
from fewfire.experiments.sparse_activations import rademacher_table

RECIPE = Recipe(
    name="sparse-activations/rademacher",
    title="Rademacher complexity over s and k, under Theorem 19, Conjecture 20 and the classical bound",
    seconds=5,
    expectation="every estimate below the explicit form of eq. (15) and below Conjecture 20",
)


def run(scale: str = "quick") -> dict[str, Any]:
    """Estimates and bounds over s at k = 1 ("over_s") and over k at the largest s ("over_k")."""
    full = check_scale(scale)
    n, m, W, B = 12, 2048 if full else 512, 1.0, 2.0
    largest = 256 if full else 64
    draws, restarts, steps = (32, 8, 100) if full else (12, 3, 50)
    X = Stream(0, "recipe/rademacher").sign_rows(m, n)
    table = rademacher_table(X, W, B, max_block=largest, draws=draws, restarts=restarts, steps=steps)
    powers = [1 << power for power in range(largest.bit_length())]
    over_s = [table.row(s, 1) for s in powers]
    over_k = [table.row(largest, k) for k in powers]
    rows = over_s + over_k
    least = [(row, row["estimate"] - 3 * row["standard_error"]) for row in rows]
    judgements = [
        judgement(
            "eq. (15) with every constant holds",
            "largest (estimate − 3 standard errors)/bound",
            max(value / row["explicit"] for row, value in least),
            1.0,
        ),
        judgement(
            "no counterexample to Conjecture 20 with constant 1",
            "largest (estimate − 3 standard errors)/bound",
            max(value / row["conjecture_20"] for row, value in least),
            1.0,
        ),
    ]
    parameters = {"n": n, "m": m, "W": W, "B": B, "draws": draws, "restarts": restarts, "steps": steps}
    return result(RECIPE, scale, parameters, judgements, over_s=over_s, over_k=over_k)

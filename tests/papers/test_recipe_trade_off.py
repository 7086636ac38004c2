"""The verdicts on Theorems 4 and 5 by hand: powers as the theorems have them pass, powers off by one do not."""

import numpy as np
import pytest

from fewfire.papers import recipes
from fewfire.papers.pareto.recipes import over_sparse, under_sparse
from fewfire.papers.pareto.trade_offs import NeededRun

SPREAD = 0.3


def runs(k, ns, ss, law, count=30, spread=SPREAD, seed=0):
    rng = np.random.default_rng(seed)
    places = [(n, s) for n in ns for s in ss if s <= n]
    return [
        NeededRun(n, k, s, float(law(n, s) * np.exp(spread * rng.standard_normal())), 100)
        for n, s in places
        for _ in range(count)
    ]


def over(
    width=lambda n, s: (n / s) ** 2, examples=lambda n, s: s, own=lambda n, s: s * n, found=(25, 50, 75), error=0.0
):
    searched = [
        {"n": 16, "k": 3, "share": share, "sets": 560, "found": hits, "trials": 100}
        for share, hits in zip((0.25, 0.5, 0.75), found, strict=True)
    ]
    setting = {"n": 50, "k": 2, "s": 25, "examples": 10, "width": 20, "steps": 5, "loss": 0.1}
    reached = [
        {**setting, "method": "theorem", "second_layer": "descent", "seed": seed, "error": error} for seed in range(10)
    ]
    grid = ((24, 48, 96), (9, 13, 19))
    subsets = {2: runs(2, (12, 20, 34), (2,), lambda n, s: n * (n - 1))}
    result = over_sparse.judge(
        {2: runs(2, *grid, width)}, {2: runs(2, *grid, examples)}, runs(2, *grid, own), subsets, searched, reached, {}
    )
    return {entry.claim: entry for entry in result.judgements}, result


def failing(found):
    return {claim for claim, entry in found.items() if not entry.passed}


def test_theorem_4_passes_on_its_own_powers():
    found, result = over()
    assert not failing(found) and len(found) == 9
    for entry in found.values():
        assert entry.refuted_by and entry.effect is not None and entry.power.probability >= 0.8
    assert any("the theorem has at most 2" in line for line in result.measured)


@pytest.mark.parametrize(
    ("options", "claims"),
    [
        ({"width": lambda n, s: (n / s) ** 3}, {"k = 2: width grows as n^2", "k = 2: width grows as s^-2"}),
        ({"width": lambda n, s: n**2 / s}, {"k = 2: width grows as s^-2"}),
        ({"examples": lambda n, s: s**2}, {"k = 2: examples grow as s^1"}),
        ({"examples": lambda n, s: s * n**3}, {"k = 2: examples grow no faster than n^2"}),
        ({"own": lambda n, s: n**2.2}, {"k = 2, the theorem's step: examples grow as s^1", "k = 2, the theorem's step: examples grow no faster than n^2"}),
        ({"found": (20, 33, 50)}, {"a random share of the sets succeeds as often as the share"}),
        ({"error": 0.2}, {"the theorem's own steps, Lemma 14's descent included, learn two bits"}),
    ],
)  # fmt: skip
def test_theorem_4_fails_on_others(options, claims):
    assert failing(over(**options)[0]) == claims


def test_a_run_that_never_succeeds_leaves_no_power():
    found, _ = over(examples=lambda n, s: np.inf if n == 96 else s)
    assert {"k = 2: examples grow as s^1", "k = 2: examples grow no faster than n^2"} == failing(found)


def under(width=lambda n, s: n**s, examples=lambda n, s: np.log(n) * (n - s) ** (4 - s - 1), errors=(0.0,) * 30):
    ns = (21, 41, 81)
    fits = [{"error": error} for error in errors]
    result = under_sparse.judge(
        [(4, 2, runs(4, ns, (2,), width))], [(4, 2, runs(4, ns, (2,), examples))], fits, {"good": 3}
    )
    return {entry.claim: entry for entry in result.judgements}, result


def test_theorem_5_passes_on_its_own_powers_and_reports_the_compute():
    found, result = under()
    assert not failing(found) and len(found) == 3
    for entry in found.values():
        assert entry.refuted_by and entry.effect is not None and entry.power.probability >= 0.8
    assert sum(line.startswith("compute at n = ") for line in result.measured) == 3


@pytest.mark.parametrize(
    ("options", "claims"),
    [
        ({"width": lambda n, s: n**3}, {"k = 4, s = 2: width grows as n^2"}),
        ({"examples": lambda n, s: n**2}, {"k = 4, s = 2: examples / log n grow as (n − s)^1"}),
        ({"examples": lambda n, s: 5.0}, {"k = 4, s = 2: examples / log n grow as (n − s)^1"}),
        ({"errors": (0.0,) * 27 + (0.4,) * 3}, {"the learner finds the subnetwork without knowing the support"}),
    ],
)
def test_theorem_5_fails_on_others(options, claims):
    assert failing(under(**options)[0]) == claims


@pytest.mark.parametrize("name", ["pareto/over-sparse", "pareto/under-sparse"])
def test_both_recipes_sweep_s_and_include_s_equal_to_k(name):
    for scale in recipes.find(name).scales.values():
        parts = [*scale.widths, *getattr(scale, "subsets", ())]
        assert any(part.s == (part.k,) for part in parts)
        assert len({(part.k, s) for part in parts for s in part.s}) >= 3
        assert all(min(part.n) > max(part.s) for part in (*parts, *scale.examples))

"""sublinear/cost: what is counted, and what refutes each verdict."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from fewfire.engines import robust
from fewfire.networks import init
from fewfire.papers._statistics import spread_power
from fewfire.papers.sublinear.recipes import cost
from fewfire.problems import SphereSlice

DIMENSIONS, SEEDS = (4, 8, 16), 5


def made_up(lists=0.7, tree=(0.6, 0.76, 0.88), spread=0.004, dense=1000.0):
    """Rows whose work is an exact power of the width, its exponent off by `spread` from seed to seed."""
    rows = []
    for place, d in enumerate(DIMENSIONS):
        for seed in range(SEEDS):
            off = spread * (seed - (SEEDS - 1) / 2)
            for m in (2**12, 2**14, 2**16):
                both = {"width": m, "d": d, "seed": seed, "dense_multiply_adds": dense * m, "active": m**0.6}
                rows.append({**both, "method": "lists", "multiply_adds": m ** (lists + off), "search": 0.0})
                rows.append({**both, "method": "tree", "multiply_adds": m, "search": m ** (tree[place] + off)})
    return rows


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({}, []),
        ({"lists": 0.9}, ["an iteration costs o(mnd)"]),
        ({"dense": 0.1}, ["it does less than a dense one"]),
        ({"tree": (0.98, 0.98, 0.98)}, ["half-space reporting", "its exponent rises", "a ball tree has"]),  # as a scan
        ({"tree": (0.62, 0.89, 0.98)}, ["a ball tree has"]),
        ({"tree": (0.88, 0.76, 0.6)}, ["half-space reporting", "its exponent rises", "a ball tree has"]),
        ({"lists": 0.79, "spread": 0.02}, ["an iteration costs o(mnd)"]),  # below 0.8 on average, not surely
    ],
)
def test_what_refutes_each_claim(change, failing):
    entries = cost.judge(made_up(**change), {}).judgements
    assert [entry.claim[: len(text)] for entry, text in zip(failed(entries), failing, strict=True)] == failing
    assert all(entry.refuted_by and entry.effect and entry.power for entry in entries)


def test_a_tree_is_tested_between_the_two_largest_widths():
    """A tree that reads everything up to 2¹⁴ neurons and half as much at 4 times the width."""
    rows = made_up()
    for row in rows:
        if row["method"] == "tree" and row["d"] == 16:
            row["search"] = float(row["width"]) if row["width"] <= 2**14 else 2**14 * 4**0.5 * (1 + row["seed"] / 1000)
    outcome = cost.judge(rows, {})
    fit = next(fit for fit in outcome.data["fits"] if fit["method"] == "tree" and fit["d"] == 16)
    assert fit["exponent"] == pytest.approx(0.5, abs=0.01)
    assert [entry.claim for entry in failed(outcome.judgements)] == ["its exponent rises with d"]


def failed(entries):
    return [entry for entry in entries if not entry.passed]


def test_intervals_and_power_of_exponents():
    outcome = cost.judge(made_up(), {})
    fit = next(fit for fit in outcome.data["fits"] if fit["method"] == "lists" and fit["d"] == 8)
    assert fit["exponent"] == pytest.approx(0.7) and len(fit["seeds"]) == SEEDS
    # The five exponents are 0.004 apart: their mean has the error 0.004/√2, and t of 4 degrees of freedom is 2.776.
    assert fit["high"] - fit["low"] == pytest.approx(2 * 2.7764 * 0.004 / np.sqrt(2), rel=1e-4)
    assert outcome.data["power"] > 0.99
    assert cost.judge(made_up(spread=0.05), {}).data["power"] < 0.5


def test_the_stated_power_is_the_share_of_tests_that_notice():
    """20,000 made-up samples of five seeds whose exponent is off by 0.05 with a spread of 0.04."""
    draws = 0.05 + 0.04 * np.random.default_rng(0).normal(size=(20_000, 5))
    noticed = ttest_1samp(draws, 0.0, axis=1, alternative="greater").pvalue < 0.05
    spread = 0.04 / np.std([0, 1, 2, 3, 4], ddof=1) * np.arange(5.0)
    assert spread_power(spread, 0.05) == pytest.approx(noticed.mean(), abs=4 * np.sqrt(0.25 / 20_000))
    assert spread_power([0.7, 0.7], 0.05) == 1.0


def test_a_tree_reads_less_than_a_scan_in_few_dimensions_and_all_in_many(core):
    tree, scan = (cost.cost(method, 8192, 3, 16, 1) for method in ("tree", "scan"))
    assert scan["search"] == 2 * 16 * 8192 * 3  # two searches per iteration: at the examples, and where they moved
    assert tree["search"] < scan["search"] / 2 and tree["active"] == scan["active"]
    assert cost.cost("tree", 8192, 24, 16, 1)["search"] >= 2 * 16 * 8192 * 24


def test_counts_leave_the_first_pass_out_and_follow_the_active_neurons(core):
    row = cost.cost("lists", 4096, 8, 16, 3)
    dense = cost.cost("dense", 4096, 8, 16, 3)
    assert dense["multiply_adds"] == dense["dense_multiply_adds"] == row["dense_multiply_adds"] == 5 * 4096 * 16 * 8
    assert row["multiply_adds"] < dense["multiply_adds"] / 3
    assert abs(row["active"] - dense["active"]) < 1
    assert 0.5 < row["active"] / 4096**0.6 < 2


def test_attacked_examples_stay_on_the_slice_and_within_the_ball():
    X, y = SphereSlice(20, 6, separation=0.1).sample(seed=1)
    trainer = robust.trainer("dense", init.ntk(activity=0.2)(6, 500, seed=0), X, cost.RHO)
    moved = cost.attacked(trainer, X, y)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(moved[:, -1], 0.5, atol=1e-6)
    distances = np.linalg.norm(moved - X, axis=1)
    assert (distances <= cost.RHO).all() and distances.max() > 0.8 * cost.RHO
    before, after = trainer.values(X), trainer.values(moved)
    assert np.mean(y * (after - before) < 0) > 0.8

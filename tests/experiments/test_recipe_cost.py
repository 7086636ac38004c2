"""sublinear/cost: what is counted, and a verdict that can fail."""

from __future__ import annotations

import numpy as np

from fewfire.engines import robust
from fewfire.experiments.recipes.sublinear import cost
from fewfire.networks import init
from fewfire.problems import SphereSlice


def made_up(power):
    return [
        {"width": m, "d": d, "multiply_adds": m**power, "dense_multiply_adds": 1000.0 * m, "active": m**0.6}
        for d in (4, 64)
        for m in (2**12, 2**14, 2**16)
    ]


def test_the_verdict_follows_the_exponent():
    assert cost.judge(made_up(0.7), {}).passed
    refused = cost.judge(made_up(0.9), {})
    assert not refused.passed and [entry.passed for entry in refused.judgements] == [False, True]
    assert abs(refused.judgements[0].value - 0.9) < 1e-9


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

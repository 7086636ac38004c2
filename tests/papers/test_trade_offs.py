"""What a run needs is what the learner needs; powers are recovered from what they made."""

import numpy as np
import pytest

from fewfire._random import Stream
from fewfire.networks import init
from fewfire.papers._second_layer import second_layer_error, solve_output
from fewfire.papers.pareto import good_neuron_probability, trade_offs
from fewfire.papers.pareto.algorithms import OverSparseParityClassifier
from fewfire.papers.pareto.trade_offs import (
    _inside,
    fit_exponents,
    over_sparse_samples,
    over_sparse_width,
    under_sparse_samples,
    under_sparse_width,
)
from fewfire.problems import Parity


def test_powers_are_recovered_and_their_intervals_cover():
    rng, covered = np.random.default_rng(0), 0
    n, s = (grid.ravel() for grid in np.meshgrid([20.0, 40, 80], np.repeat([9.0, 13, 19], 10)))
    for _ in range(200):
        needed = 3 * n**2 / s**1.5 * np.exp(0.5 * rng.standard_normal(len(n)))
        found = fit_exponents(needed, {"n": n, "s": s})
        covered += found["n"].low <= 2 <= found["n"].high
        assert abs(found["s"].value + 1.5) < 0.8
    assert 180 <= covered <= 199


def test_powers_need_runs_that_succeed_and_quantities_that_differ():
    assert np.isnan(fit_exponents([1.0, np.inf, 3.0], {"n": [1, 2, 3]})["n"].value)
    assert np.isnan(fit_exponents([1.0, 2.0, 3.0], {"n": [5, 5, 5]})["n"].value)
    lost = fit_exponents([1.0, np.inf, 3.0], {"n": [1, 2, 3]})["n"]
    assert np.isnan(lost.farthest(1.0)) and lost.power(1.0, 0.5) == 0.0 and lost.power_above(1.0) == 0.0


def test_power_counts_what_passes():
    """Simulated: how often an exponent off by so much keeps its whole interval within 1/2 of the claim."""
    rng, places = np.random.default_rng(1), np.repeat([10.0, 20, 40], 40)

    def one(power):
        return fit_exponents(places**power * np.exp(0.6 * rng.standard_normal(120)), {"n": places})["n"]

    found = one(3)
    assert found.power(1.0, 0.5) > 0.99 and found.power_above(1.0) > 0.975
    noticed = np.mean([one(3.3).farthest(3) > 0.5 for _ in range(500)])
    assert found.power(0.3, 0.5) == pytest.approx(noticed, abs=0.15)  # the spread of one run stands for the true one


def test_examples_needed_by_a_run_are_enough_for_the_learner(monkeypatch):
    n, k, s, seed = 20, 2, 9, 3
    run = over_sparse_samples(n, k, s, seed)
    assert run.value == over_sparse_samples(n, k, s, seed).value
    X, y = Parity(n, k).sample(4 * int(run.value), seed=0)
    model = OverSparseParityClassifier(k=k, sparsity=s, width=run.other, random_state=0).fit(X, y)
    assert model.score(*Parity(n, k).sample(2000, seed=1)) >= 0.9
    monkeypatch.setattr(trade_offs, "LONGEST", 0.07)  # of which a 16th is the first number tried
    assert over_sparse_samples(n, k, s, seed).value == np.inf


def test_the_proofs_step_needs_more_examples():
    practical = [over_sparse_samples(30, 2, 9, seed).value for seed in range(5)]
    theorem = [over_sparse_samples(30, 2, 9, seed, method="theorem").value for seed in range(5)]
    assert np.median(theorem) > 1.5 * np.median(practical)


@pytest.mark.parametrize(("n", "k", "s"), [(14, 2, 2), (30, 2, 9)])
def test_width_needed_is_where_the_first_neuron_around_the_support_comes(n, k, s):
    """Two bits have one bias, so one pair around the support is what it takes."""
    for seed in range(6):
        run = over_sparse_width(n, k, s, seed, ample=6.0)
        pairs = int(run.value) // 2
        per_part = int(np.ceil(2 / good_neuron_probability(n, k, s)))
        part, place = divmod(pairs - 1, per_part)
        rows = [
            init.over_sparse(k, s, strict=False)(n, 2 * per_part, Stream(seed, f"init/{i}")) for i in range(part + 1)
        ]
        good = np.concatenate([(net.hidden[:per_part, :k] == 1).all(axis=1) for net in rows])
        assert np.flatnonzero(good)[0] == part * per_part + place


def test_under_sparse_widths_have_the_law_of_real_draws():
    """The gaps between neurons inside the support are drawn by their number; real starts have as many of them."""
    n, k, s = 13, 4, 2
    chance = good_neuron_probability(n, k, s)
    real = init.under_sparse(k, s)(n, 20_000, 0).hidden[:10_000]
    inside = ((real == 1).sum(axis=1) == s) & (real[:, k:] < 1).all(axis=1)
    assert abs(inside.mean() - chance) < 5 * np.sqrt(chance / 10_000)
    luck = np.concatenate([Stream(seed, "luck").uniform(64) for seed in range(100)])
    gaps = np.maximum(1, np.ceil(np.log(luck) / np.log1p(-chance)))
    assert gaps.mean() == pytest.approx(1 / chance, rel=0.05)
    assert np.mean(gaps == 1) == pytest.approx(chance, rel=0.15)
    start = _inside(n, k, s, 0.05, 50, Stream(0, "init"))
    assert (start.hidden[:, k:] < 1).all() and ((start.hidden == 1).sum(axis=1) == s).all()


def test_under_sparse_trade_off_between_s_2_and_s_4():
    """At six bits two more ones cost width and save examples, by orders of magnitude."""
    few, many = (under_sparse_samples(15, 6, s, 0, good=2).value for s in (2, 4))
    narrow, wide = (
        np.median([under_sparse_width(15, 6, s, seed, ample=ample).value for seed in range(3)])
        for s, ample in ((4, 3.0), (6, 3.0))
    )
    assert few > 20 * many and wide > 3 * narrow


def test_at_s_equal_to_k_examples_do_not_grow_with_n():
    small, large = (np.median([under_sparse_samples(n, 4, 4, seed).value for seed in range(5)]) for n in (15, 61))
    assert 0.25 < large / small < 2


def test_newtons_second_layer_is_the_learners():
    """Both minimise the same loss; labels agree but where a score is about 0."""
    problem = Parity(20, 4)
    network = init.dense()(20, 30, Stream(0, "init"))
    train, test = problem.sample(600, 1), problem.sample(4000, 2)
    moved = np.arange(30) % 3 > 0
    labels = train[1].astype(np.float64)
    fitted = solve_output(network, train[0], labels, moved)
    newton = solve_output(network, train[0], labels, moved, solver="newton-cholesky")
    np.testing.assert_allclose(newton(test[0]), fitted(test[0]), atol=1e-2)  # L-BFGS ends first
    wrong = float(np.mean((fitted(test[0]) > 0) != (test[1] > 0)))
    assert second_layer_error(network, moved, train, test) == pytest.approx(wrong, abs=5e-3)


def test_no_neuron_that_fires_leaves_the_more_frequent_label():
    network = init.dense()(5, 4, Stream(0, "init"))
    X, y = Parity(5, 2).sample(99, 0)
    wrong = min(np.mean(y > 0), np.mean(y < 0))
    for silent in (np.zeros(4, dtype=bool), np.ones(4, dtype=bool)):
        dead = network.with_parameters(bias=np.full(4, -100.0, dtype=np.float32)) if silent.any() else network
        assert second_layer_error(dead, silent, (X, y), (X, y)) == pytest.approx(wrong)


def test_newton_ends_on_separable_examples():
    X = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=np.int8)
    y = np.array([1, 1, -1, -1], dtype=np.int8)
    network = init.dense()(2, 8, Stream(0, "init"))
    assert second_layer_error(network, np.ones(8, dtype=bool), (X, y), (X, y)) == 0.0

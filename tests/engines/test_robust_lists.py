"""Laws of the drift lists: what is touched, when neurons are refreshed, what results do not depend on, refusals."""

import numpy as np
import pytest
from robust_problems import move, problem, verify

from fewfire._errors import InvalidArgument
from fewfire.engines import robust
from fewfire.engines.robust._lists import ListTrainer
from fewfire.engines.robust._registry import TRAINERS
from fewfire.engines.robust._trainer import DenseTrainer
from fewfire.networks import TwoLayer, init, shifted_relu


def wide(width=20_000, inputs=32, examples=64, reach=0.1):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(examples, inputs)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return init.ntk(exponent=0.6)(inputs, width, seed=3), X, rng, reach


def run(trainer, X, rng, reach, steps=6, rate=0.05):
    """Some iterations; everything seen on the way."""
    seen = []
    for _ in range(steps):
        seen += trainer.evaluate(X)
        moved = move(X, reach, rng)
        seen.append(trainer.values(moved))
        trainer.step(moved, rng.normal(size=len(X)) / len(X), rate)
        verify(trainer, moved)
    return [*seen, trainer.network().hidden]


def test_results_do_not_depend_on_threads(core):
    net, X, _, reach = wide()
    results = [run(ListTrainer(net, X, reach, threads=t), X, np.random.default_rng(1), reach) for t in (1, 2, 5)]
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_results_do_not_depend_on_lists(core):
    """Fresh lists and drifted ones, with another reach, find the same active pairs and the same sums, bit by bit."""
    net, X, rng, reach = wide()
    old = ListTrainer(net, X, reach)
    run(old, X, rng, reach)
    fresh = ListTrainer(old.network(), X, 3 * reach)
    moved, slopes = move(X, reach, rng), rng.normal(size=len(X))
    for a, b in zip(old.evaluate(moved), fresh.evaluate(moved), strict=True):
        assert np.array_equal(a, b)
    assert fresh.counters.touched > old.counters.active_last
    old.step(moved, slopes, 0.1)
    fresh.step(moved, slopes, 0.1)
    assert np.array_equal(old.network().hidden, fresh.network().hidden)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_more_examples_than_sixteen_bits_number(core, isa):
    if isa not in core.available_isas():
        pytest.skip(f"no {isa} here")
    core.set_isa(isa)
    net, X, rng, reach = wide(width=48, inputs=3, examples=70_000)
    lists, dense = ListTrainer(net, X, reach), DenseTrainer(net, X, reach)
    for _ in range(3):
        moved = move(X, reach, rng)
        for ours, theirs in zip(lists.evaluate(moved), dense.evaluate(moved), strict=True):
            assert np.allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        verify(lists, moved)
        slopes = rng.normal(size=len(X)) / len(X)
        lists.step(moved, slopes, 0.05)
        dense.step(moved, slopes, 0.05)
    assert np.allclose(lists.network().hidden, dense.network().hidden, atol=1e-6)
    assert lists.active_counts[1 << 16 :].sum() > 0


@pytest.mark.parametrize("isa", ["baseline", "avx2"])
def test_other_instruction_sets_agree(core, isa):
    if isa not in core.available_isas():
        pytest.skip(f"no {isa} here")
    net, X, _, reach = wide(width=4000)
    best = run(ListTrainer(net, X, reach), X, np.random.default_rng(1), reach)
    core.set_isa(isa)
    other = run(ListTrainer(net, X, reach), X, np.random.default_rng(1), reach)
    for a, b in zip(best, other, strict=True):
        assert np.allclose(a, b, rtol=1e-4, atol=1e-6)


def test_cost_follows_the_active_pairs(core):
    net, X, rng, reach = wide(width=200_000)
    trainer = ListTrainer(net, X, reach)
    start = trainer.counters
    assert (start.full_passes, start.refreshes, start.touched) == (1, 0, 0)
    assert start.multiply_adds == 200_000 * X.size
    run(trainer, X, rng, reach, steps=4, rate=0.001)
    work = trainer.counters - start
    assert work.active <= work.touched <= 10 * work.active
    assert work.active_last == trainer.active_counts.sum()
    assert work.neurons_touched < 0.3 * 8 * net.width
    assert work.dense_multiply_adds == 5 * 4 * net.width * X.size
    assert work.multiply_adds < 0.05 * work.dense_multiply_adds
    assert 0 < work.bytes < 0.4 * 5 * 4 * net.hidden.nbytes


def test_empty_neurons_are_never_touched(core):
    """Half of the neurons cannot reach the threshold anywhere in the balls: rows read are those of the other half."""
    net, X, rng = problem(400, 8, 20, threshold=0.1)
    bias = net.bias.copy()
    bias[::2] = -1000.0
    net = net.with_parameters(bias=bias)
    trainer = ListTrainer(net, X, 0.2)
    run(trainer, X, rng, 0.2, steps=5)
    assert 0 < trainer.counters.neurons_touched <= 200 * 10
    assert np.array_equal(trainer.network().hidden[::2], net.hidden[::2])
    assert not np.array_equal(trainer.network().hidden[1::2], net.hidden[1::2])


def test_a_step_reuses_the_pairs_of_the_call_before(core):
    net, X, rng = problem(300, 10, 15)
    once, twice = ListTrainer(net, X, 0.2), ListTrainer(net, X, 0.2)
    moved, slopes = move(X, 0.2, rng), rng.normal(size=15)
    once.values(moved)
    scored = once.counters
    once.step(moved, slopes, 0.1)
    assert once.counters.touched == scored.touched
    assert once.counters.active == scored.active
    twice.values(X)
    twice.step(moved, slopes, 0.1)
    assert twice.counters.active_last == scored.active_last
    assert np.array_equal(once.network().hidden, twice.network().hidden)
    assert 0 < once.counters.neurons_updated <= scored.neurons_touched


def test_only_movement_costs_refreshes(core):
    net, X, rng = problem(300, 10, 15)
    trainer = ListTrainer(net, X, 0.2)
    for _ in range(30):
        trainer.values(move(X, 0.2, rng))
    assert trainer.counters.refreshes == 0
    trainer.step(X, np.ones(15), 50.0)
    trainer.values(X)
    assert 0 < trainer.counters.refreshes <= trainer.counters.neurons_updated


@pytest.mark.parametrize("method", TRAINERS)
def test_refusals_leave_everything_as_it_was(core, method):
    net, X, _ = problem(60, 4, 6)
    trainer, twin = (robust.trainer(method, net, X, 0.25) for _ in range(2))
    far, broken, ones = X.copy(), X.copy(), np.ones(6)
    far[3] += 0.2
    broken[2, 1] = np.nan
    refused = [
        (lambda: trainer.values(far), "X_moved must stay within reach = 0.25 of the anchors; got a distance of 0.4"),
        (lambda: trainer.step(far, ones, 0.1), "X_moved must stay within reach = 0.25"),
        (lambda: trainer.evaluate(broken), "X_moved must hold finite numbers; got a row 2 with NaN or infinity"),
        (
            lambda: trainer.evaluate(X[:5]),
            r"X_moved must have shape \(6, 4\), a row for each anchor; got shape \(5, 4\)",
        ),
        (lambda: trainer.step(X, np.ones(5), 0.1), "slopes must be a vector of 6 numbers, one per example; got shape"),
        (lambda: trainer.step(X, ones * np.inf, 0.1), "slopes must hold finite numbers"),
        (lambda: trainer.step(X, ones, float("nan")), "rate must be a finite number"),
        (lambda: trainer.step(X, ones, 1e30), "rate must keep the norm of every neuron's weights below 1e[+]15"),
    ]
    for call, message in refused:
        before = trainer.counters
        with pytest.raises(InvalidArgument, match=message):
            call()
        assert trainer.counters == before
    assert trainer.network().equals(net)
    results = [run(t, X, np.random.default_rng(0), 0.2) for t in (trainer, twin)]
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))


def test_bad_networks_and_anchors():
    net, X, _ = problem(60, 4, 6)
    for bad, message in [
        (net.with_parameters(activation="relu6"), "network must have the activation relu or shifted_relu"),
        (net.astype(np.float64), "network must hold float32 weights; got dtype float64"),
        (net.with_parameters(hidden=net.hidden * np.float32(1e20)), "network must have rows of norm at most 1e[+]15"),
    ]:
        with pytest.raises(InvalidArgument, match=message):
            robust.trainer("dense", bad, X, 0.1)
    for anchors, reach, message in [
        (X[:, :3], 0.1, r"X must be a table of shape \(rows, 4\)"),
        (X, -0.1, r"reach must be a finite number in \[0, inf\)"),
        (X * np.nan, 0.1, "X must hold finite numbers"),
    ]:
        with pytest.raises(InvalidArgument, match=message):
            robust.trainer("dense", net, anchors, reach)
    with pytest.raises(InvalidArgument, match="method must be one of 'auto', 'dense', 'lists', 'index'"):
        robust.trainer("tree", net, X, 0.1)


def test_dense_stands_in_without_the_extension(without_core):
    net, X, _ = problem(60, 4, 6)
    assert robust.trainer("lists", net, X, 0.1).name == "dense"


@pytest.mark.parametrize("direction", [-1.0, 1.0])
def test_movement_is_followed_where_the_bound_is_tight(core, direction):
    """One input: the score of an example with x near the largest moves by nearly ‖Δw‖·max‖x‖, all that is allowed for."""
    X = np.linspace(0.95, 1.0, 64, dtype=np.float32)[:, None]
    hidden = np.linspace(0.9, 1.1, 80, dtype=np.float32)[:, None]
    net = TwoLayer(hidden, np.zeros(80), np.ones(80), activation=shifted_relu(1.0))
    trainer, dense = (robust.trainer(name, net, X, 0.0) for name in ("lists", "dense"))
    slopes = np.zeros(64)
    slopes[-1] = direction  # the neurons that fire on the last example move, all by the same
    for _ in range(40):
        assert np.allclose(trainer.values(X), dense.values(X), rtol=1e-5)
        assert np.array_equal(trainer.active_counts, dense.active_counts)
        trainer.step(X, slopes, 0.003)
        dense.step(X, slopes, 0.003)
        verify(trainer, X)
    assert 0 < trainer.counters.refreshes < 40 * 80 / 4


def test_sums_of_codes_beyond_int32(core):
    """140 000 inputs: screening in 8 bits, whose sums would overflow, is left out."""
    inputs = 140_000
    signs = np.outer(np.where(np.arange(40) % 2, -1.0, 1.0), np.ones(inputs))
    X = (signs / np.sqrt(inputs)).astype(np.float32)
    hidden = np.full((8, inputs), 1 / np.sqrt(inputs), dtype=np.float32)
    net = TwoLayer(hidden, np.zeros(8, np.float32), np.ones(8, np.float32), activation=shifted_relu(0.1))
    values = ListTrainer(net, X, 1.0).values(np.float32(0.7) * X)
    np.testing.assert_allclose(values, np.where(np.arange(40) % 2, 0.0, 5.6), rtol=1e-3)

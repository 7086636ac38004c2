"""One suite for every trainer of fewfire.engines.robust; the dense one, compared with loops here, is the oracle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robust_problems import close, move, problem, verify

from fewfire._errors import InvalidArgument
from fewfire._extension import load
from fewfire.engines import robust
from fewfire.engines.robust._registry import TRAINERS
from fewfire.networks import init, shifted_relu

FAST = [name for name in TRAINERS if name != "dense"]
SHAPES = [(40, 1, 7), (40, 2, 5), (30, 3, 1), (1, 17, 9), (300, 17, 20), (257, 64, 33), (100, 65, 18), (9000, 16, 40)]


def train_both(method, net, X, rng, reach, rate, steps):
    """Both trainers through the same calls; values, gradients, active pairs and final weights are compared."""
    fast, slow = robust.trainer(method, net, X, reach), robust.trainer("dense", net, X, reach)
    for _ in range(steps):
        (values, gradients), expected = fast.evaluate(X), slow.evaluate(X)
        close(values, expected[0])
        close(gradients, expected[1])
        verify(fast, X)
        assert np.array_equal(fast.active_counts, slow.active_counts)
        moved, slopes = move(X, reach, rng), rng.normal(size=len(X)) / len(X)
        close(fast.values(moved), slow.values(moved))
        assert np.array_equal(fast.active_counts, slow.active_counts)
        assert fast.counters.active_last == slow.counters.active_last == slow.active_counts.sum()
        fast.step(moved, slopes, rate)
        slow.step(moved, slopes, rate)
        verify(fast, moved)
    close(fast.network().hidden, slow.network().hidden)
    return fast, slow


def test_dense_is_the_formula():
    net, X, rng = problem(30, 5, 4)
    trainer = robust.trainer("dense", net, X, 0.5)
    moved, slopes, rate = move(X, 0.5, rng), rng.normal(size=4), 0.3
    hidden, values, gradients = net.hidden.astype(float), np.full(4, 0.25), np.zeros((4, 5))
    change, active = np.zeros_like(hidden), 0
    for i in range(4):
        for r in range(30):
            z = hidden[r] @ moved[i] + net.bias[r]
            if z > 0.4:
                active += 1
                values[i] += net.output[r] * z
                gradients[i] += net.output[r] * hidden[r]
                change[r] += slopes[i] * net.output[r] * moved[i]
    got = trainer.evaluate(moved)
    close(got[0], values)
    close(got[1], gradients)
    close(trainer.values(moved), values)
    close(net(moved), values)
    assert trainer.counters.active_last == active > 0
    trainer.step(moved, slopes, rate)
    close(trainer.network().hidden, hidden - rate * change)
    assert trainer.counters.dense_multiply_adds == trainer.counters.multiply_adds == 5 * 30 * 4 * 5


@pytest.mark.parametrize("method", FAST)
@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_dense(core, method, shape):
    net, X, rng = problem(*shape)
    fast, _ = train_both(method, net, X, rng, reach=0.3, rate=0.5, steps=8)
    trained = fast.network()
    assert np.array_equal(trained.bias, net.bias)
    assert (trained.offset, trained.activation) == (net.offset, net.activation)


@pytest.mark.parametrize("method", FAST)
@pytest.mark.parametrize("threshold", [0.0, 50.0, "all"])
def test_none_and_all_active(core, method, threshold):
    net, X, rng = problem(200, 6, 30, threshold=0.0 if threshold == "all" else threshold)
    if threshold == "all":
        net = net.with_parameters(bias=np.full(200, 100.0))
    fast, slow = train_both(method, net, X, rng, 0.2, 0.1, 3)
    expected = {0.0: None, 50.0: 0, "all": 200 * 30}[threshold]
    assert expected is None or slow.counters.active_last == expected
    if threshold == 50.0:
        assert fast.network().equals(net)
    if threshold == 50.0 and method == "lists":
        assert fast.counters.neurons_touched == fast.counters.touched == fast.counters.refreshes == 0


@pytest.mark.parametrize("method", FAST)
@pytest.mark.parametrize(("rate", "steps"), [(1e-6, 60), (0.03, 60), (20.0, 12)])
def test_many_steps_large_and_tiny(core, method, rate, steps):
    net, X, rng = problem(400, 12, 25, threshold=1.2)
    fast, slow = train_both(method, net, X, rng, 0.1, rate, steps)
    moved = np.linalg.norm(slow.network().hidden - net.hidden)
    wrong = np.linalg.norm(fast.network().hidden - slow.network().hidden)
    assert wrong <= 1e-4 * moved + 1e-6 * np.linalg.norm(net.hidden)


@pytest.mark.parametrize("method", FAST)
def test_relu_and_sharp_threshold(core, method):
    net, X, rng = problem(150, 9, 12)
    train_both(method, net.with_parameters(activation="relu"), X, rng, 0.2, 0.2, 5)
    # A score exactly at the threshold is not active: the integer scores below are exact in any order.
    whole = net.with_parameters(hidden=np.sign(net.hidden), bias=np.zeros(150), activation=shifted_relu(3.0))
    corners = np.sign(X)
    scores = corners @ whole.hidden.T
    trainer = robust.trainer(method, whole, corners, 0.0)
    trainer.values(corners)
    assert (scores == 3.0).any()
    assert np.array_equal(trainer.active_counts, (scores > 3.0).sum(axis=1))


@pytest.mark.skipif(load() is None, reason="the C++ part is not installed")
@pytest.mark.parametrize("method", FAST)
@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from([(150, 1, 12), (100, 2, 30), (90, 18, 35), (20, 33, 3)]),
    calls=st.lists(st.tuples(st.sampled_from("evs"), st.sampled_from([1e-5, 0.01, 0.3, 300.0])), max_size=12),
    reach=st.sampled_from([0.0, 0.05, 1.0]),
)
def test_lists_hold_every_active_pair(method, seed, shape, calls, reach):
    """A scan of all pairs finds no active one outside the lists, whatever the calls before."""
    net, X, rng = problem(*shape, seed=seed)
    trainer = robust.trainer(method, net, X, reach)
    for call, rate in calls:
        # The bounds are tight for an example pulled along a neuron's weights, and weights along an example.
        hidden = trainer.network().hidden
        pull = hidden[rng.integers(len(hidden), size=len(X))].astype(np.float64)
        moved = X + reach * pull / np.linalg.norm(pull, axis=1, keepdims=True)
        slopes = rng.normal(size=len(X)) * (rng.random(len(X)) < 0.3)
        if call == "e":
            trainer.evaluate(moved)
        elif call == "v":
            trainer.values(moved)
        else:
            trainer.step(moved, slopes, rate)
        verify(trainer, moved.astype(np.float32))
    assert trainer.counters.touched >= trainer.counters.active


@pytest.mark.parametrize("method", ["auto", "dense", "lists", "index"])
def test_no_examples_are_refused_by_name(method):
    net = init.ntk(exponent=0.6)(4, 10, seed=0)
    with pytest.raises(InvalidArgument, match="X must not be empty"):
        robust.trainer(method, net, np.empty((0, 4), dtype=np.float32), 0.1)

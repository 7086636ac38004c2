"""Epochs and outputs in C++ are those of the reference implementation, on every instruction set."""

from contextlib import nullcontext

import numpy as np
import pytest

from fewfire._dense.network import FusedNetwork, Layout, PeriodicEmbedding, Rows, aligned, mean_outputs, packing
from fewfire._extension import load, without_extension
from fewfire._random import Stream
from fewfire.tabular import SGD, AdamW
from fewfire.tabular._encodings import PiecewiseLinearEncoding
from fewfire.tabular._training import TrainedNetwork, draw_start

pytestmark = pytest.mark.skipif(load() is None, reason="needs the C++ part")

NO_LADDERS = np.zeros(0, np.int64)
CASES = [
    (Layout(20, (256, 64), 1, skip=True), "logistic"),
    (Layout(3, (17,), 1, skip=False), "logistic"),
    (Layout(7, (30, 20, 9), 3, skip=True), "cross_entropy"),
    (Layout(5, (40, 33), 2, skip=True, embedding=PeriodicEmbedding(6)), "squared"),
    (Layout(18, (16,), 4, skip=False, embedding=PeriodicEmbedding(16)), "cross_entropy"),
    (Layout(1, (1,), 1, skip=True), "squared"),
    (Layout(29, (50, 9), 1, skip=True, ladders=(16, 3, 1)), "logistic"),
    (Layout(12, (40,), 3, skip=False, ladders=(5, 7)), "cross_entropy"),
]


def with_ladders(layout, X, gains):
    """The same inputs (rows, inputs) and gains (inputs,), but ladders are columns in bins, with one gain each."""
    rng, end = np.random.default_rng(1), layout.inputs
    for bins in reversed(layout.ladders):
        column = rng.normal(size=(len(X), 1)).round(1)
        X[:, end - bins : end] = PiecewiseLinearEncoding(bins).fit(column).transform(column)
        gains[end - bins : end] = gains[end - 1]
        end -= bins
    return X.astype(np.float32), gains.astype(np.float32)


def rows_for(layout, loss, count=213, seed=0):
    """Rows chosen out of more, with gains and weights, some of them 0."""
    rng = np.random.default_rng(seed)
    X, target = rng.normal(size=(count + 50, layout.inputs)), rng.random((count + 50, layout.outputs))
    if loss == "cross_entropy":
        target /= target.sum(axis=1, keepdims=True)
    weight = rng.integers(0, 3, count + 50)
    chosen = rng.permutation(count + 50)[:count]
    X, gains = with_ladders(layout, X, rng.random(layout.inputs))
    rows = Rows(*(part.astype(np.float32) for part in (X, target, weight)))
    return rows[chosen].with_gains(gains)


def trained(layout, loss, rule, epochs=3):
    rows = rows_for(layout, loss)
    flat = draw_start(layout, 2, rows, np.zeros(layout.outputs), Stream(0, "start"))
    network = TrainedNetwork(layout, flat, rule, loss, Stream(1, "batches"), len(rows))
    losses = [network.train_epoch(rows) for _ in range(epochs)]
    values = network.values(rows)
    network.release()
    return losses, values, network


@pytest.mark.parametrize("isa", load().available_isas() if load() else [])
@pytest.mark.parametrize(("layout", "loss"), CASES)
def test_epochs_are_those_of_numpy(isa, layout, loss):
    load().set_isa(isa)
    rules = [AdamW(0.003, batch_size=50), SGD(0.02, 0.1, batch_size=150), SGD(0.02, batch_size=10**6)]
    # Rows in the same bins often lie on a kink of the start, on one side of it or the other by rounding: see AdamW below.
    for rule in rules[1:] if layout.ladders else rules:
        ours = trained(layout, loss, rule)
        with without_extension():
            theirs = trained(layout, loss, rule)
        for one, other in zip(ours[:2], theirs[:2], strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=2e-5)
        assert ours[2].descent.steps == theirs[2].descent.steps
        if isinstance(rule, SGD):  # AdamW moves weights of vanishing gradients by the sign of their rounding error
            np.testing.assert_allclose(ours[2].flat, theirs[2].flat, rtol=0, atol=1e-5)
            np.testing.assert_allclose(ours[2].descent.state, theirs[2].descent.state, rtol=0, atol=1e-5)


@pytest.mark.parametrize("isa", load().available_isas() if load() else [])
@pytest.mark.parametrize(("layout", "loss"), CASES)
def test_predictions_are_those_of_numpy_and_rows_do_not_depend_on_each_other(isa, layout, loss):
    load().set_isa(isa)
    rng = np.random.default_rng(0)
    flats = rng.normal(size=(3, layout.size)).astype(np.float32)
    X, gains = with_ladders(layout, rng.normal(size=(301, layout.inputs)), rng.random(layout.inputs))
    values = mean_outputs(layout, flats)(X, gains)
    with without_extension():
        np.testing.assert_allclose(values, mean_outputs(layout, flats)(X, gains), rtol=1e-4, atol=1e-4)
    some = rng.permutation(301)[:77]
    assert np.array_equal(mean_outputs(layout, flats)(X[some], gains), values[some])


def test_packing_and_unpacking_gives_parameters_and_state_back():
    layout = CASES[3][0]
    rng = np.random.default_rng(0)
    flat, descent = rng.normal(size=layout.size).astype(np.float32), AdamW().start(layout.size, layout.decayed, 10)
    descent.state[:] = rng.normal(size=descent.state.shape)
    before = flat.copy(), descent.state.copy()
    fused = FusedNetwork(packing(layout), flat, descent)
    flat[:], descent.state[:] = 0, 0
    fused.unpack()
    assert np.array_equal(flat, before[0]) and np.array_equal(descent.state, before[1])


def test_training_goes_on_after_a_release_as_if_there_had_been_none():
    layout, loss = CASES[3]
    rows, rule = rows_for(layout, loss), AdamW(0.01, batch_size=40)
    start = np.random.default_rng(0).normal(size=layout.size).astype(np.float32)
    through, halting = (TrainedNetwork(layout, start.copy(), rule, loss, Stream(0, "t"), 213) for _ in range(2))
    for _ in range(4):
        through.train_epoch(rows)
        halting.train_epoch(rows)
        halting.release()
    through.release()
    assert np.array_equal(through.flat, halting.flat)


def test_what_is_validated_and_kept_is_the_mean_over_epochs():
    layout, loss = CASES[1]
    for by in (nullcontext, without_extension):
        with by():
            rows, start = rows_for(layout, loss), np.random.default_rng(0).normal(size=layout.size).astype(np.float32)
            network = TrainedNetwork(layout, start, AdamW(0.01, batch_size=40), loss, Stream(0, "t"), 213)
            mean = np.zeros(layout.size)
            for epoch in range(1, 9):
                network.train_epoch(rows)
                network.average()
                weights = start if network._fused is None else unpacked(layout, network._fused.parameters)
                mean += max(0.2, 1 / epoch) * (weights - mean)
            network.keep()
            judged = network.values(rows)
            network.train_epoch(rows)
            network.restore()
            network.release()
        np.testing.assert_allclose(network.flat, mean, rtol=0, atol=1e-6)
        np.testing.assert_allclose(judged, network.values(rows), rtol=0, atol=1e-5)


@pytest.mark.parametrize("batch", [40, 213])
def test_an_advance_is_an_epoch_a_mean_and_its_values_to_the_bit(batch):
    layout, loss = CASES[3]
    rows, held = rows_for(layout, loss), rows_for(layout, loss)[np.arange(5, 90)]
    start = np.random.default_rng(0).normal(size=layout.size).astype(np.float32)
    rule = AdamW(0.01, batch_size=batch)
    one, other = (TrainedNetwork(layout, start.copy(), rule, loss, Stream(0, "t"), 213) for _ in range(2))
    for _ in range(7):
        told, values = one.advance(rows, held)
        assert told == other.train_epoch(rows)
        other.average()
        assert np.array_equal(values, other.values(held))
    assert (one.rows_drawn, one.descent.steps) == (other.rows_drawn, other.descent.steps)
    for network in (one, other):
        network.keep()
        network.restore()
        network.release()
    assert np.array_equal(one.flat, other.flat)


def unpacked(layout, parameters):
    flat = np.empty(layout.size, np.float32)
    packing(layout).unpack(parameters, flat)
    return flat


def test_memory_begins_on_a_cache_line():
    assert {aligned(2, size).ctypes.data % 64 for size in (1, 7, 16, 100)} == {0}


def test_arrays_that_do_not_fit_are_refused():
    core, layout = load(), CASES[1][0]
    packed, network = packing(layout), np.zeros(packing(layout).size, np.float32)
    X, gains, three = np.zeros((4, 3), np.float32), np.ones(3, np.float32), np.arange(3)
    out = np.zeros((3, 1))
    with pytest.raises(ValueError, match="one to three layers"):
        core.PackedMlp(3, np.ones(4, np.int64), 1, False, 0, NO_LADDERS)
    with pytest.raises(ValueError, match="must be at least 1"):
        core.PackedMlp(3, np.zeros(1, np.int64), 1, False, 0, NO_LADDERS)
    with pytest.raises(ValueError, match="ladders must be among the inputs"):
        core.PackedMlp(3, np.ones(1, np.int64), 1, False, 0, np.full(2, 2))
    with pytest.raises(ValueError, match="at least one bin each"):
        core.PackedMlp(3, np.ones(1, np.int64), 1, False, 0, np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="chosen must be numbers of rows of x"):
        packed.outputs(network[None], X, gains, three + 2, out)
    with pytest.raises(ValueError, match="one column per input"):
        packed.outputs(network[None], X, gains[:2], three, out)
    with pytest.raises(ValueError, match="of the layout's sizes"):
        packed.pack(network, network)
    state, target, weight = (
        np.zeros((2, packed.size), np.float32),
        np.zeros((4, 1), np.float32),
        np.zeros(4, np.float32),
    )
    rest = (1, "AdamW", 0.1, 0.0, 0.9, 0.9)
    with pytest.raises(ValueError, match="loss must be one of 'logistic', 'cross_entropy', 'squared'"):
        packed.epoch(network, state, 0, X, gains, three, target, weight, "hinge", *rest)
    with pytest.raises(ValueError, match="one row per row of x"):
        packed.epoch(network, state, 0, X, gains, three, target[:3], weight, "squared", *rest)
    with pytest.raises(ValueError, match="a row per array that the optimiser keeps"):
        packed.epoch(network, np.vstack([state, state]), 0, X, gains, three, target, weight, "squared", *rest)
    with pytest.raises(ValueError, match="optimiser must be one of 'AdamW', 'SGD'; got 'Adam'"):
        packed.epoch(network, state, 0, X, gains, three, target, weight, "squared", 1, "Adam", *rest[2:])

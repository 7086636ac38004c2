"""The pieces of training inside the class: projections, and gradients against differences."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire._random import Stream
from fewfire.learners._sparse_activation._training import (
    MemberStack,
    TrainingRule,
    _gradient,
    class_loss,
    reseed,
    shrink,
    silence,
    squared_loss,
    top,
)


def drawn(networks, inputs, width, outputs, seed=0, dtype=np.float32):
    flat = np.random.default_rng(seed).normal(size=(networks, width * (inputs + outputs + 1) + outputs))
    return MemberStack.of(flat.astype(dtype), inputs, width, outputs)


def zeros_like(stack):
    return stack.with_parameters(np.zeros_like(stack.flat))


def fired(stack, place, X):
    return stack.network(place).activity(X).per_input


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 9), st.booleans(), st.sampled_from([1, 3]))
def test_silence_leaves_at_most_k_firing_on_every_row_and_lowers_no_more_than_it_must(seed, k, signs, outputs):
    stack, draw = drawn(2, 6, 9, outputs, seed), np.random.default_rng(seed)
    X = (np.sign(draw.normal(size=(50, 6))) if signs else draw.normal(size=(50, 6))).astype(np.float32)
    before = stack.bias.copy()
    sparse = [(fired(stack, place, X) <= k).all() for place in range(2)]
    silence(stack, X, k)
    for place in range(2):
        assert (fired(stack, place, X) <= k).all()
        if sparse[place]:
            assert np.array_equal(stack.bias[place], before[place])
    assert np.all(stack.bias <= before)
    after = stack.bias.copy()
    silence(stack, X, k)
    assert np.array_equal(stack.bias, after)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 100.0]), st.sampled_from([0.1, 1.0, 100.0]))
def test_shrink_keeps_to_the_bounds_and_moves_no_kink(seed, W, B):
    stack, X = drawn(2, 5, 7, 2, seed), np.random.default_rng(seed).normal(size=(40, 5))
    before = [stack.network(place) for place in range(2)]
    shrink(stack, W, B)
    for place in range(2):
        found = stack.network(place)
        assert found.norms().W <= W and found.norms().B <= B
        z, old = found.preactivations(X), before[place].preactivations(X)
        near = np.abs(old) < 1e-4
        assert np.array_equal((z > 0)[~near], (old > 0)[~near])
        if before[place].norms().W <= W and before[place].norms().B <= B:
            assert np.array_equal(found.hidden, before[place].hidden)


@pytest.mark.parametrize("bound", [2.0, 0.3])
def test_neurons_at_the_border_in_float32_keep_to_the_bounds_in_float64(bound):
    stack = drawn(1, 1, 1000, 1, 0)
    stack.hidden[0, :, 0] = bound / stack.output[0, :, 0]  # products that are the bound but for a rounding
    stack.bias[:] = stack.hidden[:, :, 0]
    assert bound < stack.network(0).norms().W and bound < stack.network(0).norms().B
    for W, B in ((bound, None), (None, bound), (bound, bound)):
        shrunk = stack.with_parameters(stack.flat.copy())
        shrink(shrunk, W, B)
        found = shrunk.network(0).norms()
        assert 0.99999 * bound < min(found) and max(found) <= bound
    shrink(stack, None, 0.0)
    assert stack.network(0).norms().B == 0.0


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from(["squared", "logistic", "cross-entropy"]), st.integers(1, 6))
def test_dead_neurons_start_again_where_there_is_error_and_room(seed, name, k):
    draw, loss, weights = np.random.default_rng(seed), LOSSES[name], np.linspace(0.5, 1.5, 20)
    stack, X = drawn(2, 4, 12, loss.outputs, seed, np.float64), draw.normal(size=(20, 4))
    stack.bias[0, :8], stack.bias[1, :] = -100.0, -100.0  # some of the first network, all of the second
    before, fired = stack.flat.copy(), stack.fire_somewhere(X)
    counts = (stack.preactivations(X) > 0).sum(axis=2)
    again = reseed(stack, X, loss, weights, k, Stream(seed, "reseed"))
    kept = stack.with_parameters(before)
    assert not again[fired].any() and stack.fire_somewhere(X)[again].all()
    assert again[0].sum() == min((~fired[0]).sum(), (counts[0] < k).sum()) and again[1].all()
    for hidden, new in zip(stack.hidden, again, strict=True):  # a row of its own for each
        assert len(np.unique(hidden[new].round(9), axis=0)) == new.sum()
    assert np.array_equal(stack.hidden[~again], kept.hidden[~again])
    assert np.array_equal(stack.offset, kept.offset)
    other = stack.with_parameters(before.copy())
    repeated = np.repeat(np.arange(20), 2)  # every row twice is every row with twice the weight
    twice = reseed(other, X[repeated], _rows(name, repeated), weights[repeated], k, Stream(seed, "reseed"))
    assert np.array_equal(twice, again)
    assert np.allclose(other.flat, stack.flat)


def test_nothing_starts_again_where_all_rows_are_full_or_every_neuron_fires():
    stack, X = drawn(1, 4, 6, 1, 0, np.float64), np.random.default_rng(0).normal(size=(20, 4))
    for bias, fires in (([9.0] * 6, 6), ([9.0] * 3 + [-100.0] * 3, 3)):
        stack.bias[0] = bias
        before = stack.flat.copy()
        assert not reseed(stack, X, LOSSES["squared"], np.ones(20), 3, Stream(0, "reseed")).any()
        assert np.array_equal(stack.flat, before) and stack.fire_somewhere(X).sum() == fires


def test_a_stack_is_views_of_one_array_and_gives_the_networks_it_holds():
    stack = drawn(3, 4, 5, 2)
    for part in (stack.hidden, stack.output, stack.bias, stack.offset):
        assert np.shares_memory(part, stack.flat)
    assert stack.decayed == 5 * 4 + 5 * 2
    X = np.random.default_rng(1).normal(size=(30, 4))
    for place in range(3):
        z = np.maximum(X @ stack.hidden[place].T + stack.bias[place], 0)
        assert np.allclose(stack.network(place)(X), z @ stack.output[place] + stack.offset[place], atol=1e-5)
        assert np.abs(stack.network(place).output).max(axis=1) == pytest.approx(1)
    start = MemberStack.drawn(2, 4, 5, 1, Stream(0, "init"))
    assert np.array_equal(start.flat[0], start.flat[1]) and not start.bias.any()


def test_top_marks_the_k_largest():
    ranks = np.random.default_rng(0).normal(size=(3, 8, 10))
    for k in (1, 4, 10):
        assert (top(ranks, k).sum(axis=-1) == k).all()
        kept = np.where(top(ranks, k), ranks, np.inf).min(axis=-1)
        assert (np.where(top(ranks, k), -np.inf, ranks).max(axis=-1) <= kept).all()


LABELS = np.random.default_rng(5)
LOSSES = {
    "squared": squared_loss(LABELS.normal(size=20)),
    "logistic": class_loss(LABELS.integers(0, 2, 20), 2),
    "cross-entropy": class_loss(LABELS.integers(0, 3, 20), 3),
}


def _rows(name, rows):
    """The loss of rows of the table, some of them several times."""
    loss = LOSSES[name]
    return replace(loss, targets=loss.targets[rows])


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("k", "done"), [(6, 0.5), (2, 0.0), (2, 0.35), (2, 0.9)])
def test_gradients_are_those_of_loss_and_price(name, k, done):
    """Against central differences in float64, away from kinks; with only the strongest counting, at 0.9, too."""
    loss, draw = LOSSES[name], np.random.default_rng(1)
    stack = drawn(2, 4, 6, loss.outputs, 2, np.float64)
    X, weights = draw.normal(size=(20, 4)), draw.uniform(0.5, 2, 20)
    rule = TrainingRule(6, k, None, None, 0.1, 100, None, 0.7, 0.1, True)
    rows = np.arange(20)
    gradient = zeros_like(stack)
    _gradient(stack, gradient, X, loss, rows, weights, rule, done)

    def objective():
        z = np.matmul(X, stack.hidden.transpose(0, 2, 1)) + stack.bias[:, None, :]
        ranks = z * stack.reach[:, None, :]
        strong = top(ranks, k)
        features = np.maximum(z, 0) * (strong if k < 6 and done > 0.7 else 1)
        value = loss.value(np.matmul(features, stack.output) + stack.offset[:, None, :])
        # Between −margin and 0 the price pushes preactivations down, and leaves the outputs alone.
        price = 0.7 * min(1.0, done / 0.7) * np.where(strong, 0.0, np.maximum(ranks + 0.1, 0)).sum(axis=2)
        return ((value + (price if k < 6 else 0)) * weights).mean(axis=1)

    for part in ("hidden", "bias", "offset", *(["output"] if k == 6 or done == 0.0 else [])):
        own, told = getattr(stack, part), getattr(gradient, part)
        for index in np.ndindex(own.shape):
            kept, step = own[index], 1e-6
            own[index] = kept + step
            high = objective()[index[0]]
            own[index] = kept - step
            low = objective()[index[0]]
            own[index] = kept
            assert told[index] == pytest.approx((high - low) / (2 * step), rel=2e-3, abs=2e-5)


def test_without_an_intercept_the_offset_does_not_move():
    loss = LOSSES["squared"]
    stack = drawn(1, 4, 6, 1)
    gradient = zeros_like(stack)
    rule = TrainingRule(6, 2, None, None, 0.1, 100, None, 0.7, 0.1, False)
    _gradient(stack, gradient, np.ones((20, 4), np.float32), loss, np.arange(20), np.ones(20, np.float32), rule, 0.5)
    assert not gradient.offset.any() and gradient.hidden.any()


@pytest.mark.parametrize("name", LOSSES)
def test_the_start_is_near_the_best_constant(name):
    loss, weights = LOSSES[name], np.linspace(0.5, 1.5, 20)
    start = loss.start(weights)
    base = np.average(loss.value(np.broadcast_to(start, (1, 20, loss.outputs)))[0], weights=weights)
    for shift in np.eye(loss.outputs):
        for size in (-1.0, 1.0):
            moved = np.broadcast_to(start + size * shift, (1, 20, loss.outputs))
            assert base < np.average(loss.value(moved)[0], weights=weights)

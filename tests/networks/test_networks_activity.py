"""Active sets and activity counts against a dense table of bits."""

from __future__ import annotations

import numpy as np
import pytest

from fewfire.networks import TwoLayer


@pytest.fixture
def net():
    # Neuron 0 fires on x0 > 0, neuron 1 on x0 < 0, neuron 2 never, neuron 3 always.
    return TwoLayer([[1, 0], [-1, 0], [0, 0], [0, 0]], [0, 0, 0, 1], [1, 1, 1, 1])


X = np.array([[2, 0], [-1, 5], [0, 0], [3, 3]])


def test_active_sets_by_hand(net):
    indptr, indices = net.active(X)
    np.testing.assert_array_equal(indptr, [0, 2, 4, 5, 7])
    np.testing.assert_array_equal(indices, [0, 3, 1, 3, 3, 0, 3])
    assert indptr.dtype == np.int64
    assert indices.dtype == np.int64
    sets = net.active(X)
    np.testing.assert_array_equal(sets.counts, [2, 2, 1, 2])
    np.testing.assert_array_equal(sets.row(1), [1, 3])
    assert sets.rows == 4


def test_rows_without_active_neurons():
    silent = TwoLayer([[1.0]], [-5.0], [1.0])
    sets = silent.active(np.ones((3, 1)))
    np.testing.assert_array_equal(sets.indptr, [0, 0, 0, 0])
    assert sets.indices.shape == (0,)
    assert sets.indices.dtype == np.int64


def test_relu6_neurons_above_the_ceiling_are_active():
    net = TwoLayer([[1.0]], [0.0], [1.0], activation="relu6")
    np.testing.assert_array_equal(net.active(np.array([[5.0], [6.0], [9.0], [0.0]])).counts, [1, 1, 1, 0])


def test_threshold_ties_do_not_fire():
    net = TwoLayer([[1.0]], [0.0], [1.0], activation="shifted_relu(2.0)")
    np.testing.assert_array_equal(net.active(np.array([[1.0], [2.0], [3.0]])).counts, [0, 0, 1])


def test_activity_by_hand(net):
    activity = net.activity(X)
    np.testing.assert_array_equal(activity.per_input, [2, 2, 1, 2])
    np.testing.assert_array_equal(activity.per_neuron, [2, 1, 0, 4])
    np.testing.assert_array_equal(activity.dead, [2])
    assert (activity.mean_active, activity.max_active, activity.fraction) == (1.75, 2, 0.4375)
    assert repr(activity) == "Activity(rows=4, width=4, mean_active=1.75, max_active=2, dead=1)"


def test_activity_and_active_sets_agree():
    draw = np.random.default_rng(3)
    net = TwoLayer(draw.normal(size=(50, 6)), draw.normal(size=50) - 1, draw.normal(size=50))
    table = draw.normal(size=(40, 6))
    sets, activity = net.active(table), net.activity(table)
    np.testing.assert_array_equal(sets.counts, activity.per_input)
    np.testing.assert_array_equal(np.bincount(sets.indices, minlength=50), activity.per_neuron)
    assert activity.per_input.sum() > 0

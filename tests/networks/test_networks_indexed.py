"""A network that asks an index: the values of the plain one within rounding, the firing neurons of the score."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from fewfire import halfspace
from fewfire._errors import InvalidArgument
from fewfire.networks import TwoLayer, load
from fewfire.networks._indexed import IndexedTwoLayer

DRAW = np.random.default_rng(5)
INPUTS, WIDTH = 24, 700
HIDDEN = DRAW.normal(size=(WIDTH, INPUTS)).astype(np.float32)
BIAS = (DRAW.normal(size=WIDTH) - 4).astype(np.float32)
ROWS = DRAW.normal(size=(50, INPUTS)).astype(np.float32)
OUTPUTS = {
    "vector": (DRAW.normal(size=WIDTH), 0.25),
    "column": (DRAW.normal(size=(WIDTH, 1)), [0.25]),
    "matrix": (DRAW.normal(size=(WIDTH, 3)), [1.0, -2.0, 0.5]),
}


@pytest.fixture(params=["relu", "relu6", "shifted_relu(0.75)"])
def activation(request):
    return request.param


@pytest.mark.parametrize("method", ["auto", "scan", "screen", "tree"])
@pytest.mark.parametrize("outputs", OUTPUTS)
def test_values_within_rounding_of_the_dense_sum(method, outputs, activation):
    output, offset = OUTPUTS[outputs]
    network = TwoLayer(HIDDEN, BIAS, output, offset, activation)
    indexed = network.indexed(method)
    exact = network.astype(np.float64)(ROWS)
    # Every partial sum is at most Σ |w||x| + |b|; d + 1 roundings of a score, width + 1 of the sum, 2^-24 each.
    sizes = np.abs(ROWS) @ np.abs(HIDDEN).T + np.abs(BIAS)
    bound = (INPUTS + WIDTH + 2) * 2.0**-24 * (sizes @ np.abs(network.output) + np.abs(network.offset))
    assert (np.abs(indexed(ROWS) - exact) <= bound).all()
    assert indexed(ROWS).shape == network(ROWS).shape
    assert indexed(ROWS).dtype == np.float32
    for i in (0, 7):  # one row is asked and summed in another way
        np.testing.assert_array_less(np.abs(indexed(ROWS[i : i + 1]) - exact[i : i + 1]), bound[i : i + 1])


@pytest.mark.parametrize("method", ["scan", "screen", "tree"])
def test_active_neurons_are_those_whose_score_is_above(method, activation):
    indexed = TwoLayer(HIDDEN, BIAS, OUTPUTS["vector"][0], 0.0, activation).indexed(method)
    expected = [
        np.flatnonzero(halfspace.scores(HIDDEN, BIAS, row) > np.float32(indexed.activation.threshold)) for row in ROWS
    ]
    active = indexed.active(ROWS)
    for i, ids in enumerate(expected):
        np.testing.assert_array_equal(active.row(i), ids)
    activity = indexed.activity(ROWS)
    assert activity.per_input.tolist() == [len(ids) for ids in expected]
    assert activity.per_neuron.tolist() == np.bincount(np.concatenate(expected), minlength=WIDTH).tolist()


@pytest.mark.usefixtures("core")
def test_only_what_fires_is_read_by_a_tree():
    points = np.random.default_rng(6).normal(size=(20_000, 3)).astype(np.float32)
    indexed = TwoLayer(points, np.full(20_000, -3.4), np.ones(20_000)).indexed("tree")
    indexed([[1.0, 0.0, 0.0]])
    assert indexed.index.counters.points < 2000


def test_signs_and_single_rows_are_taken_as_the_plain_network_takes_them():
    network = TwoLayer(HIDDEN, BIAS, OUTPUTS["vector"][0])
    signs = np.where(ROWS > 0, 1, -1).astype(np.int8)
    np.testing.assert_allclose(network.indexed("screen")(signs), network(signs), rtol=0, atol=1e-3)
    with pytest.raises(InvalidArgument, match="X must"):
        network.indexed()(ROWS[:, :3])


def test_no_neuron_and_every_neuron_firing():
    ones = np.ones(WIDTH)
    assert TwoLayer(HIDDEN, -1e6 * ones, ones, 0.5).indexed()(ROWS).tolist() == [0.5] * 50
    full = TwoLayer(HIDDEN, 1e3 * ones, ones)
    np.testing.assert_allclose(full.indexed("screen")(ROWS), full(ROWS), rtol=1e-5)


def test_it_pickles_with_its_index_and_is_saved_as_the_plain_network(tmp_path):
    network = TwoLayer(HIDDEN, BIAS, *OUTPUTS["matrix"])
    indexed = network.indexed("screen", threads=1)
    again = pickle.loads(pickle.dumps(indexed))
    assert isinstance(again, IndexedTwoLayer)
    assert (again.index.requested, again.index.threads) == ("screen", 1)
    np.testing.assert_array_equal(again(ROWS), indexed(ROWS))
    indexed.save(tmp_path / "network")
    plain = load(tmp_path / "network")
    assert type(plain) is TwoLayer
    assert plain.equals(indexed)
    assert type(indexed.plain) is TwoLayer
    assert type(indexed.with_parameters(bias=BIAS + 1)) is TwoLayer
    assert repr(indexed) == (
        "IndexedTwoLayer(inputs=24, width=700, outputs=3, activation=relu, dtype=float32, method='screen')"
    )


def test_double_networks_are_refused():
    network = TwoLayer(HIDDEN.astype(np.float64), BIAS, OUTPUTS["vector"][0])
    with pytest.raises(
        InvalidArgument, match="network must be float32 for an index; got 'float64'. Remedy: call astype"
    ):
        network.indexed()
    with pytest.raises(InvalidArgument, match="offsets must be 0 with method='layers'"):
        TwoLayer(np.ones((3, 2), dtype=np.float32), [1, 2, 3], [1, 1, 1]).indexed("layers")

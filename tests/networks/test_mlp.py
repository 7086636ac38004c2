"""Networks of any depth: values, what is refused, files."""

import pickle

import numpy as np
import pytest

from fewfire._errors import FileFormatError, InvalidArgument
from fewfire.engines import Start
from fewfire.networks import Mlp, TwoLayer, init, load


def draw(widths=(7, 5), outputs=1, activation="relu"):
    drawn = Start(init.sparse(2), 6, widths, seed=4, outputs=outputs).draw()
    return Mlp(drawn.weights, drawn.biases, activation)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("activation", ["relu", "relu6", "shifted_relu(0.1)"])
def test_values_are_the_formula(outputs, activation):
    network, X = draw(outputs=outputs, activation=activation), np.random.default_rng(0).normal(size=(20, 6))
    below = X.astype(np.float32)
    for weights, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        below = network.activation.value(below @ weights.T + bias)
    expected = below @ network.weights[-1].T + network.biases[-1]
    assert np.allclose(network(X).reshape(20, -1), expected, atol=1e-6)
    assert network(X).shape == ((20,) if outputs == 1 else (20, 3))
    assert (network.inputs, network.widths, network.width, network.outputs) == (6, (7, 5), 12, outputs)


def test_a_start_draws_the_first_layer_and_dense_ones_above_it():
    """Uniform within one over the square root of the fan-in; a start of one layer and one output stays what it was."""
    network = Start(init.sparse(2), 50, (400, 300), seed=1).draw()
    assert set((network.weights[0] != 0).sum(axis=1).tolist()) == {2}
    assert np.array_equal(network.weights[0], init.sparse(2)(50, 400, 1).hidden)
    for weights, bias in zip(network.weights[1:], network.biases[1:], strict=True):
        bound = 1 / np.sqrt(weights.shape[1])
        assert 0.98 * bound < np.abs(weights).max() < bound and np.abs(bias).max() < bound
        assert abs(weights.std() / bound - 3**-0.5) < 0.05
    assert isinstance(Start(init.dense(), 5, (9,)).draw(), TwoLayer)
    assert Start(init.dense(), 5, 9, outputs=3).draw().widths == (9,)


@pytest.mark.parametrize("outputs", [1, 3])
def test_files(tmp_path, outputs):
    network = draw(outputs=outputs, activation="shifted_relu(0.25)")
    network.save(tmp_path / "network")
    assert Mlp.load(tmp_path / "network").equals(network) and pickle.loads(pickle.dumps(network)).equals(network)
    assert not network.equals(draw((7, 6), outputs)) and not network.weights[0].flags.writeable
    with pytest.raises(FileFormatError, match=r"it was not written by network\.save"):
        load(tmp_path / "network")
    init.dense()(6, 5, 0).save(tmp_path / "other")
    with pytest.raises(FileFormatError, match=r"it was not written by Mlp\.save"):
        Mlp.load(tmp_path / "other")
    np.savez(
        tmp_path / "bad.npz",
        format="fewfire.networks.Mlp",
        version=1,
        sizes=[3, 2, 1],
        parameters=np.ones(4),
        activation="relu",
    )
    with pytest.raises(
        FileFormatError, match=r"its arrays do not fit together \(\(4,\) parameters for layers of \[3, 2, 1\]\)"
    ):
        Mlp.load(tmp_path / "bad.npz")


def test_what_is_no_network_is_refused():
    with pytest.raises(
        InvalidArgument, match=r"weights must be at least two matrices, .*; got shapes \[\(2, 3\), \(1, 3\)\]"
    ):
        Mlp([np.ones((2, 3)), np.ones((1, 3))], [np.ones(2), np.ones(1)])
    with pytest.raises(
        InvalidArgument, match=r"biases must be one vector per matrix .*; got shapes \[\(2,\), \(2,\)\]"
    ):
        Mlp([np.ones((2, 3)), np.ones((1, 2))], [np.ones(2), np.ones(2)])
    with pytest.raises(InvalidArgument, match="weights and biases must be finite"):
        Mlp([np.ones((2, 3)), np.full((1, 2), np.inf)], [np.ones(2), np.ones(1)])
    with pytest.raises(InvalidArgument, match="width must not be empty"):
        Start(init.dense(), 5, ())

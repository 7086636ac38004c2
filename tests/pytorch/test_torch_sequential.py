"""`fewfire.torch.to_sequential` and `from_sequential`: the same weights to the bit, and the same function."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fewfire as ff
import fewfire.torch as ft
from fewfire.networks import TwoLayer

ACTIVATIONS = ["relu", "relu6", "shifted_relu(0.0)", "shifted_relu(0.1)", "shifted_relu(1.5)"]


def draw_network(seed, inputs=6, width=9, outputs=None, activation="relu", dtype=np.float32):
    draw = np.random.default_rng(seed)
    shape = (width,) if outputs is None else (width, outputs)
    offset = 0.3 if outputs is None else draw.normal(size=outputs)
    hidden = (3 * draw.normal(size=(width, inputs))).astype(dtype)
    return TwoLayer(hidden, draw.normal(size=width), draw.normal(size=shape), offset, activation)


@settings(max_examples=40)
@given(
    st.integers(0, 99),
    st.integers(1, 5),
    st.integers(1, 5),
    st.sampled_from([None, 1, 3]),
    st.sampled_from(ACTIVATIONS),
    st.sampled_from([np.float32, np.float64]),
)
def test_there_and_back_is_the_same_network(seed, inputs, width, outputs, activation, dtype):
    pytest.importorskip("torch")
    network = draw_network(seed, inputs, width, outputs, activation, dtype)
    assert ft.from_sequential(ft.to_sequential(network)).equals(network)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("outputs", [None, 1, 3])
def test_both_are_the_same_function_and_shape(activation, outputs):
    torch = pytest.importorskip("torch")
    network = draw_network(1, outputs=outputs, activation=activation, dtype=np.float64)
    X = np.random.default_rng(2).normal(size=(20, 6))
    values = ft.to_sequential(network)(torch.tensor(X)).detach().numpy()
    np.testing.assert_allclose(values, network(X), rtol=1e-12, atol=1e-12)
    assert values.shape == network(X).shape


def test_a_neuron_at_its_threshold_does_not_fire_in_either():
    torch = pytest.importorskip("torch")
    network = TwoLayer([[1.0]], [0.0], [1.0], 0.0, "shifted_relu(0.5)")
    X = np.array([[0.5], [np.nextafter(0.5, 1)], [-3.0]])
    assert ft.to_sequential(network)(torch.tensor(X)).tolist() == network(X).tolist() == [0.0, X[1, 0], 0.0]


def test_layers_without_bias_half_precision_and_dropout():
    torch = pytest.importorskip("torch")
    nn = torch.nn
    block = nn.Sequential(nn.Linear(4, 7, bias=False), nn.ReLU(), nn.Dropout(0.5), nn.Linear(7, 2)).to(torch.bfloat16)
    network = ft.from_sequential(block)
    assert (network.dtype, network.outputs) == (np.float32, 2)
    assert not network.bias.any()
    np.testing.assert_array_equal(network.hidden, block[0].weight.detach().float().numpy())
    np.testing.assert_array_equal(network.output.T, block[3].weight.detach().float().numpy())
    assert block[0].weight.requires_grad and block.training


def test_what_is_made_can_be_trained_and_leaves_the_network_alone():
    torch = pytest.importorskip("torch")
    network = draw_network(3)
    state = torch.get_rng_state()
    module = ft.to_sequential(network)
    assert torch.equal(torch.get_rng_state(), state)
    module(torch.ones(2, 6)).sum().backward()
    with torch.no_grad():
        module[0].weight.mul_(2)
    np.testing.assert_array_equal(network.hidden, draw_network(3).hidden)
    np.testing.assert_array_equal(ft.from_sequential(module).hidden, 2 * network.hidden)


def test_errors_name_what_it_has_to_be():
    torch = pytest.importorskip("torch")
    nn = torch.nn
    form = "module must be a torch.nn.Sequential of Linear, activation, Linear, with or without a last Flatten(0); got "
    cases = {
        form + "a Linear. Remedy: pass the block itself, such as model.mlp.": nn.Linear(2, 2),
        form + "a Sequential of Linear, ReLU.": nn.Sequential(nn.Linear(2, 2), nn.ReLU()),
        form + "a Sequential of none.": nn.Sequential(),
        "module must have ReLU, ReLU6 or Threshold(τ, 0) with τ ≥ 0 between its layers; got a GELU(": nn.Sequential(
            nn.Linear(2, 2), nn.GELU(), nn.Linear(2, 1)
        ),
        "module must have ReLU, ReLU6 or Threshold(τ, 0) with τ ≥ 0 between its layers; got a Threshold(": nn.Sequential(
            nn.Linear(2, 2), nn.Threshold(-1.0, 0.0), nn.Linear(2, 1)
        ),
        "module must have one output where it ends with Flatten(0); got 3.": nn.Sequential(
            nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 3), nn.Flatten(0)
        ),
        "module must have a second layer of 2 inputs, one per neuron; got 3.": nn.Sequential(
            nn.Linear(2, 2), nn.ReLU(), nn.Linear(3, 3)
        ),
    }
    for text, module in cases.items():
        with pytest.raises(ff.InvalidArgument) as caught:
            ft.from_sequential(module)
        assert str(caught.value).startswith(text)


def test_without_torch_the_error_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for call in (ft.to_sequential, ft.from_sequential):
        with pytest.raises(ff.MissingDependency, match=r"pip install 'fewfire\[torch\]'"):
            call(draw_network(0))

"""The state of a network: evaluation against a plain loop, immutability, equality, norms, errors."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire._errors import InvalidArgument
from fewfire.networks import TwoLayer, _evaluate, relu6, shifted_relu
from fewfire.networks._two_layer import Norms


def random_net(seed=0, width=7, inputs=5, activation="relu", dtype=np.float64):
    draw = np.random.default_rng(seed)
    hidden = draw.normal(size=(width, inputs)).astype(dtype)
    return TwoLayer(hidden, draw.normal(size=width), draw.normal(size=width), 0.25, activation)


def by_hand(net, x):
    """f(x) by one loop over the neurons, in Python floats."""
    total = net.offset
    for weights, b, u in zip(net.hidden, net.bias, net.output, strict=True):
        z = float(sum(float(w) * float(t) for w, t in zip(weights, x, strict=True)) + float(b))
        fired = z if z > net.activation.threshold else 0.0
        total += float(u) * min(fired, 6.0 if net.activation == relu6 else fired)
    return total


@pytest.mark.parametrize("activation", ["relu", "relu6", "shifted_relu(0.5)"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-13)])
def test_value_is_the_plain_sum(activation, dtype, tolerance):
    net = random_net(activation=activation, dtype=dtype)
    X = np.random.default_rng(1).normal(size=(20, 5)) * 3
    values = net(X)
    assert values.shape == (20,)
    assert values.dtype == dtype
    np.testing.assert_allclose(values, [by_hand(net, x) for x in X.astype(dtype)], rtol=0, atol=tolerance * 20)


def test_features_and_preactivations_belong_to_the_value():
    net = random_net(activation="shifted_relu(0.5)")
    X = np.random.default_rng(1).normal(size=(20, 5))
    np.testing.assert_allclose(net.preactivations(X), X @ net.hidden.T + net.bias, atol=1e-14)
    np.testing.assert_array_equal(net.features(X), shifted_relu(0.5).value(net.preactivations(X)))
    np.testing.assert_allclose(net.features(X) @ net.output + 0.25, net(X), atol=1e-13)


def test_signs_in_int8_and_float_tables_give_the_same():
    net = random_net(dtype=np.float32)
    signs = np.random.default_rng(2).choice(np.array([-1, 1], dtype=np.int8), size=(11, 5))
    np.testing.assert_array_equal(net(signs), net(signs.astype(np.float64)))
    np.testing.assert_array_equal(net(signs), net(signs.astype(np.int64)))


@given(st.integers(1, 23), st.integers(1, 40))
def test_blocks_change_nothing(rows, elements):
    # Small integers: every sum is exact, so any blocking has to give the same bits.
    draw = np.random.default_rng(rows)
    net = TwoLayer(draw.integers(-3, 4, (6, 4)), draw.integers(-3, 4, 6), draw.integers(-3, 4, 6), 1.0)
    X = draw.integers(-3, 4, (rows, 4)).astype(np.int8)
    whole = net(X), net.preactivations(X), net.active(X), net.activity(X)
    patch = pytest.MonkeyPatch()
    with patch.context() as inside:
        inside.setattr(_evaluate, "BLOCK_ELEMENTS", elements)
        np.testing.assert_array_equal(net(X), whole[0])
        np.testing.assert_array_equal(net.preactivations(X), whole[1])
        for got, expected in zip(net.active(X), whole[2], strict=True):
            np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(net.activity(X).per_input, whole[3].per_input)
        np.testing.assert_array_equal(net.activity(X).per_neuron, whole[3].per_neuron)


def test_no_block_exceeds_the_bound(monkeypatch):
    monkeypatch.setattr(_evaluate, "BLOCK_ELEMENTS", 100)
    net = random_net(width=30, inputs=5)
    shapes = [z.shape for z in _evaluate.preactivation_blocks(net, np.ones((10, 5)))]
    assert shapes == [(3, 30), (3, 30), (3, 30), (1, 30)]
    wide = random_net(width=300, inputs=5)
    assert _evaluate.rows_per_block(wide) == 1


def test_arrays_are_private_read_only_and_contiguous():
    hidden = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    net = TwoLayer(hidden, [0, 0], [1, 1])
    hidden[0, 0] = 99
    assert net.hidden[0, 0] == 0
    assert net.hidden.flags.c_contiguous
    for array in (net.hidden, net.bias, net.output):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        net.offset = 3.0


@pytest.mark.parametrize("clone", [lambda net: pickle.loads(pickle.dumps(net)), copy.copy, copy.deepcopy])
def test_copies_are_equal_and_still_read_only(clone):
    net = random_net(activation="shifted_relu(0.1)", dtype=np.float32)
    other = clone(net)
    assert other.equals(net)
    assert not other.hidden.flags.writeable


@pytest.mark.parametrize(
    ("given_dtype", "dtype"), [("float64", "float64"), (">f8", "float64"), ("float32", "float32"), ("int64", "float32")]
)
def test_dtype_follows_hidden(given_dtype, dtype):
    net = TwoLayer(np.ones((2, 3), dtype=given_dtype), np.zeros(2), np.array([0.1, 0.2]), 0.1)
    assert {net.dtype, net.bias.dtype, net.output.dtype} == {np.dtype(dtype)}
    assert net.dtype.isnative
    assert net.offset == float(np.dtype(dtype).type(0.1))
    assert (net.inputs, net.width) == (3, 2)


def test_equality_sees_every_part():
    net = random_net()
    assert net.equals(random_net())
    assert net.equals(net.with_parameters())
    changed = [
        net.with_parameters(hidden=net.hidden + 1),
        net.with_parameters(bias=net.bias + 1),
        net.with_parameters(output=-net.output),
        net.with_parameters(offset=7.0),
        net.with_parameters(activation="relu6"),
        net.astype(np.float32),
        random_net(width=6),
    ]
    assert not any(net.equals(other) for other in changed)
    assert dataclasses.replace(net, offset=7.0).equals(changed[3])
    assert changed[3].offset == 7.0
    assert net.offset == 0.25


def test_repr_is_short():
    assert repr(random_net(activation="relu6")) == "TwoLayer(inputs=5, width=7, activation=relu6, dtype=float64)"


def test_norms_by_hand():
    net = TwoLayer([[3.0, 4.0], [0.0, 1.0]], [-2.0, 1.0], [0.5, -3.0], offset=100.0)
    assert net.norms() == Norms(W=15.0, B=6.0)
    W, B = net.norms()
    assert (W, B) == (15.0, 6.0)


@given(st.sampled_from([0.25, 0.5, 2.0, 8.0]), st.integers(0, 5))
def test_rescaling_keeps_the_function_and_the_norms(c, seed):
    net = random_net(seed)
    other = net.with_parameters(net.hidden / c, net.bias / c, net.output * c)
    X = np.random.default_rng(seed).normal(size=(5, 5))
    np.testing.assert_array_equal(other(X), net(X))  # powers of two scale without rounding
    assert other.norms() == net.norms()


def test_shape_and_number_errors():
    ok = np.ones((2, 3)), np.ones(2), np.ones(2)
    cases = [
        ((np.ones(3), ok[1], ok[2]), "hidden must be a matrix of shape (width, inputs) with at least one entry; got shape (3,). Remedy: put the weights of one neuron in each row."),
        ((np.ones((0, 3)), [], []), "hidden must be a matrix of shape (width, inputs) with at least one entry; got shape (0, 3). Remedy: put the weights of one neuron in each row."),
        ((ok[0], np.ones(3), ok[2]), "bias must have shape (2,), one entry per row of hidden; got shape (3,)."),
        ((ok[0], ok[1], np.ones(3)), "output must have shape (2,) or (2, outputs), one entry or row per row of hidden; got shape (3,)."),
        ((ok[0], ok[1], ["a", "b"]), "output must hold real numbers; got dtype <U1."),
        ((np.ones((2, 3), dtype=complex), ok[1], ok[2]), "hidden must hold real numbers; got dtype complex128."),
        ((ok[0], [0, np.nan], ok[2]), "bias must hold finite float64 numbers; got a nan at index (1,). Remedy: look for divergence where it was computed."),
        ((np.ones((2, 3), dtype="f4"), [0, 1e300], ok[2]), "bias must hold finite float32 numbers; got a 1e+300 at index (1,). Remedy: look for divergence where it was computed."),
    ]  # fmt: skip
    for arguments, message in cases:
        with pytest.raises(InvalidArgument) as caught:
            TwoLayer(*arguments)
        assert str(caught.value) == message
    with pytest.raises(InvalidArgument, match="offset must be a finite number"):
        TwoLayer(*ok, offset=float("inf"))
    with pytest.raises(InvalidArgument, match="dtype must be float32 or float64; got 'int8'"):
        random_net().astype(np.int8)


def test_input_errors():
    net = random_net()
    for method in (net, net.preactivations, net.features, net.active, net.activity):
        with pytest.raises(InvalidArgument) as caught:
            method(np.ones((4, 6)))
        assert str(caught.value) == "X must be a table of shape (rows, 5); got shape (4, 6). Remedy: reshape it."
        with pytest.raises(InvalidArgument, match=r"X must not be empty; got shape \(0, 5\)"):
            method(np.ones((0, 5)))
        with pytest.raises(InvalidArgument, match=r"X must hold finite numbers; got a nan at index \(0, 2\)"):
            method(np.array([[0, 0, np.nan, 0, 0]]))
        with pytest.raises(InvalidArgument, match="X must hold numbers; got dtype <U1"):
            method(np.full((1, 5), "a"))

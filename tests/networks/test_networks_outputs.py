"""Networks of several outputs: each is the network of its column, in every respect; and who takes one output only."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire import engines, fourier
from fewfire._errors import FileFormatError, InvalidArgument
from fewfire.networks import TwoLayer, load, relevance
from fewfire.networks._two_layer import check_single_output


def several(seed=0, width=7, inputs=5, outputs=3, activation="relu", dtype=np.float64):
    draw = np.random.default_rng(seed)
    hidden = draw.normal(size=(width, inputs)).astype(dtype)
    output, offset = draw.normal(size=(width, outputs)), draw.normal(size=outputs)
    return TwoLayer(hidden, draw.normal(size=width), output, offset, activation)


def columns(net):
    """The networks of one output that it is made of."""
    return [net.with_parameters(output=u, offset=float(c)) for u, c in zip(net.output.T, net.offset, strict=True)]


@given(st.integers(1, 9), st.integers(1, 4), st.sampled_from(["relu", "relu6", "shifted_relu(0.5)"]))
def test_values_are_those_of_the_columns_to_the_bit(rows, outputs, activation):
    # Small integers: every sum is exact, so the order of summation cannot show.
    draw = np.random.default_rng(rows)
    hidden, bias = draw.integers(-3, 4, (6, 4)), draw.integers(-3, 4, 6)
    net = TwoLayer(hidden, bias, draw.integers(-3, 4, (6, outputs)), draw.integers(-3, 4, outputs), activation)
    X = draw.integers(-3, 4, (rows, 4)).astype(np.int8)
    values = net(X)
    assert values.shape == (rows, outputs) and values.dtype == np.float32
    for column, part in enumerate(columns(net)):
        assert part(X).shape == (rows,)
        np.testing.assert_array_equal(values[:, column], part(X))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-13)])
def test_values_by_a_plain_loop(dtype, tolerance):
    net = several(dtype=dtype)
    X = np.random.default_rng(1).normal(size=(20, 5)).astype(dtype)
    by_hand = np.zeros((20, 3)) + net.offset
    for row, x in enumerate(X):
        for j in range(net.width):
            z = sum(float(w) * float(t) for w, t in zip(net.hidden[j], x, strict=True)) + float(net.bias[j])
            by_hand[row] += max(z, 0.0) * net.output[j].astype(np.float64)
    np.testing.assert_allclose(net(X), by_hand, rtol=0, atol=20 * tolerance)
    np.testing.assert_allclose(net.features(X) @ net.output + net.offset, net(X), rtol=0, atol=20 * tolerance)


def test_outputs_are_counted_and_shown():
    assert (several().outputs, several(outputs=1).outputs, columns(several())[0].outputs) == (3, 1, 1)
    assert repr(several()) == "TwoLayer(inputs=5, width=7, outputs=3, activation=relu, dtype=float64)"
    assert several(outputs=1)(np.ones((4, 5))).shape == (4, 1)


def test_one_offset_serves_all_outputs():
    net = several().with_parameters(offset=0.5)
    np.testing.assert_array_equal(net.offset, [0.5, 0.5, 0.5])
    assert TwoLayer(np.ones((2, 3)), np.ones(2), np.ones((2, 4))).offset.tolist() == [0.0] * 4


def test_firing_does_not_depend_on_the_outputs():
    net, X = several(), np.random.default_rng(2).normal(size=(9, 5))
    one = columns(net)[0]
    for got, expected in zip(net.active(X), one.active(X), strict=True):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(net.activity(X).per_input, one.activity(X).per_input)
    np.testing.assert_array_equal(net.activity(X).per_neuron, one.activity(X).per_neuron)


def test_norms_are_the_largest_over_the_outputs():
    net = several()
    parts = [part.norms() for part in columns(net)]
    assert net.norms() == (max(part.W for part in parts), max(part.B for part in parts))


def test_relevance_is_summed_over_the_outputs():
    net = several()
    np.testing.assert_allclose(relevance(net).mass, sum(relevance(part).mass for part in columns(net)), rtol=1e-14)


def test_arrays_are_read_only_and_equality_sees_every_output():
    net = several()
    for array in (net.output, net.offset):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    other = net.offset.copy()
    other[2] += 1
    changed = [net.with_parameters(offset=other), net.with_parameters(output=-net.output), *columns(net)]
    assert net.equals(several()) and net.equals(net.with_parameters())
    assert not any(net.equals(part) or part.equals(net) for part in changed)
    single = several(outputs=1)
    assert not single.equals(columns(single)[0])


@pytest.mark.parametrize("clone", [lambda net: pickle.loads(pickle.dumps(net)), copy.copy, copy.deepcopy])
def test_copies_are_equal_and_still_read_only(clone):
    net = several(dtype=np.float32)
    assert clone(net).equals(net)
    assert not clone(net).offset.flags.writeable


def test_astype_converts_the_offsets():
    net = several().astype(np.float32)
    assert {net.output.dtype, net.offset.dtype} == {np.dtype(np.float32)}
    assert net.outputs == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("outputs", [1, 3])
def test_save_then_load_is_the_identity(tmp_path, dtype, outputs):
    net = several(outputs=outputs, dtype=dtype, activation="shifted_relu(0.1)")
    net.save(tmp_path / "net")
    assert load(tmp_path / "net").equals(net)
    with np.load(tmp_path / "net", allow_pickle=False) as archive:
        assert int(archive["version"]) == 2


def test_every_truncation_is_refused(tmp_path):
    several().save(tmp_path / "net")
    content = (tmp_path / "net").read_bytes()
    for length in range(0, len(content), 7):
        (tmp_path / "cut").write_bytes(content[:length])
        with pytest.raises(FileFormatError, match="cut"):
            load(tmp_path / "cut")


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"offset": np.ones(2)}, "its arrays have the wrong type"),
        ({"offset": np.array(1.0)}, "its arrays have the wrong type"),
        ({"output": np.ones((6, 3))}, "its arrays do not fit together (output must have shape (7,) or (7, outputs)"),
        ({"version": np.array(3)}, "it has format version 3 and this fewfire reads up to 2"),
        ({"output": None}, "it lacks output"),
    ],
)
def test_wrong_files(tmp_path, changes, wrong):
    several().save(tmp_path / "net")
    with np.load(tmp_path / "net") as archive:
        arrays = {**archive, **changes}
    with (tmp_path / "net").open("wb") as handle:
        np.savez(handle, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(FileFormatError) as caught:
        load(tmp_path / "net")
    assert f"cannot load {tmp_path / 'net'}: {wrong}" in str(caught.value)


def test_shape_and_number_errors():
    ok = np.ones((2, 3)), np.ones(2)
    cases = [
        ((np.ones((3, 2)), 0.0), "output must have shape (2,) or (2, outputs), one entry or row per row of hidden; got shape (3, 2)."),
        ((np.ones((2, 0)), 0.0), "output must have shape (2,) or (2, outputs), one entry or row per row of hidden; got shape (2, 0)."),
        ((np.ones((2, 1, 1)), 0.0), "output must have shape (2,) or (2, outputs), one entry or row per row of hidden; got shape (2, 1, 1)."),
        ((np.ones((2, 4)), [0.0, 1.0]), "offset must have shape (4,), one entry per column of output; got shape (2,)."),
        ((np.ones((2, 2)), [0.0, np.inf]), "offset must hold finite float64 numbers; got a inf at index (1,). Remedy: look for divergence where it was computed."),
        ((np.ones((2, 2)), np.nan), "offset must be a finite number in (-inf, inf); got nan."),
        ((np.ones(2), [0.0, 1.0]), "offset must be a finite number in (-inf, inf); got [0.0, 1.0]."),
    ]  # fmt: skip
    for arguments, message in cases:
        with pytest.raises(InvalidArgument) as caught:
            TwoLayer(*ok, *arguments)
        assert str(caught.value) == message


def test_functions_of_one_output_refuse_more():
    net = several()
    message = (
        "network must have one output for training, output weights of shape (7,); got shape (7, 3). "
        "Remedy: take one column of output and one entry of offset at a time."
    )
    with pytest.raises(InvalidArgument) as caught:
        engines.Run(net, engines.Schedule((engines.Phase(1, 0.1),)), np.ones((4, 5)), np.ones(4))
    assert str(caught.value) == message
    with pytest.raises(InvalidArgument, match=r"for a test, output weights of shape \(7,\); got shape \(7, 1\)"):
        check_single_output(several(outputs=1), "a test")
    assert check_single_output(columns(net)[0], "a test").outputs == 1
    with pytest.raises(InvalidArgument, match="f must give one value per row"):
        fourier.spectrum(net)

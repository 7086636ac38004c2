"""Activations: values, slopes at the kinks, firing, and the text form."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire._errors import InvalidArgument
from fewfire.networks import Activation, activation, relu, relu6, shifted_relu

Z = np.array([-1.0, 0.0, 0.5, 1.0, 5.0, 6.0, 7.0])


@pytest.mark.parametrize(
    ("function", "value", "slope", "active"),
    [
        (relu, [0, 0, 0.5, 1, 5, 6, 7], [0, 0, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1]),
        (relu6, [0, 0, 0.5, 1, 5, 6, 6], [0, 0, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1, 1]),
        (shifted_relu(1.0), [0, 0, 0, 0, 5, 6, 7], [0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1]),
        (shifted_relu(0.0), [0, 0, 0.5, 1, 5, 6, 7], [0, 0, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_slopes_and_firing(function, value, slope, active, dtype):
    z = Z.astype(dtype)
    for got, expected in ((function.value(z), value), (function.slope(z), slope)):
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(function.active(z), np.array(active, dtype=bool))


@given(st.floats(-10, 10), st.sampled_from([relu, relu6, shifted_relu(0.75)]))
def test_slope_is_the_derivative_away_from_the_kinks(z, function):
    step = 1e-3
    if min(abs(z - kink) for kink in (0.0, 0.75, 6.0)) <= step:
        return
    left, right = function.value(np.array([z - step, z + step]))
    assert function.slope(np.array([z]))[0] == pytest.approx((right - left) / (2 * step), abs=1e-9)


def test_a_number_on_the_float32_threshold_does_not_fire():
    function = shifted_relu(0.1)  # not a float32 number: the comparison rounds it
    assert not function.active(np.array([0.1], dtype=np.float32))[0]
    assert function.active(np.nextafter(np.array([0.1], dtype=np.float32), np.float32(1)))[0]


@given(st.floats(0, 1e300))
def test_text_form_round_trips(tau):
    function = shifted_relu(tau)
    assert activation(str(function)) == function
    assert hash(activation(str(function))) == hash(function)


def test_resolution_by_name_and_object():
    assert activation("relu") is not None
    assert activation("relu") == relu
    assert activation("relu6") == relu6
    assert activation(relu6) is relu6
    assert activation("shifted_relu(0.25)") == shifted_relu(0.25)
    assert (str(relu), str(relu6), str(shifted_relu(0.25))) == ("relu", "relu6", "shifted_relu(0.25)")
    assert (shifted_relu(0.25).name, shifted_relu(0.25).threshold) == ("shifted_relu", 0.25)
    assert pickle.loads(pickle.dumps(relu6)) == relu6


@pytest.mark.parametrize(
    "choice", ["gelu", "shifted_relu", "shifted_relu(x)", "shifted_relu(-1)", "shifted_relu(nan)", 3]
)
def test_unknown_names_list_the_choices(choice):
    with pytest.raises(InvalidArgument) as caught:
        activation(choice)
    expected = (
        "activation must be 'relu', 'relu6', 'shifted_relu(τ)' with a number τ, or an Activation; "
        f"got {choice!r}. Remedy: write activation='relu'."
    )
    assert str(caught.value) == expected


def test_bad_thresholds():
    with pytest.raises(InvalidArgument, match=r"tau must be a finite number in \[0, inf\); got -0.5\."):
        shifted_relu(-0.5)
    with pytest.raises(InvalidArgument, match=r"tau must be a finite number .* got nan\."):
        shifted_relu(float("nan"))
    with pytest.raises(InvalidArgument, match=r"relu has the threshold 0; use shifted_relu\(threshold\)"):
        Activation("relu", 0.5)
    with pytest.raises(InvalidArgument, match=r"name must be one of 'relu', 'relu6', 'shifted_relu'; got 'tanh'"):
        Activation("tanh")

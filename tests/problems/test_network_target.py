"""Networks as targets: values, thresholds, Gaussian noise, and what is asked of the network."""

from itertools import product

import numpy as np
import pytest

from fewfire._errors import InvalidArgument
from fewfire.problems import NetworkTarget
from fewfire.problems._network_target import Network


class Weighted:
    """⟨w, x⟩ with weights 1, 2, 4, …; unhashable on purpose, as arrays in a dataclass would make it."""

    __hash__ = None

    def __init__(self, inputs):
        self.inputs = inputs

    def __call__(self, X):
        return X @ 2.0 ** np.arange(self.inputs)


class Returns:
    inputs = 3

    def __init__(self, values):
        self.values = values

    def __call__(self, X):
        return self.values


ROWS = list(product((1, -1), repeat=4))


def test_target_on_the_whole_cube():
    expected = [a + 2 * b + 4 * c + 8 * d for a, b, c, d in ROWS]
    problem = NetworkTarget(Weighted(4))
    assert isinstance(problem.network, Network) and problem.inputs == 4
    assert problem.target(ROWS).tolist() == expected and problem.target(ROWS).dtype == np.float64


@pytest.mark.parametrize("threshold", [-15, -0.5, 0, 3, 15.0])
def test_threshold_makes_signs(threshold):
    expected = [1 if a + 2 * b + 4 * c + 8 * d > threshold else -1 for a, b, c, d in ROWS]
    target = NetworkTarget(Weighted(4), threshold=threshold).target(ROWS)
    assert target.tolist() == expected and target.dtype == np.int8


def test_values_at_the_threshold_are_minus_one():
    assert NetworkTarget(Weighted(2), threshold=3.0).target([[1, 1]]).tolist() == [-1]
    assert NetworkTarget(Weighted(2), threshold=2.5).target([[1, 1]]).tolist() == [1]


def test_gaussian_noise_has_its_moments():
    rows, sigma = 40_000, 0.7
    problem = NetworkTarget(Weighted(4), noise=sigma)
    assert problem.bayes_error == sigma**2
    X, y = problem.sample(rows, 4)
    residual = (y - problem.target(X)) / sigma
    assert abs(residual.mean()) < 5 / np.sqrt(rows)
    assert abs((residual**2).mean() - 1) < 5 * np.sqrt(2 / rows)
    assert abs((residual**3).mean()) < 5 * np.sqrt(15 / rows)
    assert abs((residual**4).mean() - 3) < 5 * np.sqrt(96 / rows)
    assert abs((residual * X[:, 0]).mean()) < 5 / np.sqrt(rows)
    assert abs((residual[1:] * residual[:-1]).mean()) < 5 / np.sqrt(rows)


def test_bayes_error_of_signs_is_the_flip_probability():
    assert NetworkTarget(Weighted(4), noise=0.25, threshold=0).bayes_error == 0.25


def test_equality_goes_by_the_network_object():
    network = Weighted(4)
    assert NetworkTarget(network, 0.5) == NetworkTarget(network, 0.5)
    assert hash(NetworkTarget(network, 0.5)) == hash(NetworkTarget(network, 0.5))
    assert NetworkTarget(network) != NetworkTarget(Weighted(4))
    assert NetworkTarget(network) != NetworkTarget(network, threshold=0.0)
    assert NetworkTarget(network, 0.5) != NetworkTarget(network, 0.25)


def test_repr():
    text = repr(NetworkTarget(Weighted(4), noise=0.5, threshold=1))
    assert text.endswith("noise=0.5, threshold=1.0)") and "Weighted" in text


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (np.sum, "^network must have `inputs` and be callable; got a "),
        (3, "^network must have `inputs` and be callable; got a int"),
        (Weighted(0), r"^network\.inputs must be an integer of at least 1; got 0"),
        (Weighted(2.5), r"^network\.inputs must be an integer of at least 1; got 2\.5"),
    ],
)
def test_bad_networks(network, message):
    with pytest.raises(InvalidArgument, match=message):
        NetworkTarget(network)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones((2, 1)), r"^network must give 2 numbers for 2 rows; got shape \(2, 1\), dtype float64"),
        (np.ones(3), r"^network must give 2 numbers for 2 rows; got shape \(3,\)"),
        (["a", "b"], r"^network must give 2 numbers for 2 rows; got shape \(2,\), dtype <U1"),
        ([1.0, np.nan], r"^network\(X\) must hold finite numbers; got a nan at index \(1,\)"),
    ],
)
def test_bad_outputs(values, message):
    with pytest.raises(InvalidArgument, match=message):
        NetworkTarget(Returns(values)).sample(2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise": -1.0}, r"^noise must be a finite number in \[0, inf\); got -1\.0.*standard deviation"),
        ({"noise": np.inf}, r"^noise must be a finite number in \[0, inf\); got inf"),
        ({"threshold": np.nan}, r"^threshold must be a finite number in \(-inf, inf\); got nan"),
        ({"threshold": "0"}, r"^threshold must be a finite number in \(-inf, inf\); got '0'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        NetworkTarget(Weighted(4), **arguments)

"""What the tests of sublinear share."""

import math

import numpy as np
import pytest

from fewfire._errors import InvalidArgument
from fewfire.networks import init

X_ONE = np.array([[math.sqrt(0.75), 0.5]])


def _worst_network(width, radius, threshold=0.0, seed=0):
    start = init.ntk(threshold=threshold)(2, width, seed)
    hidden, z = start.hidden.astype(np.float64), start.preactivations(X_ONE)[0]
    signs, gains = np.array([0.0, 1.0, -1.0]), []
    for sign in signs:
        after = z + sign * radius
        gains.append(start.output * (after * (after > threshold) - sign * radius * (z > threshold)))
    moves = radius * signs[np.argmax(gains, axis=0)]
    return start.with_parameters(hidden=hidden + moves[:, None] * X_ONE), hidden, X_ONE


@pytest.fixture
def worst_network():
    """(width, radius, threshold, seed) -> the arguments of pseudo_distance for the network within `radius` of a random
    start whose f − g at one input of norm 1 is largest: each neuron moves along x, the way that gains most."""
    return _worst_network


@pytest.fixture
def refused():
    """(text, function, *arguments) -> check that the call is refused with this text in its error."""

    def check(text, function, *arguments, **options):
        with pytest.raises(InvalidArgument) as raised:
            function(*arguments, **options)
        assert text in str(raised.value)

    return check

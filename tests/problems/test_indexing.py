"""The indexing function: exact on whole cubes, and equal to its one-active-neuron network."""

from itertools import product

import numpy as np
import pytest

from fewfire._errors import InvalidArgument
from fewfire.problems import Indexing


def lookup(row, b):
    address = int("".join("1" if bit == 1 else "0" for bit in row[:b]), 2)
    return row[b:][address]


@pytest.mark.parametrize("b", [1, 2, 3])
def test_target_on_the_whole_cube(b):
    problem = Indexing(b)
    assert problem.inputs == b + 2**b
    rows = list(product((1, -1), repeat=problem.inputs))
    assert problem.target(rows).tolist() == [lookup(row, b) for row in rows]


def test_target_is_the_paper_network():
    # sparse-activations, section 1: Σ_α relu(⟨w_α, z⟩ − b + 1/2) = (y_x + 1)/2 with one neuron active at most.
    b = 3
    X, y = Indexing(b).sample(500, 2)
    addresses = np.array(list(product((-1, 1), repeat=b)))
    hidden = np.hstack([addresses, 0.5 * np.eye(2**b)])
    fired = np.maximum(X @ hidden.T - b + 0.5, 0)
    assert ((fired > 0).sum(axis=1) <= 1).all()
    np.testing.assert_array_equal(fired.sum(axis=1), (y + 1) / 2)


def test_large_b():
    X, y = Indexing(12).sample(50, 1)
    assert X.shape == (50, 12 + 4096)
    assert y.tolist() == [lookup(row, 12) for row in X.tolist()]


@pytest.mark.parametrize("b", [0, 21, 2.0, None])
def test_bad_b(b):
    message = rf"^b must be an integer of at least 1 and at most 20; got {b}\. Remedy: X has b \+ 2\*\*b columns"
    with pytest.raises(InvalidArgument, match=message):
        Indexing(b)

"""Sparse parities: exact on whole cubes, uniform inputs, supports that agree with k."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire._errors import InvalidArgument
from fewfire.problems import Parity


@given(n=st.integers(1, 8), data=st.data())
def test_target_on_the_whole_cube(n, data):
    support = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True))
    rows = list(product((1, -1), repeat=n))
    expected = [(-1) ** sum(row[i] == -1 for i in support) for row in rows]
    problem = Parity(n, support=support)
    assert problem.target(rows).tolist() == expected
    assert problem.target(rows).dtype == np.int8


def test_inputs_are_uniform_and_labels_independent_of_fewer_coordinates():
    rows = 40_000
    X, y = Parity(6, 3, support=(1, 2, 4)).sample(rows, 3)
    sigma = 1 / np.sqrt(rows)
    X = X.astype(np.int64)
    assert np.abs(X.mean(axis=0)).max() < 5 * sigma
    assert np.abs(X.T @ y).max() / rows < 5 * sigma
    pairs = (X[:, :, None] * X[:, None, :] * y[:, None, None]).mean(axis=0)
    assert np.abs(pairs).max() < 5 * sigma
    assert (X[:, 1] * X[:, 2] * X[:, 4] == y).all()


def test_support_defaults_sorts_and_sets_k():
    assert Parity(7, 3).support == (0, 1, 2)
    problem = Parity(7, support=[5, 0, 2])
    assert problem.support == (0, 2, 5) and problem.k == 3
    assert problem == Parity(7, 3, (2, 5, 0)) == Parity(np.int64(7), 3, np.array([0, 2, 5]))
    assert all(type(i) is int for i in (*problem.support, problem.n, problem.k))
    assert Parity(4, 4).target([[-1, 1, 1, 1]]).tolist() == [-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"n": 5, "k": 6},
            r"^k must be an integer of at least 1 and at most 5; got 6\. Remedy: choose k between",
        ),
        ({"n": 5, "k": 0}, "^k must be an integer of at least 1 and at most 5; got 0"),
        ({"n": 5}, "^k must be an integer of at least 1 and at most 5; got None.* or pass a support"),
        ({"n": 0, "k": 1}, "^n must be an integer of at least 1; got 0"),
        ({"n": 5.0, "k": 1}, r"^n must be an integer of at least 1; got 5\.0"),
        ({"n": 5, "k": 2, "support": (0, 1, 2)}, r"^k must be the size 3 of the support \(0, 1, 2\); got 2"),
        ({"n": 5, "k": "2", "support": (0, 1)}, "^k must be an integer of at least 1 and at most 5; got '2'"),
        ({"n": 5, "support": ()}, r"^support must hold at least one coordinate; got \(\)"),
        ({"n": 5, "support": (1, 1)}, r"^support must hold distinct coordinates; got \(1, 1\)"),
        ({"n": 5, "support": (1, 5)}, r"^support\[1\] must be an integer of at least 0 and at most 4; got 5"),
        ({"n": 5, "support": (-1,)}, r"^support\[0\] must be an integer of at least 0 and at most 4; got -1"),
        ({"n": 5, "support": (0.5,)}, r"^support\[0\] must be an integer of at least 0 and at most 4; got 0\.5"),
        ({"n": 5, "support": 3}, "^support must be a sequence of integers; got 3"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        Parity(**arguments)

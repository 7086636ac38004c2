"""Staircases: sums of monomials by definition, their leap against every order of the sets, Gaussian noise."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire import fourier
from fewfire._errors import InvalidArgument
from fewfire.problems import Staircase

SETS = st.lists(st.frozensets(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=5, unique=True)


@given(sets=SETS)
def test_the_leap_is_the_least_over_all_orders(sets):
    problem = Staircase(6, sets=[sorted(S) for S in sets])
    assert problem.leap == min(
        max(len(S - frozenset().union(*order[:i])) for i, S in enumerate(order)) for order in permutations(sets)
    )
    assert problem.k == len(frozenset().union(*sets)) == len(problem.support)


@given(sets=SETS, data=st.data())
def test_the_spectrum_has_the_coefficients_and_nothing_else(sets, data):
    factor = st.floats(-3, 3).filter(lambda value: abs(value) > 0.01)
    coefficients = data.draw(st.lists(factor, min_size=len(sets), max_size=len(sets)))
    spectrum = fourier.spectrum(Staircase(6, sets=[sorted(S) for S in sets], coefficients=coefficients))
    expected = np.zeros(64)
    for S, coefficient in zip(sets, coefficients, strict=True):
        expected[sum(1 << i for i in S)] = coefficient
    assert np.abs(spectrum.coefficients - expected).max() < 1e-12


def test_plain_staircases():
    problem = Staircase(5, 3)
    assert (problem.sets, problem.leap, problem.coefficients) == (((0,), (0, 1), (0, 1, 2)), 1, (1.0, 1.0, 1.0))
    rows = list(product((1, -1), repeat=5))
    assert problem.target(rows).tolist() == [x[0] + x[0] * x[1] + x[0] * x[1] * x[2] for x in rows]
    assert [Staircase(8, 6, leap).leap for leap in (1, 2, 3, 6)] == [1, 2, 3, 6]
    assert Staircase(8, 5, 2).sets == ((0,), (0, 1, 2), (0, 1, 2, 3, 4))  # the first step is what is left
    assert Staircase(8, 5, 2, [[0], [0, 1, 2], [2, 3, 4]]).leap == 2  # k and leap may be given where they agree


def test_known_leaps():
    # x₀ + x₀x₁ + x₂ + x₂x₃x₁ has the merged-staircase property without being a chain.
    assert Staircase(5, sets=[[1, 2, 3], [0], [0, 1], [2]]).leap == 1
    # x₀x₁ + x₀x₁x₂ must begin with two coordinates.
    assert Staircase(5, sets=[[0, 1, 2], [0, 1]]).leap == 2
    assert Staircase(5, sets=[[0, 1, 2]]).leap == 3  # a parity


def test_noise_is_gaussian():
    rows = 40_000
    problem = Staircase(6, 3, noise=0.5)
    assert problem.bayes_error == 0.25
    X, y = problem.sample(rows, 1)
    noise = y - problem.target(X)
    assert abs(noise.mean()) < 5 * 0.5 / np.sqrt(rows)
    assert abs((noise**2).mean() - 0.25) < 5 * 0.25 * np.sqrt(2 / rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 5}, "^k must be an integer of at least 1 and at most 5; got None. Remedy: .* or pass sets"),
        ({"n": 5, "k": 4, "leap": 5}, "^leap must be an integer of at least 1 and at most 4; got 5"),
        ({"n": 5, "sets": [[0], [5]]}, r"^sets\[1\]\[0\] must be an integer of at least 0 and at most 4; got 5"),
        ({"n": 5, "sets": [[0], [1, 0], [0, 1]]}, "^sets must be one or more different sets, each with"),
        ({"n": 5, "sets": []}, "^sets must be one or more different sets"),
        ({"n": 5, "sets": [[0], [1]], "coefficients": [1, 0]}, "^sets must be one or more .* coefficient other than 0"),
        ({"n": 5, "sets": [[0], [1]], "coefficients": [1]}, "^sets must be one or more .* coefficient other than 0"),
        ({"n": 5, "sets": [0, 1]}, r"^sets\[0\] must be a sequence of integers; got 0"),
        ({"n": 5, "sets": [[0, 1]], "leap": 1}, r"^leap must be 2, as in the sets \(\(0, 1\),\); got 1"),
        ({"n": 5, "k": 3, "sets": [[0, 1]]}, r"^k must be 2, as in the sets"),
        ({"n": 5, "k": 3, "noise": -1}, r"^noise must be a finite number in \[0, inf\)"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        Staircase(**arguments)

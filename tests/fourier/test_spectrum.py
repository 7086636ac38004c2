"""Spectra: every quantity against its definition by brute force, every kind of input, errors."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire import fourier
from fewfire._cube import cube
from fewfire._random import Stream
from fewfire.fourier import _spectrum

INDEX = {n: np.arange(2**n) for n in range(9)}


def values(n, seed=0):
    return Stream(seed, "values").normal(2**n)


def flipped(f, n, i):
    return f[INDEX[n] ^ (1 << i)]


def noise_sensitivity(f, n, rho):
    """E ¼(f(x) − f(y))² with y ~ N_ρ(x), summed over all pairs of points."""
    distance = np.array([[(x ^ y).bit_count() for y in range(2**n)] for x in range(2**n)])
    flip = (1 - rho) / 2
    probability = flip**distance * (1 - flip) ** (n - distance)
    return float((probability * 0.25 * (f[:, None] - f[None, :]) ** 2).sum() / 2**n)


@settings(max_examples=30)
@given(n=st.integers(1, 6), seed=st.integers(0, 2**32), rho=st.floats(-1, 1))
def test_sensitivities_are_what_the_paper_defines(n, seed, rho):
    f = values(n, seed)
    picture = fourier.spectrum(f)
    influences = [0.25 * ((f - flipped(f, n, i)) ** 2).mean() for i in range(n)]
    assert np.allclose(picture.influences(), influences, rtol=1e-10)
    assert math.isclose(picture.average_sensitivity(), sum(influences), rel_tol=1e-10)
    assert math.isclose(picture.noise_sensitivity(rho), noise_sensitivity(f, n, rho), rel_tol=1e-9, abs_tol=1e-12)
    assert math.isclose(picture.norm_squared, (f**2).mean(), rel_tol=1e-12)


@settings(max_examples=30)
@given(n=st.integers(0, 8), seed=st.integers(0, 2**32))
def test_weights_and_tails_group_the_coefficients_by_size(n, seed):
    picture = fourier.spectrum(values(n, seed))
    by_size = np.zeros(n + 1)
    for index, coefficient in enumerate(picture.coefficients):
        by_size[index.bit_count()] += coefficient**2
    assert np.allclose(picture.weights(), by_size, rtol=1e-12)
    for d in range(n + 1):
        assert math.isclose(picture.weight(d), by_size[d], rel_tol=1e-12)
        assert math.isclose(picture.tail(d), by_size[d + 1 :].sum(), rel_tol=1e-12, abs_tol=0)


def test_blocks_larger_than_one_give_the_same(monkeypatch):
    f = values(8)
    whole = fourier.spectrum(f)
    expected = whole.weights(), whole.influences()
    monkeypatch.setattr(_spectrum, "_BLOCK", 3)
    split = fourier.spectrum(f)
    assert np.allclose(split.weights(), expected[0], rtol=1e-13)
    assert np.allclose(split.influences(), expected[1], rtol=1e-13)


def test_for_signs_the_sensitivity_counts_coordinates():
    points = cube(5)
    majority = fourier.spectrum(np.where(points[:, :3].sum(axis=1) > 0, 1, -1))
    assert majority.average_sensitivity() == 1.5
    assert majority.influences().tolist() == [0.5, 0.5, 0.5, 0.0, 0.0]


def test_degree_for_is_the_least_degree_with_a_small_tail():
    f = fourier.inverse([0, 1.0, 0.5, 0, 0, 0, 0, 0.25])  # x₀ + x₁/2 + x₀x₁x₂/4
    picture = fourier.spectrum(f)
    assert picture.tail(0) == 1.3125
    assert picture.tail(1) == picture.tail(2) == 0.0625
    assert picture.degree_for(2.0) == 0
    assert picture.degree_for(1.0) == 1
    assert picture.degree_for(0.0625) == 1
    assert picture.degree_for(0.06) == 3
    assert picture.degree_for(0.0) == 3


def test_coefficients_by_set_and_the_largest():
    picture = fourier.Spectrum(np.array([0.5, 0.0, -2.0, 0.5, 0, 0, 0.25, 0]))
    assert picture.n == 3
    assert picture.coefficient([]) == 0.5
    assert picture.coefficient([1]) == -2.0
    assert picture.coefficient([2, 1]) == 0.25
    assert picture.largest(3) == [((1,), -2.0), ((), 0.5), ((0, 1), 0.5)]


@dataclass
class Network:
    inputs: int

    def __call__(self, X):
        assert X.dtype == np.int8
        assert X.shape[1] == self.inputs
        return np.maximum(X.sum(axis=1) - 0.5, 0.0)


@dataclass
class Problem:
    inputs: int

    def target(self, X):
        return X[:, 0] * X[:, 2]


def test_networks_and_problems_are_read_by_what_they_offer():
    points = cube(4)
    assert np.array_equal(
        fourier.spectrum(Network(4)).coefficients, fourier.transform(np.maximum(points.sum(axis=1) - 0.5, 0.0))
    )
    problem = fourier.spectrum(Problem(4), 4)
    assert problem.largest(1) == [((0, 2), 1.0)]
    assert problem.average_sensitivity() == 2.0


def test_callables_are_evaluated_in_blocks():
    seen = []

    def parity(X):
        seen.append(len(X))
        return X.prod(axis=1)

    picture = fourier.spectrum(parity, 16)
    assert seen == [2**14] * 4
    assert picture.largest(1) == [(tuple(range(16)), 1.0)]
    assert picture.degree_for(0.5) == 16


def test_tables_of_integers_and_an_empty_cube():
    assert fourier.spectrum([3]).norm_squared == 9.0
    assert fourier.spectrum([3]).influences().shape == (0,)
    assert fourier.spectrum(np.array([1, -1], dtype=np.int8), 1).coefficient([0]) == 1.0
    values = np.ones(4)
    fourier.spectrum(values)
    assert np.array_equal(values, np.ones(4))


@pytest.mark.parametrize(
    ("f", "n", "message"),
    [
        (
            lambda X: X[:, 0],
            None,
            "n must be given with a plain callable; got None. Remedy: give the number of its inputs",
        ),
        (Network(3), 4, "n must agree with f.inputs = 3; got 4. Remedy: leave n out"),
        ([1.0, 2.0], 2, "n must agree with the 2 values of f; got 2"),
        ([1.0, 2.0, 3.0], None, "f must be a vector of 2ⁿ numbers"),
        ([1.0, math.nan], None, "f must hold finite numbers"),
        (["a", "b"], None, "f must be 2ⁿ real numbers or callable; got dtype"),
        (lambda X: X, 3, r"f must give one value per row, shape \(8,\); got shape \(8, 3\)"),
        (lambda X: np.full(len(X), np.inf), 3, "f must give finite real numbers; got NaN or infinity"),
        (lambda X: np.full(len(X), 1j), 3, "f must give finite real numbers; got dtype complex128"),
        (
            lambda X: X[:, 0],
            31,
            "n must be an integer of at least 1 and at most 30; got 31. Remedy: use fourier.sampled",
        ),
    ],
)
def test_bad_functions_are_refused(f, n, message):
    with pytest.raises(ValueError, match=message):
        fourier.spectrum(f, n)


def test_bad_questions_are_refused():
    picture = fourier.spectrum([1.0, 2.0])
    with pytest.raises(ValueError, match=r"rho must be a finite number in \[-1, 1\]; got 1.5"):
        picture.noise_sensitivity(1.5)
    with pytest.raises(ValueError, match="degree must be an integer of at least 0 and at most 1; got 2"):
        picture.tail(2)
    with pytest.raises(ValueError, match="members must hold distinct coordinates"):
        picture.coefficient([0, 0])
    with pytest.raises(ValueError, match="epsilon must be a finite number"):
        picture.degree_for(-0.1)

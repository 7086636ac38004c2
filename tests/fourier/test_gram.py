"""The Gram route: the matrix by definition, singular problems, its price."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire import fourier
from fewfire._random import Stream
from fewfire.fourier import _gram
from fewfire.fourier._monomial_matrix import reference_gram


def sample(samples, n, seed=0):
    return Stream(seed, "data").sign_rows(samples, n)


@settings(max_examples=40)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 300), st.integers(0, 2**32))
def test_equals_the_definition(n, degree, samples, seed):
    degree = min(degree, n)
    signs = sample(samples, n, seed)
    sets = [row[row >= 0] for row in fourier.monomials(n, degree)[1:]]
    columns = np.stack([signs[:, members].prod(axis=1) for members in sets], axis=1).astype(np.float64)
    centred = columns - columns.mean(axis=0)
    expected = centred.T @ centred
    assert np.allclose(np.tril(_gram.centred_gram(signs, degree, 2)), np.tril(expected), atol=1e-9)
    assert np.allclose(reference_gram(signs, degree), expected, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 1e-13])
def test_a_singular_matrix_gives_the_solution_of_least_norm(alpha):
    """Columns 0 and 1 are equal, so χ_0 = χ_1 and χ_01 = 1: weight is shared, and none is put on χ_01."""
    signs = sample(200, 4)
    signs[:, 1] = signs[:, 0]
    fit = fourier.least_squares(signs, 3.0 * signs[:, 0] + signs[:, 2], 2, alpha=alpha, solver="gram")
    expected = {(0,): 1.5, (1,): 1.5, (2,): 1.0}
    assert dict(fit.prune(1e-6)) == pytest.approx(expected, abs=1e-9)
    again = fourier.least_squares(signs, 3.0 * signs[:, 0] + signs[:, 2], 2, alpha=alpha, solver="cg", tol=1e-12)
    assert np.allclose(fit.values, again.values, atol=1e-9)


def test_price_grows_with_samples_and_is_infinite_where_memory_ends():
    assert _gram.gram_seconds(10**6, 20, 2) < _gram.gram_seconds(10**8, 20, 2) < np.inf
    assert _gram.gram_seconds(10, 150, 2) == np.inf  # 11326 monomials
    assert _gram.gram_seconds(10, 40, 4) == np.inf
    assert _gram.gram_seconds(10, 100, 2) < np.inf


def test_too_many_moments_are_too_much_even_for_few_monomials(monkeypatch):
    monkeypatch.setattr(_gram, "MAX_MOMENTS", fourier.monomial_count(20, 4) - 1)
    assert _gram.gram_seconds(10, 20, 2) == np.inf

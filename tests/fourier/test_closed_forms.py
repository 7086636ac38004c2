"""pareto, Lemma 17, against the transform of Maj and Half for every length up to 12."""

import numpy as np
import pytest

from fewfire import fourier
from fewfire._cube import cube
from fewfire.papers import pareto


def sums(n):
    return cube(n).sum(axis=1, dtype=np.int64) if n else np.zeros(1, dtype=np.int64)


@pytest.mark.parametrize("n", range(13))
def test_half_at_every_length_and_size(n):
    coefficients = fourier.transform((sums(n) == 0).astype(float))
    expected = [pareto.half_coefficient(n, index.bit_count()) for index in range(2**n)]
    assert np.allclose(coefficients, expected, rtol=0, atol=1e-15)
    if n % 2:
        assert not np.any(expected)


@pytest.mark.parametrize("n", range(1, 13))
def test_majority_at_every_length_and_size(n):
    coefficients = fourier.transform(np.where(sums(n) > 0, 1.0, -1.0))
    expected = [pareto.majority_coefficient(n, index.bit_count()) for index in range(2**n)]
    assert np.allclose(coefficients, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("m", [1, 3, 50, 400])
def test_half_is_the_derivative_of_majority(m):
    for j in range(0, m + 1, 7):
        assert pareto.half_coefficient(2 * m, 2 * j) == pareto.majority_coefficient(2 * m + 1, 2 * j + 1)
        assert np.sign(pareto.half_coefficient(2 * m, 2 * j)) == (-1) ** j
    # W₁ of majority tends to 2/π.
    assert abs((2 * m + 1) * pareto.majority_coefficient(2 * m + 1, 1) ** 2 - 2 / np.pi) < 0.4 / m


def test_small_values_are_exact():
    assert pareto.majority_coefficient(3, 1) == 0.5
    assert pareto.majority_coefficient(3, 3) == -0.5
    assert pareto.half_coefficient(2, 0) == 0.5
    assert pareto.half_coefficient(0, 0) == 1.0


def test_impossible_sizes_are_refused():
    with pytest.raises(ValueError, match="size must be an integer of at least 0 and at most 3; got 4"):
        pareto.majority_coefficient(3, 4)
    with pytest.raises(ValueError, match="n must be an integer of at least 1; got 0"):
        pareto.majority_coefficient(0, 0)
    with pytest.raises(ValueError, match="n must be an integer of at least 0; got -2"):
        pareto.half_coefficient(-2, 0)

"""parities, Lemma 10: the separator, and erratum 3."""

import numpy as np
import pytest

from fewfire._cube import cube
from fewfire.theory import parities


@pytest.mark.parametrize("k", [3, 5, 7, 9, 11])
def test_erratum_3_the_printed_coefficients_fail_and_the_corrected_hold(k):
    z = parities.separator_thresholds(k)
    features = parities.separator_features(k, z)
    parity = (-1.0) ** ((k - z) / 2)
    printed = np.select([np.abs(z) == k, np.abs(z) == 1], [1.0, 2.5], 2.0) * (-1.0) ** ((k - z) / 2)
    assert 4 <= np.abs(features @ printed - parity).max() <= 16
    found = parities.separator_coefficients(k)
    assert np.allclose(features @ found, parity, atol=1e-9)
    assert np.allclose(np.abs(found[1:-1]), 2)
    assert np.allclose(np.abs(found[[0, -1]]), 1.5 if k % 4 == 3 else 0.5)
    assert (np.sign(found[:-1]) == -np.sign(found[1:])).all()
    assert np.allclose(found, -found[::-1])


def test_the_separator_is_the_parity_on_the_cube():
    X = cube(5)
    sums = X.sum(axis=1).astype(float)
    values = parities.separator_features(5, sums) @ parities.separator_coefficients(5)
    assert np.allclose(values, X.prod(axis=1), atol=1e-12)


def test_even_k_is_refused():
    with pytest.raises(ValueError, match=r"k must be odd; got 4\. Remedy: parities treats odd k only\."):
        parities.separator_coefficients(4)

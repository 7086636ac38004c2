"""The distribution D_A: its atoms counted, its correlations, and why k is odd."""

from itertools import product

import numpy as np
import pytest

from fewfire._errors import InvalidArgument
from fewfire.problems import CorrelatedParity, Parity


def test_target_on_the_whole_cube():
    rows = list(product((1, -1), repeat=6))
    expected = [row[0] * row[2] * row[5] for row in rows]
    assert CorrelatedParity(6, support=(5, 0, 2)).target(rows).tolist() == expected


def test_every_atom_has_its_probability():
    # n = 5, support {0, 2, 3}: an atom weighs 2⁻⁶, plus 2⁻⁴ where the three bits are equal (1/2 · 1/2 · 2⁻²).
    rows = 100_000
    X, y = CorrelatedParity(5, support=(0, 2, 3)).sample(rows, 17)
    for atom in product((1, -1), repeat=5):
        expected = 2.0**-6 + (2.0**-4 if atom[0] == atom[2] == atom[3] else 0.0)
        share = np.mean((atom == X).all(axis=1))
        assert abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / rows), atom
    assert (y == X[:, 0] * X[:, 2] * X[:, 3]).all()


@pytest.mark.parametrize("k", [3, 5, 9])
def test_correlations_show_the_support(k):
    rows, n = 40_000, 12
    problem = CorrelatedParity(n, support=range(1, k + 1))
    X, y = problem.sample(rows, 5)
    correlation = X.T.astype(np.int64) @ y / rows
    inside = np.isin(np.arange(n), problem.support)
    assert np.abs(correlation[inside] - 0.5).max() < 5 / np.sqrt(rows)
    assert np.abs(correlation[~inside]).max() < 5 / np.sqrt(rows)
    assert np.abs(X.mean(axis=0)).max() < 5 / np.sqrt(rows)


def test_the_uniform_half_is_the_plain_parity_sample():
    X, _ = CorrelatedParity(9, 5).sample(500, 3)
    plain, _ = Parity(9, 5).sample(500, 3)
    np.testing.assert_array_equal(X[:, 5:], plain[:, 5:])
    changed = (plain != X).any(axis=1)
    assert 150 < changed.sum() < 300
    assert (np.abs(X[changed, :5].sum(axis=1)) == 5).all()


@pytest.mark.parametrize("k", [2, 4])
def test_even_k_is_refused_with_the_reason(k):
    message = rf"^k must be odd and at least 3; got {k}\. Remedy: .*parity \+1 whatever their sign"
    with pytest.raises(InvalidArgument, match=message):
        CorrelatedParity(6, k)
    with pytest.raises(InvalidArgument, match=message):
        CorrelatedParity(6, support=range(k))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 6, "k": 1}, "^k must be odd and at least 3; got 1. Remedy: use Parity: one bit"),
        ({"n": 6, "k": 7}, "^k must be an integer of at least 1 and at most 6; got 7"),
        ({"n": 2, "k": 3}, "^n must be an integer of at least 3; got 2"),
        ({"n": 6, "k": 5, "support": (1, 2, 3)}, r"^k must be the size 3 of the support \(1, 2, 3\); got 5"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        CorrelatedParity(**arguments)

"""Heavy coefficients from samples: screening, the search, its threshold and false positives."""

import math

import numpy as np
import pytest

from fewfire import fourier
from fewfire._random import Stream
from fewfire.fourier._heavy import screen_support


def sample(samples, n, seed=0):
    return Stream(seed, "data").sign_rows(samples, n)


def junta_labels(X, support, seed):
    table = Stream(seed, "table").signs(2 ** len(support))
    return table[(X[:, support] < 0) @ (1 << np.arange(len(support)))], table


def test_a_junta_of_degree_above_the_screen_is_found_whole():
    support = (3, 9, 14, 22, 41, 59)
    X = sample(40_000, 60)
    y, table = junta_labels(X, support, seed=4)
    result = fourier.heavy(X, y)
    exact = fourier.spectrum(table)
    assert result.candidates == support
    expected = {tuple(support[j] for j in members): value for members, value in exact.largest(64)}
    found = dict(result.terms)
    for members, value in expected.items():
        if abs(value) >= 2 * result.threshold:
            assert found[members] == pytest.approx(value, abs=result.threshold)
    assert max(len(members) for members in found) > 2  # above the degree of the screen
    assert all(abs(expected[members]) > 0 for members in found)
    magnitudes = [abs(value) for _, value in result.terms]
    assert magnitudes == sorted(magnitudes, reverse=True)


def test_a_parity_of_degree_eight_among_given_candidates():
    X = sample(3000, 40)
    S = (1, 4, 7, 12, 19, 23, 31, 38)
    noise = Stream(9, "noise").uniform(3000) < 0.2
    y = np.where(noise, -1, 1) * X[:, S].prod(axis=1)
    result = fourier.heavy(X, y, candidates=[*S[::-1], 0, 2, 5, 39])
    assert result.candidates == (0, 1, 2, 4, 5, 7, 12, 19, 23, 31, 38, 39)
    assert [members for members, _ in result.terms] == [S]
    assert result.terms[0][1] == pytest.approx(0.6, abs=0.05)
    assert result.terms[0][1] == pytest.approx(float((y * X[:, S].prod(axis=1)).mean()), abs=1e-12)


def test_a_lone_parity_passes_no_low_degree_screen():
    X = sample(3000, 40)
    result = fourier.heavy(X, X[:, :5].prod(axis=1))
    assert result.candidates == ()
    assert result.terms == []


def test_the_rate_of_false_positives_is_kept():
    """200 searches on pure noise at rate 0.5: the number with any find is at most Binomial(200, 0.5) + 4 deviations."""
    finds = [
        len(fourier.heavy(sample(200, 8, seed), Stream(seed, "y").signs(200), candidates=range(8),
                          false_positive_rate=0.5).terms)
        for seed in range(200)
    ]  # fmt: skip
    assert sum(count > 0 for count in finds) <= 100 + 4 * math.sqrt(50)
    assert sum(finds) > 0


def test_threshold_and_false_positives_belong_together():
    X, y = sample(500, 6), Stream(1, "y").normal(500)
    chosen = fourier.heavy(X, y, candidates=range(6), false_positive_rate=0.03)
    assert chosen.threshold == pytest.approx(math.sqrt(2 * (y**2).mean() * math.log(2 * 64 / 0.03) / 500))
    assert chosen.false_positives == pytest.approx(0.03)
    given = fourier.heavy(X, y, candidates=range(6), threshold=1e-9)
    assert len(given.terms) == 64
    assert given.false_positives == 64


def test_every_subset_of_the_candidates_has_its_empirical_coefficient():
    X, y = sample(100, 10), Stream(1, "y").normal(100)
    found = dict(fourier.heavy(X, y, candidates=(7, 2, 5), threshold=1e-12).terms)
    for members, value in found.items():
        assert value == pytest.approx(float((y * X[:, members].prod(axis=1)).mean()), abs=1e-14)
    assert set(found) == {(), (2,), (5,), (7,), (2, 5), (2, 7), (5, 7), (2, 5, 7)}


def test_the_screen_ranks_by_influence_and_leaves_out_noise():
    X = sample(5000, 30)
    y = X[:, 4] + 0.5 * X[:, 20] * X[:, 8] + 0.3 * X[:, 11]
    assert screen_support(X, y, 10) == (4, 8, 11, 20)
    assert screen_support(X, y, 1) == (4,)
    assert screen_support(X, y, 3) == (4, 8, 20)
    assert screen_support(X, y, 10, degree=1) == (4, 11)
    assert screen_support(X, Stream(1, "y").normal(5000), 10) == ()


def test_zero_labels_give_nothing():
    result = fourier.heavy(sample(10, 3), np.zeros(10), candidates=[0, 1])
    assert result.terms == []
    assert result.false_positives == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": range(27)}, "candidates may number at most 26; got 27. Remedy: screen them further"),
        ({"candidates": [0, 30]}, r"candidates\[1\] must be an integer of at least 0 and at most 29"),
        ({"threshold": 0.0}, "threshold must be a finite number in"),
        ({"false_positive_rate": 1.0}, r"false_positive_rate must be a finite number in \(0, 1\)"),
        ({"screen_size": 0}, "size must be an integer of at least 1"),
    ],
)
def test_bad_requests_for_heavy_coefficients_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        fourier.heavy(sample(20, 30), np.ones(20), **options)

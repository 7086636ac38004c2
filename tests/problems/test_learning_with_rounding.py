"""Learning with rounding: digits, exact labels, uniform integers for every modulus, replaced labels."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.problems import LearningWithRounding
from fewfire.problems._learning_with_rounding import uniform_integers

MODULI = st.integers(2, 40).flatmap(lambda q: st.tuples(st.integers(2, q), st.just(q)))


def spell(row, digits):
    bits = ["1" if sign == 1 else "0" for sign in row]
    return [int("".join(reversed(bits[i : i + digits])), 2) for i in range(0, len(row), digits)]


def rounded(residue, p, q, rounding="floor"):
    return math.floor(Fraction(p * residue, q)) if rounding == "floor" else residue % p


@given(
    moduli=MODULI,
    m=st.integers(1, 4),
    seed=st.integers(0, 99),
    rounding=st.sampled_from(["floor", "remainder"]),
)
def test_labels_and_digits_by_hand(moduli, m, seed, rounding):
    p, q = moduli
    problem = LearningWithRounding(m, p, q, rounding=rounding)
    X, y = problem.sample(8, seed)
    assert y.dtype == np.int64
    for row, label, decoded in zip(X.tolist(), y.tolist(), problem.decode(X).tolist(), strict=True):
        integers = spell(row, problem.digits)
        assert integers == decoded and all(0 <= i < q for i in integers)
        residue = sum(w * i for w, i in zip(problem.secret, integers, strict=True)) % q
        assert label == rounded(residue, p, q, rounding)


@pytest.mark.parametrize(("m", "p", "q"), [(2, 3, 5), (3, 2, 4), (1, 7, 7), (2, 2, 2)])
def test_every_vector_of_a_small_ring(m, p, q):
    problem = LearningWithRounding(m, p, q, secret=[(3 * i + 1) % q for i in range(m)])
    Y = np.array(list(product(range(q), repeat=m)))
    X = problem.encode(Y)
    assert X.shape == (q**m, problem.inputs) and X.dtype == np.int8
    assert len(np.unique(X, axis=0)) == q**m
    np.testing.assert_array_equal(problem.decode(X), Y)
    assert problem.target(X).tolist() == [rounded(int(np.dot(problem.secret, y)) % q, p, q) for y in Y]


def test_digit_order_is_least_significant_first():
    problem = LearningWithRounding(2, 2, 11, secret=(1, 1))
    assert problem.digits == 4 and problem.inputs == 8
    assert problem.encode([[1, 10]]).tolist() == [[1, -1, -1, -1, -1, 1, -1, 1]]
    assert [LearningWithRounding(1, 2, q).digits for q in (2, 3, 4, 5, 8, 9, 2**31)] == [1, 2, 2, 3, 3, 4, 31]


@pytest.mark.parametrize("q", [2, 3, 5, 6, 8, 12, 13])
def test_integers_are_uniform_over_the_ring(q):
    rows, m = 20_000, 3
    problem = LearningWithRounding(m, 2, q)
    Y = problem.decode(problem.sample(rows, 7)[0])
    for column in range(m):
        counts = np.bincount(Y[:, column], minlength=q)
        expected = rows / q
        sigma = np.sqrt(expected * (1 - 1 / q))
        assert np.abs(counts - expected).max() < 5 * sigma
        # chi-square: fails by chance once in a million
        assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6, q - 1)
    pairs = np.bincount(Y[:, 0] * q + Y[:, 1], minlength=q * q)
    expected = rows / q**2
    assert ((pairs - expected) ** 2 / expected).sum() < chi2.isf(1e-6, q * q - 1)


@pytest.mark.parametrize("bound", [2, 3, 1000, 3 * 2**29, 2**31])
def test_integers_are_the_high_part_of_a_64_bit_product(bound):
    stream = Stream(5, "integers")
    words = stream.words(2 * 23).tolist()
    expected = [(high * 2**32 + low) * bound // 2**64 for low, high in zip(words[::2], words[1::2], strict=True)]
    assert uniform_integers(stream, bound, 23).tolist() == expected
    assert uniform_integers(stream, bound, 4, start=19).tolist() == expected[19:]


def test_largest_modulus_does_not_overflow():
    q = 2**31 - 1  # prime: a wrapped sum would show
    Y = np.full((1, 8), q - 1)
    for p, rounding in ((1000, "remainder"), (1000, "floor"), (q - 1, "floor"), (q, "floor")):
        problem = LearningWithRounding(8, p, q, secret=[q - 1] * 8, rounding=rounding)
        assert problem.target(problem.encode(Y)).tolist() == [rounded(8, p, q, rounding)]
        X, y = problem.sample(100, 3)
        assert y.tolist() == [rounded(-sum(row) % q, p, q, rounding) for row in problem.decode(X).tolist()]


def test_the_default_secret_is_fixed_by_the_sizes():
    problem = LearningWithRounding(6, 5, 101)
    assert problem == LearningWithRounding(6, 5, 101) == LearningWithRounding(6, 5, 101, problem.secret)
    assert len(problem.secret) == 6 and all(type(w) is int and 0 <= w < 101 for w in problem.secret)
    assert problem.secret != LearningWithRounding(6, 4, 101).secret
    secrets = np.array([LearningWithRounding(50, 2, q).secret for q in range(100, 140)]) / np.arange(100, 140)[:, None]
    # 2000 draws, mean (q − 1)/2q and variance 1/12 each
    assert abs(secrets.mean() - 0.5 + 1 / 240) < 5 * np.sqrt(1 / 12 / 2000)


@pytest.mark.parametrize(("p", "noise"), [(2, 0.3), (5, 0.6), (3, 1.0)])
def test_noise_replaces_labels_uniformly(p, noise):
    rows = 40_000
    problem = LearningWithRounding(3, p, 15, noise=noise)
    X, y = problem.sample(rows, 21)
    target = problem.target(X)
    expected = noise * (1 - 1 / p)
    assert problem.bayes_error == pytest.approx(expected, abs=1e-15)
    rate = np.mean(y != target)
    assert abs(rate - expected) < 5 * np.sqrt(expected * (1 - expected) / rows)
    wrong = (y - target)[y != target] % p
    share = np.bincount(wrong, minlength=p)[1:] / len(wrong)
    assert np.abs(share - 1 / (p - 1)).max() <= 5 * np.sqrt(1 / len(wrong))
    assert ((y >= 0) & (y < p)).all()


def test_patterns_beyond_the_modulus_are_refused():
    problem = LearningWithRounding(2, 3, 5)
    X = problem.encode([[1, 2], [3, 4]])
    X[1, 3:] = 1
    message = r"^X must spell members of Z_q, q = 5; got a 7 in row 1, integer 1\. Remedy: build it with encode\.$"
    for method in (problem.decode, problem.target):
        with pytest.raises(InvalidArgument, match=message):
            method(X)


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        ([[0, 5]], "^Y must hold members of Z_q, q = 5; got 5"),
        ([[-1, 0]], "^Y must hold members of Z_q, q = 5; got -1"),
        ([[0.0, 1.0]], "^Y must hold integers; got dtype float64"),
        ([0, 1], r"^Y must be a non-empty table of shape \(rows, 2\); got shape \(2,\)"),
        ([[0, 1, 2]], r"^Y must be a non-empty table of shape \(rows, 2\); got shape \(1, 3\)"),
        (np.zeros((0, 2), int), r"^Y must be a non-empty table of shape \(rows, 2\); got shape \(0, 2\)"),
    ],
)
def test_bad_integers(Y, message):
    with pytest.raises(InvalidArgument, match=message):
        LearningWithRounding(2, 3, 5).encode(Y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"m": 0, "p": 2, "q": 5}, "^m must be an integer of at least 1; got 0"),
        ({"m": 1, "p": 6, "q": 5}, "^p must be an integer of at least 2 and at most 5; got 6"),
        ({"m": 1, "p": 1, "q": 5}, "^p must be an integer of at least 2 and at most 5; got 1"),
        ({"m": 1, "p": 2, "q": 1}, "^q must be an integer of at least 2 and at most 2147483648; got 1"),
        ({"m": 1, "p": 2, "q": 2**31 + 1}, "^q must be an integer of at least 2 and at most 2147483648"),
        ({"m": 2, "p": 2, "q": 5, "secret": (1,)}, "^secret must hold m = 2 integers; got 1"),
        (
            {"m": 1, "p": 2, "q": 5, "secret": (5,)},
            r"^secret\[0\] must be an integer of at least 0 and at most 4; got 5",
        ),
        ({"m": 1, "p": 2, "q": 5, "secret": 3}, "^secret must be a sequence of integers; got 3"),
        ({"m": 1, "p": 2, "q": 5, "rounding": "up"}, "^rounding must be one of 'floor', 'remainder'; got 'up'"),
        ({"m": 1, "p": 2, "q": 5, "noise": 1.1}, r"^noise must be a finite number in \[0, 1\]; got 1\.1"),
        ({"m": 1, "p": 2, "q": 5, "noise": float("nan")}, r"^noise must be a finite number in \[0, 1\]; got nan"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        LearningWithRounding(**arguments)

"""Laws every problem keeps: windows of one endless sequence, seeds and streams, validation, value semantics."""

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.problems import (
    CorrelatedParity,
    HalfSpace,
    Indexing,
    Junta,
    LearningWithRounding,
    NamedJunta,
    NetworkTarget,
    Parity,
    Problem,
    SphereSlice,
    Staircase,
)
from fewfire.problems._base import SignProblem


class Majority:
    """A network that needs no weights."""

    inputs = 5

    def __repr__(self):
        return "Majority()"  # no address: test names must be the same in every process

    def __call__(self, X):
        return X.sum(axis=1) / 5


MAJORITY = Majority()
NOISELESS = [
    Parity(9, 3),
    Parity(130, 2, support=(129, 64)),
    CorrelatedParity(9, 5),
    Junta(6, (4, 1), (1, 1, 1, -1)),
    NamedJunta(9, 4, seed=3),
    NamedJunta(9, 3, function="majority"),
    HalfSpace(6, (3, -2, 2, 1), 1),
    Staircase(7, 6, leap=2),
    Indexing(3),
    LearningWithRounding(3, 4, 11),
    NetworkTarget(MAJORITY),
    NetworkTarget(MAJORITY, threshold=0.1),
]
NOISY = [
    Parity(9, 3, noise=0.3),
    CorrelatedParity(9, 5, noise=0.2),
    Junta(6, (4, 1), (1, 1, 1, -1), noise=0.4),
    NamedJunta(9, 4, seed=3, noise=0.1),
    HalfSpace(6, (3, -2, 2, 1), noise=0.2),
    Staircase(7, sets=[[0], [0, 5], [1, 2]], coefficients=[1, -0.5, 2], noise=0.4),
    Indexing(3, noise=0.3),
    LearningWithRounding(3, 4, 11, noise=0.5),
    NetworkTarget(MAJORITY, noise=0.7),
    NetworkTarget(MAJORITY, noise=0.3, threshold=0.1),
]
ENDLESS = NOISELESS + NOISY
SETS = [SphereSlice(20, 4, 0.3), SphereSlice(20, 4, 0.3, labels="xor"), SphereSlice(12, 3, 0.0)]
EVERY = ENDLESS + SETS
FLIPPED = [p for p in NOISY if isinstance(p, SignProblem) or getattr(p, "threshold", None) is not None]
SIGNS = [p for p in ENDLESS if not isinstance(p, LearningWithRounding)]


@pytest.mark.parametrize("problem", EVERY, ids=repr)
def test_is_a_problem(problem):
    assert isinstance(problem, Problem)
    X, y = problem.sample(7, seed=3)
    assert X.shape == (7, problem.inputs) and y.shape == (7,)
    assert X.dtype == (np.float32 if isinstance(problem, SphereSlice) else np.int8)
    assert problem.bayes_error >= 0.0


@pytest.mark.parametrize("problem", EVERY, ids=repr)
@settings(max_examples=15)
@given(rows=st.integers(1, 12), start=st.integers(0, 7), seed=st.integers(0, 2**64 - 1))
def test_a_sample_is_a_window(problem, rows, start, seed):
    whole_X, whole_y = problem.sample(12, seed)
    rows = min(rows, 12 - start)
    X, y = problem.sample(rows, seed, start)
    np.testing.assert_array_equal(X, whole_X[start : start + rows])
    np.testing.assert_array_equal(y, whole_y[start : start + rows])


@pytest.mark.parametrize("problem", ENDLESS, ids=repr)
def test_far_rows_need_no_near_ones(problem):
    X, y = problem.sample(3, 5, start=10**12)
    row, label = problem.sample(1, 5, start=10**12 + 2)
    assert np.array_equal(row[0], X[2]) and label[0] == y[2]


@pytest.mark.parametrize("problem", EVERY, ids=repr)
def test_an_integer_seed_is_the_data_stream(problem):
    for left, right in zip(problem.sample(10, 7), problem.sample(10, Stream(7, "data")), strict=True):
        np.testing.assert_array_equal(left, right)
    other, _ = problem.sample(10, Stream(7, "test"))
    assert not np.array_equal(problem.sample(10, 7)[0], other)
    assert not np.array_equal(problem.sample(10, 7)[0], problem.sample(10, 8)[0])


@pytest.mark.parametrize("problem", NOISELESS + SETS, ids=repr)
def test_labels_without_noise_are_the_target(problem):
    X, y = problem.sample(11, 1)
    np.testing.assert_array_equal(problem.target(X), y)
    assert problem.target(X).dtype == y.dtype
    assert problem.bayes_error == 0.0


@pytest.mark.parametrize("problem", NOISY, ids=repr)
def test_noise_leaves_the_inputs_alone(problem):
    X, y = problem.sample(300, 2)
    clean_X, clean_y = dataclasses.replace(problem, noise=0.0).sample(300, 2)
    np.testing.assert_array_equal(X, clean_X)
    assert (y != clean_y).any() and y.dtype == clean_y.dtype


@pytest.mark.parametrize("problem", EVERY, ids=repr)
def test_same_numbers_without_the_extension(problem, core, request):
    X, y = problem.sample(9, 4)
    request.getfixturevalue("without_core")
    again_X, again_y = problem.sample(9, 4)
    np.testing.assert_array_equal(X, again_X)
    np.testing.assert_array_equal(y, again_y)


@pytest.mark.parametrize("problem", EVERY, ids=repr)
def test_frozen_equal_and_hashable(problem):
    copy = dataclasses.replace(problem)
    assert copy == problem and hash(copy) == hash(problem) and {copy: 1}[problem] == 1
    assert problem != "another thing"
    name = dataclasses.fields(problem)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(problem, name, 3)


@pytest.mark.parametrize("problem", [p for p in EVERY if not isinstance(p, NetworkTarget)], ids=repr)
def test_repr_rebuilds_and_pickle_keeps(problem):
    assert eval(repr(problem)) == problem
    assert pickle.loads(pickle.dumps(problem)) == problem


def test_repr_text():
    assert repr(Parity(5, 2)) == "Parity(n=5, k=2, support=(0, 1), noise=0.0)"
    assert repr(Indexing(2, noise=0.1)) == "Indexing(b=2, noise=0.1)"
    assert repr(SphereSlice(3, 4, 0.5)) == "SphereSlice(n=3, d=4, separation=0.5, labels='linear')"


@pytest.mark.parametrize(
    ("m", "start", "message"),
    [
        (0, 0, r"^m must be an integer of at least 1; got 0\.$"),
        (2.0, 0, r"^m must be an integer of at least 1; got 2\.0\.$"),
        (True, 0, "^m must be an integer"),
        (1, -1, "^start must be an integer of at least 0 and at most 1099511627776; got -1"),
        (1, 2**41, "^start must be an integer of at least 0 and at most 1099511627776; got 2199023255552"),
    ],
)
@pytest.mark.parametrize("problem", ENDLESS, ids=repr)
def test_bad_windows_are_refused(problem, m, start, message):
    with pytest.raises(InvalidArgument, match=message):
        problem.sample(m, 0, start)


@pytest.mark.parametrize("seed", [-1, 1.5, True, None, "seed"])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(InvalidArgument, match=r"^seed must be an integer in \[0, 2\*\*64\); got"):
        Parity(4, 2).sample(1, seed)


@pytest.mark.parametrize("problem", ENDLESS, ids=repr)
def test_bad_inputs_are_refused(problem):
    good = np.ones((2, problem.inputs))
    n = problem.inputs
    wrong_width = rf"^X must be a table of shape \(rows, {n}\); got shape \(2, {n + 1}\)\. Remedy: reshape it\.$"
    with pytest.raises(InvalidArgument, match=wrong_width):
        problem.target(np.ones((2, n + 1)))
    with pytest.raises(InvalidArgument, match=rf"^X must be a table of shape \(rows, {n}\); got shape \({n},\)"):
        problem.target(good[0])
    with pytest.raises(InvalidArgument, match=rf"^X must not be empty; got shape \(0, {n}\)"):
        problem.target(good[:0])
    with pytest.raises(InvalidArgument, match=r"^X may hold only \+1 and −1; got 0\.5"):
        problem.target(good * 0.5)
    with pytest.raises(InvalidArgument, match=r"^X may hold only \+1 and −1; got NaN"):
        problem.target(good * np.nan)
    with pytest.raises(InvalidArgument, match=r"^X must hold numbers; got dtype <U1"):
        problem.target(good.astype("U1"))


@pytest.mark.parametrize("problem", SIGNS, ids=repr)
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32, np.float64])
def test_any_number_type_of_signs_is_taken(problem, dtype):
    X, _ = problem.sample(6, 9)
    np.testing.assert_array_equal(problem.target(X.astype(dtype)), problem.target(X))
    np.testing.assert_array_equal(problem.target(X.tolist()), problem.target(X))


@pytest.mark.parametrize(
    "make",
    [
        lambda noise: Parity(4, 2, noise=noise),
        lambda noise: CorrelatedParity(4, 3, noise=noise),
        lambda noise: Junta(4, (1,), (1, -1), noise=noise),
        lambda noise: NamedJunta(4, 2, noise=noise),
        lambda noise: HalfSpace(4, [1], noise=noise),
        lambda noise: Indexing(2, noise=noise),
        lambda noise: NetworkTarget(MAJORITY, noise=noise, threshold=0.0),
    ],
)
@pytest.mark.parametrize("noise", [-0.1, 0.6, float("nan"), float("inf"), "much", True])
def test_flip_probability_is_checked(make, noise):
    with pytest.raises(InvalidArgument, match=r"^noise must be a finite number in \[0, 0\.5\]; got"):
        make(noise)


@pytest.mark.parametrize("noise", [0.05, 0.3, 0.5])
@pytest.mark.parametrize("problem", FLIPPED, ids=repr)
def test_flip_rate_is_the_noise(problem, noise):
    rows = 40_000
    problem = dataclasses.replace(problem, noise=noise)
    X, y = problem.sample(rows, 11)
    flipped = y != problem.target(X)
    rate = float(np.mean(flipped))
    # Flips are independent of the inputs.
    assert np.abs((flipped - noise) @ X.astype(np.float64)).max() / rows < 5 * np.sqrt(noise * (1 - noise) / rows)
    assert abs(rate - noise) < 5 * np.sqrt(noise * (1 - noise) / rows)
    assert problem.bayes_error == noise


@pytest.mark.parametrize("problem", FLIPPED, ids=repr)
def test_flips_are_one_word_a_row_of_the_noise_stream(problem):
    X, y = problem.sample(200, 6, start=40)
    words = Stream(6, "data/noise").words(200, 40)
    np.testing.assert_array_equal(y != problem.target(X), words < problem.noise * 2**32)

"""Single queries take whatever NumPy takes: C++ reads the plain kinds itself, and every kind gives the same answer."""

from __future__ import annotations

import numpy as np
import pytest

from fewfire import InvalidArgument
from fewfire._extension import without_extension
from fewfire.halfspace import Index, _index

DRAW = np.random.default_rng(11)
POINTS = DRAW.integers(-4, 5, size=(300, 4)).astype(np.float32)
A = np.array([1.0, -2.0, 3.0, 0.5], dtype=np.float32)


def frozen(values):
    values.setflags(write=False)
    return values


PLAIN = [A, A.astype(np.float64), A.tolist(), [1, -2, 3, 0.5]]
OTHER = [
    tuple(A.tolist()),
    frozen(A.copy()),
    np.repeat(A, 2)[::2],
    A.astype(">f4"),
    A.astype(np.float16),
    A.astype(np.longdouble),
    list(A),
    [np.array(1.0), -2, 3, 0.5],
    [True, -2, 3, 0.5],
]


@pytest.mark.parametrize("threshold", [2, 2.0, np.float32(2), np.float64(2), np.array(2.0), np.array([2.0]), [2], True])
@pytest.mark.parametrize("a", [*PLAIN, *OTHER], ids=str)
def test_every_kind_of_vector_and_number_is_the_same_query(a, threshold):
    index = Index(POINTS, method="scan")
    products = POINTS @ A  # small integers and halves: exact
    expected = np.flatnonzero(products > float(np.ravel(threshold)[0]))
    answer = index.query(a, threshold)
    np.testing.assert_array_equal(answer, expected)
    assert answer.dtype == np.int64
    assert index.counters.queries == 1


@pytest.mark.parametrize("method", ["scan", "auto"])
def test_plain_queries_are_read_by_cpp_alone(core, monkeypatch, method):
    index = Index(POINTS, method=method)
    expected = index.query(A, 1.0)
    monkeypatch.setattr(_index, "check_vector", None)
    monkeypatch.setattr(_index, "check_column", None)
    for a in PLAIN:
        for threshold in (1, 1.0, np.float32(1), np.float64(1)):
            np.testing.assert_array_equal(index.query(a, threshold), expected)


WRONG = [
    ([1, 2, 3], 0.0),
    ([1, 2, 3, 4, 5], 0.0),
    (np.ones(3, np.float32), 0.0),
    (np.ones(5), 0.0),
    (np.ones((1, 4)), 0.0),
    (1.0, 0.0),
    ([1, 2, 3, np.nan], 0.0),
    ([1, 2, 3, 1e39], 0.0),
    ([1, 2, 3, 10**400], 0.0),
    (np.array([1, 2, np.inf, 4], np.float32), 0.0),
    (np.array([1, 2, 1e300, 4]), 0.0),
    (["a", 2, 3, 4], 0.0),
    (A.astype(complex), 0.0),
    (A, np.nan),
    (A, -np.inf),
    (A, 1e39),
    (A, 10**400),
    (A, np.float32(np.inf)),
    (A, "1.0"),
    (A, 1j),
    (A, [1.0, 2.0]),
    (A, None),
]


@pytest.mark.parametrize(("a", "threshold"), WRONG, ids=str)
def test_what_is_refused_is_refused_in_the_same_words_with_and_without_cpp(core, a, threshold):
    def message():
        index = Index(POINTS, method="scan")
        with pytest.raises(InvalidArgument) as refused:
            index.query(a, threshold)
        assert index.counters.queries == 0
        return str(refused.value)

    with without_extension():
        expected = message()
    assert message() == expected


@pytest.mark.parametrize("whole", [2**24 + 1, 2**40 + 2**16 + 1, -(2**62) - 1])
def test_large_integers_are_rounded_as_numpy_rounds_them(whole):
    index = Index([[1.0], [-1.0]], method="scan")
    with without_extension():
        twin = Index([[1.0], [-1.0]], method="scan")
    for vector, threshold in (([whole], abs(whole) - 1), ([whole], float(np.float32(abs(whole)))), ([1], whole)):
        np.testing.assert_array_equal(index.query(vector, threshold), twin.query(vector, threshold))

"""Lists mean grids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire._errors import InvalidArgument
from fewfire.sweeps.spec import _grid
from fewfire.sweeps.spec._grid import expand


def test_scalars_lists_and_tables():
    assert expand(3, "x") == [3]
    assert expand([1, [2, 3]], "x") == [1, 2, 3]
    assert expand({"a": [1, 2], "b": "c"}, "x") == [{"a": 1, "b": "c"}, {"a": 2, "b": "c"}]
    assert expand({"a": ["u", {"name": "v", "s": [1, 2]}]}, "x") == [
        {"a": "u"}, {"a": {"name": "v", "s": 1}}, {"a": {"name": "v", "s": 2}}]  # fmt: skip


@pytest.mark.parametrize(
    ("given_range", "expected"),
    [
        ({"log": [10, 1000], "points": 5}, [10, 32, 100, 316, 1000]),
        ({"log": [1, 3], "points": 6}, [1, 2, 3]),  # rounded, without repeats
        ({"log": [0.01, 1.0], "points": 3}, [0.01, 0.1, 1.0]),
        ({"log": [100, 1], "points": 3}, [100, 10, 1]),
        ({"linear": [0, 10], "points": 3}, [0, 5, 10]),
        ({"linear": [0.1, 0.3], "points": 3}, [0.1, 0.2, 0.3]),
    ],
)
def test_ranges(given_range, expected):
    found = expand({"width": given_range}, "network")
    assert found == [{"width": value} for value in expected]
    assert [type(one["width"]) for one in found] == [type(value) for value in expected]


def test_vectors_are_one_value_and_lists_of_vectors_a_grid():
    assert expand({"support": [0, 3]}, "problem") == [{"support": (0, 3)}]
    assert expand({"support": [[0, 3], [1, 2]]}, "problem") == [{"support": (0, 3)}, {"support": (1, 2)}]
    assert expand({"sets": [[0], [0, 1]]}, "problem") == [{"sets": ([0], [0, 1])}]
    assert expand({"sets": [[[0], [0, 1]], [[2]]]}, "problem") == [{"sets": ([0], [0, 1])}, {"sets": ([2],)}]


def test_phases_keep_their_order():
    found = expand({"phases": [{"steps": [1, 2]}, {"steps": 3}]}, "training")
    assert found == [{"phases": ({"steps": 1}, {"steps": 3})}, {"phases": ({"steps": 2}, {"steps": 3})}]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "x must not be an empty list; got []. Remedy: list at least one value, or leave the key out."),
        ({"log": [10, 100]}, "x.points must be given; got a table without it. Remedy: add points = … to [x]."),
        ({"log": 10, "points": 3}, "x.log must be [first, last]; got 10. Remedy: list the two ends of the range."),
        ({"log": [0, 3], "points": 3}, "x.log must have positive ends; got [0, 3]. Remedy: use linear for ranges that reach 0."),
        ({"linear": [-1e308, 1e308], "points": 3}, "x.linear must be a range within the floats; got [-1e+308, 1e+308]. Remedy: choose ends nearer to 0."),
        ({"log": [1, 3], "points": 1}, "x.points must be an integer of at least 2; got 1."),
        ({"log": [1, "a"], "points": 2}, "x.log[1] must be a finite number in (-inf, inf); got 'a'."),
        ({"log": [1, 2], "point": 2}, "x.point is not a known key; the keys here are log, points; got 2. Remedy: write 'points' if that is what was meant."),
    ],
)  # fmt: skip
def test_errors_name_the_path(value, message):
    with pytest.raises(InvalidArgument) as caught:
        expand(value, "x")
    assert str(caught.value) == message


@given(st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(), min_size=1, max_size=3), max_size=4))
def test_a_table_has_the_product_of_its_lists(table):
    found, size = expand(table, "x"), 1
    for values in table.values():
        size *= len(values)
    assert len(found) == size
    assert all(one[key] in values for one in found for key, values in table.items())


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ({"width": {"linear": [1, 10**9], "points": 10**9}}, "1,000,000,000"),
        ({key: list(range(1000)) for key in "abc"}, "1,000,000,000"),
        ({"phases": [{"steps": list(range(10))} for _ in range(9)]}, "1,000,000,000"),
        ([{"a": list(range(100_001))}], "100,001"),
    ],
)
def test_grids_are_counted_before_they_are_built(value, count):
    with pytest.raises(InvalidArgument) as caught:
        expand(value, "network")
    assert str(caught.value) == (
        f"network must stand for at most 100,000 values; got a grid of {count}. "
        "Remedy: list fewer values, or cut it into several sweeps."
    )


@given(
    st.recursive(
        st.integers(0, 9),
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3)
            | st.dictionaries(st.sampled_from(["a", "support", "phases"]), inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_counts_are_those_of_what_is_built(value):
    assert _grid._count(value) == len(expand(value, "x"))

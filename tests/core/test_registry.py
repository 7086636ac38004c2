"""Registers: unique names, an order, what is ours stays, what is others' can be taken back."""

import pytest

from fewfire._errors import InvalidArgument
from fewfire._registry import Registry


@pytest.fixture
def registry():
    registry = Registry("auto")
    registry.add("one", 1, own=True)
    registry.add("two", 2)
    return registry


def test_entries_have_an_order(registry):
    registry.add("zero", 0, before="one")
    assert list(registry.items()) == [("zero", 0), ("one", 1), ("two", 2)]
    with pytest.raises(TypeError):
        registry["three"] = 3


@pytest.mark.parametrize("name", ["one", "two", "auto", "", 3, None])
def test_names_are_new(registry, name):
    with pytest.raises(
        InvalidArgument, match=r"name must be a name other than 'auto', 'one', 'two'; got .*choose a new one"
    ):
        registry.add(name, 9)
    assert list(registry) == ["one", "two"]


def test_what_is_ours_stays(registry):
    registry.remove("two")
    for name in ("one", "two", "three"):
        with pytest.raises(InvalidArgument, match="name must be that of something registered from outside; got"):
            registry.remove(name)
    assert list(registry) == ["one"]


def test_a_place_that_is_not_there(registry):
    with pytest.raises(InvalidArgument, match="before must be one of 'one', 'two'; got 'six'"):
        registry.add("three", 3, before="six")

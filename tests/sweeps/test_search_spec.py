"""[search] of a spec: the grid it chooses from, its frontiers, and what it refuses."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from small_search import search_table, small_search

from fewfire._errors import InvalidArgument
from fewfire.sweeps import FrontierSearch, Sweep
from fewfire.testing._sweeps import tiny


def test_a_search_is_the_grid_over_its_values():
    sweep = small_search()
    values = sweep.search.values()
    assert values[0] == 10 and values[-1] == 1000 and all(type(value) is int for value in values)
    ratios = [b / a for a, b in pairwise(values[12:])]  # the small ones are rounded
    assert max(ratios) <= 1.5**0.5 * 1.01
    assert sweep.trials == 40 and len(sweep) == 2 * len(values) * 40
    grid = Sweep.from_dict(
        {key: value for key, value in search_table().items() if key != "search"}
        | {"data": {"samples": values, "test_samples": 200}, "trials": 40}
    )
    assert [run.hash for run in grid.runs()] == [run.hash for run in sweep.runs()]


def test_the_lines_run_along_the_axis():
    sweep = small_search(network={"start": ["dense", {"name": "sparse", "s": 2}], "width": [8, 40]})
    lines = sweep.search.lines(sweep)
    assert len(lines) == 4
    for line in lines:
        runs = [sweep.run_at(int(cell)) for cell in line]
        assert [run.samples for run in runs] == sweep.search.values()
        assert len({(run.start, run.width) for run in runs}) == 1
    assert len({int(cell) for line in lines for cell in line}) == sweep.settings


@pytest.mark.parametrize(
    ("axis", "low", "high", "frontiers"),
    [
        ("training.steps", 10, 1000, 2),
        ("network.width", 2, 64, 1),
        ("problem.n", 4, 30, 2),
        ("training.learning_rate", 0.001, 1.0, 2),
        ("problem.noise", 0.01, 0.4, 2),
    ],
)
def test_any_number_can_be_the_axis(axis, low, high, frontiers):
    name, key = axis.split(".")
    table = search_table(data={"samples": 100, "test_samples": 200}, search={"axis": axis, "low": low, "high": high})
    table[name] = {other: value for other, value in table[name].items() if other != key}
    sweep = Sweep.from_dict(table)
    assert len(sweep.search.lines(sweep)) == frontiers
    assert Sweep.from_dict(sweep.to_dict()) == sweep


def test_a_search_is_written_back_without_its_values():
    sweep = small_search()
    written = sweep.to_dict()
    assert written["data"] == [{"test_samples": 200}] and "trials" not in written
    assert written["search"]["precision"] == 0.5 and written["search"]["level"] == 0.95
    assert Sweep.from_dict(written) == sweep
    assert "search" not in tiny().to_dict()  # what was recorded of other sweeps stays as it is
    without_data = {key: value for key, value in search_table().items() if key != "data"}
    assert Sweep.from_dict(without_data).data[0] == (10, 2000, "clean")


def test_sweeps_made_by_hand_have_the_values_of_the_search():
    sweep = small_search()
    assert replace(sweep, name="other").search == sweep.search
    with pytest.raises(
        InvalidArgument, match=r"data\.samples must take the .* values of the search in every combination"
    ):
        replace(sweep, data=sweep.data[:-1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"axis": "data.sample"}, "search.axis must be a key that holds a number: data.samples, network.width, training.steps, training.batch_size, training.learning_rate, training.weight_decay, training.truncation, or a number of the problem such as problem.n; got 'data.sample'. Remedy: write 'data.samples' if that is what was meant."),
        ({"axis": "training.loss"}, "search.axis must be a key that holds a number: data.samples, network.width, training.steps, training.batch_size, training.learning_rate, training.weight_decay, training.truncation, or a number of the problem such as problem.n; got 'training.loss'."),
        ({"axis": "problem.name"}, "search.axis must be a key that holds a number: data.samples, network.width, training.steps, training.batch_size, training.learning_rate, training.weight_decay, training.truncation, or a number of the problem such as problem.n; got 'problem.name'. Remedy: name the table and the key."),
        ({"low": 1000, "high": 1000}, "search.high must be above low = 1000; got 1000. Remedy: give the ends in order."),
        ({"high": 1e4}, "search.high must be a whole number, because data.samples is one; got 10000.0. Remedy: write it without a point or an exponent."),
        ({"axis": "training.learning_rate", "low": 1e-300, "high": 1e300}, "search.high must be at most 1e+09 times low = 1e-300; got 1e+300."),
        ({"low": "ten"}, "search.low must be a finite number in (0, inf); got 'ten'."),
        ({"axis": 3}, "search.axis must be a key that holds a number: "),
        ({"low": 0}, "search.low must be a finite number in (0, inf); got 0. Remedy: values are tried on a logarithmic scale."),
        ({"target": 1.0}, "search.target must be a finite number in [0.05, 0.95]; got 1.0. Remedy: rarer and surer successes take a grid."),
        ({"precision": 0}, "search.precision must be a finite number in [0.01, 1]; got 0."),
        ({"level": 1}, "search.level must be a finite number in [0.5, 0.999]; got 1."),
        ({"budget": 3}, "search.budget must be an integer of at least 4; got 3. Remedy: one batch has 4 runs."),
        ({"rising": "yes"}, "search.rising must be true or false; got 'yes'."),
        ({"width": 0.1}, "search.width is not a known key; the keys here are axis, low, high, target, precision, level, budget, batch, rising; got 0.1. Remedy: remove it."),
    ],
)  # fmt: skip
def test_what_a_search_cannot_be_is_refused(changes, message):
    with pytest.raises(InvalidArgument) as caught:
        small_search(search=changes)
    assert str(caught.value).startswith(message)


def test_what_the_search_chooses_is_left_out_of_the_tables():
    with pytest.raises(
        InvalidArgument, match=r"data\.samples must be left out, because \[search\] chooses it; got 30\."
    ):
        small_search(data={"samples": 30})
    with pytest.raises(InvalidArgument, match=r"trials must be left out, because \[search\] has a budget; got 5\."):
        Sweep.from_dict(search_table() | {"trials": 5})
    with pytest.raises(
        InvalidArgument, match=r"training\.phases must be one phase where the search chooses its numbers"
    ):
        phases = {"phases": [{"learning_rate": 0.1}, {"learning_rate": 0.2}]}
        small_search(training=phases, data={"samples": 9}, search={"axis": "training.steps"})
    with pytest.raises(InvalidArgument, match=r"problem\.kk is not a known key"):
        small_search(search={"axis": "problem.kk"}, data={"samples": 9})
    with pytest.raises(InvalidArgument, match=r"search\.axis must be given"):
        Sweep.from_dict(search_table() | {"search": {"low": 1, "high": 2}})


def test_values_are_as_fine_as_the_precision():
    for precision in (0.05, 0.15, 0.5):
        values = FrontierSearch("training.learning_rate", 1e-3, 0.1, precision=precision).values()
        assert values[1] / values[0] <= math.sqrt(1 + precision) * (1 + 1e-9)

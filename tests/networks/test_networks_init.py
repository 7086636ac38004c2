"""Initialisers: dense and sparse starts, determinism, specs, and what each one refuses."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.networks import init, relu

EVERY = [
    init.dense(),
    init.sparse(2),
    init.sparse(3, value=-0.5),
    init.perturbed_sparse(2),
    init.perturbed_sparse(2, eps=0.01),
    init.symmetric(3),
    init.symmetric(5, scaled=False),
    init.over_sparse(2, 9),
    init.under_sparse(4, 2),
    init.ntk(activity=0.1),
    init.ntk(exponent=0.5, input_norm=2.0),
    init.ntk(threshold="1/m"),
]


@pytest.mark.parametrize("initialiser", EVERY, ids=repr)
def test_what_every_initialiser_promises(initialiser):
    net = initialiser(11, 20, 3)
    assert (net.inputs, net.width, net.dtype) == (11, 20, np.float32)
    assert net.equals(initialiser(11, 20, Stream(3, "init")))
    assert not net.equals(initialiser(11, 20, 4))
    assert all(isinstance(v, int | float | str | bool | None) for v in initialiser.parameters().values())
    again = init.from_parameters(initialiser.name, initialiser.parameters())
    assert again == initialiser
    assert hash(again) == hash(initialiser)
    with pytest.raises(AttributeError):
        initialiser.name = "other"


def test_initialisers_that_differ_are_unequal():
    assert len(set(EVERY)) == len(EVERY)
    assert repr(init.sparse(2)) == "sparse(s=2, value=1.0)"


def test_numbers_are_pinned_across_versions_and_machines():
    net = init.dense()(5, 4, 7)
    np.testing.assert_allclose(net.hidden[0, :3], [-0.063129395, 0.39424974, -0.34991273], rtol=1e-6)
    np.testing.assert_allclose(
        [net.bias[0], net.output[0], net.offset], [-0.28229076, 0.1896927, -0.21625629], rtol=1e-6
    )
    np.testing.assert_array_equal(np.nonzero(init.sparse(2)(5, 4, 7).hidden)[1], [2, 4, 0, 1, 1, 4, 1, 4])
    np.testing.assert_allclose(init.ntk(activity=0.25)(5, 4, 7).hidden[0, 0], 0.6056422, rtol=1e-6)


def test_dense_bounds_and_moments():
    net = init.dense()(25, 400, 0)
    assert net.activation == relu
    for values, bound in ((net.hidden, 1 / 5), (net.bias, 1 / 5), (net.output, 1 / 20)):
        assert np.abs(values).max() <= np.float32(bound)
        assert np.abs(values).max() > 0.98 * bound
        error = 4 * bound / math.sqrt(3 * values.size)  # four standard errors of a uniform mean
        assert abs(values.mean(dtype=np.float64)) <= error
    assert 0 < abs(net.offset) < 1 / 20


@pytest.mark.parametrize("s", [1, 2, 7])
def test_sparse_rows_have_exactly_s_entries(s):
    net = init.sparse(s, value=2.5)(7, 300, 1)
    assert set(np.count_nonzero(net.hidden, axis=1)) == {s}
    assert set(net.hidden[net.hidden != 0]) == {2.5}
    dense = init.dense()(7, 300, 1)
    np.testing.assert_array_equal(net.bias, dense.bias)
    np.testing.assert_array_equal(net.output, dense.output)
    assert net.offset == dense.offset


def test_sparse_rows_are_uniform_over_subsets():
    rows, pairs = 20_000, list(combinations(range(6), 2))
    table = init.sparse(2)(6, rows, 2).hidden
    counts = np.array([np.count_nonzero(table[:, i] * table[:, j]) for i, j in pairs])
    assert counts.sum() == rows
    chi_square = ((counts - rows / 15) ** 2 / (rows / 15)).sum()
    assert chi_square < 36.1  # the 0.1% point of chi-square with 14 degrees of freedom


@pytest.mark.parametrize(("eps", "rest"), [(None, 1 / 16), (0.1, 0.1)])
def test_perturbed_rows(eps, rest):
    table = init.perturbed_sparse(2, eps)(10, 50, 1).hidden
    assert set(np.count_nonzero(table == 1, axis=1)) == {2}
    assert set(table[table != 1]) == {np.float32(rest)}
    assert rest * 8 < 1  # all small weights together never outvote a large one


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: init.sparse(0), "s must be an integer of at least 1; got 0."),
        (lambda: init.sparse(2.0), "s must be an integer of at least 1; got 2.0."),
        (lambda: init.sparse(2, 0.0), "value must not be 0; got 0.0. Remedy: a row of zeros has no s non-zero weights."),
        (lambda: init.sparse(2, math.nan), "value must be a finite number in (-inf, inf); got nan."),
        (lambda: init.sparse(4)(3, 5, 0), "s must be at most the number of inputs, 3; got 4. Remedy: choose fewer non-zero weights."),
        (lambda: init.perturbed_sparse(3)(3, 5, 0), "s must be below the number of inputs, 3; got 3. Remedy: leave some weights small."),
        (lambda: init.perturbed_sparse(2, 0.0), "eps must be a finite number in (0, inf); got 0.0."),
        (lambda: init.perturbed_sparse(2, 0.5)(4, 5, 0), "eps must be below 1/(inputs − s) = 0.5; got 0.5. Remedy: pass eps=None for half of that."),
        (lambda: init.dense()(0, 5, 0), "inputs must be an integer of at least 1; got 0."),
        (lambda: init.dense()(5, 0, 0), "width must be an integer of at least 1; got 0."),
        (lambda: init.dense()(5, 5, -1), "seed must be an integer in [0, 2**64); got -1. Remedy: pass a non-negative integer."),
        (lambda: init.from_parameters("spars"), "init must be one of 'dense', 'ntk', 'sparse', 'perturbed_sparse', 'over_sparse', 'under_sparse', 'symmetric'; got 'spars'. Remedy: write 'sparse' if that is what was meant."),
        (lambda: init.from_parameters("sparse", {"k": 2}), "init 'sparse' takes s, value; got ['k']. Remedy: missing a required argument: 's'."),
        (lambda: init.from_parameters("dense", {"k": 2}), "init 'dense' takes no parameters; got ['k']. Remedy: got an unexpected keyword argument 'k'."),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert str(caught.value) == message


def test_subsets_do_not_depend_on_the_blocks_they_are_dealt_in():
    stream = Stream(0, "init/hidden")
    many = stream.subsets(5, 2**19, 3)  # two decks of 2^19 to a block
    for rows in (1, 2, 3):
        np.testing.assert_array_equal(stream.subsets(rows, 2**19, 3), many[:rows])
    assert len({tuple(row) for row in many.tolist()}) == 5

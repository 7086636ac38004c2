"""Families of fixed features, the linear classifier on them, and the search for the dimension that suffices."""

from math import comb, inf

import numpy as np
import pytest

from fewfire._cube import cube
from fewfire._random import Stream
from fewfire.papers.parities import halfspace_accuracy
from fewfire.papers.parities.recipes.separation import FAMILIES, dimension_needed, fit_linear
from fewfire.problems import CorrelatedParity


def on_the_cube(n, k):
    X, problem = cube(n), CorrelatedParity(n, k)
    return X, problem.target(X).astype(float), problem.density(X) / 2**n


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_nested_and_do_not_look_at_labels(name):
    X = Stream(0, "rows").sign_rows(30, 8)
    few, many = (FAMILIES[name](X, 3, dimension, Stream(1, name)) for dimension in (11, 25))
    assert few.shape == (30, 11) and many.shape == (30, 25)
    assert np.allclose(few, many[:, :11])
    assert np.linalg.matrix_rank(many) > 11


def test_gates_pass_one_and_the_inputs():
    X = Stream(0, "rows").sign_rows(40, 4)
    features = FAMILIES["galu"](X, 3, 10, Stream(5, "galu"))
    for gate in (features[:, :5], features[:, 5:]):
        is_open = gate[:, 0] == 1
        assert 0 < is_open.sum() < 40
        assert np.array_equal(gate[is_open, 1:], X[is_open]) and not gate[~is_open].any()


def test_all_monomials_hold_the_parity_and_nothing_less_is_sure_to():
    X, y, mass = on_the_cube(7, 3)
    features = FAMILIES["monomials"](X, 3, comb(7, 3), Stream(0, "all"))
    assert np.any(np.all(features == y[:, None], axis=0))
    assert len(np.unique(features, axis=1).T) == 35
    assert fit_linear(features, y, mass)[1] == 0


@pytest.mark.parametrize("k", [3, 5])
def test_the_inputs_alone_do_no_better_than_the_best_half_space(k):
    X, y, mass = on_the_cube(7, k)
    weights, error = fit_linear(np.hstack([X, np.ones((len(X), 1))]).astype(float), y, mass)
    assert error >= 1 - halfspace_accuracy(k) - 1e-9
    assert mass @ ((np.hstack([X, np.ones((len(X), 1))]) @ weights > 0) != (y > 0)) == pytest.approx(error)


def test_the_classifier_errs_less_than_least_squares():
    X, y, mass = on_the_cube(9, 3)
    features = FAMILIES["cosine"](X, 3, 110, Stream(0, "cosine"))
    root = np.sqrt(mass)
    squares = np.linalg.lstsq(features * root[:, None], y * root, rcond=None)[0]
    assert fit_linear(features, y, mass)[1] < 0.7 * float(mass @ ((features @ squares > 0) != (y > 0)))


def test_the_search_finds_the_step():
    for step in (3, 10, 37, 1000):
        found = dimension_needed(lambda size, step=step: 0.0 if size >= step else 1.0, 0.05, 3, 4096)
        assert step <= found <= 1.2 * step + 1
    assert dimension_needed(lambda size: 1.0, 0.05, 3, 100) == inf
    assert dimension_needed(lambda size: 0.0 if size == 100 else 1.0, 0.05, 3, 100) == 100

"""parities/error-terms: what is measured moves as the terms do, and made-up errors that do not are refuted."""

import json

import numpy as np
import pytest
from scipy import stats

from fewfire._random import Stream
from fewfire.papers import parities, recipes
from fewfire.papers.parities.recipes import error_terms
from fewfire.papers.parities.recipes.error_terms import ErrorSize, ErrorTermSettings

SETTINGS = ErrorTermSettings(
    ErrorSize(51, 3, 100, 100), (31, 51, 71), (3, 5, 7), (20, 100, 400), (10, 100, 400), (100, 1000, 4000), seeds=10
)


def run(errors):
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(error_terms, "descent_errors", errors)
        return error_terms.RECIPE.run(settings=SETTINGS)


def lawful(size, seeds):
    """Errors that fall with inputs, neurons, steps and examples, rise with bits, and differ by seed."""
    fresh = 10**6 if size.examples is None else size.examples
    error = size.k * (1 / size.n + 1 / size.width + 1 / size.steps + 1 / fresh)
    return [error * (1 + 0.01 * seed) for seed in range(seeds)]


def test_errors_that_move_as_the_terms_do_are_seen():
    found = run(lawful)
    assert found.passed, found.judgements
    table = found.to_dict()
    assert json.loads(json.dumps(table)) == table
    row = table["rows"][0]
    bound = parities.theorem_2(31, 3, 50, 100)
    assert (row["resource"], row["n"], row["drift"], row["step_size"]) == ("n", 31, bound.drift, bound.step_size)
    assert "as n goes through 31, 51, 71 the mean error is" in found.measured[0]


@pytest.mark.parametrize(
    "errors",
    [
        lambda size, seeds: [0.125] * seeds,
        lambda size, seeds: [1 - error for error in lawful(size, seeds)],
        lambda size, seeds: Stream(0, f"noise {size}").uniform(seeds, 0, 0.2).tolist(),
    ],
    ids=["flat", "reversed", "noise"],
)
def test_other_errors_are_refuted(errors):
    assert not any(entry.passed for entry in run(errors).judgements)


def test_errors_that_rise_with_inputs_refute_that_claim_alone():
    found = run(lambda size, seeds: [error * size.n**2 for error in lawful(size, seeds)])
    assert [entry.passed for entry in found.judgements] == [False, True, True, True, True]
    assert found.judgements[0].effect.low > 0


@pytest.mark.parametrize(("learned", "seen"), [(10, True), (6, True), (5, False), (1, False)])
def test_seeds_that_learn_at_the_last_level(learned, seen):
    """Of ten seeds, the others flat: six are seen, five are not."""
    table = np.full((10, 4), 0.18)
    table[:learned, 3] = 0.0
    assert (error_terms.rising(-table) <= error_terms.LEVEL) == seen


def test_the_power_is_that_of_six_seeds_of_ten():
    power = run(lawful).judgements[1].power
    assert power.probability == pytest.approx(stats.binom.sf(4, 10, 0.75))  # three levels: five of ten
    assert error_terms._step_power(10, 4) == pytest.approx(stats.binom.sf(5, 10, 0.75))


def test_descent_errors_of_fresh_and_of_sampled_rows():
    fresh = error_terms.descent_errors(ErrorSize(31, 3, 40, 30), 2)
    sampled = error_terms.descent_errors(ErrorSize(31, 3, 40, 30, 500), 2)
    assert len(fresh) == len(sampled) == 2 and all(0 <= error <= 0.6 for error in (*fresh, *sampled))


def test_the_recipe_is_registered():
    assert recipes.find("parities/error-terms") is error_terms.RECIPE

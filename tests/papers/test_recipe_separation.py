"""The separation of parities: fixed features need dimensions, the network does not; every claim can fail."""

import numpy as np
import pytest
from scipy.stats import norm

from fewfire.papers import recipes
from fewfire.papers.parities.recipes import separation
from fewfire.papers.parities.recipes.separation import FAMILIES, ComparisonSize, NeuronSize, SeparationSettings
from fewfire.papers.recipes import Effect
from fewfire.problems import CorrelatedParity

SMALL = SeparationSettings(((8, 3), (11, 3)), 6, (NeuronSize(31, 3, 800),), (ComparisonSize(31, 3, 60, 800),), seeds=3)
COSINES = {"cosine": FAMILIES["cosine"]}


def truth(k, width, X, y, seed):
    return CorrelatedParity(X.shape[1], k).target


def constant(k, width, X, y, seed):
    return lambda rows: rows[:, 0] * 0 + 1


def of_the_support(X, k, dimension, stream):
    """The parity of the support comes second, whatever n is."""
    return np.hstack([X[:, :1], X[:, :k].prod(axis=1, keepdims=True), X])[:, :dimension].astype(float)


def run(monkeypatch, settings=SMALL, **replaced):
    """In this process, with other fixed features or another network."""
    for name, value in {"usable_cores": lambda: 1, **replaced}.items():
        monkeypatch.setattr(separation, name, value)
    return separation.RECIPE.run(settings=settings).to_dict()


def verdicts(found):
    return [entry["passed"] for entry in found["judgement"]]


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as monkeypatch:
        return run(monkeypatch, FAMILIES=COSINES)


def test_a_small_run_shows_all_four(small):
    assert verdicts(small) == [True] * 4
    assert [(row["n"], row["family"], row["monomials"]) for row in small["dimensions"]] == [
        (8, "cosine", 56),
        (11, "cosine", 165),
    ]
    assert all(40 <= needed <= 256 for row in small["dimensions"] for needed in row["needed"])
    (neurons,) = small["neurons"]
    assert max(neurons["needed"]) < neurons["bound"] == pytest.approx(4495**0.5)
    scores = {row["method"]: row for row in small["rows"] if row["seed"] == 0}
    assert list(scores) == [
        "network",
        "inputs",
        "network's start",
        "cosine",
        "polynomial kernel",
        "tangent kernel",
        "low-degree learner",
        "best half-space",
    ]
    assert scores["network"]["accuracy"] >= 0.98 and scores["best half-space"]["accuracy"] == 0.875
    assert [row["method"] for row in scores.values() if row["rival"]] == [
        "inputs",
        "network's start",
        "cosine",
        "best half-space",
    ]
    assert scores["cosine"]["dimension"] == 60 and scores["polynomial kernel"]["dimension"] == 5984
    assert "to the power: cosine" in small["measured"][0] and "network 100.0%" in small["measured"][1]


def test_features_that_hold_the_parity_refute_the_theorem_s_curve(monkeypatch):
    found = run(monkeypatch, FAMILIES={"of the support": of_the_support}, correlated_network=truth)
    assert verdicts(found) == [False, False, True, False]
    assert all(needed <= 3 for row in found["dimensions"] for needed in row["needed"])


def test_a_network_that_does_not_learn_is_refuted(monkeypatch):
    found = run(monkeypatch, FAMILIES=COSINES, correlated_network=constant)
    assert verdicts(found) == [True, True, False, False]
    assert found["neurons"][0]["needed"] == [float("inf")] * 3


def test_dimensions_that_are_not_reached_show_no_growth(monkeypatch):
    inputs = {"inputs": lambda X, k, dimension, stream: X[:, :dimension].astype(float)}
    found = run(monkeypatch, FAMILIES=inputs, correlated_network=truth)
    assert verdicts(found) == [True, False, True, True]


def judged(needed=60.0, growth=1.0, neurons=20.0, lead=0.125, error=0.1):
    """Verdicts and powers on what is made up: one family at (9, 3), nine draws, and five seeds of a network."""
    dimensions = [{"monomials": 84, "needed": [needed] * 9}]
    powers = {"relu": Effect("", growth, growth - 1.96 * error, growth + 1.96 * error)}
    return separation.judge(dimensions, powers, [{"bound": 67.0, "needed": [16.0] * 4 + [neurons]}], [[lead] * 5])


@pytest.mark.parametrize(
    ("options", "refuted"),
    [({}, []), ({"needed": 6.0}, [0]), ({"growth": 0.6}, [1]), ({"neurons": 128.0}, [2]), ({"lead": 0.09}, [3])],
    ids=["as claimed", "few features", "slow growth", "one fit with many neurons", "a near rival"],
)
def test_every_claim_can_fail(options, refuted):
    assert [place for place, entry in enumerate(judged(**options)) if not entry.passed] == refuted


def test_one_run_at_the_half_space_refutes_the_lead():
    leads = [[0.125] * 5, [0.125, 0.125, 0.0, 0.125, 0.125]]
    assert not separation.judge(
        [{"monomials": 84, "needed": [60.0] * 9}], {"a": Effect("", 1, 1, 1)}, [{"bound": 67.0, "needed": [8.0]}], leads
    )[3].passed


def test_the_powers():
    powers = [entry.power.probability for entry in judged()]
    assert powers == pytest.approx([1 - 10 / 512, norm.cdf(5 - 1.96), 1 - 0.9**5, 1 - 0.8**5], abs=1e-4)
    assert judged(error=float("nan"))[1].power.probability == 0.0


def test_the_figure_draws_what_was_found(small):
    left, right = recipes.plot(small).axes
    assert left.get_xscale() == left.get_yscale() == "log"
    assert [label.get_text() for label in right.get_yticklabels()][:2] == ["network", "inputs"]


def test_the_recipe_is_registered():
    assert recipes.find("parities/separation") is separation.RECIPE

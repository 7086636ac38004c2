"""Heavy coefficients from membership queries: what is found, what is left out, and how many queries it took."""

import math

import numpy as np
import pytest

from fewfire import fourier
from fewfire._random import Stream
from fewfire.fourier import _goldreich_levin


class Recorder:
    """A function that counts the points it is asked for."""

    def __init__(self, rule):
        self.rule, self.queries = rule, 0

    def __call__(self, X):
        self.queries += len(X)
        return self.rule(X)


@pytest.mark.parametrize("S", [(1, 4, 7, 12, 19, 23, 31, 38), tuple(range(32, 40)), (), (39,)])
def test_finds_a_parity_among_forty_inputs(S):
    rule = Recorder(lambda X: X[:, S].prod(axis=1))
    result = fourier.goldreich_levin(rule, 40, 0.5)
    assert result.terms == [(S, 1.0)]
    assert result.queries == rule.queries
    checks = math.ceil(32 * math.log(2 * 16 / 0.025) / 0.25)
    assert result.queries == 4 * 2 * result.samples + checks
    assert result.buckets == 4 * 2**10


def test_finds_all_heavy_sets_and_none_below_half_the_threshold():
    heavy = {(0, 5, 9, 13, 20, 33): 0.5, (2,): -0.3, (): 0.25}
    light = {(7, 8): 0.09, (1, 2, 3): 0.05}

    def rule(X):
        return sum(value * X[:, members].prod(axis=1) for members, value in (heavy | light).items())

    result = fourier.goldreich_levin(rule, 35, 0.24, bound=1.2, seed=2)
    assert [members for members, _ in result.terms] == sorted(heavy, key=lambda members: -abs(heavy[members]))
    for members, value in result.terms:
        assert value == pytest.approx(heavy[members], abs=0.24 / 4)


def test_a_junta_inside_many_inputs():
    support = [3, 17, 18, 29, 44]
    table = Stream(5, "table").signs(32)
    exact = {
        tuple(support[j] for j in members): value for members, value in fourier.spectrum(table).largest(32) if value
    }

    def rule(X):
        return table[(X[:, support] < 0) @ (1 << np.arange(5))]

    result = fourier.goldreich_levin(rule, 50, 0.25, seed=1)
    found = dict(result.terms)
    assert {members for members, value in exact.items() if abs(value) >= 0.25} <= set(found)
    assert all(abs(exact[members]) >= 0.125 for members in found)


def test_the_guarantee_holds_over_many_seeds():
    """Confidence 0.5, 40 seeds: at least Binomial(40, 0.5) − 4 deviations succeed (Hoeffding is cautious: all do)."""

    def rule(X):
        return 0.5 * X[:, 0] * X[:, 11] + 0.5 * X[:, 3]

    good = sum(
        {members for members, _ in fourier.goldreich_levin(rule, 12, 0.5, confidence=0.5, seed=seed).terms}
        == {(0, 11), (3,)}
        for seed in range(40)
    )
    assert good >= 20 - 4 * math.sqrt(10)


def test_fewer_samples_may_be_asked_for_and_blocks_do_not_matter(monkeypatch):
    def rule(X):
        return X[:, [2, 6]].prod(axis=1)

    whole = fourier.goldreich_levin(rule, 15, 0.9, samples=300, seed=3)
    assert whole.samples == 300
    monkeypatch.setattr(_goldreich_levin, "BLOCK_VALUES", 15 * 64)
    assert fourier.goldreich_levin(rule, 15, 0.9, samples=300, seed=3) == whole
    assert whole.terms == [((2, 6), 1.0)]


def test_problems_are_queried_through_their_target():
    class Problem:
        inputs = 21

        def target(self, X):
            return X[:, [0, 20]].prod(axis=1)

    assert fourier.goldreich_levin(Problem(), threshold=0.8).terms == [((0, 20), 1.0)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.0}, "threshold must be a finite number in"),
        ({"threshold": 1.5}, "threshold must be a finite number in"),
        ({"confidence": 0.0}, r"confidence must be a finite number in \(0, 1\)"),
        ({"samples": 0}, "samples must be an integer of at least 1"),
        ({"bound": 0.0}, "bound must be a finite number"),
        ({"bound": 0.5, "threshold": 0.4}, r"bound must be at least every \|f\(x\)\|; got 0.5. Remedy: pass bound=1.0"),
    ],
)
def test_bad_requests_for_a_search_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        fourier.goldreich_levin(lambda X: X[:, 0], 5, **options)

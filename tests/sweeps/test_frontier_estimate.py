"""Where half of the runs succeed, from counts: against brute force, against the truth, and open where it is open."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.sweeps import FrontierSearch, estimate_frontier
from fewfire.sweeps.frontiers import FrontierCurve, FrontierPosterior, LineSearch

COLUMNS = np.geomspace(100, 10_000, 17)


def test_the_posterior_is_bayes_rule_over_its_curves():
    """One hypothesis at a time, with the probabilities of the docstring written out."""
    curve = FrontierCurve(100, 1000, 0.5, 0.3)
    posterior = FrontierPosterior(curve)
    posterior.observe([200, 400], [1, 3], [2, 0])
    weights = posterior.weights
    assert weights.sum() == pytest.approx(1)
    ratios = []
    line = np.linspace(-3, 3, 600_001)
    for place in ((3, 2, 1), (20, 5, 3), (11, 7, 8)):
        theta, sigma, (ceiling, side, prior) = (
            curve.locations[place[0]],
            curve.slopes[place[1]],
            curve.shapes[:, place[2]],
        )
        offset = float(np.interp(0.495 / (0.995 - ceiling), ndtr(line), line))
        chances = []
        for value in (200, 400):
            distance = math.log(value) - theta
            width = sigma * side**0.5 if distance < 0 else sigma / side**0.5
            chances.append(0.005 + (0.995 - ceiling) * ndtr(distance / width + offset))
        low, high = chances
        ratios.append(weights[place] / (low * (1 - low) ** 2 * high**3 * prior))
    assert ratios == pytest.approx([ratios[0]] * 3, rel=1e-4)


def test_the_curve_has_its_target_at_its_location():
    for target in (0.1, 0.5, 0.9):
        curve = FrontierCurve(100, 1000, target, 0.3)
        middle = len(curve.locations) // 2
        chances = curve.probabilities([math.exp(curve.locations[middle])])[0][0, middle]
        np.testing.assert_allclose(chances, target, atol=1e-6)
    assert FrontierCurve(100, 1000, 0.9).shapes.shape[1] < FrontierCurve(100, 1000, 0.5).shapes.shape[1]


@pytest.mark.parametrize("rising", [True, False])
def test_steep_and_plain_counts_are_located(rising):
    won = np.where((COLUMNS > 800) == rising, 10, 0)
    found = estimate_frontier(COLUMNS, won, np.full(17, 10), rising=rising)
    left, right = COLUMNS[COLUMNS < 800][-1], COLUMNS[COLUMNS > 800][0]
    assert left * 0.95 < found.low < found.value < found.high < right * 1.05
    assert found.side == "inside" and found.factor == found.high / found.low
    assert str(found).startswith(f"{found.value:,.0f}, 95% interval")


def test_more_runs_make_it_narrower_and_a_lone_lucky_run_does_not_move_it():
    share = ndtr(np.log(COLUMNS / 1000) / 0.3)
    few, many = (estimate_frontier(COLUMNS, np.round(n * share), np.full(17, n)) for n in (10, 100))
    assert 1.5 < math.log(few.factor) / math.log(many.factor) < 5
    lucky = np.round(10 * share)
    lucky[0] = 1
    moved = estimate_frontier(COLUMNS, lucky, np.full(17, 10))
    assert few.low < moved.value < few.high


def test_a_share_that_never_succeeds_does_not_hide_the_frontier():
    share = 0.75 * ndtr(np.log(COLUMNS / 1000) / 0.15 + 0.43)  # one half at 1000, never more than three quarters
    found = estimate_frontier(COLUMNS, np.round(40 * share), np.full(17, 40))
    assert found.low < 1000 < found.high and found.factor < 1.5


def test_frontiers_beyond_the_bracket_are_not_invented():
    none = estimate_frontier(COLUMNS, np.zeros(17), np.full(17, 3))
    assert (none.side, none.value, none.low, none.high) == ("above", math.inf, 10_000.0, math.inf)
    assert str(none) == "not below 10,000: 0 of 3 runs succeed at 10,000" and none.factor == math.inf
    every = estimate_frontier(COLUMNS, np.full(17, 3), np.full(17, 3))
    assert (every.side, every.value, every.low, every.high) == ("below", 0.0, 0.0, 100.0)
    assert str(every) == "not above 100: 3 of 3 runs succeed at 100"
    open_above = estimate_frontier([100, 200], [0, 1], [2, 2])
    assert open_above.side == "inside" and open_above.high == math.inf
    assert str(open_above).endswith("to above the bracket")
    nothing = estimate_frontier([100, 200], [0, 0], [0, 0])
    assert math.isnan(nothing.value) and str(nothing) == "no runs" and nothing.runs == 0


def test_intervals_of_a_grid_contain_the_truth_as_often_as_stated():
    """200 grids of 17 × 6 runs: at 90% between 162 and 195 of them, which fails by chance once in 10⁴."""
    inside = 0
    for trial in range(200):
        luck = Stream(trial, "grid")
        theta, sigma = luck.child("truth").uniform(2)
        truth = math.exp(math.log(300) + theta * math.log(10))
        share = ndtr(np.log(COLUMNS / truth) / (0.1 + 0.3 * sigma))
        won = (luck.child("runs").uniform((6, 17)) < share).sum(axis=0)
        found = estimate_frontier(COLUMNS, won, np.full(17, 6), level=0.9, precision=0.2)
        inside += found.low <= truth <= found.high
    assert 162 <= inside <= 195


def simulate(search, share, seed=0):
    """A search against a known curve of success."""
    line, luck, used = LineSearch(search), Stream(seed, "search").uniform(search.budget), 0
    while batch := line.batch():
        outcomes = [bool(luck[used + i] < share(line.values[place])) for i, (place, _) in enumerate(batch)]
        line.observe(batch, outcomes)
        used += len(batch)
    return line


def test_a_search_ends_where_it_was_asked_to():
    search = FrontierSearch("data.samples", 100, 10_000, precision=0.2)
    line = simulate(search, lambda v: ndtr(np.log(v / 700) / 0.2))
    found = line.estimate
    assert line.settled and found.factor <= 1.2**2 and found.low < 700 < found.high
    assert found.runs == line.runs.sum() < 60  # a grid of as many columns has one run per cell
    assert line.batch() == []


def test_a_search_spends_no_more_than_its_budget():
    search = FrontierSearch("data.samples", 100, 10_000, precision=0.05, budget=30, batch=4)
    line = simulate(search, lambda v: ndtr(np.log(v / 700) / 0.8))
    assert line.runs.sum() == 30 and not line.settled and line.estimate.factor > 1.05**2


def test_an_axis_of_whole_numbers_ends_between_neighbours():
    search = FrontierSearch("network.width", 1, 64, precision=0.05)
    line = simulate(search, lambda v: float(v > 3))
    assert line.settled and 3 <= line.estimate.low < line.estimate.high <= 4 and line.runs.sum() < 60


def test_falling_axes_are_searched_too():
    search = FrontierSearch("problem.n", 10, 300, precision=0.2, rising=False)
    line = simulate(search, lambda v: ndtr(-np.log(v / 60) / 0.2))
    assert line.settled and line.estimate.low < 60 < line.estimate.high
    over = simulate(search, lambda v: 1.0).estimate
    assert over.side == "above" and str(over).startswith("not below 300: ")


def test_other_shares_than_one_half():
    for target, z in ((0.2, -0.84), (0.8, 0.84)):
        search = FrontierSearch("data.samples", 100, 10_000, target=target, precision=0.25, level=0.99, budget=400)
        found = simulate(search, lambda v: ndtr(np.log(v / 700) / 0.3)).estimate
        assert found.low < 700 * math.exp(0.3 * z) < found.high


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (
            ([1, 2], [1], [1, 1]),
            r"values, successes and runs must be vectors of one length; got shapes \(2,\), \(1,\), \(2,\)",
        ),
        (([0, 2], [1, 1], [1, 1]), r"values must be positive; got 0\.0\. Remedy: the curve is one of their logarithms"),
        (([1, 2], [2, 1], [1, 1]), r"successes must be between 0 and the number of runs"),
    ],
)
def test_bad_counts_are_refused(arguments, match):
    with pytest.raises(InvalidArgument, match=match):
        estimate_frontier(*arguments)

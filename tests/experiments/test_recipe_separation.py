"""The separation of parities: network against fixed features on D_A."""

import pytest

from fewfire.experiments.recipes.parities import separation
from fewfire.experiments.recipes.parities.separation import Measurement, Setting, gaps, run
from fewfire.problems import CorrelatedParity

METHODS = [
    "network", "halfspace", "linear", "random features", "starting features", "conjugate kernel", "tangent kernel",
]  # fmt: skip
SMALL = Setting(31, 3, 100, 800, 3000)


def truth(setting, X, y, seed):
    return CorrelatedParity(setting.n, setting.k).target


def test_a_small_network_beats_every_fixed_feature_rival():
    rows = run(settings=[SMALL])
    assert [row.method for row in rows] == METHODS
    scores = {row.method: row.accuracy for row in rows}
    assert scores["network"] >= 0.99
    assert scores["halfspace"] == 0.875
    # 4000 tests: a standard error of 0.005 at 0.875, and three chances each.
    assert max(scores[method] for method in METHODS[2:]) <= 0.875 + 0.02
    assert gaps(rows)[SMALL] >= 0.1


def test_the_network_learner_is_a_hook_and_progress_is_told():
    told = []
    rows = run(settings=[SMALL], network=truth, progress=told.append)
    assert rows[0] == Measurement(SMALL, "network", 1.0, rows[0].alpha)
    assert [row.method for row in told] == METHODS
    assert all(row.alpha in separation.ALPHAS for row in rows[2:])


def test_gaps_compare_with_the_best_rival():
    rows = [Measurement(SMALL, name, score) for name, score in
            (("network", 0.9), ("halfspace", 0.95), ("linear", 0.6), ("tangent kernel", 0.7))]  # fmt: skip
    assert gaps(rows) == {SMALL: pytest.approx(0.2)}


def test_unknown_scales_are_refused():
    with pytest.raises(ValueError, match="scale must be one of 'quick', 'full'; got 'huge'"):
        run("huge")


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["quick", "full"])
def test_the_network_is_ten_points_ahead_as_k_grows(scale):
    rows = run(scale)
    assert min(row.accuracy for row in rows if row.method == "network") >= 0.95
    assert min(gaps(rows).values()) >= 0.1

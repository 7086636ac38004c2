"""Networks that are sparse on a sample: in the class there, and above Conjecture 20 as it is printed."""

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.stats import norm

from fewfire._random import Stream
from fewfire.papers import recipes
from fewfire.papers import sparse_activations as theory
from fewfire.papers.sparse_activations.rademacher_table import sample_member, sample_row
from fewfire.papers.sparse_activations.recipes import rademacher


def in_the_class(net, X, k, W, B):
    return (
        net.norms().W <= W * (1 + 1e-9)
        and net.norms().B <= B * (1 + 1e-9)
        and (net.preactivations(X) > 0).sum(1).max() <= k
    )


def orthogonal(p):
    """2^p orthogonal points of the cube of 2^p dimensions."""
    return hadamard(2**p, dtype=np.int8)


@pytest.mark.parametrize("s", [1, 2, 3, 8, 16])
@pytest.mark.parametrize("B", [0.0, 0.4, 1.0])
def test_members_are_one_sparse_on_the_sample_and_keep_the_scales(s, B):
    for X in (orthogonal(5), Stream(0, "x").sign_rows(20, 80), np.tile(orthogonal(3), (4, 1))):
        zeta = Stream(1, "zeta").signs(len(X))
        net = sample_member(X, zeta, s, 1.5, B)
        assert net.width == s
        assert in_the_class(net, X, 1, 1.5, B)
        assert zeta @ net(X) > 0


def test_without_a_bias_orthogonal_points_attain_the_conjecture():
    # Signs as many as of the other kind, sets of equal size: W R √(s/m) exactly.
    X = orthogonal(6)
    zeta = np.tile([1, -1], 32).astype(np.int8)
    for s in (2, 4, 16, 64):
        value = zeta @ sample_member(X, zeta, s, 1.0, 0.0)(X) / 64
        assert value == pytest.approx(theory.rademacher_conjectured(64, s, 1, 1.0, 0.0, 64), rel=1e-6)


def test_conjecture_20_fails_as_printed_and_holds_with_a_constant():
    # Two neurons on m orthogonal points, whatever the signs: 2WR/√m against (WR + B) √2/√m with B = WR/√m.
    for p in (4, 6, 8):
        row = sample_row(orthogonal(p), 2, 1, 1.0, 1.0, draws=4)
        assert row["estimate"] == pytest.approx(2.0, rel=1e-6) and row["standard_error"] < 1e-6
        assert row["conjecture_20"] == pytest.approx((1 + 2.0 ** (-p / 2)) * 2**0.5)
        assert row["conjecture_20"] < row["estimate"] < 2**0.5 * row["conjecture_20"]
        assert row["estimate"] < row["explicit"]


def test_copies_serve_larger_k():
    X = orthogonal(5)
    one, many = (sample_row(X, s, k, 1.0, 1.0, draws=3) for s, k in ((4, 1), (12, 3)))
    assert many["estimate"] == pytest.approx(3 * one["estimate"])
    assert many["conjecture_20"] == pytest.approx(3 * one["conjecture_20"])


def test_dependent_points_cost_neurons_and_not_sparsity():
    X = Stream(2, "x").sign_rows(60, 10)
    zeta = Stream(3, "zeta").signs(60)
    assert in_the_class(sample_member(X, zeta, 6, 1.0, 1.0), X, 1, 1.0, 1.0)


def row(points="cube", estimate=0.5, error=0.0, s=1, k=1):
    bound = (s * k) ** 0.5
    found = {"estimate": estimate * bound, "standard_error": error * bound}
    return {"points": points, "s": s, "k": k, **found, "explicit": 3 * bound, "conjecture_20": bound}


def verdicts(on_cube, on_sample):
    return [entry.passed for entry in rademacher.judge(on_cube, on_sample)]


def test_every_claim_of_the_recipe_can_fail():
    line = [row("orthogonal", 1.0), row("orthogonal", 1.3, s=2), row("orthogonal", 0.9, s=64)]
    assert verdicts([row()], line) == [True] * 5
    assert verdicts([row()], [*line, row("random", 3.1)]) == [False, True, True, True, False]
    # A search that falls behind as s grows proves little: 1.8-fold where the bound grows 8-fold.
    assert verdicts([row()], [row("orthogonal", 1.0), row("orthogonal", 0.22, s=64), row("random", 1.3)])[1] is False
    assert verdicts([row()], [row("orthogonal", 1.0), row("orthogonal", 0.9, s=64)])[2] is False
    assert verdicts([row(estimate=1.1)], line) == [True, True, True, False, True]
    # Above the constant, but not by three standard errors.
    assert verdicts([row(estimate=1.1, error=0.05)], line) == [True] * 5


def test_the_powers_of_the_recipe():
    line = [row("orthogonal", 1.0, 0.02), row("orthogonal", 0.9, 0.02, s=64), row("random", 1.33, 0.01)]
    judgements = rademacher.judge([row(error=0.1), row(error=0.05)], line)
    explicit, growth, fails, cube, root = (entry.power.probability for entry in judgements)
    assert explicit == pytest.approx(norm.cdf(0.33 / 0.01 - 3))
    assert growth == pytest.approx(norm.cdf(0.3 / (0.9 * np.hypot(0.02, 0.02 / 0.9)) - 3))
    assert fails == pytest.approx(norm.cdf(0.1 / 0.01 - 3))
    assert cube == pytest.approx(norm.cdf((1 / 3) / 0.1 - 3))  # of the estimate that is known least well
    assert root == pytest.approx(norm.cdf(2**0.5 / 3 / 0.1 - 3))
    assert rademacher.judge([row()], [row("orthogonal"), row("orthogonal", s=2)])[0].power.probability == 0.0
    effect = judgements[2].effect
    assert (effect.low, effect.high) == pytest.approx((1.33 - 0.0196, 1.33 + 0.0196), abs=1e-4)


def test_the_recipe_s_figure_has_a_panel_of_shares():
    small = rademacher.RademacherSettings(64, 4, 3, 1, 5, 4, 8, (16, 64))
    found = rademacher.RECIPE.run(settings=small)
    assert "on the cube the largest estimate is" in found.measured[0]
    assert [entry["n"] for entry in found.data["over_n"]] == [1, 2, 3, 4]
    *_, shares = recipes.plot(found).axes
    assert shares.get_ylabel() == "estimate / Conjecture 20"

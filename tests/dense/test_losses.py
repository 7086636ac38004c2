"""The table of losses: values, slopes, far scores, precisions, and how they are related."""

import numpy as np
import pytest

from fewfire._dense.losses import LOSSES, TABLE_LOSSES

rng = np.random.default_rng(0)
SCORES = rng.normal(size=(40, 3)) * 3
SIGNS = rng.choice([-1.0, 1.0], SCORES.shape)
SHARES = rng.dirichlet(np.ones(3), 40)
LABELS = {"hinge": SIGNS, "logistic": SIGNS, "log_odds": SHARES, "cross_entropy": SHARES}
CLOSED = {
    "hinge": lambda f, y: np.maximum(0, 1 - y * f),
    "logistic": lambda f, y: np.log(1 + np.exp(-y * f)),
    "square": lambda f, y: 0.5 * (f - y) * (f - y),
    "absolute": lambda f, y: np.sqrt((f - y) ** 2),
    "huber": lambda f, y: np.where(abs(f - y) > 1, abs(f - y) - 0.5, 0.5 * (f - y) ** 2),
    "log_odds": lambda f, p: -p * np.log(1 / (1 + np.exp(-f))) - (1 - p) * np.log(1 / (1 + np.exp(f))),
    "cross_entropy": lambda f, p: -(p * np.log(np.exp(f) / np.exp(f).sum(axis=1, keepdims=True))).sum(axis=1),
}


def labels_of(name):
    return LABELS.get(name, SIGNS + 0.3)


@pytest.mark.parametrize("name", LOSSES)
def test_values_are_the_formula_and_slopes_its_derivative(name):
    loss, y = LOSSES[name], labels_of(name)
    value, slope = loss.both(SCORES, y)
    np.testing.assert_allclose(value, CLOSED[name](SCORES, y), rtol=1e-12)
    np.testing.assert_array_equal(value, loss.value(SCORES, y))
    np.testing.assert_array_equal(slope, loss.slope(SCORES, y))
    step = 1e-6
    for column in range(3):
        up, down = SCORES.copy(), SCORES.copy()
        up[:, column] += step
        down[:, column] -= step
        numeric = (loss.value(up, y) - loss.value(down, y)) / (2 * step)
        found = numeric if numeric.ndim == 1 else numeric[:, column]
        np.testing.assert_allclose(slope[:, column], found, atol=1e-7)


@pytest.mark.parametrize("name", LOSSES)
def test_float32_stays_float32_and_near(name):
    loss, y = LOSSES[name], labels_of(name)
    for single, double in zip(loss.both(np.float32(SCORES), np.float32(y)), loss.both(SCORES, y), strict=True):
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, double, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_far_scores_do_not_overflow(name):
    y = np.array([[1.0, 0.0, 0.0]] if name in ("log_odds", "cross_entropy") else [[1.0, -1.0, 1.0]])
    value, slope = LOSSES[name].both(np.array([[-1e4, 1e4, 1e3]]), y)
    assert np.isfinite(value).all() and np.isfinite(slope).all()
    if name != "square":
        assert np.abs(slope).max() == 1.0


def test_kinks_and_ties():
    assert LOSSES["hinge"].slope(np.array([1.0]), np.array([1.0])) == 0
    assert LOSSES["absolute"].slope(np.array([2.0]), np.array([2.0])) == 0
    assert [name for name, loss in LOSSES.items() if loss.signs] == ["hinge", "logistic"]


def test_losses_of_classes_are_one_another():
    f, signs = SCORES[:, :1], SIGNS[:, :1]
    np.testing.assert_allclose(LOSSES["log_odds"].value(f, (1 + signs) / 2), LOSSES["logistic"].value(f, signs))
    two = np.hstack([np.zeros_like(f), f])
    p = SHARES[:, :1]
    np.testing.assert_allclose(
        LOSSES["cross_entropy"].value(two, np.hstack([1 - p, p])), LOSSES["log_odds"].value(f, p)[:, 0]
    )
    np.testing.assert_allclose(
        LOSSES["cross_entropy"].value(SCORES + 700, SHARES), LOSSES["cross_entropy"].value(SCORES, SHARES)
    )


@pytest.mark.parametrize(
    ("name", "of"), [("logistic", "log_odds"), ("cross_entropy", "cross_entropy"), ("squared", "square")]
)
def test_losses_of_tables_are_means_over_outputs(name, of):
    scores = SCORES[:, :1] if name == "logistic" else SCORES
    target = SHARES[:, : scores.shape[1]]
    value, slope = TABLE_LOSSES[name](scores, target)
    whole = LOSSES[of].both(scores, target)
    if name == "cross_entropy":
        np.testing.assert_array_equal(value, whole[0])
        np.testing.assert_array_equal(slope, whole[1])
    else:
        np.testing.assert_allclose(value, whole[0].mean(axis=1))
        np.testing.assert_allclose(slope, whole[1] / scores.shape[1])

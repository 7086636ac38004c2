"""Logistic fits of the low-degree classifier: what they are, when they are taken, and what the model reports then."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from fewfire import fourier
from fewfire._random import Stream
from fewfire.learners import LowDegreeClassifier, LowDegreeRegressor
from fewfire.learners._low_degree._logistic import MOST_MONOMIALS, PENALTIES, LogisticPath, logistic_degrees
from fewfire.learners._low_degree._polynomial import monomial_table
from fewfire.learners._low_degree._sample import SignSample, draw_folds, splits
from fewfire.learners._low_degree._search import better_odds


def rows(samples, n, seed=0):
    return Stream(seed, "data").sign_rows(samples, n)


def halfspace(X, seed=3):
    return np.where(X @ Stream(seed, "normal").normal(X.shape[1]) > 0.0, 1, -1)


def test_half_spaces_are_learned_as_well_as_by_logistic_regression():
    X, new = rows(2500, 25), rows(4000, 25, 1)
    y, truth = halfspace(X), halfspace(new)
    peer = LogisticRegression(C=100.0, max_iter=1000).fit(X, y)
    model = LowDegreeClassifier(max_degree=3, random_state=0).fit(X, y)
    assert model.score(new, truth) > peer.score(new, truth) - 0.01
    assert model.score(new, truth) > 0.98


@pytest.mark.parametrize(
    ("count", "n", "noise", "seed"),
    [*((2500, 25, 0.2, seed) for seed in (1, 2, 3)), *((600, 15, 0.2, seed) for seed in (1, 2, 3)), (500, 15, 0.3, 5)],
)
def test_half_spaces_with_wrong_labels(count, n, noise, seed):
    """Mixtures of squares, their weights fitted to the same held-out rows, seemed better and were 2 to 5 points worse."""
    X, new = rows(count, n, seed), rows(4000, n, seed + 10)
    w = Stream(seed, "normal").normal(n)
    y, truth = np.where(X @ w > 0.0, 1, -1), np.where(new @ w > 0.0, 1, -1)
    y = np.where(Stream(seed, "noise").uniform(count) < noise, -y, y)
    peer = LogisticRegression(max_iter=1000).fit(X, y)
    model = LowDegreeClassifier(max_degree=3, random_state=0).fit(X, y)
    assert model.score(new, truth) > peer.score(new, truth) - 0.01


def test_majorities_need_few_rows():
    X, new = rows(400, 21), rows(4000, 21, 1)
    model = LowDegreeClassifier(random_state=0).fit(X, np.sign(X.sum(axis=1, dtype=int)))
    assert model.score(new, np.sign(new.sum(axis=1, dtype=int))) > 0.99


@pytest.fixture(scope="module")
def fitted():
    X = rows(600, 12)
    labels = np.where(halfspace(X) > 0, "yes", "no")
    return LowDegreeClassifier(random_state=0).fit(X, labels), X, labels


def test_what_the_model_reports_of_a_logistic_fit(fitted):
    """One unit whichever fit is taken: values of least squared error to ±1, log odds by `slope_`."""
    model, X, labels = fitted
    values = model.decision_function(X)
    assert (model.solver_, model.degree_, model.alpha_) == ("logistic", 1, None)
    assert all(
        words.startswith("logistic regression over all monomials of degree at most 1") for _, words in model.fits_
    )
    assert np.allclose(values, fourier.evaluate(X, model.coefficients_, 1))
    assert np.array_equal(model.predict(X) == "yes", values > 0.0)
    assert np.allclose(model.predict_proba(X)[:, 1], expit(model.slope_ * values))
    signs = np.where(labels == "yes", 1.0, -1.0)
    assert float(signs @ values / (values @ values)) == pytest.approx(
        1.0, abs=0.15
    )  # fits without a fold set the scale
    found = np.array([dict(model.coef_).get((column,), 0.0) for column in range(12)])
    assert np.corrcoef(found, Stream(3, "normal").normal(12))[0, 1] > 0.99
    assert model.coef_[0] in model.significant_


def test_the_terms_of_a_logistic_fit_that_noise_explains_are_not_significant():
    """A half-space of 8 of 20 columns: the other 12 have no part; Bonferroni lets one in with probability 0.05."""
    X = rows(1000, 20)
    model = LowDegreeClassifier(degree=1, random_state=0).fit(X, halfspace(X[:, :8]))
    assert model.solver_ == "logistic"
    named = {columns for columns, _ in model.significant_}
    assert len(named) >= 5
    assert named <= {(column,) for column in range(8)}


def test_fits_that_are_as_good_by_squares_are_kept():
    X = rows(400, 10)
    single = LowDegreeClassifier(max_degree=3, random_state=0).fit(X, X[:, 3])
    assert single.solver_ != "logistic"
    assert single.coef_[0][0] == (3,)
    parity = LowDegreeClassifier(max_degree=3, random_state=0).fit(X, X[:, 1] * X[:, 2] * X[:, 7])
    assert parity.solver_ != "logistic"
    assert LowDegreeRegressor(max_degree=1, random_state=0).fit(X, halfspace(X)).solver_ != "logistic"


def test_odds_are_taken_where_fewer_rows_are_wrong_or_the_log_loss_is_lower():
    labels, places = np.where(np.arange(200) % 2 == 0, 1.0, -1.0), np.arange(200) % 20
    sample = SignSample(np.ones((200, 1), dtype=np.int8), labels, np.ones(200))
    mixed = labels * np.where(places < 4, -0.5, 0.5)  # a fifth of the rows is wrong
    good = labels * np.where(places < 2, -0.5, 1.5)
    bad = labels * np.where(places < 9, -0.5, 0.5)
    degrees = np.array([1, 1, 2])
    assert better_odds(np.stack([mixed, bad, -good]), degrees, sample, mixed, 1) is None
    weights, predicted = better_odds(np.stack([good, bad, mixed]), degrees, sample, mixed, 1)
    assert weights[0] > 0.0 and weights[1] == weights[2] == 0.0
    assert np.allclose(predicted, weights[0] * good)
    assert float(labels @ predicted) == pytest.approx(float(predicted @ predicted))
    # Surer of more rows, but a tenth of them wrong and none of the mixture's: not taken, whatever the log loss.
    unsure = labels * np.where(places < 10, 0.01, 1.0)
    assert better_odds(good[None], np.array([1]), sample, unsure, 1) is None
    # Hardly worse, and the mixture's weights were fitted to these rows: they count as a loss, one alone does not.
    close, worse = (labels * np.where(places < 2, wrong, 1.5) for wrong in (-0.55, -0.7))
    assert better_odds(close[None], np.array([1]), sample, good, 1) is None
    assert better_odds(close[None], np.array([1]), sample, good, 2) is not None
    assert better_odds(worse[None], np.array([1]), sample, good, 99) is None  # however many there are
    # As far ahead on ten times fewer rows may be luck, and so may more terms.
    few = sample.take(np.arange(200) < 20)
    assert better_odds(good[None], np.array([1]), sample, mixed, 1) is not None
    assert better_odds(good[None, :20], np.array([1]), few, mixed[:20], 1) is None
    half = sample.take(np.arange(200) < 60)
    assert better_odds(good[None, :60], np.array([1]), half, mixed[:60], 1) is not None
    assert better_odds(good[None, :60], np.array([3]), half, mixed[:60], 1) is None
    # Better, but hardly anything is known: the mixture of squares is the safer choice.
    slight, slighter = (labels * np.where(places < wrong, -0.2, 0.2) for wrong in (9, 10))
    assert better_odds(slight[None], np.array([1]), sample, slighter, 1) is None


@pytest.mark.parametrize(("n", "degree", "samples"), [(6, 1, 90), (8, 2, 120), (10, 3, 60)])
def test_fits_are_those_of_scikit_learn(n, degree, samples):
    """In monomials (the first two) and in rows. The penalty stands against rows of mean weight 1."""
    signs = rows(samples, n)
    signs[1] = signs[0]
    weights = 0.5 + Stream(1, "weights").uniform(samples)
    labels = np.where(signs[:, 0] + signs[:, 1] * signs[:, 2] + Stream(2, "noise").normal(samples) > 0.0, 1.0, -1.0)
    sample = SignSample(signs, labels, weights)
    folds = draw_folds(sample, 0.2, np.random.RandomState(0), stratify=True)
    path = LogisticPath(sample, degree, 1)
    held_out = path.held_out(folds)
    assert (path.factor is not None) == (degree == 3)
    table = monomial_table(signs, fourier.monomials(n, degree)[1:])

    def peer(chosen, penalty):
        share = weights[chosen] / weights[chosen].mean()
        model = LogisticRegression(C=1.0 / penalty, tol=1e-8, max_iter=10_000)
        return model.fit(table[chosen], labels[chosen], sample_weight=share)

    for index, penalty in enumerate(PENALTIES[:4]):
        whole = peer(np.ones(samples, dtype=bool), penalty)
        polynomial = path.polynomial(index)
        assert np.allclose(2.0 * polynomial.full[1:], whole.coef_[0], atol=0.01)
        assert np.allclose(2.0 * polynomial.at(signs, 1), whole.decision_function(table), atol=0.05)
        for train, test in list(splits(folds))[:2]:
            expected = peer(train, penalty).decision_function(table[test])
            assert np.allclose(2.0 * held_out[index, test], expected, atol=0.05)


def test_equal_rows_do_not_stop_the_fit_in_rows():
    signs = rows(5, 30)[np.arange(500) % 5]
    labels = Stream(1, "labels").signs(500).astype(float)
    sample = SignSample(signs, labels, np.ones(500))
    folds = draw_folds(sample, 0.2, np.random.RandomState(0), stratify=True)
    path = LogisticPath(sample, 3, 1)
    assert path.factor is not None
    assert np.isfinite(path.held_out(folds)).all()
    last = path.polynomial(len(PENALTIES) - 1).at(signs, 1)
    means = np.array([labels[np.arange(500) % 5 == row].mean() for row in range(5)])
    assert np.allclose(np.tanh(last[:5]), means, atol=0.02)  # one free value for each of the five


def test_weights_have_no_unit(fitted):
    _, X, labels = fitted
    weights = 0.5 + Stream(5, "weights").uniform(len(X))
    one, thousand = (
        LowDegreeClassifier(max_degree=1, random_state=0).fit(X, labels, sample_weight=factor * weights)
        for factor in (1.0, 1024.0)
    )
    assert one.solver_ == thousand.solver_ == "logistic"
    assert np.allclose(one.coefficients_, thousand.coefficients_, atol=1e-9)


def test_degrees_end_where_fits_take_long():
    assert logistic_degrees(20, 1000, 6) == [1, 2, 3]
    assert logistic_degrees(20, 1000, 2) == [1, 2]
    assert logistic_degrees(2, 1000, 6) == [1, 2]
    assert logistic_degrees(30, 100_000, 6) == [1, 2]  # 4526 monomials times 10⁵ rows
    assert fourier.monomial_count(500, 2) > MOST_MONOMIALS
    assert logistic_degrees(500, 100, 6) == [1]
    assert logistic_degrees(100, 10**7, 6) == [1]

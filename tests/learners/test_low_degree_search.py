"""The defaults: what they learn from how little, and the parts they are made of."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import balanced_accuracy_score, log_loss

from fewfire import fourier
from fewfire._random import Stream
from fewfire.learners import LowDegreeClassifier, LowDegreeRegressor
from fewfire.learners._low_degree._forest import SHARES, TREES, forest_fits
from fewfire.learners._low_degree._polynomial import Polynomial, add, full_polynomial, monomial_table, sparse_polynomial
from fewfire.learners._low_degree._ridge import RATIOS, monomial_kernel, ridge_fits
from fewfire.learners._low_degree._sample import SMALL, SignSample, draw_folds, splits
from fewfire.learners._low_degree._search import mixture_weights
from fewfire.learners._low_degree._sparse import nested_columns, sparse_fits
from fewfire.problems import Indexing, Junta, Parity


def sample(samples, n, seed=0):
    return Stream(seed, "data").sign_rows(samples, n)


def weighted(samples, n, seed=0):
    """Signs, normal labels, and weights between 1/2 and 2."""
    weights = 0.5 + 1.5 * Stream(seed, "weights").uniform(samples)
    return SignSample(sample(samples, n, seed), Stream(seed, "labels").normal(samples) + 1.0, weights)


@pytest.mark.parametrize("seed", range(3))
def test_300_examples_suffice_for_a_noisy_parity_of_3_of_30(seed):
    X, y = Parity(30, 3, noise=0.1).sample(300, seed=seed)
    new, truth = Parity(30, 3).sample(2000, seed=1000 + seed)
    model = LowDegreeClassifier(random_state=0).fit(X, y)
    assert model.score(new, truth) == 1.0
    assert model.degree_ >= 3 and model.coef_[0][0] == (0, 1, 2)
    assert [members for members, _ in model.significant_] == [(0, 1, 2)]


def test_3000_examples_suffice_for_two_of_200_columns():
    X, y = Parity(200, 2, noise=0.1).sample(3000, seed=0)
    new, truth = Parity(200, 2).sample(1000, seed=1)
    model = LowDegreeClassifier(random_state=0).fit(X, y)
    assert model.score(new, truth) == 1.0
    assert [members for members, _ in model.significant_] == [(0, 1)]


def test_no_dip_where_there_are_as_many_monomials_as_examples():
    """821 monomials of degree 2 of 40 columns: unpenalised regression is at its worst with as many examples."""
    X, new = sample(821, 40), sample(2000, 40, seed=1)
    target = lambda table: np.where(table[:, :9].sum(axis=1) > 0, 1, -1)  # noqa: E731
    dense = LowDegreeClassifier(2, method="regression", random_state=0).fit(X, target(X))
    fixed = LowDegreeClassifier(2, method="regression", alpha=1.0).fit(X, target(X))
    assert dense.score(new, target(new)) > fixed.score(new, target(new)) + 0.1
    assert dense.alpha_ > 100
    assert LowDegreeClassifier(random_state=0).fit(X, target(X)).score(new, target(new)) > 0.95


def test_a_junta_of_degree_5_is_learned_on_its_columns():
    problem = Junta(14, range(5), Stream(2, "table").signs(32))
    X, y = problem.sample(400, seed=0)
    new, truth = problem.sample(2000, seed=1)
    assert LowDegreeClassifier(random_state=0).fit(X, y).score(new, truth) > 0.99


def test_indexing_and_the_sparse_method():
    problem = Indexing(2)
    X, y = problem.sample(200, seed=0)
    model = LowDegreeClassifier(method="sparse", random_state=0).fit(X, y)
    new, truth = problem.sample(500, seed=1)
    assert model.score(new, truth) == 1.0
    assert model.solver_ in ("lasso", "refit", "subcube") and len(model.fits_) == 1
    assert model.degree_scores_[3] == 0.0


def test_a_high_degree_on_many_columns_keeps_few_terms():
    """Of 40 columns 760,000 monomials of degree 5 and 91,390 of degree 4 alone: no table of them is kept."""
    X, y = Parity(40, 3).sample(200, seed=0)
    model = LowDegreeClassifier(random_state=0).fit(X, y)
    assert len(model.coef_) < 1000
    assert len(model.coefficients_) == fourier.monomial_count(40, model.degree_)
    assert np.allclose(fourier.evaluate(X, model.coefficients_, model.degree_), model.decision_function(X))


def test_balanced_classes_find_the_rare_one():
    """6% positives: without weights hardly any is predicted from few examples; with them nearly all are."""
    problem = lambda table: (table[:, :4] < 0).all(axis=1)  # noqa: E731
    X, new = sample(600, 20), sample(4000, 20, seed=1)
    y, truth = problem(X), problem(new)
    model = LowDegreeClassifier(class_weight="balanced", random_state=0).fit(X, y)
    assert balanced_accuracy_score(truth, model.predict(new)) > 0.98
    same = LowDegreeClassifier(class_weight={True: 1 / y.mean(), False: 1 / (1 - y.mean())}, random_state=0).fit(X, y)
    assert np.array_equal(same.predict(new), model.predict(new))


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2])
def test_probabilities_are_calibrated(noise):
    """Where one label in 1/noise is flipped, the best log loss is the entropy of that."""
    X, y = Parity(12, 2, noise=noise).sample(1000, seed=0)
    new, labels = Parity(12, 2, noise=noise).sample(4000, seed=1)
    model = LowDegreeClassifier(random_state=0).fit(X, y)
    probabilities = model.predict_proba(new)
    assert np.allclose(probabilities.sum(axis=1), 1.0)
    assert np.array_equal(probabilities[:, 1] > 0.5, model.predict(new) == 1)
    entropy = -sum(p * np.log(p) for p in (noise, 1 - noise) if p)
    assert log_loss(labels, probabilities) < entropy + 0.02


@pytest.mark.parametrize("estimator", [LowDegreeRegressor, LowDegreeClassifier])
@pytest.mark.parametrize("settings", [{"method": "regression", "alpha": 1.0, "tol": 1e-12}, {"method": "estimation"}])
def test_weights_count_as_repetition(estimator, settings):
    X, y = sample(80, 5), Stream(1, "labels").signs(80)
    weights = np.arange(80) % 4
    one = estimator(2, **settings, random_state=0).fit(X, y, sample_weight=weights)
    two = estimator(2, **settings, random_state=0).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert np.allclose(one.coefficients_, two.coefficients_, atol=1e-9)


def test_weights_lead_the_search():
    """Half of the rows follow one column and half another; weights choose which half counts."""
    X = sample(600, 10)
    first = np.arange(600) % 2 == 0
    y = np.where(first, X[:, 1] * X[:, 2], X[:, 7])
    for weights, column in ((first, (1, 2)), (~first, (7,)), (np.where(first, 1e-3, 1.0), (7,))):
        model = LowDegreeRegressor(random_state=0).fit(X, y, sample_weight=weights.astype(float))
        assert model.coef_[0][0] == column and model.coef_[0][1] > 0.95


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_array", "coo_array"])
def test_sparse_tables_give_the_same_model(kind):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    X = (sample(300, 40) < 0).astype(np.int64)
    y = (X[:, 3] ^ X[:, 8]).astype(float)
    table = getattr(scipy_sparse, kind)(X)
    dense = LowDegreeRegressor(2, random_state=0).fit(X, y)
    model = LowDegreeRegressor(2, random_state=0).fit(table, y)
    assert model.coef_ == dense.coef_
    assert np.array_equal(model.predict(table), dense.predict(X))


@pytest.mark.parametrize(
    ("samples", "n", "settings"),
    [(200, 12, {"max_degree": 2}), (3000, 25, {"degree": 2, "method": "regression", "alpha": 1.0})],
)
@pytest.mark.parametrize("estimator", [LowDegreeRegressor, LowDegreeClassifier])
def test_the_same_bits_on_any_number_of_threads(estimator, samples, n, settings):
    """The solver is chosen by its cost on one core, and no sum is split by thread."""
    X = sample(samples, n)
    y = np.sign(X[:, 0] * X[:, 1] + X[:, 2] + Stream(3, "labels").normal(samples))
    one, *others = (estimator(**settings, random_state=0, n_jobs=jobs).fit(X, y) for jobs in (1, 2, 5))
    for other in others:
        assert np.array_equal(one.coefficients_, other.coefficients_)
        assert one.degree_scores_ == other.degree_scores_ and one.solver_ == other.solver_
        values = "predict" if estimator is LowDegreeRegressor else "predict_proba"
        assert np.array_equal(getattr(one, values)(X), getattr(other, values)(X))


@pytest.mark.parametrize(("n", "degree", "samples"), [(5, 2, 60), (8, 3, 40), (6, 6, 80), (4, 1, 30)])
def test_held_out_predictions_are_those_of_a_fit_without_the_fold(n, degree, samples):
    rows = weighted(samples, n)
    folds = draw_folds(rows, 0.2, np.random.RandomState(0), stratify=False)
    fits = ridge_fits(rows, degree, folds, 1)
    table = monomial_table(rows.signs, fourier.monomials(n, degree)[1:])
    assert len(fits) == len(RATIOS)
    for fit in fits:
        for train, test in splits(folds):
            peer = Ridge(alpha=fit.alpha, solver="svd").fit(table[train], rows.labels[train], rows.weights[train])
            assert np.allclose(fit.held_out[test], peer.predict(table[test]), atol=1e-6)
    peer = Ridge(alpha=fits[3].alpha, solver="svd").fit(table, rows.labels, rows.weights)
    fitted = fits[3].polynomial()
    assert np.allclose(fitted.full, np.append(peer.intercept_, peer.coef_), atol=1e-8)


def test_an_unpenalised_fit_is_validated_by_fits_without_the_fold():
    """Degree 3 of 8 columns has 93 monomials for 40 rows: a fit to all rows leaves no residual to measure."""
    X, y = sample(40, 8), Stream(3, "labels").normal(40)
    model = LowDegreeRegressor(method="regression", alpha=0.0, max_degree=3, random_state=0).fit(X, y)
    assert model.degree_ == 0 and model.degree_scores_[3] > 0.5 * y.var()


@pytest.mark.parametrize("n", [3, 60])
def test_large_samples_are_held_out_once(n):
    """3 columns take the Gram matrix, 60 of degree 2 (1830 monomials) conjugate gradients."""
    rows = weighted(SMALL + 500, n)
    folds = draw_folds(rows, 0.2, np.random.RandomState(0), stratify=False)
    assert (folds == 0).sum() == 500 and (folds == -1).sum() == 2000
    fits = ridge_fits(rows, 2, folds, 1)
    assert all(np.isnan(fit.held_out[folds < 0]).all() for fit in fits)
    train, test = rows.take(folds < 0), rows.signs[folds == 0]
    values = fourier.least_squares(train.signs, train.labels, 2, alpha=fits[-1].alpha, weights=train.weights).values
    assert np.allclose(fits[-1].held_out[folds == 0], fourier.evaluate(test, values, 2), atol=1e-2)


@pytest.mark.parametrize(("n", "degree"), [(1, 1), (5, 2), (7, 4), (6, 6)])
def test_the_kernel_is_the_product_of_monomials(n, degree):
    signs = sample(30, n)
    table = monomial_table(signs, fourier.monomials(n, degree)[1:])
    assert np.array_equal(monomial_kernel(signs, degree), table @ table.T)


def test_classes_are_spread_over_folds():
    rows = SignSample(sample(500, 2), np.where(np.arange(500) < 40, 1.0, -1.0), np.ones(500))
    folds = draw_folds(rows, 0.2, np.random.RandomState(0), stratify=True)
    assert [int((folds[:40] == fold).sum()) for fold in range(5)] == [8] * 5


def test_sums_of_polynomials():
    signs = sample(50, 6)
    table = full_polynomial(6, 1, np.arange(7.0))
    terms = sparse_polynomial(6, 2.0, np.array([[0, 3, -1], [1, 2, 5], [4, -1, -1]]), np.array([1.0, -2.0, 0.5]))
    total = add([table, terms, terms], [1.0, 3.0, -1.0])
    assert (total.full_degree, total.degree, len(total.values)) == (1, 3, 2)
    expected = table.at(signs, 1) + 2.0 * terms.at(signs, 1)
    assert np.allclose(total.at(signs, 1), expected)
    assert np.allclose(fourier.evaluate(signs, total.dense(4), 4), expected)
    assert isinstance(total, Polynomial) and total.all_sets.shape == (9, 3)


def test_a_forest_is_its_polynomial():
    rows = weighted(150, 7)
    forest = forest_fits(rows, 4, seed=3)[-1]
    polynomial = forest.polynomial()
    assert polynomial.degree <= 4
    new = sample(60, 7, seed=9)
    peer = RandomForestRegressor(TREES, max_depth=4, max_features=SHARES[-1], random_state=3)
    peer.fit(rows.signs, rows.labels, sample_weight=rows.weights)
    assert np.allclose(polynomial.at(new, 1), peer.predict(new))
    assert np.isfinite(forest.held_out).all()
    assert np.mean((forest.held_out - rows.labels) ** 2) > np.mean((polynomial.at(rows.signs, 1) - rows.labels) ** 2)


def test_a_mixture_takes_one_fit_where_it_is_as_good():
    labels = Stream(0, "labels").normal(400)
    rows = SignSample(sample(400, 1), labels, np.ones(400))
    good, poor = labels + 0.1 * Stream(1, "noise").normal(400), Stream(2, "noise").normal(400)
    weights, held_out = mixture_weights(np.stack([poor, good]), ["a", "b"], (), rows, clip=False)
    assert weights.tolist() == [0.0, 1.0] and np.array_equal(held_out, good)
    halves = np.stack([labels + Stream(3 + i, "noise").normal(400) for i in range(2)])
    weights, _ = mixture_weights(halves, ["a", "b"], (), rows, clip=False)  # each is half noise: the mean is better
    assert np.all(weights > 0.2)


def test_a_mixture_leans_on_forests_where_rows_are_few_and_no_fit_stands_out():
    def forest_share(rows):
        labels = Stream(0, "labels").normal(rows)
        seen = SignSample(sample(rows, 1), labels, np.ones(rows))
        # Two fits that are as good: halves of the labels with noise of their own.
        fits = np.stack([0.3 * labels + 0.5 * Stream(3 + i, "noise").normal(rows) for i in range(2)])
        alone, _ = mixture_weights(fits, ["lasso", "forest"], (), seen, clip=False)
        leaning, _ = mixture_weights(fits, ["lasso", "forest"], {"forest"}, seen, clip=False)
        return (leaning / leaning.sum() - alone / alone.sum())[1]

    assert forest_share(40) > 0.05 > forest_share(4000) >= 0.0


def test_correlated_columns_come_in_by_the_second_scan():
    """x3 is hidden: its correlation with the label is cancelled by that of the column it mostly agrees with."""
    X = sample(800, 12)
    X[:, 3] = np.where(Stream(5, "agree").uniform(800) < 0.75, X[:, 2], X[:, 3])
    correlation = float(np.mean(X[:, 2] * X[:, 3]))
    y = X[:, 2] - X[:, 3] / correlation
    rows = SignSample(X, y, np.ones(800))
    fits = sparse_fits(rows, [2], 2, draw_folds(rows, 0.2, np.random.RandomState(0), stratify=False), 1)
    last = [fit for fit in fits if fit.family == "refit"][-1].polynomial()
    assert np.mean((last.at(X, 1) - y) ** 2) < 1e-3 * y.var()


def test_columns_are_collected_from_the_strongest_terms():
    order = np.array([[2, 5, -1], [5, -1, -1], [0, 1, 2], [7, 8, 9]])
    assert nested_columns(order) == [(), (2, 5), (2, 5, 0, 1), (2, 5, 0, 1, 7, 8, 9)]


def test_explain_names_what_noise_does_not():
    X = sample(500, 10)
    y = X[:, 0] - 0.4 * X[:, 1] * X[:, 2] + Stream(4, "noise").normal(500)
    model = LowDegreeRegressor(random_state=0).fit(X, y)
    assert {members for members, _ in model.significant_} == {(0,), (1, 2)}
    # Normal noise of deviation 1: the floor of N tests is about √(2 ln(2N / 0.05) / m).
    tests = fourier.monomial_count(10, model.degree_) - 1
    assert model.noise_floor_ == pytest.approx(np.sqrt(2 * np.log(2 * tests / 0.05) / 500), rel=0.15)
    lines = str(model.explain(3)).splitlines()
    assert lines[1].startswith(f"* 2 of {tests} are significant (Bonferroni, level 0.05); noise alone reaches 0.")
    assert lines[2].endswith(" * x0") and lines[3].endswith(" * x1·x2")
    assert "(false discovery rate, level 0.1)" in str(model.explain(correction="fdr", level=0.1))
    assert len(model.significant_terms(correction="fdr", level=0.2)) >= 2


def test_nothing_is_significant_in_noise():
    """Each of 20 fits to noise names a false term with probability 0.05 at most: 5 of them have probability 0.003."""
    false = 0
    for seed in range(20):
        X, y = sample(150, 8, seed), Stream(seed, "noise").normal(150)
        false += bool(LowDegreeRegressor(2, random_state=0).fit(X, y).significant_)
    assert false < 5


@pytest.mark.parametrize(
    ("options", "weights", "text"),
    [
        ({}, [1.0], "sample_weight must have one weight for each of the 20 rows; got shape (1,)."),
        ({}, -np.ones(20), "sample_weight must not be negative; got -1.0. Remedy: leave rows out by a weight of 0."),
        ({}, np.full(20, np.nan), "sample_weight must hold finite numbers; got a nan at index (0,). Remedy: drop or impute the missing values."),
        ({"class_weight": "even"}, None, "class_weight must be None, 'balanced' or a dict of weights; got 'even'."),
        ({"class_weight": {1: -1.0}}, None, "class_weight[1] must be a finite number in [0, inf); got -1.0."),
        ({"alpha": -1.0}, None, "alpha must be a finite number in [0, inf); got -1.0."),
    ],
)  # fmt: skip
def test_bad_weights_and_settings_are_named(options, weights, text):
    from fewfire._errors import InvalidArgument

    with pytest.raises(InvalidArgument) as caught:
        LowDegreeClassifier(1, **options).fit(sample(20, 3), np.arange(20) % 2, sample_weight=weights)
    assert str(caught.value) == text

"""The low-degree estimators: recovery, the peer, attributes, pruning, explanations, errors, scikit-learn habits."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures

from fewfire import fourier
from fewfire._errors import ConvergenceWarning, InvalidArgument
from fewfire._random import Stream
from fewfire.learners import LowDegreeClassifier, LowDegreeRegressor


def sample(samples, n, seed=0):
    return Stream(seed, "data").sign_rows(samples, n)


def test_regression_predicts_as_the_peer():
    X, new, y = sample(700, 10), sample(200, 10, seed=4), Stream(1, "y").normal(700)
    features = PolynomialFeatures(3, interaction_only=True, include_bias=False)
    peer = make_pipeline(features, Ridge()).fit(X.astype(float), y)
    mine = LowDegreeRegressor(3, method="regression", alpha=1.0).fit(X, y)
    assert np.allclose(mine.predict(new), peer.predict(new.astype(float)), atol=1e-5)
    assert mine.score(new, y[:200]) == pytest.approx(peer.score(new.astype(float), y[:200]), abs=1e-5)


def test_estimation_takes_the_empirical_coefficients():
    X, y = sample(500, 8), Stream(2, "y").normal(500)
    model = LowDegreeRegressor(2, method="estimation").fit(X, y)
    expected = fourier.estimate(X, y, 2).values
    assert np.array_equal(model.coefficients_, expected)
    assert np.array_equal(model.predict(X), fourier.evaluate(X, expected, 2))
    assert (model.solver_, model.n_iter_) == ("estimate", 1)


def test_a_noisy_parity_is_learned_by_both_methods():
    """Labels flipped with probability 0.2: χ_S keeps coefficient 0.6, with standard error 0.8/√m.

    The 299 coefficients together err by about 0.8·√(299/m) = 0.13 at a point: 0.6 is 4.7 standard deviations.
    """
    X, new = sample(12_000, 12), sample(2000, 12, seed=3)
    flips = np.where(Stream(3, "noise").uniform(12_000) < 0.2, -1, 1)
    labels = np.where(X[:, [1, 4, 9]].prod(axis=1) * flips > 0, "odd", "even")
    truth = np.where(new[:, [1, 4, 9]].prod(axis=1) > 0, "odd", "even")
    for method in ("regression", "estimation"):
        model = LowDegreeClassifier(3, method=method, alpha=1.0).fit(X, labels)
        assert model.score(new, truth) == 1.0
        members, coefficient = model.coef_[0]
        assert members == (1, 4, 9)
        assert abs(coefficient - 0.6) < 4 * 0.8 / np.sqrt(12_000)
        assert list(model.classes_) == ["even", "odd"]
        assert np.array_equal(model.decision_function(new) > 0, truth == "odd")


@pytest.mark.parametrize("model", [LowDegreeRegressor(2), LowDegreeClassifier(2)])
def test_coef_lists_sets_of_columns_largest_first(model):
    X = sample(300, 5)
    model.fit(X, np.where(X[:, 1] * X[:, 3] > 0, 1, -1))
    assert len(model.coef_) == np.count_nonzero(model.coefficients_)
    magnitudes = [abs(coefficient) for _, coefficient in model.coef_]
    assert magnitudes == sorted(magnitudes, reverse=True)
    members, coefficient = model.coef_[0]
    assert members == (1, 3)
    assert coefficient == model.coefficients_[fourier.monomial_index(5, (1, 3))]
    assert dict(model.coef_).get((), 0.0) == model.intercept_


def test_pruning_drops_small_terms_but_not_the_constant():
    X = sample(2000, 8)
    y = 0.01 + X[:, 0] - 0.5 * X[:, 2] * X[:, 5] + 0.1 * Stream(4, "noise").normal(2000)
    model = LowDegreeRegressor(2, prune=0.2).fit(X, y)
    assert [members for members, _ in model.coef_] == [(0,), (2, 5), ()]
    kept = model.intercept_ + sum(c * X[:, list(s)].prod(axis=1) for s, c in model.coef_ if s)
    assert np.allclose(model.predict(X), kept)


def test_constant_columns_are_ignored():
    X, y = sample(400, 6), Stream(5, "y").normal(400)
    wide = np.insert(X, [2, 4], 7, axis=1)  # columns 2 and 5 are constant
    narrow_model, wide_model = (LowDegreeRegressor(2, random_state=0).fit(table, y) for table in (X, wide))
    assert wide_model.active_.tolist() == [0, 1, 3, 4, 6, 7]
    assert wide_model.mapping_[2] == (7, None)
    assert np.array_equal(wide_model.coefficients_, narrow_model.coefficients_)
    renamed = {tuple(wide_model.active_[list(s)].tolist()): c for s, c in narrow_model.coef_}
    assert dict(wide_model.coef_) == renamed
    changed = wide.copy()
    changed[:, 2] = -3  # nothing was learned about this column, so it may hold anything
    assert np.array_equal(wide_model.predict(changed), wide_model.predict(wide))


def test_only_constant_columns_leave_the_mean():
    for method in ("regression", "estimation"):
        model = LowDegreeRegressor(3, method=method).fit(np.ones((4, 2)), [1.0, 2.0, 3.0, 6.0])
        assert model.predict(np.ones((2, 2))).tolist() == [3.0, 3.0]
        assert (model.solver_, model.degree_, model.coef_) == ("mean", 0, [((), 3.0)])
        assert "1 monomial;" in str(model.explain())


def test_explain_uses_the_names_of_the_columns():
    X = sample(500, 3)
    y = 2.0 * X[:, 0] * X[:, 2] - 0.5 * X[:, 1] + 0.25
    model = LowDegreeRegressor(2, method="regression", alpha=0.0, prune=0.1).fit(X, y)
    lines = str(model.explain()).splitlines()
    assert lines[0] == "degree 2, 3 monomials; the 3 largest hold 100.0% of the squared weight"
    assert lines[1].startswith("* 2 of 6 are significant (Bonferroni, level 0.05); noise alone reaches ")
    assert lines[2:] == ["          +2 * x0·x2", "        -0.5 * x1", "       +0.25   1"]
    assert (
        str(model.explain(1)).splitlines()[0] == "degree 2, 3 monomials; the 1 largest hold 92.8% of the squared weight"
    )
    assert len(str(model.explain(1)).splitlines()) == 3
    with pytest.raises(InvalidArgument, match="top must be an integer of at least 0; got -1."):
        model.explain(-1)


def test_data_frames_give_their_column_names():
    pandas = pytest.importorskip("pandas")
    X = sample(200, 3)
    frame = pandas.DataFrame({"smoker": X[:, 0] < 0, "age": np.where(X[:, 1] < 0, 60, 20), "urban": X[:, 2]})
    model = LowDegreeRegressor(2, prune=0.1).fit(frame, X[:, 0] * X[:, 2])
    assert model.feature_names_in_.tolist() == ["smoker", "age", "urban"]
    assert model.mapping_ == [(0, 1), (20, 60), (1, -1)]
    assert str(model.explain()).splitlines()[2].endswith("* smoker·urban")
    assert model.coef_[0][0] == (0, 2)
    assert model.score(frame, X[:, 0] * X[:, 2]) > 0.999
    frame["age"] = 7
    with pytest.raises(InvalidArgument, match="may hold only 20 and 60 in column 'age', as when fitted; got 7"):
        model.predict(frame)


def test_degree_is_cut_to_the_number_of_columns():
    model = LowDegreeRegressor(5).fit(sample(50, 2), np.arange(50.0))
    assert (model.degree_, len(model.coefficients_)) == (2, 4)


def test_cloning_pickling_and_pipelines():
    X, y = sample(300, 6), Stream(6, "y").signs(300)
    model = LowDegreeClassifier(2, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert str(again.explain()) == str(model.explain())
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "coefficients_")
    binary = FunctionTransformer(lambda table: (table < 0).astype(int))
    piped = make_pipeline(binary, LowDegreeClassifier(2, random_state=0))
    assert np.array_equal(piped.fit(X, y).predict(X), model.predict(X))
    assert len(cross_val_score(LowDegreeRegressor(1), X, y, cv=3)) == 3


def test_more_than_two_classes_are_refused_and_one_vs_rest_helps():
    X = sample(400, 5)
    y = np.where(X[:, 0] > 0, "a", np.where(X[:, 1] > 0, "b", "c"))
    with pytest.raises(InvalidArgument) as caught:
        LowDegreeClassifier(2).fit(X, y)
    assert str(caught.value) == (
        "Only binary classification is supported. The type of the target is multiclass; got 3 classes. "
        "Remedy: wrap the estimator in sklearn.multiclass.OneVsRestClassifier."
    )
    assert OneVsRestClassifier(LowDegreeClassifier(2)).fit(X, y).score(X, y) == 1.0
    with pytest.raises(InvalidArgument, match=r"y must hold at least two classes; got an array of one class \(a\)"):
        LowDegreeClassifier(2).fit(X, np.full(400, "a"))


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, y = sample(300, 6), Stream(7, "y").normal(300)
    model = LowDegreeRegressor(2, method="regression").fit(X, y)
    before = model.predict(X)
    for name, value in [("alpha", -1.0), ("solver", "qr"), ("prune", -0.1), ("degree", -2), ("method", "guess")]:
        with pytest.raises(InvalidArgument, match=f"^{name} must be"):
            model.set_params(**{name: value}).fit(X, y)
        model.set_params(**{name: LowDegreeRegressor(2, method="regression").get_params()[name]})
        assert np.array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"degree": "high"}, "degree must be 'auto' or an integer; got 'high'."),
        ({"degree": 1.5}, "degree must be an integer of at least 0; got 1.5. Remedy: or pass 'auto'."),
        ({"method": "guess"}, "method must be one of 'auto', 'regression', 'sparse', 'estimation'; got 'guess'."),
        ({"binarize": "mean"}, "binarize must be one of 'median'; got 'mean'. Remedy: write 'median' if that is what was meant."),
        ({"degree": "auto", "max_degree": -1}, "max_degree must be an integer of at least 0; got -1."),
        ({"degree": "auto", "validation_fraction": 1.0}, "validation_fraction must be a finite number in (0, 1); got 1.0."),
    ],
)  # fmt: skip
def test_errors_name_the_parameter(parameters, text):
    with pytest.raises(InvalidArgument) as caught:
        LowDegreeRegressor(**({"degree": 1} | parameters)).fit(sample(20, 3), np.arange(20.0))
    assert str(caught.value) == text


def test_slow_convergence_warns():
    X = sample(700, 14)
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter = 5 steps"):
        LowDegreeRegressor(3, method="regression", alpha=0.0, solver="cg", max_iter=5).fit(
            X, Stream(8, "y").normal(700)
        )


def test_verbose_prints(capsys):
    X, y = sample(200, 8), Stream(9, "y").normal(200)
    settings = {"method": "regression", "alpha": 1.0, "solver": "cg"}
    LowDegreeRegressor(2, **settings, verbose=True).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(line.startswith("low-degree fit: ") for line in lines)
    LowDegreeRegressor(2, **settings).fit(X, y)
    assert capsys.readouterr().err == ""


def test_a_search_reports_its_stages(capsys, monkeypatch):
    monkeypatch.setattr("fewfire._progress.LINES", 0.0)
    X = sample(100, 4)
    LowDegreeRegressor(2, verbose=True).fit(X, X[:, 0] * 1.0)
    shown = [line.split(",")[0] for line in capsys.readouterr().err.splitlines()]
    # Two degrees of ridge regression, sparse fits, forests.
    assert shown == [f"low-degree fit: {done} of 4" for done in (1, 2, 3, 4)]

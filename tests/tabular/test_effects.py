"""Importances and main effects of a fitted model: a known additive function, names, categories, gaps, frames."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.feature_selection import SelectFromModel

import fewfire as ff
from fewfire import InvalidArgument
from fewfire.tabular import AdamW
from fewfire.tabular._effects import EffectCurve, Effects, Explained, _curve

QUICK = {"hidden": (32,), "members": 2, "scaling": "standard", "gains": "none", "trees": False, "random_state": 0}
PARTS = (lambda x: 3 * x, lambda x: 3 * np.abs(x), lambda x: x, lambda x: 0 * x)


def additive(rows=400, seed=0):
    """Four columns, even in (-1, 1), of less and less effect, and what PARTS of them add up to."""
    X = np.random.default_rng(seed).uniform(-1, 1, (rows, 4))
    return X, sum(part(column) for part, column in zip(PARTS, X.T, strict=True))


@pytest.fixture(scope="module")
def model():
    X, y = additive(800, seed=2)
    return ff.TabularRegressor(**QUICK).fit(X, y)


@pytest.fixture(scope="module")
def effects(model):
    return model.explain(*additive(seed=1), points=9, repeats=20)


def test_importances_of_an_additive_function(effects):
    """Shuffling a column doubles the squared error of its part: 2 · its variance / the variance of all."""
    X, y = additive(seed=1)
    known = [2 * part(column).var() / y.var() for part, column in zip(PARTS, X.T, strict=True)]
    assert effects.order() == [0, 1, 2, 3]
    assert (effects.names, effects.measure, effects.rows) == (("x0", "x1", "x2", "x3"), "share of the variance", 400)
    np.testing.assert_allclose(effects.importance, known, atol=0.1)
    assert (effects.low - 0.01 < known).all() and (effects.high + 0.01 > known).all()
    assert abs(effects.importance[3]) < 0.005


def test_curves_of_an_additive_function(effects):
    for curve, part in zip(effects.curves, PARTS, strict=True):
        wanted = part(np.array(curve.values))
        np.testing.assert_allclose(curve.mean[:, 0] - curve.mean.mean(), wanted - wanted.mean(), atol=0.2)
        assert (curve.high - curve.low).max() < 0.4  # no interactions: rows run in parallel
        assert curve.kind == "number" and len(curve.values) == 9 and -1 < curve.values[0] < curve.values[-1] < 1


def test_curves_are_exact_means_over_rows():
    """Of a function that is known: the mean over rows, and a band without width where nothing else matters."""
    X, _ = additive(50)
    about = Explained(None, lambda rows: rows[:, :1] ** 2 + rows[:, 1:2] * rows[:, 2:3], "abcd", {}, None)
    square, product = (_curve(about, X, place, 5) for place in (0, 1))
    np.testing.assert_allclose(square.mean[:, 0], np.square(square.values) + np.mean(X[:, 1] * X[:, 2]))
    np.testing.assert_allclose(square.high, square.low)
    np.testing.assert_allclose(product.mean[:, 0], np.mean(X[:, 0] ** 2) + np.mean(X[:, 2]) * np.array(product.values))
    assert (product.high - product.low)[[0, -1]].min() > 0.5


def test_an_interaction_shows_in_the_band():
    X, _ = additive()
    y = 3 * X[:, 0] * X[:, 1]
    found = ff.TabularRegressor(**QUICK).fit(X, y).explain(X, y)
    assert np.ptp(found[0].mean) < 0.6 and (found[0].high - found[0].low).max() > 2


def test_without_targets_the_model_is_compared_with_itself(model, effects):
    X, _ = additive(seed=1)
    found = model.explain(X)
    assert found.order()[0] == 0
    np.testing.assert_allclose(found.importance, effects.importance, atol=0.1)


def test_classes_names_and_text():
    X, score = additive()
    frame = pd.DataFrame(X, columns=["first", "second", "third", "idle"])
    y = np.where(score > 1, "yes", "no")
    found = ff.TabularClassifier(**QUICK).fit(frame, y).explain(frame, y)
    assert isinstance(found, Effects)
    assert found.outputs == ("probability of yes",) and found.measure == "log loss"
    assert found.names[found.order()[0]] == "first"
    curve = found["first"].mean[:, 0]
    assert curve[0] < 0.3 and curve[-1] > 0.9 and (np.diff(curve) > -0.02).all()
    lines = str(found).splitlines()
    assert lines[0] == "TabularClassifier: log loss lost without a column, on 400 rows"
    assert lines[2].startswith("first ") and "█" in lines[2] and len(lines) == 6
    assert "<strong>TabularClassifier: log loss" in found._repr_html_() and "second" in found._repr_html_()
    assert found.to_frame().columns.tolist() == ["column", "importance", "low", "high"]
    assert found.to_frame()["column"][0] == "first" and found.to_frame()["importance"].is_monotonic_decreasing
    assert found["first"].to_frame().columns.tolist() == ["value", "mean", "low", "high"]


def test_three_classes_have_three_curves():
    X, score = additive()
    y = np.digitize(score, [0.0, 2.0])
    found = ff.TabularClassifier(**QUICK).fit(X, y).explain(X, y)
    assert found.outputs == ("probability of 0", "probability of 1", "probability of 2")
    np.testing.assert_allclose(found[0].mean.sum(axis=1), 1.0)
    assert found[0].to_frame(found.outputs).columns[1] == "mean of probability of 0"


def test_several_targets():
    X, y = additive()
    found = ff.TabularRegressor(**QUICK).fit(X, np.column_stack([y, 100 * X[:, 2]])).explain(X)
    assert found.outputs == ("y0", "y1") and found[2].mean.shape[1] == 2
    assert found.names[found.order()[0]] == "x2"  # all of one, some of the other; units do not count


@pytest.mark.parametrize("power", [-1000, -664, 532, 1000])  # 2^-664 is 1e-200, 2^532 is 1e160
def test_the_unit_of_targets_does_not_matter(power):
    X, y = additive(60)
    settings = {**QUICK, "optimiser": AdamW(0.02, epochs=5)}
    plain, scaled = (
        ff.TabularRegressor(**settings).fit(X, of).explain(X, of, repeats=2, points=3) for of in (y, np.ldexp(y, power))
    )
    assert plain.importance.max() > 0.01
    for name in ("importance", "low", "high"):
        assert np.array_equal(getattr(scaled, name), getattr(plain, name))
    assert np.array_equal(np.ldexp(scaled[0].mean, -power), plain[0].mean)


def test_errors_beyond_all_numbers_count_as_the_largest_that_does(model):
    X, y = additive(40)
    found = model.explain(X, 1e-200 * y, repeats=1, points=2)
    assert np.isfinite(found.low).all() and np.isfinite(found.high).all()
    about = Explained(None, lambda rows: rows, "a", {}, None)
    said, same = np.array([[1.0], [3.0]]), np.full((2, 1), 2.0)
    tenths = np.full((3, 1), 0.1)  # of which NumPy's variance is not 0
    np.testing.assert_allclose(about.losses(tenths + 2, tenths), 4.0)
    assert about.losses(said, 1e-200 * said).tolist() == [1e150, 1e150]
    assert about.losses(said, same).tolist() == [1.0, 1.0]  # squared error: there is no variance
    assert about.losses(np.full((2, 1), 1e200), same).tolist() == [1e150, 1e150]


def test_ends_of_an_effect_are_separate():
    X, y = additive(60)
    settings = {**QUICK, "optimiser": AdamW(0.02, epochs=5)}
    line = str(ff.TabularRegressor(**settings).fit(X, 1e9 + y).explain(X, points=3)).splitlines()[2]
    low, high = line.split()[-3::2]
    assert 1e9 - 9 < float(low) < float(high) < 1e9 + 9
    flat = EffectCurve("a", "number", (0.0, 1.0), *np.full((3, 2, 1), 1e9))
    shown = Effects("Model", *np.zeros((3, 1)), "log loss", (flat,), ("y",), 2)
    assert str(shown).endswith("1e+09 to 1e+09")  # these are the same


def dirty_columns():
    rng = np.random.default_rng(0)
    size, x = rng.choice(["S", "M", "L"], 300), rng.normal(size=300)
    y = np.where(size == "L", 2.0, 0.0) + x
    sizes = [None if row % 7 == 0 else str(value) for row, value in enumerate(size)]
    return {"size": sizes, "x": [None if row % 5 == 0 else float(value) for row, value in enumerate(x)]}, y


@pytest.mark.parametrize("kind", ["pandas", "polars", "objects"])
def test_categories_and_gaps_in_whatever_holds_them(kind):
    columns, y = dirty_columns()
    makers = {
        "pandas": pd.DataFrame,
        "polars": lambda columns: pytest.importorskip("polars").DataFrame(columns),
        "objects": lambda columns: np.array([*columns.values()], dtype=object).T,
    }
    table = makers[kind](columns)
    given = [0] if kind == "objects" else "auto"
    estimator = ff.TabularRegressor(**QUICK, optimiser=AdamW(0.02, epochs=30), categorical_features=given)
    found = estimator.fit(table, y).explain(table, y, points=6)
    size, x = found.curves
    assert (size.kind, x.kind) == ("category", "number")
    assert size.values == ("L", "M", "S", None)
    assert size.mean[0, 0] - size.mean[1:3, 0].max() > 1
    assert len(x.values) == 7 and x.values[-1] is None and np.isfinite(x.mean).all()
    names = ("x0", "x1") if kind == "objects" else ("size", "x")
    assert found.names == names


def test_the_same_seed_gives_the_same_effects(model):
    X, y = additive(seed=1)
    once, again = (model.explain(X, y, max_rows=50, repeats=2, points=3) for _ in range(2))
    assert once.rows == 50 and np.array_equal(once.importance, again.importance)
    assert not np.array_equal(once.importance, model.explain(X, y, max_rows=50, random_state=1).importance)


def test_what_is_refused(model):
    X, y = additive(20)
    with pytest.raises(InvalidArgument, match=r"X must have two rows or more; got 1"):
        model.explain(X[:1], y[:1])
    with pytest.raises(InvalidArgument, match=r"points must be an integer of at least 2"):
        model.explain(X, y, points=1)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.explain(X, y[:7])
    with pytest.raises(InvalidArgument, match=r"column must be one of x0, x1, x2, x3; got 'size'"):
        model.explain(X, y, repeats=1, points=2)["size"]
    with pytest.raises(ValueError, match="not fitted"):
        clone(model).explain(X, y)


def test_feature_importances_select_columns():
    X, y = make_friedman1(200, n_features=8, random_state=0)  # of which five matter
    model = ff.TabularRegressor(hidden=(32,), members=2, scaling="rank", random_state=0)
    assert not hasattr(model, "feature_importances_")
    shares = model.fit(X, y).feature_importances_
    assert shares.shape == (8,) and shares.min() >= 0 and shares.sum() == pytest.approx(1.0)
    assert shares[:5].min() > shares[5:].max()
    assert SelectFromModel(model, threshold=1e-2).fit(X, y).get_support().tolist() == [True] * 5 + [False] * 3
    assert SelectFromModel(model, prefit=True, max_features=2, threshold=-np.inf).transform(X).shape == (200, 2)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.feature_importances_, shares)
    assert not np.array_equal(again.fit(X[:, ::-1], y).feature_importances_, shares)  # those of the last fit


@pytest.mark.parametrize("classes", [2, 3])
def test_feature_importances_of_frames_rows_and_weights(classes):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=90), "town": [f"t{row % 15}" for row in range(90)]})
    y = np.where(
        frame["town"].isin([f"t{t}" for t in range(7)]), "a", np.where(rng.random(90) < 0.5, "b", "bc"[classes - 2])
    )
    model = ff.TabularClassifier(hidden=(8,), members=2, random_state=0)
    importances = model.fit(frame, y, sample_weight=np.arange(90) % 3).feature_importances_
    assert importances[1] > 0.5
    frame.loc[np.arange(90) % 3 == 0, "x"] = 1e9  # rows of weight 0 are not looked at
    assert np.array_equal(model.fit(frame, y, sample_weight=np.arange(90) % 3).feature_importances_, importances)


def test_columns_that_are_of_no_use_have_no_importance():
    model = ff.TabularRegressor(hidden=(8,), members=1, trees=False, random_state=0)
    assert model.fit(np.zeros((30, 2)), np.arange(30)).feature_importances_.tolist() == [0.0, 0.0]

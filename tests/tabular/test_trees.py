"""Trees that are mixed with the networks: what they add, how they are weighed, and that they can be left out."""

import builtins
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

import fewfire as ff
from fewfire import MissingDependency
from fewfire._dense.network import Rows
from fewfire._random import Stream
from fewfire.tabular import AdamW
from fewfire.tabular._ensemble import log_probabilities, mix, tree_shares
from fewfire.tabular._training import run_jobs
from fewfire.tabular._trees import TREES

QUICK = {"hidden": (16,), "members": 2, "optimiser": AdamW(0.02, epochs=10), "random_state": 0}


def steps(rows=400, seed=0):
    """Columns, two of which the target jumps along."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6))
    return X, 2.0 * (X[:, 0] > 0.3) + (X[:, 1] > -0.2) + 0.1 * rng.normal(size=rows)


def quarters(rows):
    """Folds of so many rows."""
    return [np.arange(rows)[part::4] for part in range(4)]


def grown(group, X, target, folds=None, weight=None):
    """What a group predicts of the rows held out."""
    weight = np.ones(len(X), np.float32) if weight is None else weight.astype(np.float32)
    rows = Rows(X, target.astype(np.float32), weight)
    return run_jobs([group.train(rows, folds or quarters(len(X)), None)], 1).found[0]


def group_of(kind, loss="squared", outputs=1):
    return TREES[kind](loss, outputs, Stream(0, "trees"))


def share_of_trees(model):
    return sum(weight for name, weight in model.mixing_weights_.items() if name in TREES)


def test_trees_help_where_the_target_jumps_and_can_be_left_out():
    X, y = steps()
    beside, alone = (ff.TabularRegressor(**QUICK, trees=trees).fit(X[:200], y[:200]) for trees in (True, False))
    assert beside.score(X[200:], y[200:]) > alone.score(X[200:], y[200:]) + 0.02
    assert share_of_trees(beside) > 0.5 and share_of_trees(alone) == 0
    assert sum(beside.mixing_weights_.values()) == pytest.approx(1.0)


def test_networks_keep_the_most_where_the_target_is_smooth():
    X, _ = steps(300)
    y = X @ np.arange(1, 7)
    model = ff.TabularRegressor(**{**QUICK, "optimiser": AdamW(0.02, epochs=60)}).fit(X, y)
    assert share_of_trees(model) < 0.2


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_mixed_and_outputs_stand_for_them(classes):
    X, score = steps()
    y = np.digitize(score, [0.5, 2.5][: classes - 1])
    model = ff.TabularClassifier(**QUICK).fit(X[:200], y[:200])
    chances = model.predict_proba(X[200:])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[chances.argmax(axis=1)], model.predict(X[200:]))
    assert model.score(X[200:], y[200:]) > 0.9
    ensemble, inputs = model._ensemble, model._ensemble.columns.encode(X[200:])
    trees = [group.predictions(inputs.raw()) for group in ensemble.trees.values()]
    ensemble.trees = {}
    plain = model.predict_proba(X[200:])
    expected = sum(share * of for share, of in zip(ensemble.shares_of_kinds, [plain, *trees], strict=True))
    np.testing.assert_allclose(chances, expected, atol=1e-12)


def test_fits_repeat_on_any_number_of_threads_and_in_pickles():
    X, score = steps(120)
    X[::7, 2] = np.nan
    y = score > 1
    models = [ff.TabularClassifier(**QUICK, n_jobs=jobs).fit(X, y) for jobs in (None, 2)]
    first = models[0].decision_function(X)
    assert np.array_equal(first, models[1].decision_function(X))
    assert np.array_equal(first, pickle.loads(pickle.dumps(models[0])).decision_function(X))
    assert np.array_equal(first[::-1], models[0].decision_function(X[::-1]))


def test_weights_of_rows_reach_the_trees():
    X, y = steps(100)
    kept = np.arange(100) % 2 == 0
    rng = np.random.default_rng(1)
    noisy = np.where(kept, y, rng.normal(size=100))
    weighted = ff.TabularRegressor(**QUICK).fit(X, noisy, sample_weight=np.where(kept, 1.0, 1e-6))
    plain = ff.TabularRegressor(**QUICK).fit(X, noisy)
    fresh, target = steps(300, seed=2)
    assert weighted.score(fresh, target) > plain.score(fresh, target) + 0.1


def test_validation_rows_weigh_trees_fitted_to_all_rows():
    X, y = steps(300)
    model = ff.TabularRegressor(**QUICK, early_stopping=False)
    model.fit(X[:200], y[:200], validation_data=(X[200:], y[200:]))
    assert all(len(group.models) == 1 for group in model._ensemble.trees.values())
    assert share_of_trees(model) > 0.5


def test_nothing_held_out_is_no_tree():
    X, y = steps(60)
    assert share_of_trees(ff.TabularRegressor(**QUICK, early_stopping=False).fit(X, y)) == 0
    assert share_of_trees(ff.TabularRegressor(**QUICK).fit(X[:19], y[:19])) == 0
    assert share_of_trees(ff.TabularRegressor(**QUICK).partial_fit(X, y)) == 0
    assert share_of_trees(ff.TabularRegressor(**QUICK).fit(np.ones((60, 2)), y)) == 0  # no column to split


def test_going_on_fits_the_trees_anew_and_partial_fit_leaves_them():
    X, y = steps(80)
    model = ff.TabularRegressor(**QUICK, warm_start=True).fit(X, y)
    before = model._ensemble.trees
    assert model.fit(X, y)._ensemble.trees["boosting"] is not before["boosting"]
    kept = [group.predictions(X) for group in model._ensemble.trees.values()]
    model.partial_fit(X[:40], y[:40])
    for group, predictions in zip(model._ensemble.trees.values(), kept, strict=True):
        assert np.array_equal(group.predictions(X), predictions)


@pytest.mark.parametrize("early_stopping", ["auto", False])
def test_a_fit_that_goes_on_without_trees_leaves_them_out(early_stopping):
    X, y = steps(80)
    model = ff.TabularRegressor(**QUICK, warm_start=True).fit(X, y)
    assert share_of_trees(model) > 0
    kept = model.set_params(early_stopping=False).fit(X, y).mixing_weights_  # no row is held out to weigh them anew
    assert share_of_trees(model) > 0
    model.set_params(trees=False, early_stopping=early_stopping).fit(X, y)
    assert not set(model.mixing_weights_) & set(TREES) and set(TREES) < set(kept)
    assert sum(model.mixing_weights_.values()) == pytest.approx(1.0)
    assert share_of_trees(model.set_params(trees=True, early_stopping="auto").fit(X, y)) > 0


@pytest.mark.parametrize("kind", TREES)
def test_a_class_that_a_fold_lacks_has_no_probability(kind):
    X, _ = steps(40)
    held_out = grown(group_of(kind, "cross_entropy", 3), X, np.eye(3)[np.r_[2, np.arange(39) % 2]])
    assert held_out.shape == (40, 3) and held_out[0, 2] == 0.0
    np.testing.assert_allclose(held_out.sum(axis=1), 1.0)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("kind", TREES)
def test_a_class_of_one_row_leaves_a_model_without_it(kind, label):
    X, _ = steps(40)
    group = group_of(kind, "logistic", 2)
    held_out = grown(group, X, (np.arange(40) == 3)[:, None] == label)
    assert held_out[3, 1 - label] == 1.0 and held_out[:, 1 - label].min() > 0.5  # trees that saw one class expect it
    assert np.isfinite(group.predictions(X)).all()


@pytest.mark.parametrize("kind", TREES)
def test_trees_that_find_no_split_predict_the_mean(kind):
    X, y = np.ones((30, 2)), np.arange(30.0)[:, None]
    group = group_of(kind)
    grown(group, X, y, weight=np.r_[np.ones(15), np.full(15, 3.0)])
    assert group.predictions(X)[0, 0] == pytest.approx((7 + 3 * 22) / 4, abs=0.5)
    classes = group_of(kind, "cross_entropy", 3)
    grown(classes, X, np.eye(3)[np.repeat([0, 1, 2], [20, 5, 5])])
    np.testing.assert_allclose(classes.predictions(X)[0], [20 / 30, 5 / 30, 5 / 30], atol=0.02)


@pytest.mark.parametrize("kind", TREES)
def test_rows_are_predicted_alone_as_among_others(kind):
    X, y = steps(200)
    X[::7, 2] = np.nan
    group = group_of(kind, outputs=2)
    held_out = grown(group, X, np.column_stack([y, -(y**2)]))
    together = group.predictions(X)
    assert np.array_equal(together[:7], np.vstack([group.predictions(row[None]) for row in X[:7]]))
    again = np.zeros((200, 2))
    for model, fold in zip(group.models, quarters(200), strict=True):
        again[fold] = group._predict(model, X[fold])
    np.testing.assert_allclose(held_out, again)
    assert np.corrcoef(together[:, 1], -(y**2))[0, 1] > 0.9


@pytest.mark.parametrize("kind", TREES)
def test_rows_that_weigh_next_to_nothing_still_grow_trees(kind):
    X, y = steps(80)
    folds, weight = [np.arange(8)], np.where(np.arange(80) < 8, 1e8, 1.0)
    light, plain = group_of(kind), group_of(kind)
    grown(light, X, y[:, None], folds, weight / weight.mean())
    grown(plain, X, y[:, None], folds)
    assert np.corrcoef(light.predictions(X)[:, 0], y)[0, 1] > 0.8  # its fold holds out every row that counts much
    np.testing.assert_allclose(light.predictions(X), plain.predictions(X), atol=0.1)


def test_trees_predict_as_well_as_scikit_learns():
    X, y = make_friedman1(2000, noise=0.5, random_state=0)
    X[::5, 3] = np.nan
    peers = {
        "random forest": RandomForestRegressor(min_samples_leaf=2, max_features=0.5, random_state=0),
        "boosting": HistGradientBoostingRegressor(max_leaf_nodes=8, min_samples_leaf=5, random_state=0),
    }
    for kind in TREES:
        group = group_of(kind)
        grown(group, X[:1000], y[:1000, None])
        predicted = group.predictions(X[1000:])[:, 0], peers[kind].fit(X[:1000], y[:1000]).predict(X[1000:])
        errors = [np.mean((of - y[1000:]) ** 2) for of in predicted]
        assert errors[0] < 1.1 * errors[1]


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (ImportError("No module named 'lightgbm'"), "pip install lightgbm, or pass trees=False"),
        (OSError("libgomp.so.1: cannot open shared object file"), "apt install libgomp1; macOS: brew install libomp"),
    ],
)
def test_a_missing_library_is_an_error_with_a_remedy(monkeypatch, error, remedy):
    plain = builtins.__import__

    def without(name, *arguments):
        if name == "lightgbm":
            raise error
        return plain(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    X, y = steps(40)
    with pytest.raises(MissingDependency, match=remedy):
        ff.TabularRegressor(**QUICK).fit(X, y)
    ff.TabularRegressor(**QUICK, trees=False).fit(X, y)


@pytest.mark.parametrize("offset", [1e7, -1e9])
def test_a_large_offset_of_a_column_hides_nothing_from_trees(offset):
    X, score = steps(400)
    X[::7, 2] = np.nan
    plain, moved = (ff.TabularClassifier(**QUICK).fit(table[:200], score[:200] > 1) for table in (X, X + offset))
    moved = pickle.loads(pickle.dumps(moved))
    said, expected = moved.predict_proba(X[200:] + offset), plain.predict_proba(X[200:])
    assert np.abs(said - expected).mean() < 0.03  # bins begin elsewhere: LightGBM gives zero one of its own


@pytest.mark.parametrize("kind", TREES)
def test_huge_numbers_do_not_stop_trees(kind):
    X, y = steps(60)
    X[0, 0] = 1e300
    group = group_of(kind)
    grown(group, X, y[:, None], [np.arange(20)])
    assert np.isfinite(group.predictions(np.full((2, 6), -1e300))).all()


def test_shares_of_classifiers_follow_the_rows_and_the_prior_where_they_are_few():
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, (5000, 1)).astype(float)
    sure, blind = np.where(target == 1, 3.0, -3.0), np.zeros((5000, 1))
    chances, half = np.exp(log_probabilities("logistic", sure)), np.full((5000, 2), 0.5)
    weight = np.ones(5000)
    assert tree_shares("logistic", blind, [chances, half], target, weight)[1] > 0.9
    assert tree_shares("logistic", blind, [half, chances], target, weight)[2] > 0.9
    assert tree_shares("logistic", sure, [half, half], target, weight)[0] > 0.9
    few = slice(0, 4)
    shares = tree_shares("logistic", sure[few], [half[few], half[few]], target[few], weight[few])
    assert 0.5 < shares[0] < 0.7 and shares[2] < 0.02  # four rows say little, and boosting wants more
    alike = tree_shares("logistic", sure, [chances, chances], target, weight)
    np.testing.assert_allclose(alike, [0.5, 0.5 - 0.25 * 5000 / 5200, 0.25 * 5000 / 5200], atol=1e-3)


def test_shares_of_regressors_go_by_one_over_squared_errors():
    rng = np.random.default_rng(0)
    numbers, weight = rng.normal(size=(5000, 2)), np.ones(5000)
    noisy = numbers + rng.normal(size=(3, 5000, 2)) * np.array([1.0, 2.0, 2.0]).reshape(3, 1, 1)
    shares = tree_shares("squared", noisy[0], [noisy[1], noisy[2]], numbers, weight)
    np.testing.assert_allclose(shares, [4 / 6, 1 / 6, 1 / 6], atol=0.03)
    expected = shares[0] * noisy[0] + shares[1] * noisy[1] + shares[2] * noisy[2]
    np.testing.assert_allclose(mix("squared", shares, noisy[0], [noisy[1], noisy[2]]), expected)
    part = tree_shares("squared", noisy[0], [noisy[1], noisy[2]], numbers, np.r_[np.full(4000, 2.0), np.zeros(1000)])
    kept = tree_shares("squared", noisy[0][:4000], [noisy[1][:4000], noisy[2][:4000]], numbers[:4000], weight[:4000])
    np.testing.assert_allclose(part, kept, atol=5e-3)


def test_boosting_stops_when_more_rounds_do_not_help():
    X, y = steps(120)
    learning, idle = group_of("boosting"), group_of("boosting")
    grown(learning, X, y[:, None])
    grown(idle, X, np.random.default_rng(3).normal(size=(120, 1)))
    assert idle.rounds < 20 < learning.rounds
    assert idle.grown == 60


def test_a_class_that_no_tree_expects_keeps_the_chance_of_the_networks():
    outputs = np.array([[2.0], [-2.0]])
    mixed = mix("logistic", np.array([0.5, 0.5]), outputs, [np.array([[1.0, 0.0], [0.0, 1.0]])])
    chance = 1 / (1 + np.exp(-mixed[:, 0]))
    np.testing.assert_allclose(chance, 0.5 / (1 + np.exp(-outputs[:, 0])) + [0.0, 0.5])


def test_pickles_keep_predictions_and_what_explains_them():
    X, y = steps()
    model = ff.TabularClassifier(**QUICK).fit(X, y > 1)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    for name in TREES:
        one, other = (fitted._ensemble.trees[name].models[0].boosters[0] for fitted in (model, again))
        assert np.array_equal(one.predict(X, pred_contrib=True), other.predict(X, pred_contrib=True))
        assert np.array_equal(one.feature_importance("gain"), other.feature_importance("gain"))


def test_threads_that_predict_together_predict_what_one_does():
    X, y = steps()
    model = ff.TabularClassifier(**QUICK).fit(X, y > 1)
    expected, parts = model.predict_proba(X), [slice(start, start + 7) for start in range(0, 400, 7)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda part: model.predict_proba(X[part]), parts))
    assert all(np.array_equal(some, expected[part]) for some, part in zip(found, parts, strict=True))

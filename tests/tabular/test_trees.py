"""Trees beside the networks: what they add, how they are weighed, and that they can be left out."""

import pickle

import numpy as np
import pytest

import fewfire as ff
from fewfire._random import Stream
from fewfire.tabular import AdamW
from fewfire.tabular._flat_trees import narrowed
from fewfire.tabular._mixing import log_chances, mix, tree_shares
from fewfire.tabular._queue import work_off
from fewfire.tabular._trees import KINDS, TreeRows

QUICK = {"hidden": (16,), "members": 2, "optimiser": AdamW(0.02, epochs=10), "random_state": 0}


def steps(rows=400, seed=0):
    """Columns, two of which the target jumps along."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6))
    return X, 2.0 * (X[:, 0] > 0.3) + (X[:, 1] > -0.2) + 0.1 * rng.normal(size=rows)


def grown(group, rows, folds):
    """What a group says of the rows held out."""
    return work_off([group.train(rows, folds, None)], 1)[0]


def share_of_trees(model):
    return sum(weight for name, weight in model.mixing_weights_.items() if name in KINDS)


def test_trees_help_where_the_target_jumps_and_can_be_left_out():
    X, y = steps()
    beside, alone = (ff.SparseInitRegressor(**QUICK, trees=trees).fit(X[:200], y[:200]) for trees in (True, False))
    assert beside.score(X[200:], y[200:]) > alone.score(X[200:], y[200:]) + 0.02
    assert share_of_trees(beside) > 0.5 and share_of_trees(alone) == 0
    assert sum(beside.mixing_weights_.values()) == pytest.approx(1.0)


def test_networks_keep_the_most_where_the_target_is_smooth():
    X, _ = steps(300)
    y = X @ np.arange(1, 7)
    model = ff.SparseInitRegressor(**{**QUICK, "optimiser": AdamW(0.02, epochs=60)}).fit(X, y)
    assert share_of_trees(model) < 0.2


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_mixed_and_outputs_stand_for_them(classes):
    X, score = steps()
    y = np.digitize(score, [0.5, 2.5][: classes - 1])
    model = ff.SparseInitClassifier(**QUICK).fit(X[:200], y[:200])
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
    models = [ff.SparseInitClassifier(**QUICK, n_jobs=jobs).fit(X, y) for jobs in (None, 2)]
    first = models[0].decision_function(X)
    assert np.array_equal(first, models[1].decision_function(X))
    assert np.array_equal(first, pickle.loads(pickle.dumps(models[0])).decision_function(X))
    assert np.array_equal(first[::-1], models[0].decision_function(X[::-1]))


def test_weights_of_rows_reach_the_trees():
    X, y = steps(100)
    kept = np.arange(100) % 2 == 0
    rng = np.random.default_rng(1)
    noisy = np.where(kept, y, rng.normal(size=100))
    weighted = ff.SparseInitRegressor(**QUICK).fit(X, noisy, sample_weight=np.where(kept, 1.0, 1e-6))
    plain = ff.SparseInitRegressor(**QUICK).fit(X, noisy)
    fresh, target = steps(300, seed=2)
    assert weighted.score(fresh, target) > plain.score(fresh, target) + 0.1


def test_validation_rows_weigh_trees_fitted_to_all_rows():
    X, y = steps(300)
    model = ff.SparseInitRegressor(**QUICK, early_stopping=False)
    model.fit(X[:200], y[:200], validation_data=(X[200:], y[200:]))
    assert all(len(group.models) == 1 for group in model._ensemble.trees.values())
    assert share_of_trees(model) > 0.5


def test_nothing_held_out_is_no_tree():
    X, y = steps(60)
    assert share_of_trees(ff.SparseInitRegressor(**QUICK, early_stopping=False).fit(X, y)) == 0
    assert share_of_trees(ff.SparseInitRegressor(**QUICK).fit(X[:19], y[:19])) == 0
    assert share_of_trees(ff.SparseInitRegressor(**QUICK).partial_fit(X, y)) == 0
    assert share_of_trees(ff.SparseInitRegressor(**QUICK).fit(np.ones((60, 2)), y)) == 0  # no column to split


def test_going_on_fits_the_trees_anew_and_partial_fit_leaves_them():
    X, y = steps(80)
    model = ff.SparseInitRegressor(**QUICK, warm_start=True).fit(X, y)
    before = model._ensemble.trees
    assert model.fit(X, y)._ensemble.trees["boosting"] is not before["boosting"]
    kept = [group.predictions(X) for group in model._ensemble.trees.values()]
    model.partial_fit(X[:40], y[:40])
    for group, predictions in zip(model._ensemble.trees.values(), kept, strict=True):
        assert np.array_equal(group.predictions(X), predictions)


@pytest.mark.parametrize("early_stopping", ["auto", False])
def test_a_fit_that_goes_on_without_trees_leaves_them_out(early_stopping):
    X, y = steps(80)
    model = ff.SparseInitRegressor(**QUICK, warm_start=True).fit(X, y)
    assert share_of_trees(model) > 0
    kept = model.set_params(early_stopping=False).fit(X, y).mixing_weights_  # no row is held out to weigh them anew
    assert share_of_trees(model) > 0
    model.set_params(trees=False, early_stopping=early_stopping).fit(X, y)
    assert not set(model.mixing_weights_) & set(KINDS) and set(KINDS) < set(kept)
    assert sum(model.mixing_weights_.values()) == pytest.approx(1.0)
    assert share_of_trees(model.set_params(trees=True, early_stopping="auto").fit(X, y)) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_fold_without_a_class_gives_it_no_chance(kind):
    X, _ = steps(40)
    target = np.eye(3, dtype=np.float32)[np.r_[2, np.arange(39) % 2]]
    folds = [np.arange(40)[part::4] for part in range(4)]
    group = KINDS[kind]("cross_entropy", 3, Stream(0, "trees"))
    held = grown(group, TreeRows(X, target, np.ones(40, np.float32)), folds)
    assert held.shape == (40, 3) and held[0, 2] == 0.0
    np.testing.assert_allclose(held.sum(axis=1), 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_of_one_row_leaves_a_model_without_it(kind):
    X, _ = steps(40)
    target = (np.arange(40) == 3)[:, None].astype(np.float32)
    group = KINDS[kind]("logistic", 2, Stream(0, "trees"))
    folds = [np.arange(40)[part::4] for part in range(4)]
    held = grown(group, TreeRows(X, target, np.ones(40, np.float32)), folds)
    assert held[3].tolist() == [1.0, 0.0] and np.isfinite(group.predictions(X)).all()


@pytest.mark.parametrize("offset", [1e7, -1e9])
def test_a_large_offset_of_a_column_hides_nothing_from_trees(offset):
    X, score = steps(400)
    X[::7, 2] = np.nan
    plain, moved = (ff.SparseInitClassifier(**QUICK).fit(table[:200], score[:200] > 1) for table in (X, X + offset))
    for one, other in zip(plain._ensemble.trees.values(), moved._ensemble.trees.values(), strict=True):
        assert [len(model.trees.forks) for model in one.models] == [len(model.trees.forks) for model in other.models]
    moved = pickle.loads(pickle.dumps(moved))
    said, expected = moved.predict_proba(X[200:] + offset), plain.predict_proba(X[200:])
    np.testing.assert_allclose(said, expected, atol=0.02)  # a row or two lie within rounding of a threshold
    assert np.abs(said - expected).mean() < 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_huge_numbers_do_not_stop_trees(kind):
    X, y = steps(60)
    X[0, 0] = 1e300
    group = KINDS[kind]("squared", 1, Stream(0, "trees"))
    grown(group, TreeRows(X, y[:, None].astype(np.float32), np.ones(60, np.float32)), [np.arange(20)])
    assert np.isfinite(group.predictions(np.full((2, 6), -1e300))).all()


def test_shares_of_classifiers_follow_the_rows_and_the_prior_where_they_are_few():
    rng = np.random.default_rng(0)
    target = rng.integers(0, 2, (5000, 1)).astype(float)
    sure, blind = np.where(target == 1, 3.0, -3.0), np.zeros((5000, 1))
    chances, half = np.exp(log_chances("logistic", sure)), np.full((5000, 2), 0.5)
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
    rows = TreeRows(X, y[:, None].astype(np.float32), np.ones(120, np.float32))
    noise = TreeRows(X, np.random.default_rng(3).normal(size=(120, 1)).astype(np.float32), rows.weight)
    folds = [np.arange(120)[part::4] for part in range(4)]
    learning, idle = (KINDS["boosting"]("squared", 1, Stream(0, "trees")) for _ in range(2))
    held = grown(learning, rows, folds)
    grown(idle, noise, folds)
    assert idle.rounds < 20 < learning.rounds
    assert idle.grown == 60
    again = np.zeros((120, 1))
    for model, fold in zip(learning.models, folds, strict=True):
        again[fold] = learning._predict(model, narrowed(X[fold]))
    np.testing.assert_allclose(held, again)


def test_a_class_that_no_tree_expects_keeps_the_chance_of_the_networks():
    outputs = np.array([[2.0], [-2.0]])
    mixed = mix("logistic", np.array([0.5, 0.5]), outputs, [np.array([[1.0, 0.0], [0.0, 1.0]])])
    chance = 1 / (1 + np.exp(-mixed[:, 0]))
    np.testing.assert_allclose(chance, 0.5 / (1 + np.exp(-outputs[:, 0])) + [0.0, 0.5])

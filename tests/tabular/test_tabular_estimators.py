"""TabularClassifier and TabularRegressor: laws of fitting, and what users do with estimators."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fewfire as ff
from fewfire._dense.network import Rows
from fewfire.tabular import SGD, AdamW
from fewfire.tabular._base import PATIENCE, SHORT, resolve
from fewfire.tabular._ensemble import best_temperature, mixing_weights, scaled_outputs

QUICK = {"hidden": (32,), "members": 2, "optimiser": AdamW(0.01, 0.1, epochs=15), "random_state": 0}
ONE_VARIANT = {**QUICK, "scaling": "standard", "gains": "none", "trees": False}


def whole(epochs, **more):
    """One network, all rows per step, nothing held out: no draw depends on rows."""
    return {
        "hidden": (32,),
        "members": 1,
        "scaling": "standard",
        "gains": "none",
        "early_stopping": False,
        "random_state": 0,
        "optimiser": SGD(0.1, batch_size=10**6, epochs=epochs),
        **more,
    }


def table(rows=80, columns=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    score = X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=rows)
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


def test_learns_an_interaction_of_two_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = ff.TabularClassifier((128, 32), members=2, random_state=0).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.85  # a linear model is at 0.5 ± 0.05


def test_learns_three_classes_and_probabilities_are_distributions():
    X, y = table(200, classes=3)
    names = np.array(["low", "middle", "top"])[y]
    model = ff.TabularClassifier(**QUICK).fit(X, names)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (200, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    assert model.score(X, names) > 0.8


def test_the_same_seed_gives_the_same_predictions_on_any_number_of_threads():
    X, y = table()
    models = [ff.TabularClassifier(**{**QUICK, "n_jobs": jobs}).fit(X, y) for jobs in (None, 1, 2, -1)]
    for model in models[1:]:
        assert np.array_equal(models[0].decision_function(X), model.decision_function(X))
    other = ff.TabularClassifier(**{**QUICK, "random_state": 1}).fit(X, y)
    assert not np.array_equal(models[0].decision_function(X), other.decision_function(X))


def test_mixing_weights_are_a_distribution_and_name_what_was_asked():
    X, y = table()
    model = ff.TabularClassifier(**QUICK).fit(X, y)
    assert sum(model.mixing_weights_.values()) == pytest.approx(1.0)
    assert min(model.mixing_weights_.values()) > 0
    assert ff.TabularClassifier(**ONE_VARIANT).fit(X, y).mixing_weights_ == {"standard, no gains": 1.0}


def test_many_rows_hold_a_trial_of_the_variants(capsys):
    X, y = table(2001)
    settings = {"hidden": (8,), "members": 1, "optimiser": AdamW(0.01, epochs=2), "random_state": 0, "verbose": 2}
    settings["trees"] = False
    trained = []
    for rows in (2000, 2001):
        model = ff.TabularClassifier(**settings).fit(X[:rows], y[:rows])
        told = capsys.readouterr().err.splitlines()
        trained.append(sum("held out" in line for line in told) // 2)
    assert trained == [9, 9 + 4]
    assert 1 <= len(model.mixing_weights_) <= 4
    judged = ff.TabularClassifier(**settings, early_stopping=False)
    judged.fit(X, y, validation_data=(X[:50], y[:50]))
    assert len(judged.mixing_weights_) <= 4
    assert np.isfinite(judged.validation_curve_).all()


def test_stops_at_the_best_held_out_epoch():
    X, y = table()
    model = ff.TabularClassifier(**{**ONE_VARIANT, "early_stopping": 3, "optimiser": AdamW(0.03, epochs=200)}).fit(X, y)
    curve = model.validation_curve_
    assert len(curve) == len(model.loss_curve_) == model.n_iter_ < 200
    assert int(np.argmin(curve)) == len(curve) - 1 - 3


def test_validation_data_stops_and_keeps_the_best_weights():
    X, y = table(120)
    model = ff.TabularClassifier(**{**ONE_VARIANT, "optimiser": AdamW(0.03, epochs=60)})
    model.fit(X[:80], y[:80], validation_data=(X[80:], y[80:]))
    base = np.log(y[:80].mean() / (1 - y[:80].mean()))
    distance = model.temperature_ * (model.decision_function(X[80:]) - base)  # before it was divided

    def loss(temperature):
        return np.logaddexp(0, np.where(y[80:] == 1, -1, 1) * (base + distance / temperature)).mean()

    assert loss(1.0) == pytest.approx(min(model.validation_curve_), rel=1e-4)
    temperatures = model.temperature_ * np.array([0.97, 1.0, 1.03])
    losses = [loss(t) + 2 * np.log(t) ** 2 / 40 for t in temperatures]
    assert min(losses) == losses[1] <= loss(1.0)  # no other temperature predicts the rows better, doubt included


def test_smoothed_labels_train_on_less_sure_targets():
    X, y = table(200, classes=3)
    settings = {**ONE_VARIANT, "early_stopping": False}
    plain, smooth = (ff.TabularClassifier(**settings, label_smoothing=share).fit(X, y) for share in (0.0, 0.4))
    assert plain.temperature_ == smooth.temperature_ == 1.0
    top = [model.predict_proba(X).max(axis=1).mean() for model in (plain, smooth)]
    assert top[1] < top[0] and smooth.score(X, y) > 0.75


def test_labels_are_smoothed_towards_the_weighted_frequencies_of_the_classes():
    target = np.eye(3, dtype=np.float32)[[0, 0, 1, 2, 2]]
    rows = Rows(np.zeros((5, 1), np.float32), target, np.array([1, 1, 1, 0.5, 9], np.float32))[np.arange(4)]
    smoothed = rows.smoothed(0.35).target[:4]
    np.testing.assert_allclose(smoothed, 0.65 * target[:4] + np.array([0.2, 0.1, 0.05]), rtol=1e-6)
    two = Rows(rows.X, target[:, :1], np.ones(5, np.float32)).smoothed(0.5)
    np.testing.assert_allclose(two.target[:, 0], [0.7, 0.7, 0.2, 0.2, 0.2], rtol=1e-6)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_rare_classes_are_as_likely_as_in_training(early_stopping):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4600, 4))
    y = (rng.random(4600) < 1 / (1 + np.exp(3.5 - 0.6 * X[:, 0]))).astype(int)
    settings = {"scaling": "rank", "gains": "none", "trees": False, "early_stopping": early_stopping}
    model = ff.TabularClassifier((32,), **settings, random_state=0).fit(X[:600], y[:600])
    found = model.predict_proba(X[600:])[:, 1].mean()
    assert found == pytest.approx(y[:600].mean(), rel=0.25)  # even smoothing: 1.9 and 5 times as likely
    three = np.where(y == 1, 1 + (X[:, 1] > 0.5), 0)
    model.fit(X[:600], three[:600])
    assert model.predict_proba(X[600:])[:, 0].mean() == pytest.approx((three[:600] == 0).mean(), abs=0.01)


def test_probabilities_are_as_sure_as_held_out_rows_allow():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2300, 3))
    chance = 1 / (1 + np.exp(-3 * X[:, 0]))
    y = (rng.random(2300) < chance).astype(int)
    model = ff.TabularClassifier((32,), members=4, scaling="standard", gains="mild", random_state=0)
    found = model.fit(X[:300], y[:300]).predict_proba(X[300:])[:, 1]
    assert model.temperature_ < 1 / 1.1  # labels smoothed by 0.2 leave the outputs timid
    bins = np.digitize(found, [0.2, 0.4, 0.6, 0.8])
    for part in range(5):
        assert abs(found[bins == part].mean() - chance[300:][bins == part].mean()) < 0.08


def test_mixing_weights_are_mixed_by_the_weights_that_predict_best():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(4000, 1))
    noise = rng.normal(size=(3, 4000, 1)) * np.array([1.0, 2.0, 0.0]).reshape(3, 1, 1)
    noise[2] = noise[0]  # a variant that adds nothing new
    weights = mixing_weights("squared", y + noise, y, np.ones(4000))
    assert weights.sum() == pytest.approx(1.0) and weights[0] + weights[2] == pytest.approx(0.8, abs=0.03)  # 1 : ¼
    sure = np.where(y > 0, 4.0, -4.0)
    outputs = np.stack([sure, -sure, rng.normal(size=y.shape)])
    assert mixing_weights("logistic", outputs, 1.0 * (y > 0), np.ones(4000)).tolist() == [1.0, 0.0, 0.0]
    doubled = mixing_weights("squared", (y + noise)[:, :50], y[:50], np.r_[np.full(25, 2.0), np.zeros(25)])
    assert np.allclose(doubled, mixing_weights("squared", (y + noise)[:, :25], y[:25], np.ones(25)), atol=1e-3)


def test_held_out_rows_are_not_flattered_by_gains():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(560, 300)), rng.integers(0, 2, 560)  # nothing to learn, and many columns to find it in
    model = ff.TabularClassifier((32,), scaling="rank", gains="strong", random_state=0).fit(X[:60], y[:60])
    fresh = np.logaddexp(0, -np.where(y[60:] == 1, 1, -1) * model.decision_function(X[60:])).mean()
    assert min(model.validation_curve_) > 0.65  # a coin has 0.693; with gains of all rows it was 0.4
    assert fresh < 0.75


def test_early_stopping_on_one_row_trains_on_it():
    model = ff.TabularRegressor(**{**ONE_VARIANT, "early_stopping": True}).fit(np.ones((1, 2)), [3.0])
    assert model.predict(np.ones((1, 2))) == pytest.approx(3.0)


def test_temperature_is_bounded_and_found():
    rng = np.random.default_rng(0)
    z, base, one = rng.normal(size=(20_000, 1)), np.array([-1.0]), np.ones(20_000)
    y = (rng.random((20_000, 1)) < 1 / (1 + np.exp(1 - 2 * z))).astype(float)
    assert best_temperature("logistic", base + z, base, y, one) == pytest.approx(1 / 2, rel=0.05)
    assert scaled_outputs(base + z, base, 0.5) == pytest.approx(base + 2 * z)
    assert np.array_equal(scaled_outputs(z, base, 1.0), z)
    right = (z > 0).astype(float)
    assert best_temperature("logistic", z, 0 * base, right, one) == pytest.approx(1 / 3, rel=1e-3)
    assert 1 / 2 < best_temperature("logistic", z[:10], 0 * base, right[:10], one[:10]) < 1.0  # ten rows prove little


def test_partial_fit_takes_the_steps_of_fit():
    X, y = table(50)
    settings = {**ONE_VARIANT, "early_stopping": False, "optimiser": AdamW(0.01, batch_size=16, epochs=4)}
    fitted, stepped = ff.TabularClassifier(**settings).fit(X, y), ff.TabularClassifier(**settings)
    for _ in range(4):
        stepped.partial_fit(X, y, classes=[0, 1])
    assert np.array_equal(fitted.decision_function(X), stepped.decision_function(X))
    assert fitted.loss_curve_ == stepped.loss_curve_


def test_warm_start_continues():
    X, y = table(50)
    settings = {**ONE_VARIANT, "early_stopping": False, "warm_start": True}
    twice = ff.TabularClassifier(**{**settings, "optimiser": AdamW(0.01, epochs=3)}).fit(X, y).fit(X, y)
    once = ff.TabularClassifier(**{**settings, "optimiser": AdamW(0.01, epochs=6)}).fit(X, y)
    assert twice.n_iter_ == once.n_iter_ == 6
    assert np.array_equal(twice.decision_function(X), once.decision_function(X))


def test_partial_fit_goes_on_from_a_finished_fit():
    X, y = table(50)
    model = ff.TabularClassifier(**ONE_VARIANT).fit(X, y)
    before = model.decision_function(X)
    after = model.partial_fit(X, y).decision_function(X)
    assert 0 < np.abs(after - before).max() < np.abs(before).max()


def test_a_weight_of_two_is_two_rows():
    X, y = table(30)
    weight = np.tile([1, 2, 0], 10)
    weighted = ff.TabularClassifier(**whole(20)).fit(X, y, sample_weight=weight)
    repeated = ff.TabularClassifier(**whole(20)).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-4)
    plain = ff.TabularClassifier(**whole(20)).fit(X, y)
    assert np.abs(weighted.decision_function(X) - plain.decision_function(X)).max() > 0.01


def test_balanced_classes_are_the_weights_that_balance_them():
    X, y = table(40)
    y[np.flatnonzero(y == 1)[5:]] = 0
    weights = {0: 40 / (2 * 35), 1: 40 / (2 * 5)}
    models = [
        ff.TabularClassifier(**whole(20, class_weight="balanced")).fit(X, y),
        ff.TabularClassifier(**whole(20, class_weight=weights)).fit(X, y),
        ff.TabularClassifier(**whole(20)).fit(X, y, sample_weight=np.where(y == 1, weights[1], weights[0])),
    ]
    for model in models[1:]:
        np.testing.assert_allclose(model.decision_function(X), models[0].decision_function(X), atol=1e-5)
    assert models[0].predict(X).mean() > ff.TabularClassifier(**whole(20)).fit(X, y).predict(X).mean()


def test_regression_of_several_targets_follows_their_units():
    X, _ = table(150)
    Y = np.column_stack([X[:, 0] + X[:, 1], 1e4 * X[:, 2] ** 2 + 1e6])
    model = ff.TabularRegressor((64,), members=2, optimiser=AdamW(0.01, 0.1, epochs=80), random_state=0).fit(X, Y)
    assert model.predict(X).shape == (150, 2)
    assert model.score(X, Y) > 0.9
    shifted = ff.TabularRegressor(**ONE_VARIANT).fit(X, 1000 * Y[:, 0] - 5)
    plain = ff.TabularRegressor(**ONE_VARIANT).fit(X, Y[:, 0])
    np.testing.assert_allclose(shifted.predict(X), 1000 * plain.predict(X) - 5, atol=0.2)


def test_a_constant_target_is_predicted():
    X, _ = table(30)
    np.testing.assert_allclose(ff.TabularRegressor(**ONE_VARIANT).fit(X, np.full(30, 7.0)).predict(X), 7.0, atol=1e-6)


def test_clone_grid_search_pipeline_calibration():
    X, y = table(60)
    model = ff.TabularClassifier(**ONE_VARIANT)
    assert clone(model).get_params()["optimiser__epochs"] == 15
    search = GridSearchCV(model, {"optimiser__learning_rate": [1e-3, 1e-2], "sparsity": [1, None]}, cv=2).fit(X, y)
    assert set(search.best_params_) == {"optimiser__learning_rate", "sparsity"}
    calibrated = CalibratedClassifierCV(make_pipeline(FunctionTransformer(), model), cv=2).fit(X, y)
    assert calibrated.predict_proba(X).shape == (60, 2)


def test_pickles_hold_the_weights_and_little_else():
    X, y = table(60)
    model = ff.TabularClassifier(**{**ONE_VARIANT, "hidden": (300,)}).fit(X, y)
    written = pickle.dumps(model)
    parameters = 2 * (300 * 4 + 300 + 4 + 300 + 1)
    assert len(written) < 4 * parameters + 20_000
    assert np.array_equal(pickle.loads(written).decision_function(X), model.decision_function(X))


def test_default_weight_decay_and_batches_go_by_rows():
    rule = AdamW()
    assert [rule.decay(rows) for rows in (10, 100, 300, 30_000)] == [3.0, 3.0, 1.0, 0.01]
    assert [rule.rows_per_step(rows) for rows in (10, 100, 800, 10_000)] == [10, 16, 100, 256]
    assert (AdamW(weight_decay=0.5).decay(10), AdamW(batch_size=64).rows_per_step(10)) == (0.5, 10)


# Fewer than 20 rows: nothing of them is held out, and other rows may decide when to stop. Noise: training soon does harm.
NOISE, COIN = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
TINY = {"hidden": (8,), "members": 1, "scaling": "standard", "gains": "none", "random_state": 0}


def test_without_other_rows_the_default_is_thirty_epochs():
    model = ff.TabularClassifier(**TINY).fit(NOISE[:19], COIN[:19])
    assert (model.n_iter_, model.validation_curve_) == (30, [])


@pytest.mark.parametrize("rows", [10, 19, 30])
def test_validation_data_stops_any_number_of_rows_by_patience(rows):
    model = ff.TabularClassifier(**TINY).fit(NOISE[:rows], COIN[:rows], validation_data=(NOISE[30:], COIN[30:]))
    best = int(np.argmin(model.validation_curve_))
    assert model.n_iter_ == best + 1 + PATIENCE < 400


def test_validation_data_lifts_the_limit_of_thirty_epochs():
    y = (NOISE[:, 0] > 0).astype(int)  # what helps for long
    model = ff.TabularClassifier(**TINY).fit(NOISE[:19], y[:19], validation_data=(NOISE[30:], y[30:]))
    assert model.n_iter_ > 30
    whole = ff.TabularClassifier(**TINY, early_stopping=False)
    assert whole.fit(NOISE[:19], y[:19], validation_data=(NOISE[30:], y[30:])).n_iter_ == 400


@pytest.mark.parametrize(("estimator", "rate"), [(ff.TabularClassifier, 0.008), (ff.TabularRegressor, 0.002)])
def test_by_default_numbers_are_learned_in_smaller_steps_than_classes(estimator, rate):
    held_out, all_rows = (resolve(estimator(early_stopping=stops), 100, validated=False) for stops in (True, False))
    assert held_out.optimiser.learning_rate == rate
    assert (all_rows.optimiser.learning_rate, all_rows.optimiser.epochs) == (AdamW().learning_rate, SHORT)
    own = resolve(estimator(optimiser=AdamW(0.5)), 100, validated=False)
    assert own.optimiser.learning_rate == 0.5

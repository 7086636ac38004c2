"""`SparseActivationRegressor` and `SparseActivationClassifier`: members of the class, what they learn, what they report."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from fewfire import InvalidArgument, certify, robust_score
from fewfire.learners import SparseActivationClassifier, SparseActivationRegressor
from fewfire.networks import TwoLayer, check_sparsity, construct
from fewfire.problems import NetworkTarget


def member(rows, seed=0, n=12, s=8, k=2, kind="dense"):
    target = NetworkTarget(construct.random_member(n, s, k, seed, kind))
    return *target.sample(rows, seed), *target.sample(2000, seed + 10**6)


@pytest.fixture(scope="module")
def fitted():
    X, y, X_test, y_test = member(600)
    return SparseActivationRegressor(32, 2, random_state=0).fit(X, y), X, y, X_test, y_test


def test_a_member_is_learned_inside_the_class(fitted):
    model, X, _, X_test, y_test = fitted
    assert isinstance(model.network_, TwoLayer) and model.network_.width == 32 and model.network_.dtype == np.float64
    assert model.score(X_test, y_test) > 0.9
    assert model.sparsity_.holds() and model.sparsity_.exceeding() == 0 and model.sparsity_.max_active == 2
    assert model.network_.activity(X).max_active <= 2
    assert np.array_equal(model.predict(X), model.network_(X.astype(float)))
    assert check_sparsity(model.network_, 2, X=X_test).exceeds().high < 0.1  # Remark 11: not on the sample alone


def test_a_dense_network_is_the_case_k_equal_to_width_and_no_member(fitted):
    """The refuting case: without the constraint many more than k fire."""
    _, X, y, X_test, _ = fitted
    dense = SparseActivationRegressor(32, 32, random_state=0).fit(X, y)
    report = check_sparsity(dense.network_, 2, X=X_test)
    assert not report.holds() and report.exceeds().low > 0.2
    assert dense.sparsity_.holds()  # at most 32 of 32


@pytest.mark.parametrize("k", [1, 3, 8])
def test_real_columns_keep_to_k_as_well(k):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(200, 5)) * [1, 1e-6, 1e6, 1, 0] + [0, 0, 3e6, 1e3, 7]
    y = np.abs(X[:, 0]) + X[:, 1] * 1e6
    model = SparseActivationRegressor(16, k, steps=400, random_state=0).fit(X, y)
    assert model.sparsity_.max_active <= k and model.network_.activity(X).max_active <= k
    assert np.all(model.network_.hidden[:, 4] == 0)  # a constant column carries nothing
    assert k == 1 or model.score(X, y) > 0.8


def test_weights_and_biases_keep_to_their_bounds():
    X, y, _, _ = member(300)
    free = SparseActivationRegressor(16, 2, steps=400, random_state=0).fit(X, y)
    W, B = free.norms_.W / 2, free.norms_.B / 3
    held = SparseActivationRegressor(16, 2, W=W, B=B, steps=400, random_state=0).fit(X, y)
    for found in (held.norms_, held.network_.norms()):
        assert found.W <= W and found.B <= B
    assert held.norms_ == pytest.approx(held.network_.norms()) and held.sparsity_.holds()
    assert SparseActivationRegressor(16, 2, B=0.0, steps=100, random_state=0).fit(X, y).norms_.B == 0.0


def test_labels_in_other_units_scale_the_network():
    X, y, _, _ = member(200)
    one = SparseActivationRegressor(16, 2, steps=200, random_state=0).fit(X, y)
    other = SparseActivationRegressor(16, 2, steps=200, random_state=0).fit(X, 1024 * y)
    assert np.allclose(other.predict(X), 1024 * one.predict(X), rtol=1e-4, atol=1e-2)
    assert other.norms_ == pytest.approx((1024 * one.norms_.W, 1024 * one.norms_.B), rel=1e-4)


def test_without_a_constant_the_network_is_in_the_class_itself():
    X, y, _, _ = member(200)
    assert SparseActivationRegressor(16, 2, fit_intercept=False, steps=100).fit(X, y + 1).network_.offset == 0.0


def test_the_same_random_state_gives_the_same_network():
    X, y, _, _ = member(200)
    fits = [SparseActivationRegressor(16, 2, steps=100, random_state=seed).fit(X, y) for seed in (3, 3, 4)]
    assert fits[0].network_.equals(fits[1].network_) and not fits[0].network_.equals(fits[2].network_)


def test_the_decay_is_chosen_on_held_out_rows(fitted):
    model, X, y, _, _ = fitted
    assert list(model.decay_scores_) == [0.0, 0.03, 0.1, 0.3]
    assert model.weight_decay_ == min(model.decay_scores_, key=model.decay_scores_.get)
    given = SparseActivationRegressor(16, 2, weight_decay=0.2, steps=50).fit(X, y)
    assert given.weight_decay_ == 0.2 and given.decay_scores_ == {}
    assert SparseActivationRegressor(4, 2, steps=50).fit(X[:10], y[:10]).weight_decay_ == 0.1  # too few to hold out


@pytest.mark.parametrize("learner", [SparseActivationRegressor, SparseActivationClassifier])
def test_weights_count_as_repetition(learner):
    """Steps on all rows are in float64: 200 of them magnify its roundings to less than 1e-9."""
    X, y, _, _ = member(40)
    y = y if learner is SparseActivationRegressor else (y > 0).astype(int)
    weights = np.random.default_rng(0).integers(0, 4, 40)
    options = {"weight_decay": 0.1, "batch_size": None, "steps": 200, "random_state": 0}
    one = learner(16, 3, **options).fit(X, y, sample_weight=weights)
    other = learner(16, 3, **options).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert np.allclose(one.network_(X.astype(float)), other.network_(X.astype(float)), rtol=1e-9, atol=1e-9)


def test_two_classes():
    X, y, X_test, y_test = member(600, kind="junta", s=16)
    model = SparseActivationClassifier(32, 2, random_state=0).fit(X, np.where(y > 0, "up", "down"))
    right = np.where(y_test > 0, "up", "down")
    assert model.classes_.tolist() == ["down", "up"] and model.score(X_test, right) > 0.95
    proba, score = model.predict_proba(X_test), model.decision_function(X_test)
    assert np.allclose(proba.sum(axis=1), 1) and np.array_equal(proba[:, 1] > 0.5, score > 0)
    assert np.array_equal(model.predict(X_test), model.classes_[(score > 0).astype(int)])
    assert model.sparsity_.max_active <= 2


def test_ten_classes_of_digits_with_four_neurons_per_image():
    X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    model = SparseActivationClassifier(64, 4, weight_decay=0.1, steps=1000, random_state=0).fit(X, y)
    assert model.network_.outputs == 10 and model.sparsity_.max_active <= 4
    assert model.score(X_test, y_test) > 0.9 and model.predict_proba(X_test).shape == (len(X_test), 10)
    assert "64 neurons on 64 columns, at most 4 to fire; W = " in str(model.explain())
    assert "most for output" in str(model.explain())


def test_class_weights_find_the_rare_class():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(600, 3))
    y = (X[:, 0] + draw.normal(size=600) > 2.2).astype(int)
    options = {"width": 8, "k": 2, "weight_decay": 0.3, "steps": 300, "random_state": 0}
    plain, balanced = (SparseActivationClassifier(**options, class_weight=w).fit(X, y) for w in (None, "balanced"))
    assert balanced.predict(X)[y == 1].mean() > plain.predict(X)[y == 1].mean() + 0.2
    total = {0: 0.5 * 600 / (y == 0).sum(), 1: 0.5 * 600 / (y == 1).sum()}
    same = SparseActivationClassifier(**options, class_weight=total).fit(X, y)
    assert np.allclose(same.decision_function(X), balanced.decision_function(X), rtol=1e-3, atol=1e-3)


def test_explain(fitted):
    text = str(fitted[0].explain(2)).splitlines()
    assert text[0].startswith("32 neurons on 12 columns, at most 2 to fire; W = ")
    assert text[1].startswith("on 600 training rows ") and " fire on average, 2 at most; " in text[1]
    assert text[2].startswith("weight decay ") and "held-out loss by decay 0: " in text[2]
    assert len(text) == 5 and text[3].startswith("neuron ") and "·x" in text[3]
    assert len(str(fitted[0].explain(0)).splitlines()) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 5, "width": 4}, "k must be an integer of at least 1 and at most 4; got 5. Remedy: no more neurons can"),
        ({"W": 0.0}, r"W must be a finite number in \(0, inf\); got 0.0"),
        ({"weight_decay": "none"}, "weight_decay must be 'auto' or a number; got 'none'"),
        ({"margin": -1.0}, "margin must be a finite number"),
        ({"validation_fraction": 1.0}, "validation_fraction must be a finite number"),
        ({"steps": 0}, "steps must be an integer of at least 1; got 0"),
    ],
)
def test_bad_arguments(options, message):
    X, y, _, _ = member(40)
    with pytest.raises(InvalidArgument, match=message):
        SparseActivationRegressor(**options).fit(X, y)


def test_bad_class_weights():
    X, y, _, _ = member(40)
    with pytest.raises(InvalidArgument, match="class_weight must be None, 'balanced' or a dict of weights; got 3"):
        SparseActivationClassifier(class_weight=3).fit(X, y > 0)
    with pytest.raises(InvalidArgument, match="class_weight must be above 0 for two classes at least"):
        SparseActivationClassifier(class_weight={True: 0.0}).fit(X, y > 0)


def test_a_rate_that_diverges_is_reported():
    X, y, _, _ = member(40)
    model = SparseActivationRegressor(16, 2, learning_rate=1e30, steps=50, random_state=0)
    with pytest.raises(ArithmeticError, match=r"training left the finite numbers at learning_rate = 1e\+30. Remedy"):
        model.fit(X, y)


def test_attacks_and_certificates_see_the_network():
    X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    model = SparseActivationClassifier(32, 4, weight_decay=0.1, steps=500, random_state=0).fit(X, y)
    clean = model.score(X_test[:100], y_test[:100])
    attacked = robust_score(model, X_test[:100], y_test[:100], rho=4.0)
    proved = certify(model, X_test[:100], y_test[:100], rho=0.01)
    assert attacked < clean and proved.accuracy <= clean
    regressor = SparseActivationRegressor(8, 2, weight_decay=0.1, steps=100, random_state=0).fit(X, y)
    assert robust_score(regressor, X_test, y_test, rho=1.0) < regressor.score(X_test, y_test)


def test_the_neurons_that_fire_are_counted_and_named(fitted):
    model, X, _, _, _ = fitted
    fires = (model.network_.preactivations(X.astype(float)) > 0).mean(axis=0)
    assert np.array_equal(model.firing_, fires) and model.alive_ == np.count_nonzero(fires)
    assert isinstance(model.alive_, int) and 2 < model.alive_ <= 32
    assert f"2 at most; {model.alive_} of 32 neurons fire on some row" in str(model.explain())
    dead = np.flatnonzero(model.firing_ == 0)
    without = model.network_.with_parameters(output=np.where(model.firing_ > 0, model.network_.output, 0.0))
    assert np.allclose(without(X.astype(float)), model.predict(X)) and len(dead) == 32 - model.alive_


def test_a_wide_network_uses_its_neurons_where_the_target_has_many():
    """A target of 64 neurons and a fit of 256: a network that is left with 20 explains about a third of the variance."""
    X, y, X_test, y_test = member(4000, n=16, s=64, k=1)
    model = SparseActivationRegressor(256, 4, weight_decay=0.0, random_state=0).fit(X, y)
    assert model.alive_ > 64 and model.sparsity_.max_active <= 4
    assert model.score(X_test, y_test) > 0.4


@pytest.mark.parametrize("batch_size", [32, None])
@pytest.mark.parametrize("labels", ["one", "two classes", "three classes"])
def test_bounds_hold_exactly(batch_size, labels):
    X, y, _, _ = member(200)
    for bound in (2.0, 0.3, 1e-3):
        options = {"W": bound, "B": bound, "weight_decay": 0.0, "steps": 300, "batch_size": batch_size}
        if labels == "one":
            model = SparseActivationRegressor(16, 4, random_state=0, **options).fit(X, 3.7 * y)
        else:
            model = SparseActivationClassifier(16, 4, random_state=0, **options)
            model.fit(X, y > 0 if labels == "two classes" else np.digitize(y, np.quantile(y, [0.3, 0.6])))
        for found in (model.norms_, model.network_.norms()):
            assert max(found.W, found.B) <= bound
        assert max(model.norms_) > 0.99 * bound and model.sparsity_.holds()

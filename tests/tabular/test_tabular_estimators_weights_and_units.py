"""Weights of rows and classes: which are refused, which rows they leave out; and units of weights and targets."""

import numpy as np
import pytest

import fewfire as ff
from fewfire.tabular import AdamW

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 3)), np.arange(30) % 2
QUICK = {
    "hidden": (8,),
    "trees": False,
    "members": 1,
    "scaling": "standard",
    "gains": "none",
    "random_state": 0,
    "optimiser": AdamW(epochs=3),
}


@pytest.mark.parametrize("class_weight", [{0: 2.0}, "balanced"])
def test_unknown_labels_are_named_before_they_are_weighed(class_weight):
    with pytest.raises(ff.InvalidArgument, match="y may hold only the classes 0, 1; got 2"):
        ff.TabularClassifier(**QUICK, class_weight=class_weight).fit(X, Y, validation_data=(X, Y + 1))


@pytest.mark.parametrize(
    ("class_weight", "text"),
    [
        ({0: -1.0}, "class_weight[0] must be a finite number in [0, inf); got -1.0."),
        ({0: np.nan}, "class_weight[0] must be a finite number in [0, inf); got nan."),
        ({1: np.inf}, "class_weight[1] must be a finite number in [0, inf); got inf."),
        ({1: "2"}, "class_weight[1] must be a finite number in [0, inf); got '2'."),
        (
            {"yes": 5},
            "class_weight may name only the classes 0, 1; got 'yes'. "
            "Remedy: remove the key; labels and keys must be of one type.",
        ),
        ({0: 0, 1: 0}, "class_weight must leave some row a weight above 0; got {0: 0, 1: 0}."),
    ],
)
def test_class_weights_are_checked(class_weight, text):
    with pytest.raises(ff.InvalidArgument) as caught:
        ff.TabularClassifier(**QUICK, class_weight=class_weight).fit(X, Y)
    assert str(caught.value) == text


def test_classes_of_weight_0_are_left_out_like_rows_of_weight_0():
    y = np.arange(30) % 3
    by_class = ff.TabularClassifier(**QUICK, class_weight={2: 0}).fit(X, y)
    by_row = ff.TabularClassifier(**QUICK).fit(X, np.minimum(y, 1), sample_weight=1.0 * (y < 2))
    assert by_class.classes_.tolist() == [0, 1, 2]  # the class stays known
    assert by_class.predict_proba(X)[:, 2].max() < 0.1
    assert len(by_class.validation_curve_) == len(by_row.validation_curve_) == 3
    # 20 rows of 30 are left, and 19 are too few to hold any out.
    assert not ff.TabularClassifier(**QUICK, class_weight={2: 0}).fit(X[1:], y[1:]).validation_curve_
    far = np.where((y == 2)[:, None], 1e6 * X, X)  # the inputs of those rows are of no account
    np.testing.assert_array_equal(
        ff.TabularClassifier(**QUICK, class_weight={2: 0}).fit(far, y).predict_proba(X), by_class.predict_proba(X)
    )


@pytest.mark.parametrize("unit", [1e308, 1e-308, 5e-324])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1e308, 1: 1e308}])
def test_the_unit_of_weights_does_not_matter(unit, class_weight):
    plain = ff.TabularClassifier(**QUICK).fit(X, Y).decision_function(X)
    scaled = ff.TabularClassifier(**QUICK, class_weight=class_weight).fit(X, Y, sample_weight=np.full(30, unit))
    np.testing.assert_allclose(scaled.decision_function(X), plain, atol=1e-6)
    numbers = ff.TabularRegressor(**QUICK).fit(X, Y, sample_weight=np.full(30, unit))
    np.testing.assert_allclose(numbers.predict(X), ff.TabularRegressor(**QUICK).fit(X, Y).predict(X), atol=1e-6)


def test_rows_too_light_for_float32_are_left_out():
    weight = np.where(np.arange(30) < 25, 1.0, 1e-300)
    light = ff.TabularClassifier(**QUICK, class_weight="balanced").fit(X, Y, sample_weight=weight)
    without = ff.TabularClassifier(**QUICK, class_weight="balanced").fit(X[:25], Y[:25])
    np.testing.assert_array_equal(light.decision_function(X), without.decision_function(X))


@pytest.mark.parametrize("heaviest", [1e10, 1e30])
def test_one_row_may_outweigh_all_others(heaviest):
    weight = np.where(np.arange(30) < 1, heaviest, 1.0)
    settings = {**QUICK, "trees": True, "members": 4}  # one of four parts of the rows has the heavy one held out
    chances = ff.TabularClassifier(**settings).fit(X, Y, weight).predict_proba(X)
    numbers = ff.TabularRegressor(**settings).fit(X, X[:, 0], weight).predict(X)
    assert np.isfinite(chances).all() and np.isfinite(numbers).all()


def test_a_weight_for_a_class_that_a_fold_lacks_is_ignored_where_all_others_are_named():
    named = ff.TabularClassifier(**QUICK, class_weight={0: 1, 1: 2, 2: 5}).fit(X, Y)
    plain = ff.TabularClassifier(**QUICK, class_weight={1: 2}).fit(X, Y)
    assert np.array_equal(named.decision_function(X), plain.decision_function(X))


# The regressor's targets in any unit that float64 holds.
NUMBERS = X[:, 0] + 2.0
SLOWER = {**QUICK, "optimiser": AdamW(0.01, epochs=20)}


@pytest.mark.parametrize("power", [-660, -200, 530, 1000])  # 2^530 is 3e159, 2^-660 is 2e-199
def test_the_unit_of_targets_does_not_matter(power):
    plain = ff.TabularRegressor(**SLOWER).fit(X, NUMBERS).predict(X)
    scaled = ff.TabularRegressor(**SLOWER).fit(X, np.ldexp(NUMBERS, power)).predict(X)
    assert np.array_equal(np.ldexp(scaled, -power), plain)
    assert np.corrcoef(plain, NUMBERS)[0, 1] > 0.9


def test_targets_of_very_different_units_are_learned_together():
    units = np.array([1e160, 1e-200, 1.0])
    model = ff.TabularRegressor(**SLOWER).fit(X, NUMBERS[:, None] * units)
    found = model.predict(X) / units
    assert min(np.corrcoef(found[:, column], NUMBERS)[0, 1] for column in range(3)) > 0.9


def test_a_large_constant_target_is_predicted():
    found = ff.TabularRegressor(**SLOWER).fit(X, np.full(30, 1e200)).predict(X)
    np.testing.assert_allclose(found, 1e200)

"""Inputs of the tabular learners: scalings, missing values, constant columns, frames, gains and views."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import fewfire as ff
from fewfire.learners.sparse_init import AdamW
from fewfire.learners.sparse_init._columns import learn_columns
from fewfire.learners.sparse_init._relevance import explained_shares, input_gains
from fewfire.learners.sparse_init._views import View, choose_views, learn_inputs

QUICK = {"hidden": (16,), "members": 2, "optimiser": AdamW(0.01, epochs=5), "random_state": 0}


def ones(rows):
    return np.ones(rows)


def test_standard_is_mean_and_deviation():
    table = np.array([[1.0, 10.0], [3.0, 30.0], [8.0, 20.0]])
    expected = (table - table.mean(axis=0)) / table.std(axis=0)
    np.testing.assert_allclose(learn_columns(table, ones(3)).transform(table, "standard"), expected, rtol=1e-6)


def test_bins_are_the_way_through_each_of_sixteen_equal_parts():
    values = np.arange(161.0)[:, None]
    columns = learn_columns(values, ones(161))
    inputs = columns.transform(values, "bins")
    assert inputs.shape == (161, 17)
    z = columns.transform(values, "standard")[:, 0]
    np.testing.assert_allclose(inputs[:, 0], z / np.sqrt(1 + (z / 4) ** 2), rtol=1e-6)
    np.testing.assert_allclose(inputs[:, 1:].sum(axis=1), 4 * (2 * values[:, 0] / 160 - 1), atol=0.5)
    assert (np.diff(inputs, axis=0) >= 0).all() and (np.abs(inputs[:, 1:]) <= 0.25).all()
    inside = np.count_nonzero(np.abs(inputs[:, 1:]) < 0.25, axis=1)
    assert inside.max() == 1  # a value is inside one bin, above those before it and below those after
    far = columns.transform(np.array([[-1e30], [1e30]]), "bins")
    assert (far[0, 1:] == -0.25).all() and (far[1, 1:] == 0.25).all() and far[:, 0].tolist() == [-4, 4]


def test_a_value_taken_often_is_one_edge():
    values = np.r_[np.zeros(900), np.arange(1.0, 101.0)][:, None]
    edges = learn_columns(values, ones(1000)).columns[0].edges
    assert edges[0] == 0 and edges[1] > 0 and edges[-1] == 100 and len(edges) == 3


def test_bins_of_wide_tables_are_fewer():
    rng = np.random.default_rng(0)
    for columns, bins in ((10, 16), (20, 12), (100, 2), (300, 2)):
        table = rng.normal(size=(50, columns))
        learned = learn_columns(table, ones(50))
        assert {len(column.edges) - 1 for column in learned.columns} == {bins}
        assert learned.transform(table, "bins").shape == (50, columns * (bins + 1))


def test_quantile_gives_normal_scores_of_ranks():
    values = np.array([5.0, 1.0, 100.0, 2.0])
    scores = learn_columns(values[:, None], ones(4)).transform(values[:, None], "quantile")[:, 0]
    np.testing.assert_allclose(scores, norm.ppf(np.array([2.5, 0.5, 3.5, 1.5]) / 4), rtol=1e-6)
    many = np.random.default_rng(0).exponential(size=(5000, 1))
    columns = learn_columns(many, ones(5000))
    assert len(columns.columns[0].knots[0]) == 256
    assert (
        np.abs(np.sort(columns.transform(many, "quantile")[:, 0]) - norm.ppf((np.arange(5000) + 0.5) / 5000)).mean()
        < 0.01
    )


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=12), st.integers(0, 100))
def test_a_weight_is_a_number_of_rows(values, seed):
    table = np.array(values, dtype=float)[:, None]
    count = np.random.default_rng(seed).integers(1, 4, len(values))
    weighted, repeated = (
        learn_columns(table, count.astype(float)),
        learn_columns(table.repeat(count, axis=0), ones(count.sum())),
    )
    for scaling in ("standard", "bent", "quantile", "bins"):
        np.testing.assert_allclose(weighted.transform(table, scaling), repeated.transform(table, scaling), atol=1e-6)


def test_missing_values_become_the_median_and_a_flag():
    table = np.array([[1.0, 1.0], [np.nan, 2.0], [3.0, 4.0], [8.0, 3.0]])
    columns = learn_columns(table, ones(4))
    inputs = columns.transform(table, "standard")
    assert inputs.shape == (4, 3)
    assert inputs[:, 2].tolist() == [0, 1, 0, 0]
    binned = columns.transform(table, "bins")
    assert np.array_equal(binned[:, :3], columns.transform(table, "bent"))
    assert columns.sources("bins").tolist() == [0, 1, 2, *[0] * 2, *[1] * 3]
    assert np.array_equal(binned[1, 3:5], columns.columns[0].bins(np.array([3.0]))[0])
    assert inputs[1, 0] == pytest.approx((3 - 4) / np.std([1, 3, 8]))
    late = columns.transform(np.array([[1.0, np.nan]]), "standard")  # never missed in training: filled, not flagged
    assert late[0, 1] == pytest.approx(0.0, abs=1e-6)


def test_constant_and_empty_columns_change_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    wide = np.column_stack([np.full(40, 7.0), X, np.full(40, np.nan)])
    plain, padded = (ff.SparseInitClassifier(**QUICK).fit(table, y).decision_function(table) for table in (X, wide))
    assert np.array_equal(plain, padded)


def test_a_table_of_constants_predicts_the_majority():
    y = np.array([0] * 10 + [1] * 20)
    model = ff.SparseInitClassifier(**QUICK).fit(np.ones((30, 2)), y)
    assert (model.predict(np.zeros((3, 2))) == 1).all()


@pytest.mark.parametrize("known", ["drawn", "one value"])
def test_missing_values_can_carry_the_label(known):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.integers(0, 2, 100)
    X[:, 0] = X[:, 0] if known == "drawn" else 1.0
    X[y == 1, 0] = np.nan
    model = ff.SparseInitClassifier(**{**QUICK, "optimiser": AdamW(0.03, epochs=40)}).fit(X, y)
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_frames_are_arrays_with_names(package):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    X[3, 1] = np.nan
    y = (X[:, 0] > 0).astype(int)
    expected = ff.SparseInitClassifier(**QUICK).fit(X, y).decision_function(X)
    frame = pytest.importorskip(package).DataFrame({"a": X[:, 0], "b": X[:, 1]})
    model = ff.SparseInitClassifier(**QUICK).fit(frame, y)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert np.array_equal(model.decision_function(frame), expected)


def test_shares_are_explained_variance_beyond_chance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    target = np.column_stack([np.sign(X[:, 0]) + rng.normal(size=20_000)])
    shares = explained_shares(X, target, ones(20_000))
    # Five bins of a sign plus noise of the same variance: four bins are pure, the middle one is mixed.
    assert shares[0] == pytest.approx(0.8 * 0.5, abs=0.02)
    assert shares[1:].max() < 4 * np.sqrt(8) / 20_000  # chance: a χ² of 4 degrees, over the rows
    idle = explained_shares(X[:300], rng.normal(size=(300, 1)), ones(300))
    assert (idle >= 0).all()


@pytest.mark.parametrize("ones", [0.05, 0.1, 0.5, 0.95])
def test_shares_see_columns_of_two_values_however_rare_one_is(ones):
    column = (np.arange(1000) < 1000 * ones).astype(np.float32)[:, None]
    assert explained_shares(column, column, np.ones(1000))[0] == pytest.approx(1 - 1 / 999)


def test_shares_are_not_squeezed_by_an_outlier():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(300, 1))
    target = (table > 0).astype(np.float32)
    plain = learn_inputs(table, target, ones(300)).shares
    table[table.argmax()] = 1e15
    np.testing.assert_allclose(learn_inputs(table, target, ones(300)).shares, plain)


def test_huge_and_tiny_columns_are_scaled_alike():
    values = np.random.default_rng(0).normal(size=(50, 1))
    expected = learn_columns(values, ones(50)).transform(values, "bins")
    for size in (2.0**900, 2.0**-900):
        columns = learn_columns(values * size, ones(50))
        np.testing.assert_allclose(columns.transform(values * size, "bins"), expected, rtol=1e-5)
        far = columns.transform(np.array([[1e300], [-1e308]]), "bent")
        assert (np.abs(far) <= 4).all() and far[0] >= 0 >= far[1]


def test_a_vanishing_weight_has_a_finite_rank():
    values = np.arange(5.0)[:, None]
    weight = np.array([1e-40, 1, 1, 1, 1e-30])
    assert np.isfinite(learn_columns(values, weight).transform(values, "quantile")).all()


def test_gains_of_every_kind():
    shares = np.array([0.0, 0.01, 0.04])
    assert input_gains(shares, "none").tolist() == [1, 1, 1]
    np.testing.assert_allclose(input_gains(shares, "mild"), [0.1, 0.55, 1.0])
    np.testing.assert_allclose(input_gains(shares, "strong"), [0, 0.25, 1.0])
    assert input_gains(np.zeros(2), "strong").tolist() == [1, 1]


def test_views_show_scaled_inputs_times_gains():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(200, 2))
    inputs = learn_inputs(table, table[:, :1], ones(200))
    plain, strong = (inputs.transform(table, View("standard", gain)) for gain in ("none", "strong"))
    gains = input_gains(inputs.shares, "strong")
    np.testing.assert_allclose(strong, plain * gains)
    bins, gained = (inputs.transform(table, View("bins", gain)) for gain in ("none", "strong"))
    np.testing.assert_allclose(gained, bins * np.r_[gains, gains.repeat(16)])
    waves = View("waves", "strong")
    assert np.array_equal(inputs.transform(table, waves), gained[:, :2])
    assert (inputs.count(waves), inputs.count(View("bins", "none"))) == (2, 34)
    assert len(choose_views("auto", "auto")) == 9
    assert choose_views("bins", "mild") == [View("bins", "mild")]

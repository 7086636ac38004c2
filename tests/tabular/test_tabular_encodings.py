"""Encodings and embeddings by themselves: what they compute, as scikit-learn transformers, and their registry."""

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.utils.estimator_checks import parametrize_with_checks

import fewfire as ff
from fewfire._dense import network as _network
from fewfire._dense.network import PeriodicEmbedding
from fewfire.tabular import ENCODINGS, AdamW, Embedding, Encoding, _encodings
from fewfire.tabular._encodings import PiecewiseLinearEncoding, RankEncoding, StandardScaling

FITTED = [StandardScaling(), StandardScaling(clip=4.0), RankEncoding(), PiecewiseLinearEncoding()]


@pytest.mark.no_cover
@parametrize_with_checks(FITTED)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("module", [_encodings, _network])
def test_examples_of_the_docstrings(module):
    found = doctest.testmod(module)
    assert found.attempted > 0 and not found.failed


def test_standard_is_mean_and_deviation():
    table = np.array([[1.0, 10.0], [3.0, 30.0], [8.0, 20.0]])
    expected = (table - table.mean(axis=0)) / table.std(axis=0)
    np.testing.assert_allclose(StandardScaling().fit_transform(table), expected, rtol=1e-12)


def test_smooth_clipping_bends_and_never_exceeds():
    z = np.array([[0.0], [0.5], [-3.0], [30.0], [-1e300]])
    scaling = StandardScaling(clip=4.0).fit([[-1.0], [1.0]])
    np.testing.assert_allclose(scaling.transform(z[:4]), z[:4] / np.sqrt(1 + (z[:4] / 4) ** 2), rtol=1e-12)
    assert scaling.transform(z)[-1] == -4.0


def test_bins_are_the_way_through_each_of_sixteen_equal_parts():
    values = np.arange(161.0)[:, None]
    encoding = PiecewiseLinearEncoding().fit(values)
    inputs = encoding.transform(values)
    assert inputs.shape == (161, 16)
    np.testing.assert_allclose(inputs.sum(axis=1), 4 * (2 * values[:, 0] / 160 - 1), atol=0.5)
    assert (np.diff(inputs, axis=0) >= 0).all() and (np.abs(inputs) <= 0.25).all()
    inside = np.count_nonzero(np.abs(inputs) < 0.25, axis=1)
    assert inside.max() == 1  # a value is inside one bin, above those before it and below those after
    far = encoding.transform(np.array([[-1e30], [1e30]]))
    assert (far[0] == -0.25).all() and (far[1] == 0.25).all()


def test_a_value_taken_often_is_one_edge():
    values = np.r_[np.zeros(900), np.arange(1.0, 101.0)][:, None]
    (edges,) = PiecewiseLinearEncoding().fit(values).edges_
    assert edges[0] == 0 and edges[1] > 0 and edges[-1] == 100 and len(edges) == 3


def test_bins_of_wide_tables_are_fewer():
    rng = np.random.default_rng(0)
    for columns, bins in ((10, 16), (20, 12), (100, 2), (300, 2)):
        table = rng.normal(size=(50, columns))
        encoding = PiecewiseLinearEncoding().fit(table)
        assert {len(edges) - 1 for edges in encoding.edges_} == {bins}
        assert encoding.transform(table).shape == (50, columns * bins)
        assert encoding.sources().tolist() == np.arange(columns).repeat(bins).tolist()
        assert len(encoding.get_feature_names_out()) == columns * bins


def test_ranks_become_normal_quantiles():
    values = np.array([5.0, 1.0, 100.0, 2.0])
    scores = RankEncoding().fit_transform(values[:, None])[:, 0]
    np.testing.assert_allclose(scores, norm.ppf(np.array([2.5, 0.5, 3.5, 1.5]) / 4), rtol=1e-12)
    many = np.random.default_rng(0).exponential(size=(5000, 1))
    encoding = RankEncoding().fit(many)
    assert len(encoding.knots_[0][0]) == 256
    exact = norm.ppf((np.arange(5000) + 0.5) / 5000)
    assert np.abs(np.sort(encoding.transform(many)[:, 0]) - exact).mean() < 0.01


@settings(max_examples=25)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=12), st.integers(0, 100))
def test_a_weight_is_a_number_of_rows(values, seed):
    table = np.array(values, dtype=float)[:, None]
    count = np.random.default_rng(seed).integers(0, 4, len(values))
    count[0] += 1
    for encoding in FITTED:
        weighted = encoding.fit(table, sample_weight=count).transform(table)
        repeated = encoding.fit(table.repeat(count, axis=0)).transform(table)
        np.testing.assert_allclose(weighted, repeated, atol=1e-12)


def test_missing_values_are_left_out_and_kept():
    table = np.array([[1.0], [np.nan], [3.0], [8.0]])
    for encoding in FITTED:
        encoded = encoding.fit_transform(table)
        assert np.isnan(encoded[1]).all() and np.isfinite(encoded[[0, 2, 3]]).all()
        assert np.array_equal(encoded[[0, 2, 3]], encoding.fit_transform(table[[0, 2, 3]]))
        with pytest.raises(ff.InvalidArgument) as caught:
            encoding.fit(np.array([[1.0, np.nan], [2.0, np.nan]]))
        text = "X must have a value in every column; got NaN alone in column 1. Remedy: drop the column."
        assert str(caught.value) == text


def test_huge_and_tiny_columns_are_scaled_alike():
    values = np.random.default_rng(0).normal(size=(50, 1))
    for encoding in FITTED:
        expected = encoding.fit_transform(values)
        for size in (2.0**900, 2.0**-900):
            np.testing.assert_allclose(encoding.fit_transform(values * size), expected, rtol=1e-5)
            far = encoding.transform(np.array([[1e300], [-1e308]]))
            assert np.isfinite(far).all() and (far[0] >= far[1]).all()


def test_a_vanishing_weight_has_a_finite_rank():
    values = np.arange(5.0)[:, None]
    weight = np.array([1e-40, 1, 1, 1, 1e-30])
    assert np.isfinite(RankEncoding().fit(values, sample_weight=weight).transform(values)).all()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: StandardScaling(clip=0.0), "clip must be a finite number in (0, inf); got 0.0."),
        (lambda: RankEncoding(knots=1), "knots must be an integer of at least 2; got 1."),
        (lambda: PiecewiseLinearEncoding(bins=0), "bins must be an integer of at least 1; got 0."),
        (lambda: PeriodicEmbedding(0), "frequencies must be an integer of at least 1; got 0."),
        (lambda: PeriodicEmbedding(4, 0.0), "frequency_scale must be a finite number in (0, inf); got 0.0."),
    ],
)
def test_settings_are_checked(make, text):
    with pytest.raises(ff.InvalidArgument) as caught:
        make().fit(np.eye(3))
    assert str(caught.value) == text


def test_periodic_embeddings_start_low_and_mixed():
    (mix, frequency, phase, bias), _ = PeriodicEmbedding().build(inputs=200, rows=1)
    assert frequency.std() == pytest.approx(0.1, rel=0.05)  # 3200 draws: 1.25% of standard error
    assert mix.std() == pytest.approx(0.25, rel=0.05)
    assert 3.1 < np.abs(phase).max() <= np.pi and not bias.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_periodic_layers_are_sums_of_cosines(dtype):
    rng = np.random.default_rng(0)
    parameters = [rng.normal(size=shape).astype(dtype) for shape in ((3, 5), (3, 5), (3, 5), (3,))]
    X = rng.normal(size=(7, 3)).astype(dtype)
    mix, frequency, phase, bias = parameters
    expected = (mix * np.cos(2 * np.pi * frequency * X[:, :, None] + phase)).sum(axis=2) + bias
    for gradient in (True, False):
        fed = PeriodicEmbedding(5).layer(parameters, 10, gradient=gradient).forward(X)
        np.testing.assert_allclose(fed, np.hstack([X, expected]), atol=1e-4 if dtype == np.float32 else 1e-13)


class Steps(Encoding):
    """A toy from outside the package: which side of its median a value lies on, in addition to the column."""

    added = True

    def fit_ranks(self, columns):
        self.medians_ = np.array([np.interp(0.5, column.middle, column.distinct) for column in columns])
        return self

    def encode(self, table):
        return np.where(table > self.medians_, 0.5, -0.5)

    def sources(self):
        return np.arange(len(self.medians_))


class Squares(Embedding):
    """A toy embedding: the square of each input, times a number that is learned."""

    def outputs(self, inputs):
        return inputs

    def matrices(self, inputs):
        return []

    def vectors(self, inputs):
        return [(inputs,)]

    def kept(self, inputs):
        return 0

    def draw(self, parameters, stream):
        parameters[0][:] = 1.0

    def layer(self, parameters, rows, *, gradient=True, by=None):
        return SquareLayer(parameters[0])


class SquareLayer:
    def __init__(self, scale):
        self.scale = scale

    def forward(self, X):
        return np.hstack([X, X**2 * self.scale]).astype(self.scale.dtype)

    def backward(self, X, slopes, into=None):
        into[0][:] = (slopes * X**2).sum(axis=0)
        return into


@pytest.mark.parametrize(("name", "toy"), [("steps", Steps), ("squares", Squares)])
def test_an_encoding_from_outside_is_one_class_and_one_entry(monkeypatch, name, toy):
    monkeypatch.setitem(ENCODINGS, name, toy)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] ** 2 > 0.5).astype(int) if name == "squares" else (X[:, 0] > np.median(X[:, 0])).astype(int)
    settings = {"hidden": (8,), "members": 2, "gains": "none", "optimiser": AdamW(0.01, epochs=20), "random_state": 0}
    model = ff.TabularClassifier(scaling=name, trees=False, **settings).fit(X, y)
    assert list(model.mixing_weights_) == [f"{name}, no gains"] and model.score(X, y) > 0.9
    (group,) = model._ensemble.groups.values()
    assert group.layout.fed == 4
    with pytest.raises(ff.InvalidArgument, match=f"'periodic', '{name}'; got 'minmax'"):
        ff.TabularClassifier(scaling="minmax").fit(X, y)

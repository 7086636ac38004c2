"""From tables to inputs: missing values, constant columns, frames, relevance gains and variants."""

import numpy as np
import pytest

import fewfire as ff
from fewfire.tabular import AdamW, _ensemble
from fewfire.tabular._encodings import PLAIN, Columns, explained_shares, learn_columns, relevance_gains
from fewfire.tabular._ensemble import Variant, choose_variants

QUICK = {"hidden": (16,), "members": 2, "optimiser": AdamW(0.01, epochs=5), "random_state": 0}
NAMES = ("standard", "rank", "piecewise_linear", "periodic")


def ones(rows):
    return np.ones(rows)


def test_missing_values_become_the_median_and_a_flag():
    table = np.array([[1.0, 1.0], [np.nan, 2.0], [3.0, 4.0], [8.0, 3.0]])
    columns = learn_columns(table, ones(4), NAMES)
    encoded = columns.encode(table)
    inputs, binned = encoded["standard"], encoded["piecewise_linear"]
    assert inputs.shape == (4, 3)
    assert inputs[:, 2].tolist() == [0, 1, 0, 0]
    assert np.array_equal(binned[:, :3], encoded[PLAIN]) and np.array_equal(encoded["periodic"], encoded[PLAIN])
    assert columns.sources("piecewise_linear").tolist() == [0, 1, 2, *[0] * 2, *[1] * 3]
    filled = columns.encodings["piecewise_linear"].encode(np.array([[3.0, 2.0]]))
    assert np.array_equal(binned[1, 3:5], filled[0, :2])
    assert inputs[1, 0] == pytest.approx((3 - 4) / np.std([1, 3, 8]))
    late = columns.encode(np.array([[1.0, np.nan]]))["standard"]  # never missed in training: filled, not flagged
    assert late[0, 1] == pytest.approx(0.0, abs=1e-6)


def test_each_encoding_of_a_table_is_computed_once(monkeypatch):
    calls = []
    for name, encoding in ff.tabular.ENCODINGS.items():
        if issubclass(encoding, ff.tabular.Encoding):
            encode = encoding.encode
            monkeypatch.setattr(
                encoding, "encode", lambda self, X, name=name, f=encode: (calls.append(name), f(self, X))[1]
            )
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    model = ff.TabularClassifier(**QUICK).fit(X, X[:, 0] > 0)
    assert sorted(calls) == ["piecewise_linear", "rank", "standard"]  # of nine variants; clipped columns are "standard"
    calls.clear()
    model.predict(X)
    assert len(calls) == len(set(calls))


@pytest.mark.parametrize("threads", [1, 4])
def test_a_part_of_a_table_is_encoded_as_the_whole_is(threads):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(400, 9))
    table[rng.random(table.shape) < 0.1] = np.nan
    columns = learn_columns(table, ones(400), NAMES, threads)
    whole, rows = columns.encode(table), rng.permutation(400)[:50]
    before = columns.encode(table).part(rows)
    for name in (PLAIN, *NAMES):
        assert np.array_equal(whole[name][rows], before[name])
        assert np.array_equal(whole[name][rows], whole.part(rows)[name])
    assert np.array_equal(whole.raw()[rows], before.raw(), equal_nan=True)


def test_predictions_are_made_in_blocks_of_rows_and_are_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[::5, 1] = np.nan
    models = ff.TabularClassifier(**QUICK).fit(X, X[:, 0] > 0), ff.TabularRegressor(**QUICK).fit(X, X[:, :2] > 0)
    whole = [getattr(model, said)(X) for model in models for said in ("predict", "_outputs")]
    sizes, encode = [], Columns.encode
    monkeypatch.setattr(Columns, "encode", lambda self, table: (sizes.append(len(table)), encode(self, table))[1])
    monkeypatch.setattr(_ensemble, "BLOCK", 25)
    parts = [getattr(model, said)(X) for model in models for said in ("predict", "_outputs")]
    assert sizes == 4 * [25, 25, 10]
    for one, other in zip(whole, parts, strict=True):
        assert np.array_equal(one, other)


def test_trees_see_columns_as_they_are_unless_float32_would_blur_them():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=200)
    suited = [noise, 1e9 * noise, rng.integers(1990, 2020, 200), np.where(noise > 1, noise, 7.0), 100 + 0.1 * noise]
    gone = np.where(noise > 1, 0.0, 1e9 + noise)  # 0 where nothing is known does not widen the rest
    blurred = [1e7 + noise, gone, np.where(noise > 0, 1e9, 1e9 + 1), 1.5e308 * (1 + 1e-9 * noise)]
    table = np.column_stack([*suited, *blurred])
    columns = learn_columns(table, ones(200), NAMES)
    seen = columns.encode(table).raw()
    assert np.array_equal(seen[:, :5], table[:, :5]) and columns.offsets[:5].tolist() == [0] * 5
    for place in range(5, 9):
        alike = len(np.unique(seen[:, place].astype(np.float32) if place < 8 else seen[:, place]))
        assert alike == len(np.unique(table[:, place])) and np.abs(columns.offsets[place]) > 9e6
    assert columns.encode(-table).raw()[0, 8] == -np.inf


def test_constant_and_empty_columns_change_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    wide = np.column_stack([np.full(40, 7.0), X, np.full(40, np.nan)])
    plain, padded = (ff.TabularClassifier(**QUICK).fit(table, y).decision_function(table) for table in (X, wide))
    assert np.array_equal(plain, padded)


def test_a_table_of_constants_predicts_the_majority():
    y = np.array([0] * 10 + [1] * 20)
    model = ff.TabularClassifier(**QUICK).fit(np.ones((30, 2)), y)
    assert (model.predict(np.zeros((3, 2))) == 1).all()


@pytest.mark.parametrize("known", ["drawn", "one value"])
def test_missing_values_can_carry_the_label(known):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.integers(0, 2, 100)
    X[:, 0] = X[:, 0] if known == "drawn" else 1.0
    X[y == 1, 0] = np.nan
    model = ff.TabularClassifier(**{**QUICK, "optimiser": AdamW(0.03, epochs=40)}).fit(X, y)
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_frames_are_arrays_with_names(package):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    X[3, 1] = np.nan
    y = (X[:, 0] > 0).astype(int)
    expected = ff.TabularClassifier(**QUICK).fit(X, y).decision_function(X)
    frame = pytest.importorskip(package).DataFrame({"a": X[:, 0], "b": X[:, 1]})
    model = ff.TabularClassifier(**QUICK).fit(frame, y)
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

    def shares():
        return explained_shares(learn_columns(table, ones(300), NAMES).encode(table)["rank"], target, ones(300))

    plain = shares()
    table[table.argmax()] = 1e15
    np.testing.assert_allclose(shares(), plain)


def test_gains_of_every_kind():
    shares = np.array([0.0, 0.01, 0.04])
    assert relevance_gains(shares, "none").tolist() == [1, 1, 1]
    np.testing.assert_allclose(relevance_gains(shares, "mild"), [0.1, 0.55, 1.0])
    np.testing.assert_allclose(relevance_gains(shares, "strong"), [0, 0.25, 1.0])
    assert relevance_gains(np.zeros(2), "strong").tolist() == [1, 1]


def test_every_input_has_the_gain_of_the_column_it_comes_from():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(200, 2))
    ensemble = ff.TabularRegressor(**QUICK, early_stopping=False).fit(table, table[:, 0])._ensemble
    gains = relevance_gains(ensemble.shares, "strong")
    assert gains[0] == 1 > gains[1]
    found = ensemble._gains(Variant("piecewise_linear", "strong"), ensemble.shares)
    assert np.array_equal(found, np.r_[gains, gains.repeat(16)])
    for encoding in ("rank", "periodic"):
        assert np.array_equal(ensemble._gains(Variant(encoding, "strong"), ensemble.shares), gains)
    inputs = {str(variant): group.layout.inputs for variant, group in ensemble.groups.items()}
    assert inputs["periodic, mild gains"] == 2 and inputs["piecewise_linear, no gains"] == 34


def test_variants_are_all_that_settings_leave_open():
    assert len(choose_variants("auto", "auto")) == 9
    assert choose_variants("piecewise_linear", "mild") == [Variant("piecewise_linear", "mild")]

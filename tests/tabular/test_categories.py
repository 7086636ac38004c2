"""Categories and other dirt in tables: frames, codes, missing and unseen values, what is refused and how."""

import datetime
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import fewfire as ff
from fewfire._dense.network import Rows
from fewfire.tabular import AdamW, _frames, _trees
from fewfire.tabular._encodings import Columns
from fewfire.tabular._frames import MOST_OUTPUTS, UNSEEN, _few_outputs, learn_categories, learn_reader

pl = pytest.importorskip("polars")
QUICK = {"hidden": (16,), "members": 2, "optimiser": AdamW(0.02, epochs=15), "random_state": 0}


def town_table(rows=240, towns=30, seed=0):
    """Columns x (of little use), town (many categories, of much use) and size (three); labels."""
    rng = np.random.default_rng(seed)
    effect = np.linspace(-3, 3, towns)[rng.permutation(towns)]
    town, size, x = rng.integers(0, towns, rows), rng.integers(0, 3, rows), rng.normal(size=rows)
    y = (effect[town] + (size == 1) + 0.3 * x + 0.5 * rng.normal(size=rows) > 0.3).astype(int)
    frame = pd.DataFrame(
        {"x": x, "town": [f"town {t}" for t in town], "size": pd.Categorical.from_codes(size, list("SML"))}
    )
    return frame, y


def codes(frame):
    return np.column_stack([frame["x"], pd.factorize(frame["town"])[0], frame["size"].cat.codes])


@pytest.mark.parametrize("kind", ["pandas", "polars", "codes", "objects"])
def test_categories_are_learned_from_whatever_holds_them(kind):
    frame, y = town_table()
    tables = {"pandas": frame, "codes": codes(frame), "objects": frame.astype(object).to_numpy()}
    tables["polars"] = pl.DataFrame({"x": frame["x"].tolist(), "town": frame["town"].tolist()}).with_columns(
        pl.Series("size", frame["size"].tolist(), dtype=pl.Categorical)
    )
    table, given = tables[kind], [1, 2] if kind in ("codes", "objects") else "auto"
    model = ff.TabularClassifier(**QUICK, categorical_features=given).fit(table[:180], y[:180])
    assert model.score(table[180:], y[180:]) > 0.75  # x alone: 0.55
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(table[180:]), model.predict_proba(table[180:]))


def test_columns_are_named_by_place_name_or_mask():
    frame, y = town_table(60)
    numbers = pd.DataFrame(codes(frame), columns=["x", "town", "size"])
    fits = [
        ff.TabularClassifier(**QUICK, categorical_features=given).fit(numbers, y).predict_proba(numbers)
        for given in ([1, 2], [-2, -1], ["size", "town"], [False, True, True])
    ]
    for other in fits[1:]:
        assert np.array_equal(fits[0], other)
    text, _ = town_table(60)
    mixed = ff.TabularClassifier(**QUICK, categorical_features=["x"]).fit(text, y)  # besides those "auto" finds
    assert sorted(mixed._reader.codes) == [0, 1, 2]


def test_missing_is_a_category_and_unseen_is_the_mean(monkeypatch):
    table = np.array([[0, 0.0], [0, 1.0], [1, 2.0], [np.nan, 3.0]])
    table = np.vstack([table] * 5)
    target = (np.isnan(table[:, :1]) * 1.0).astype(np.float32)
    monkeypatch.setattr(_frames, "FEW", 1)
    learned = learn_categories({0: 9}, Rows(table, target, np.ones(20, np.float32)))
    monkeypatch.undo()
    shown = learned.transform(np.array([[0.0, 7.0], [np.nan, 7.0], [UNSEEN, 7.0], [5.0, 7.0]]))
    assert shown[:, 0].tolist() == [7.0] * 4  # the numbers come first
    np.testing.assert_allclose(shown[:, 1], [2.5 / 20, 7.5 / 15, 0.25, 0.25])  # (5 + 10 · ¼) / (5 + 10), and so on
    few = learn_categories({0: 2}, Rows(table, target, np.ones(20, np.float32)))
    assert few.transform(np.array([[0.0, 7.0], [1.0, 7.0], [np.nan, 7.0], [UNSEEN, 7.0]]))[:, 1:].tolist() == [
        [0, 0],
        [1, 0],
        [0, 1],
        [1 / 3, 0],  # between the two, at the share of the second
    ]
    gapless = learn_categories({0: 2}, Rows(table[~np.isnan(table[:, 0])], target[:15], np.ones(15, np.float32)))
    assert gapless.transform(np.array([[np.nan, 7.0]]))[0, 1] == 1 / 3  # training had no missing values to learn from


def test_what_two_categories_are_called_does_not_matter_to_a_third():
    rng = np.random.default_rng(0)
    size = rng.choice(["S", "M"], 200)
    y = np.where(rng.uniform(size=200) < 0.95, size == "M", size == "S").astype(int)
    asked = pd.DataFrame({"size": ["S", "M", "XL", None], "x": 0.0})
    for first in ("S", "small"):  # before M in the alphabet, and behind
        frame = pd.DataFrame({"size": np.where(size == "S", first, "M"), "x": rng.normal(size=200)})
        model = ff.TabularClassifier((16,), members=2, random_state=0).fit(frame, y)
        small, middle, unseen, missing = model.predict_proba(asked.replace({"S": first}))[:, 1]
        assert small < 0.2 < 0.3 < unseen < 0.7 < 0.8 < middle and missing == unseen


def test_categories_of_rows_without_weight_are_not_seen():
    frame, y = town_table(60, towns=9)
    besides = pd.DataFrame({"x": 0.0, "town": ["a", "z", "zz"], "size": "S"})
    both = pd.concat([frame, besides], ignore_index=True)
    model = ff.TabularClassifier(**QUICK).fit(frame, y)
    weighted = ff.TabularClassifier(**QUICK).fit(both, np.append(y, [0, 1, 0]), np.append(np.ones(60), [0, 0, 0]))
    assert np.array_equal(weighted.predict_proba(frame), model.predict_proba(frame))
    assert np.array_equal(weighted.predict_proba(both[60:61]), model.predict_proba(both[60:61]))  # unseen to both
    classes = ff.TabularClassifier(**QUICK, class_weight={0: 1, 1: 1, 2: 0}).fit(both, np.append(y, [2, 2, 2]))
    assert classes._categories.counts == {1: 9, 2: 3}


def test_statistics_of_training_rows_leave_out_their_own_targets():
    rng = np.random.default_rng(0)
    table = np.arange(200.0)[:, None] % 100  # every category twice, and a coin for a target
    target = rng.integers(0, 2, (200, 1)).astype(np.float32)
    weight = np.ones(200, np.float32)
    learned = learn_categories({0: 100}, Rows(table, target, weight))
    folds = [np.arange(200)[part::4] for part in range(4)]
    crossed, plain = learned.crossed(Rows(table, target, weight), folds), learned.transform(table)
    assert np.corrcoef(plain[:, 0], target[:, 0])[0, 1] > 0.5
    assert abs(np.corrcoef(crossed[:, 0], target[:, 0])[0, 1]) < 0.25
    frame = pd.DataFrame({"id": [f"row {row}" for row in range(200)]})  # a name per row explains nothing
    model = ff.TabularClassifier(**QUICK, categorical_features=["id"]).fit(frame, target[:, 0])
    assert model.predict_proba(frame)[:, 1].std() < 0.1


def test_weights_count_in_statistics(monkeypatch):
    monkeypatch.setattr(_frames, "FEW", 1)
    table, target = np.array([[0.0], [0.0], [1.0]] * 4), np.array([[0.0], [1.0], [0.0]] * 4, np.float32)
    weighted = learn_categories({0: 2}, Rows(table, target, np.array([1, 3, 1] * 4, np.float32)))
    rows = np.repeat(np.arange(12), [1, 3, 1] * 4)
    repeated = learn_categories({0: 2}, Rows(table[rows], target[rows], np.ones(20, np.float32)))
    np.testing.assert_allclose(weighted.statistics[0], repeated.statistics[0])
    x, chosen = np.arange(12.0)[:, None] % 5, [(0, 1), (0, 2)]
    slots, weight = table[:, 0].astype(int), np.array([1.0, 3.0, 1.0] * 4)
    few = _frames._statistics(slots, target, _frames._along(x, weight, chosen), weight, 2)
    along = _frames._along(x[rows], np.ones(20), chosen)
    np.testing.assert_allclose(few, _frames._statistics(slots[rows], target[rows], along, np.ones(20), 2))


def sign_table(rows=900, towns=20, power=1):
    """Columns a, x and town: the target rises with a power of x in half of the towns and falls in the others."""
    rng = np.random.default_rng(0)
    town, X = rng.integers(0, towns, rows), rng.normal(size=(rows, 2))
    score = np.where(town % 2, 1, -1) * (X[:, 1] if power == 1 else X[:, 1] ** 2 - 0.45)
    frame = pd.DataFrame({"a": X[:, 0], "town": [f"town {t}" for t in town], "x": X[:, 1]})
    return frame, (score + 0.3 * rng.normal(size=rows) > 0).astype(int)


@pytest.mark.parametrize("power", [1, 2])
def test_towns_of_one_mean_in_which_a_column_acts_otherwise_are_separated(power):
    frame, y = sign_table(power=power)
    frame.loc[::50, "x"] = np.nan
    model = ff.TabularClassifier(**QUICK, warm_start=True).fit(frame[:600], y[:600])
    assert model._categories.slopes == {1: [(1, power)]}
    assert model.score(frame[600:], y[600:]) > 0.78  # means alone: 0.55
    later = frame[600:].assign(town=["elsewhere", None] * 150)
    assert np.isfinite(model.predict_proba(later)).all()
    assert model.fit(frame[:600], y[:600]).score(frame[600:], y[600:]) > 0.78
    assert model.partial_fit(frame[600:700], y[600:700]).score(frame[700:], y[700:]) > 0.78


def test_a_column_gets_slopes_where_they_differ_by_more_than_chance_and_few_of_them():
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(0, 300, 3000), rng.normal(size=(3000, 6)), rng.integers(0, 2, 3000)])
    sign, weight = np.where(table[:, 0] % 2, 1, -1), np.ones(3000, np.float32)
    alike = table[:, 0] / 100 + table[:, 1] + rng.normal(size=3000)
    learned = learn_categories({0: 300, 7: 2}, Rows(table, alike[:, None], weight))
    assert learned.slopes[0] == [] and learned.transform(table).shape == (3000, 6 + 2 + 1)
    for outputs, most in ((1, 3), (2, 1), (7, 1)):
        target = np.repeat(sign * table[:, 1:].sum(axis=1), outputs).reshape(-1, outputs)
        learned = learn_categories({0: 300, 7: 2}, Rows(table, target, weight))
        assert len(learned.slopes[0]) == most  # of six numbers and an indicator
        assert learned.transform(table).shape == (3000, 6 + 2 + outputs * (1 + most))
    learned = learn_categories({0: 300, 7: 2}, Rows(table, (sign * (table[:, 7] - 0.5))[:, None], weight))
    assert learned.slopes[0] == [(6, 1)]  # the indicator, behind the numbers


def test_slopes_are_covariances_within_the_town_of_other_rows():
    frame, y = sign_table(400)
    table = np.column_stack([pd.factorize(frame["town"])[0], frame["x"]]).astype(float)
    table[::30, 1] = np.nan
    target, weight = y[:, None].astype(np.float32), np.ones(400, np.float32)
    learned = learn_categories({0: 20}, Rows(table, target, weight))
    shown, town, rising = learned.transform(table), table[:, 0] == 3, frame["town"] == "town 1"
    ranks = np.full(400, 0.5)
    known = ~np.isnan(table[:, 1])
    ranks[known] = (np.argsort(np.argsort(table[known, 1])) + 0.5) / known.sum()
    within = [np.cov(ranks[table[:, 0] == code], y[table[:, 0] == code], bias=True)[0, 1] for code in range(20)]
    count = np.bincount(table[:, 0].astype(int))
    overall = (count * within).sum() / 400
    np.testing.assert_allclose(shown[town, 2], (count[3] * within[3] + 10 * overall) / (count[3] + 10), rtol=1e-5)
    assert (shown[rising, 2] > 0.02).all() and (shown[frame["town"] == "town 2", 2] < -0.02).all()
    folds = [np.arange(400)[part::4] for part in range(4)]
    crossed = learned.crossed(Rows(table, target, weight), folds)
    other = target.copy()
    other[folds[1]] = 1 - other[folds[1]]
    again = learned.crossed(Rows(table, other, weight), folds)
    assert np.array_equal(again[folds[1]], crossed[folds[1]])  # their own targets do not count
    assert not np.array_equal(again[folds[0], 2], crossed[folds[0], 2])


def pair_table(rows=700, towns=16, seed=0):
    """Columns x, town and trade: the sign of the town times that of the trade, which neither's mean shows."""
    rng = np.random.default_rng(seed)
    town, trade, x = rng.integers(0, towns, rows), rng.integers(0, 12, rows), rng.normal(size=rows)
    score = rng.choice([-1, 1], towns)[town] * rng.choice([-1, 1], 12)[trade]
    frame = pd.DataFrame({"x": x, "town": [f"town {t}" for t in town], "trade": [f"trade {t}" for t in trade]})
    return frame, (score + 0.3 * x + 0.3 * rng.normal(size=rows) > 0).astype(int)


def test_two_columns_that_act_together_get_a_number():
    frame, y = pair_table()
    frame.loc[::50, "trade"] = None
    model = ff.TabularClassifier(**QUICK, warm_start=True).fit(frame[:500], y[:500])
    assert list(model._categories.pairs) == [(2, 1)] and model._categories.slopes == {1: [], 2: []}
    assert model.score(frame[500:], y[500:]) > 0.9  # means alone: 0.5
    later = frame[500:].assign(town=["elsewhere", None] * 100)
    assert np.isfinite(model.predict_proba(later)).all()
    assert model.fit(frame[:500], y[:500]).score(frame[500:], y[500:]) > 0.9
    few = frame.assign(trade=(frame["trade"].str.slice(6).astype(float) % 4).astype(str))  # indicators beside means
    sign = np.where(frame["town"].str.slice(5).astype(int) % 2, 1, -1) * np.where(
        few["trade"].isin(["0.0", "3.0"]), 1, -1
    )
    model.set_params(warm_start=False).fit(few[:500], sign[:500])
    assert list(model._categories.pairs) == [(2, 1)] and model.score(few[500:], sign[500:]) > 0.9


def test_factors_are_those_of_what_the_categories_leave():
    rng = np.random.default_rng(0)
    first, second = (part.ravel() for part in np.meshgrid(np.arange(11), np.arange(12)))
    ours, theirs = (values - values.mean() for values in (rng.normal(size=11), rng.normal(size=12)))
    main = rng.normal(size=11)[first] + rng.normal(size=12)[second]
    target = np.column_stack([main + ours[first] * theirs[second], main, -3 * ours[first] * theirs[second]])
    one, other = _frames._factors(first, second, target, np.full(132, 1e6), [11, 12])
    assert one.shape == (13, 3) and other.shape == (14, 3)
    np.testing.assert_allclose(one[first] * other[second], target - main[:, None] * [1, 1, 0], atol=1e-4)
    table, weight = np.column_stack([first, second]).astype(float), np.full(132, 1.0)
    weight[7] = 3
    rows = np.repeat(np.arange(132), weight.astype(int))
    weighted, repeated = (
        _frames._factors(first[kept], second[kept], target[kept], mass, [11, 12])
        for kept, mass in ((np.arange(132), weight), (rows, np.ones(134)))
    )
    np.testing.assert_allclose(weighted[0][first] * weighted[1][second], repeated[0][first] * repeated[1][second])
    drawn = rng.integers(0, 132, 700)
    learned = learn_categories({0: 11, 1: 12}, Rows(table[drawn], target[drawn], np.ones(700)))
    assert list(learned.pairs) == [(0, 1)] and learned.transform(table).shape == (132, 3 + 3 + 3)
    assert not learned.transform(np.array([[UNSEEN, 0.0]]))[:, -3:].any()


def test_numbers_of_pairs_leave_out_their_own_targets():
    frame, y = pair_table(400)
    table = np.column_stack([pd.factorize(frame[name])[0] for name in ("town", "trade")]).astype(float)
    target, weight = y[:, None].astype(np.float32), np.ones(400, np.float32)
    learned = learn_categories({0: 16, 1: 12}, Rows(table, target, weight))
    folds = [np.arange(400)[part::4] for part in range(4)]
    crossed = learned.crossed(Rows(table, target, weight), folds)
    other = target.copy()
    other[folds[1]] = 1 - other[folds[1]]
    again = learned.crossed(Rows(table, other, weight), folds)
    assert np.array_equal(again[folds[1], -1], crossed[folds[1], -1])
    assert not np.array_equal(again[folds[0], -1], crossed[folds[0], -1])


@pytest.mark.parametrize("effect", [0.0, 0.2])
def test_pairs_are_kept_by_chance_in_less_than_one_table_of_a_hundred(effect):
    kept = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        table = rng.integers(0, 15, (300, 5)).astype(float)
        target = rng.normal(size=300) + effect * (table[:, 0] - table[:, 1])  # what each does alone is no pair
        rows = Rows(table, target[:, None], np.ones(300, np.float32))
        kept += len(learn_categories(dict.fromkeys(range(5), 15), rows).pairs)
    assert kept <= 4  # at a level of 1% per table more come up once in 270 times


def test_pairs_are_few_and_those_of_columns_with_few_categories():
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(0, 11 + column, 3000) for column in range(20)])
    sign = np.where(table % 2, 1, -1)
    target = (sign[:, :-1] * sign[:, 1:]).sum(axis=1)[:, None].astype(float)
    learned = learn_categories(
        {column: 11 + column for column in range(20)}, Rows(table.astype(float), target, np.ones(3000))
    )
    assert len(learned.pairs) == 3 and all(b == a + 1 < 15 for a, b in learned.pairs)


def test_rows_with_gaps_new_values_and_new_order_are_predicted():
    frame, y = town_table(80)
    frame.loc[::9, "town"] = None
    frame.loc[1::9, "size"] = np.nan
    frame.loc[2::9, "x"] = np.nan
    model = ff.TabularClassifier(**QUICK).fit(frame, y)
    later = frame.iloc[::-1].assign(town="elsewhere")
    later["size"] = pd.Categorical(["XL"] * 80)
    assert np.isfinite(model.predict_proba(later)).all()
    assert np.array_equal(model.predict_proba(frame.iloc[::-1]), model.predict_proba(frame)[::-1])


def test_regression_of_two_targets_validation_rows_and_going_on():
    frame, _ = town_table(160)
    level = frame["town"].str.slice(5).astype(int).to_numpy() % 3
    Y = np.column_stack([level, -level + frame["x"]])
    model = ff.TabularRegressor(**QUICK, warm_start=True)
    model.fit(frame[:120], Y[:120], validation_data=(frame[120:], Y[120:]))
    assert model.score(frame[120:], Y[120:]) > 0.5
    assert model.fit(frame[:120], Y[:120]).score(frame[120:], Y[120:]) > 0.5
    assert model.partial_fit(frame[:50], Y[:50]).predict(frame).shape == (160, 2)


def test_numbers_in_frames_are_read_as_before():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] > 0
    plain = ff.TabularClassifier(**QUICK).fit(X, y).predict_proba(X)
    for frame in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))):
        assert learn_reader(frame, "auto") is None
        assert np.array_equal(ff.TabularClassifier(**QUICK).fit(frame, y).predict_proba(frame), plain)
    odd = pd.DataFrame({"a": X[:, 0], "b": pd.array(X[:, 1], dtype="Float64"), "c": X[:, 2].astype(object)})
    odd["text"] = "same"
    assert np.array_equal(ff.TabularClassifier(**QUICK).fit(odd, y).predict_proba(odd), plain)


def test_two_columns_of_one_name_are_refused():
    frame, y = town_table(60)
    frame.columns = ["x", "town", "town"]
    with pytest.raises(ff.InvalidArgument) as caught:
        ff.TabularClassifier(**QUICK).fit(frame, y)
    text = (
        "X must have columns of different names; got \"'town' 2 times\". Remedy: rename a column, or pass X.to_numpy()."
    )
    assert str(caught.value) == text


def test_a_class_that_a_fold_lacks_is_learned():
    frame, y = town_table(60)
    labels = np.where(y == 1, "yes", "no").astype(object)
    labels[7] = "rare"
    model = ff.TabularClassifier(**QUICK).fit(frame, labels)
    assert model.classes_.tolist() == ["no", "rare", "yes"]
    assert np.isfinite(model.predict_proba(frame)).all()


REFUSED = {
    "dates": (
        {"when": pd.to_datetime(["2020-01-01"] * 30)},
        "auto",
        "X must hold numbers or categories, not dates; got \"datetime64[us] in column 'when'\". "
        "Remedy: put numbers in its place: days since a fixed date; year, month and weekday.",
    ),
    "lists": (
        {"tags": [["a"]] * 30},
        "auto",
        "X must hold numbers, or categories that can be compared; got \"list in column 'tags'\". "
        "Remedy: turn the values into numbers or text first.",
    ),
    "a name that is not there": (
        {"a": np.arange(30.0)},
        ["b"],
        "categorical_features must name columns of X, which are a; got 'b'. "
        "Remedy: pass a data frame to name columns, or their indices.",
    ),
    "an index that is not there": (
        {"a": np.arange(30.0)},
        [1],
        "categorical_features must give indices from 0 to 0, names of columns or a mask; got 1.",
    ),
    "a short mask": (
        {"a": np.arange(30.0), "b": np.arange(30.0)},
        [True],
        "categorical_features must have 2 entries where it is a mask, one per column of X; got '1 entries'.",
    ),
    "another word": (
        {"a": np.arange(30.0)},
        "all",
        "categorical_features must be 'auto', None or a list of columns; got 'all'. Remedy: pass ['name'] or [0, 3].",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_and_how(case):
    columns, given, text = REFUSED[case]
    with pytest.raises(ff.InvalidArgument) as caught:
        ff.TabularClassifier(**QUICK, categorical_features=given).fit(pd.DataFrame(columns), np.arange(30) % 2)
    assert str(caught.value).replace("[ns]", "[us]") == text


def test_dates_of_polars_and_python_are_refused():
    days = [datetime.date(2020, 1, 1 + day % 28) for day in range(30)]
    times = [datetime.time(day % 24) for day in range(30)]
    spans = np.arange(30).astype("m8[s]").astype(object).tolist()
    periods = list(pd.period_range("2020", periods=30))
    frames = [
        pl.DataFrame({"day": days}),
        *(pd.DataFrame({"day": of}, dtype=object) for of in (days, times, spans, periods)),
    ]
    frames.append(pd.DataFrame({"day": pd.Series(list(np.arange(30).astype("m8[s]")), dtype=object)}))
    for frame in frames:
        with pytest.raises(ff.InvalidArgument, match="not dates; got .*in column 'day'"):
            ff.TabularClassifier(**QUICK).fit(frame, np.arange(30) % 2)


def test_dates_where_numbers_were_are_refused_at_predictions():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = ff.TabularClassifier(**QUICK).fit(pd.DataFrame(X, columns=["a", "b"]), X[:, 0] > 0)
    asked = pd.DataFrame({"a": [1.0], "b": pd.to_datetime(["2020-01-01"])})
    with pytest.raises(ff.InvalidArgument, match="not dates; got .*in column 'b'"):
        model.predict(asked)
    frame, y = town_table(40)
    model.fit(frame, y)
    with pytest.raises(ff.InvalidArgument, match="categories that can be compared; got .*list in column 'town'"):
        model.predict(frame.assign(town=[["town 1"]] * 40))


NUMBERS_AS = {
    "decimals": lambda column: pd.Series([Decimal(repr(value)) for value in column], dtype=object),
    "pandas' NA among objects": lambda column: pd.Series([*column[:-1], pd.NA], dtype=object),
    "NaN among decimals": lambda column: pd.Series(
        [Decimal(repr(v)) for v in column[:-1]] + [Decimal("sNaN")], dtype=object
    ),
    "None among objects": lambda column: pd.Series([*column[:-1], None], dtype=object),
}


@pytest.mark.parametrize("kind", NUMBERS_AS)
def test_objects_that_are_numbers_are_numbers(kind):
    X = np.random.default_rng(0).normal(size=(60, 2)).round(2)
    plain = X.copy()
    if kind != "decimals":
        plain[-1, 0] = np.nan
    frame = pd.DataFrame({"a": NUMBERS_AS[kind](X[:, 0].tolist()), "b": X[:, 1]})
    model = ff.TabularClassifier(**QUICK).fit(frame, X[:, 0] > 0)
    expected = ff.TabularClassifier(**QUICK).fit(plain, X[:, 0] > 0)
    assert np.array_equal(model.predict_proba(frame), expected.predict_proba(plain))
    assert model._reader.codes == {} and "of categories" not in model.summary()


def test_polars_objects_that_are_numbers_are_numbers():
    X = np.random.default_rng(0).normal(size=(60, 1)).round(2)
    frame = pl.DataFrame({"a": pl.Series([Decimal(repr(value)) for value in X[:, 0].tolist()], dtype=pl.Object)})
    model = ff.TabularClassifier(**QUICK).fit(frame, X[:, 0] > 0)
    assert np.array_equal(
        model.predict_proba(frame), ff.TabularClassifier(**QUICK).fit(X, X[:, 0] > 0).predict_proba(X)
    )


@pytest.mark.parametrize("odd", [pd.NA, pd.NaT, pd.Timestamp("2020-01-01"), datetime.date(2020, 1, 1)])
def test_objects_in_arrays_that_are_no_numbers_are_named(odd):
    X = np.random.default_rng(0).normal(size=(40, 2)).astype(object)
    X[3, 1] = odd
    with pytest.raises(ff.InvalidArgument, match="X must hold numbers; got .*Remedy: put NaN where a value is missing"):
        ff.TabularClassifier(**QUICK).fit(X, np.arange(40) % 2)


def test_infinite_numbers_next_to_categories_are_refused():
    frame, y = town_table(40)
    frame.loc[3, "x"] = np.inf
    with pytest.raises(ValueError, match="got an infinite value in row 3 of column 'x'"):
        ff.TabularClassifier(**QUICK).fit(frame, y)


def test_text_where_numbers_were_is_refused_and_none_means_no_categories():
    frame, y = town_table(40)
    model = ff.TabularClassifier(**QUICK).fit(frame, y)
    with pytest.raises(ff.InvalidArgument, match="must hold numbers where it did in the first fit; got .*column 'x'"):
        model.predict(frame.assign(x="much"))
    with pytest.raises(ValueError, match="must hold numbers in columns that are no categories; got a text 'town"):
        ff.TabularClassifier(**QUICK, categorical_features=None).fit(frame, y)


def test_a_warm_fit_shows_no_row_its_own_target(monkeypatch):
    """Identifiers explain nothing: were their means those of all rows, networks would read the targets off them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": [f"row {row}" for row in range(120)], "x": rng.normal(size=120)})
    y = rng.normal(size=120)
    shown = []
    encode = Columns.encode
    monkeypatch.setattr(Columns, "encode", lambda self, table: shown.append(table) or encode(self, table))
    model = ff.TabularRegressor(**QUICK, trees=False, warm_start=True, categorical_features=["id"])
    model.fit(frame, y).fit(frame, y)
    first, again = shown[:2]
    assert np.array_equal(first, again)
    assert abs(np.corrcoef(again[:, 1], y)[0, 1]) < 0.5
    assert np.corrcoef(model._numbers(model._table(frame))[:, 1], y)[0, 1] > 0.99  # means of all rows do leak it


def test_many_classes_share_numbers_and_trees(monkeypatch):
    """A hundred per column of many categories, and trees for each, took minutes and gigabytes."""
    for name in ("MOST_TREES", "FEWEST_TREES", "MOST_ROUNDS"):
        monkeypatch.setattr(_trees, name, 25)
    rng = np.random.default_rng(0)
    towns, y = rng.integers(0, 40, (2, 800)), rng.permutation(np.arange(800) % 100)
    frame = pd.DataFrame({"town": [f"t{t}" for t in towns[0]], "trade": [f"t{t}" for t in towns[1]]})
    model = ff.TabularClassifier(**{**QUICK, "scaling": "rank", "gains": "none"}).fit(frame, y)
    shown = model._numbers(model._table(frame)).shape[1]
    assert 2 * MOST_OUTPUTS <= shown <= 5 * MOST_OUTPUTS  # means and a slope of each, one pair at most
    forest, boosting = (model._ensemble.trees[name].models[0].boosters for name in ("random forest", "boosting"))
    assert len(forest) == 100 and forest[0].num_trees() == 8 and boosting[0].num_trees() <= 100 * 8
    np.testing.assert_allclose(model.predict_proba(frame).sum(axis=1), 1.0)


def test_sums_of_many_outputs_distinguish_all_of_them():
    target = np.eye(100)
    codes = _few_outputs(target)
    assert codes.shape == (100, MOST_OUTPUTS) and len(np.unique(codes, axis=0)) == 100
    assert _few_outputs(target[:, :MOST_OUTPUTS]).shape == (100, MOST_OUTPUTS)
    np.testing.assert_array_equal(_few_outputs(target[:, :MOST_OUTPUTS]), target[:, :MOST_OUTPUTS])


def test_a_frame_of_numbers_is_read_as_its_array():
    X = np.random.default_rng(0).normal(size=(60, 3))
    frame = pd.DataFrame(X, columns=list("abc"))
    model = ff.TabularClassifier(**QUICK, trees=False).fit(frame, X[:, 0] > 0)
    expected = model.predict_proba(frame)
    for other in (frame.astype({"a": object}), frame.astype("Float64"), pl.DataFrame(frame.to_dict("list"))):
        assert np.array_equal(model.predict_proba(other), expected)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict_proba(frame[["b", "a", "c"]])
    with pytest.raises(ff.InvalidArgument, match="an infinite value in row 3 of column 'b'"):
        model.predict_proba(frame.assign(b=np.where(np.arange(60) == 3, np.inf, 0.0)))
    assert np.array_equal(model.predict_proba(frame.astype(pd.SparseDtype(float))), expected)

"""Tables as they come: gaps, constants, odd types, categories, weights; each is fitted, or refused with what to do."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import fewfire as ff
from fewfire import FewfireWarning, InvalidArgument
from fewfire.tabular import AdamW, _trees

pl = pytest.importorskip("polars")
QUICK = {"hidden": (8,), "members": 2, "scaling": "rank", "gains": "none", "random_state": 0}
QUICK["optimiser"] = AdamW(0.02, epochs=3)
ROWS = 48
X = np.random.default_rng(0).normal(size=(ROWS, 3))
TEXT = ["u", "v", None] * (ROWS // 3)
ESTIMATORS = {"classifier": ff.TabularClassifier, "regressor": ff.TabularRegressor}


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """Dirt reaches trees as well, but a few of them show what it does."""
    for name, value in {"MOST_TREES": 4, "FEWEST_TREES": 4, "FIRST_ROUNDS": 4, "MOST_ROUNDS": 4}.items():
        monkeypatch.setattr(_trees, name, value)


def fitted(kind, table, y=None, weight=None, **settings):
    target = y if y is not None else np.digitize(X[:, 0], [0.0]) if kind == "classifier" else X[:, 0]
    return ESTIMATORS[kind](**QUICK, **settings).fit(table, target, weight)


def said(model, table):
    return model.predict_proba(table) if hasattr(model, "predict_proba") else model.predict(table)


def with_column(values, place=1):
    table = X.copy()
    table[:, place] = values
    return table


def framed(values):
    return pd.DataFrame({"m": values, "a": X[:, 0]})


def gappy():
    return with_column(np.where(np.arange(ROWS) % 3, X[:, 1], np.nan))


CATEGORIES = framed(["u", "v", "w"] * 16)
MANY = framed([f"k{row % 20}" for row in range(ROWS)])

# What is fitted, then what is predicted (the same, if None).
TAKEN = {
    "a column of NaN": (with_column(np.nan), None),
    "a column of NaN in training alone": (with_column(np.nan), X),
    "nothing but NaN": (np.full((ROWS, 2), np.nan), None),
    "NaN in prediction alone": (X, gappy()),
    "NaN in training alone": (gappy(), X),
    "rows of NaN": (X, np.full((2, 3), np.nan)),
    "a constant column": (with_column(5.0), None),
    "a column that was constant": (with_column(5.0), X),
    "nothing but constants": (np.ones((ROWS, 2)), None),
    "bools": (X > 0, None),
    "bools of pandas": (framed(X[:, 1] > 0), None),
    "bools of pandas with gaps": (framed(pd.array([True, False, None] * 16, dtype="boolean")), None),
    "bools as objects": (framed(pd.Series([True, False, None] * 16, dtype=object)), None),
    "bools of polars": (pl.DataFrame({"a": X[:, 0], "m": X[:, 1] > 0}), None),
    "integers near 2^63": (np.array([[2**62 - row * 2**50, row] for row in range(ROWS)]), None),
    "integers near 2^64": (np.array([[2**64 - 1 - row * 2**50] for row in range(ROWS)], dtype=np.uint64), None),
    "integers of any size": (framed(pd.Series([10**30 + row * 10**28 for row in range(ROWS)], dtype=object)), None),
    "numbers near 1e308": (with_column(1e307 * X[:, 1]), None),
    "numbers near 1e-320": (with_column(1e-318 * X[:, 1]), None),
    "half precision": (X.astype(np.float16), None),
    "numbers as objects": (X.astype(object), None),
    "numbers as text in an array": (np.array([["1", "2.5"], ["3", "4"]] * 24, dtype=object), None),
    "objects of several types": (framed(pd.Series([1, "a", 2.5, None] * 12, dtype=object)), None),
    "1, True, '1' and a tuple": (framed(pd.Series([1, True, "1", (1,)] * 12, dtype=object)), None),
    "empty strings": (framed(["", "a", " "] * 16), None),
    "unseen of few categories": (CATEGORIES, CATEGORIES.assign(m="new")),
    "unseen of many categories": (MANY, MANY.assign(m="new")),
    "numbers for categories": (CATEGORIES, CATEGORIES.assign(m=3)),
    "categories missing in prediction": (MANY, MANY.assign(m=None)),
    "categories all missing": (framed(pd.Series([None] * ROWS, dtype=object)), None),
    "a categorical type without values": (framed(pd.Categorical([None] * ROWS, categories=["u"])), None),
    "one category": (CATEGORIES.assign(m="u"), CATEGORIES),
    "a category per row": (framed([f"id{row}" for row in range(ROWS)]), None),
    "categories alone": (CATEGORIES[["m"]], None),
    "Int64 with gaps": (framed(pd.array([1, 0, None] * 16, dtype="Int64")), None),
    "Float64 with gaps": (framed(pd.array([1.5, 0.5, None] * 16, dtype="Float64")), None),
    "string with gaps": (framed(pd.array(TEXT, dtype="string")), None),
    "intervals": (framed(pd.cut(X[:, 1], 3)), None),
    "an Enum of polars": (pl.DataFrame({"m": pl.Series(TEXT, dtype=pl.Enum(["u", "v"])), "a": X[:, 0]}), None),
    "a Null column of polars": (pl.DataFrame({"m": [None] * ROWS, "a": X[:, 0]}), None),
    "an index with repeats": (pd.DataFrame(X, columns=list("abc"), index=[0] * ROWS), None),
    "names that are numbers": (pd.DataFrame({0: X[:, 0], 1: ["u", "v"] * 24}), None),
}


@pytest.mark.filterwarnings("ignore:column 'm' of X holds 48 different values")
@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("dirt", TAKEN)
def test_taken(dirt, kind):
    table, later = TAKEN[dirt]
    predicted = said(fitted(kind, table), table if later is None else later)
    assert np.isfinite(predicted).all()


REFUSED = {
    "an infinite number": (
        with_column(np.where(np.arange(ROWS) == 4, np.inf, 0.0)),
        r"X must hold finite numbers, or NaN .*; got an infinite value in row 4 of column 1\. Remedy: put NaN in its place",
    ),
    "minus infinity, named": (
        pd.DataFrame(with_column(np.where(np.arange(ROWS) == 4, -np.inf, 0.0)), columns=["a", "b", "c"]),
        r"got an infinite value in row 4 of column 'b'",
    ),
    "infinity beside categories": (
        framed(["u", "v"] * 24).assign(a=np.inf),
        r"got an infinite value in row 0 of column 'a'",
    ),
    "duplicated names": (pd.DataFrame(X, columns=["a", "b", "a"]), r"different names.*'a' 2 times.*rename a column"),
    "dates": (framed(pd.date_range("2020", periods=ROWS)), r"not dates.*column 'm'.*days since a fixed date"),
    "an array of dates": (np.full((ROWS, 1), "2020-01-01", dtype="M8[D]"), r"not dates.*days since a fixed date"),
    "text in an array": (
        np.array([["u", 1.0], ["v", 2.0]] * 24, dtype=object),
        r"X must hold numbers .*; got a text 'u'\. Remedy: name columns of categories in categorical_features",
    ),
    "lists": (framed(pd.Series([[1], [2]] * 24, dtype=object)), r"categories that can be compared.*list in column 'm'"),
    "integers beyond floats": (
        framed(pd.Series([10**400 + row for row in range(ROWS)], dtype=object)),
        r"must hold numbers below 1\.8e308; got an integer beyond\. Remedy: divide",
    ),
    "a frame of no columns": (
        pd.DataFrame(index=range(ROWS)),
        r"X must have at least one column; got shape \(48, 0\)\. Remedy: pass the columns to learn from\.$",
    ),
    "a frame of no columns of polars": (
        pl.DataFrame(),
        r"X must have at least one column; got shape \(0, 0\)\. Remedy",
    ),
    "a lazy frame": (
        pl.DataFrame({"a": X[:, 0]}).lazy(),
        r"must hold its rows; got a LazyFrame\. Remedy: pass X\.coll",
    ),
}


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("dirt", REFUSED)
def test_refused(dirt, kind):
    table, text = REFUSED[dirt]
    with pytest.raises(InvalidArgument, match=f"(?s){text}"):
        fitted(kind, table)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_refused_in_prediction(kind):
    model = fitted(kind, X)
    with pytest.raises(InvalidArgument, match=r"got an infinite value in row 0 of column 1"):
        said(model, with_column(np.inf))
    frame = pd.DataFrame(X, columns=list("abc"))
    named = fitted(kind, frame)
    with pytest.raises(InvalidArgument, match=r"must hold numbers in columns that are no categories; got a text 'x'"):
        said(named, frame.assign(a="x"))
    with pytest.raises(ValueError, match="same order as they were in fit"):
        said(named, frame[["c", "a", "b"]])
    with pytest.raises(ValueError, match=r"now missing:\n- c"):
        said(named, frame[["a", "b"]])


SPARSE = np.where(X > 0.5, X, 0.0)


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize(
    "form",
    [
        scipy.sparse.csr_matrix,
        scipy.sparse.coo_array,
        lambda X: pd.DataFrame(X).astype(pd.SparseDtype(float, 0.0)).set_axis(["a", "b", "c"], axis=1),
    ],
)
def test_sparse_tables_are_made_dense(kind, form):
    dense, sparse = fitted(kind, SPARSE), fitted(kind, form(SPARSE))
    assert np.array_equal(said(sparse, form(SPARSE)), said(dense, SPARSE))
    target = (X[:, 0] > 0).astype(int)
    sparse.fit(form(SPARSE), target, validation_data=(form(SPARSE), target))
    dense.fit(SPARSE, target, validation_data=(SPARSE, target))
    assert np.array_equal(said(sparse, form(SPARSE)), said(dense, SPARSE))


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_one_hot_columns_of_a_pipeline(kind):
    """Sparse by default; the remedy for those that would be too large when dense fits into the same place."""
    table = pd.DataFrame({"town": [f"t{row % 12}" for row in range(ROWS)], "a": X[:, 0]})
    target = np.arange(ROWS) % 2
    predicted = []
    for sparse in (True, False):
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=sparse)
        columns = ColumnTransformer(
            [("town", encoder, ["town"])], remainder="passthrough", sparse_threshold=float(sparse)
        )
        predicted.append(make_pipeline(columns, ESTIMATORS[kind](**QUICK)).fit(table, target).predict(table))
        assert scipy.sparse.issparse(columns.fit_transform(table)) == sparse
    assert np.array_equal(*predicted)


def test_a_column_named_sparse_is_a_column():
    frame = pd.DataFrame(X, columns=["sparse", "iloc", "shape"])
    assert np.array_equal(said(fitted("regressor", frame), frame), said(fitted("regressor", X), X))


@pytest.mark.parametrize("call", ["fit", "partial_fit", "predict", "explain"])
def test_sparse_tables_that_would_be_too_large_when_dense(call):
    model, large = fitted("regressor", X), scipy.sparse.csr_array((2**14, 2**14))
    with pytest.raises(InvalidArgument) as caught:
        getattr(model, call)(large, *([np.zeros(2**14)] if "fit" in call else []))
    assert str(caught.value) == (
        "X may be sparse where it takes 1 GiB at most when dense; got a table of 2.0 GiB. Remedy: pass columns of "
        "categories as they are, or OneHotEncoder(sparse_output=False) where there is memory."
    )


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize(
    "table", [X, CATEGORIES, pl.DataFrame(CATEGORIES.to_dict("list"))], ids=["array", "pandas", "polars"]
)
def test_zero_rows_predict_to_zero_rows(kind, table):
    model = fitted(kind, table)
    assert model.predict(table[:0]).shape == (0,)
    assert model.predict(table[:0]).dtype == model.predict(table).dtype
    if kind == "classifier":
        assert model.predict_proba(table[:0]).shape == (0, 2) and model.decision_function(table[:0]).shape == (0,)
    else:
        assert fitted(kind, table, np.c_[X[:, 0], X[:, 1]]).predict(table[:0]).shape == (0, 2)
    with pytest.raises(ValueError, match=r"0 sample|two rows"):
        model.explain(table[:0])


DATED = pd.date_range("2020-01-01", periods=ROWS)
DATES_AS_TEXT = ["%Y-%m-%d", "%m/%d/%y", "%d.%m.%Y", "%Y-%m-%dT%H:%M:%SZ", "%d %b %Y", "%B %d, %Y", "%d-%b-%y"]


@pytest.mark.parametrize("form", DATES_AS_TEXT)
def test_text_that_is_dates_is_named(form):
    days = DATED.strftime(form).to_series(index=range(ROWS)).where(np.arange(ROWS) % 7 > 0)
    with pytest.warns(FewfireWarning) as caught:
        fitted("classifier", framed(days))
    assert str(caught[0].message) == (
        f"column 'm' of X holds text that is dates ({min(days.dropna())!r}), and is taken as categories. "
        "Remedy: put numbers in its place: days since a fixed date; year, month, weekday."
    )


@pytest.mark.parametrize("form", [pd.DataFrame, pl.DataFrame])
def test_text_that_is_nearly_unique_is_named(form):
    ids = [f"id{max(row, 2):02d}" for row in range(ROWS)]
    with pytest.warns(FewfireWarning) as caught:
        ff.TabularRegressor(**QUICK).fit(form({"m": ids, "a": X[:, 0]}), X[:, 0])
    assert str(caught[0].message) == (
        "column 'm' of X holds 46 different values in 48 rows, as ids have ('id02'), and is taken as categories. "
        "Remedy: drop the column, keep the part of it that repeats, or name it in categorical_features."
    )
    fitted("regressor", form({"m": ids, "a": X[:, 0]}), categorical_features=["m"])  # which is no oversight
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "values", [["1.2.3", "2.0.11"] * 24, ["2020-01-05", "late"] * 24, [f"k{r % 40}" for r in range(ROWS)]]
)
def test_text_that_repeats_is_not_named(values):
    fitted("classifier", framed(values))  # a warning would be an error


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_rows_of_weight_zero_are_not_there(kind):
    counts = np.arange(ROWS) % 4 > 0
    target = np.digitize(X[:, 0], [0.0]) if kind == "classifier" else X[:, 0]
    dirty = np.where(counts[:, None], X, 1e6)
    weighed, without = fitted(kind, dirty, weight=counts * 1.0), fitted(kind, X[counts], target[counts])
    assert np.array_equal(said(weighed, X), said(without, X))
    with pytest.raises(InvalidArgument, match=r"sample_weight must be above 0 for at least one row"):
        fitted(kind, X, weight=np.zeros(ROWS))
    with pytest.raises(InvalidArgument, match=r"sample_weight must not be negative.*weight of 0"):
        fitted(kind, X, weight=-np.ones(ROWS))


def test_classes_of_single_rows():
    """Each is in one fold alone: three of four networks, and trees, never see it, or are never validated on it."""
    labels = np.r_[np.arange(1, 6), np.zeros(ROWS - 5)].astype(int)
    model = fitted("classifier", X, labels)
    chances = model.predict_proba(X)
    assert model.classes_.tolist() == list(range(6)) and np.isfinite(chances).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)


def test_a_class_that_weights_take_away():
    labels = np.digitize(X[:, 0], [0.0])
    with pytest.raises(InvalidArgument, match=r"at least two classes"):
        fitted("classifier", X, labels, weight=(labels == 0) * 1.0)


@pytest.mark.parametrize(
    ("y", "text"),
    [
        (np.where(X[:, 0] > 0, np.nan, 1.0), "Input y contains NaN"),
        (np.where(X[:, 0] > 0, np.inf, 1.0), "Input y contains infinity"),
    ],
)
def test_targets_of_a_regressor(y, text):
    with pytest.raises(ValueError, match=text):
        fitted("regressor", X, y)


HIDDEN = r"must not hide values, for masks are not looked at; got an array of which 16 values are masked\. Remedy: "


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_masked_arrays(kind):
    """What a mask hides came back as a number like any other."""
    mask = np.arange(ROWS) % 3 == 0
    target, numbers = np.digitize(X[:, 0], [0.0]), np.arange(ROWS * 3).reshape(ROWS, 3)
    table = np.ma.masked_array(X, np.c_[mask, mask, mask] & [True, False, False])
    counts = np.ma.masked_array(numbers, table.mask)
    model = fitted(kind, np.ma.masked_array(X), np.ma.masked_array(target))
    before = said(model, X)
    assert np.array_equal(before, said(fitted(kind, X, target), X))
    for call in (lambda X: model.fit(X, target), lambda X: model.partial_fit(X, target), model.predict, model.explain):
        with pytest.raises(InvalidArgument, match=f"X {HIDDEN}" + r"pass X\.filled\(numpy\.nan\), which"):
            call(table)
        with pytest.raises(
            InvalidArgument, match=f"X {HIDDEN}" + r"pass X\.astype\(float\)\.filled\(numpy\.nan\), which"
        ):
            call(counts)
    for call in (model.fit, model.partial_fit, model.explain):
        with pytest.raises(InvalidArgument, match=f"y {HIDDEN}leave out the rows where y is masked"):
            call(X, np.ma.masked_array(target, mask))
    with pytest.raises(InvalidArgument, match=f"sample_weight {HIDDEN}pass 0 for rows that are to be left out"):
        model.fit(X, target, sample_weight=np.ma.masked_array(np.ones(ROWS), mask))
    assert np.array_equal(said(model, X), before)
    assert np.isfinite(said(fitted(kind, table.filled(np.nan)), counts.astype(float).filled(np.nan))).all()


DAYS = pd.date_range("2020", periods=ROWS)
NOT_DATES = (
    r"y must hold numbers, not dates or spans of time; got .*\. Remedy: pass numbers, such as days since a fixed"
)
NOT_TEXT = (
    r"y must hold numbers; got 'u'\. Remedy: turn the targets into numbers, or fit a TabularClassifier to classes"
)
REFUSED_TARGETS = {
    "dates": (DAYS, NOT_DATES),
    "dates of a zone": (pd.Series(DAYS.tz_localize("UTC")), NOT_DATES),
    "dates of NumPy": (DAYS.to_numpy(), NOT_DATES),
    "dates as objects": (DAYS.to_pydatetime(), NOT_DATES),
    "dates of Python": (list(DAYS.date), NOT_DATES),
    "dates of polars": (pl.Series(DAYS.date), NOT_DATES),
    "dates beside numbers": (pd.DataFrame({"a": X[:, 0], "b": DAYS}), NOT_DATES),
    "months": (DAYS.to_period("M"), NOT_DATES),
    "spans of time": (DAYS - DAYS[0], NOT_DATES),
    "spans as objects": (np.array(list((DAYS - DAYS[0]).to_numpy()), dtype=object), NOT_DATES),
    "text": (["u", "v"] * 24, NOT_TEXT),
    "text of pandas": (pd.Series(["u", "v"] * 24), NOT_TEXT),
    "text among numbers": (np.array([1.0, "u"] * 24, dtype=object), NOT_TEXT),
    "integers beyond floats": (
        [10**400 + row for row in range(ROWS)],
        r"y must hold numbers below 1\.8e308; got an integer beyond\. Remedy: divide y by a power of ten",
    ),
    "NA": (
        np.array([1.0, pd.NA] * 24, dtype=object),
        r"y must hold finite numbers; got a missing value\. Remedy: drop",
    ),
    "None": ([1.0, None] * 24, r"y must hold finite numbers; got a nan at index \(1,\)\. Remedy: drop"),
}


@pytest.mark.parametrize("dirt", REFUSED_TARGETS)
def test_refused_targets_of_a_regressor(dirt):
    y, text = REFUSED_TARGETS[dirt]
    model = fitted("regressor", X)
    before = model.predict(X)
    for call in (model.fit, model.partial_fit, model.explain):
        with pytest.raises(InvalidArgument, match=text):
            call(X, y)
    assert np.array_equal(model.predict(X), before)


def test_targets_that_are_numbers_as_text_or_objects():
    whole = np.arange(ROWS)
    numbers = said(fitted("regressor", X, whole), X)
    for y in (whole.astype(object), whole.astype(str), pd.Series(whole, dtype="Int64"), list(map(str, whole))):
        assert np.array_equal(said(fitted("regressor", X, y), X), numbers)


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("form", [lambda y: pd.array(y, dtype="Int64"), pl.Series, lambda y: y > 0, pd.Series])
def test_targets_in_whatever_holds_them(kind, form):
    labels = np.digitize(X[:, 0], [0.0])
    assert np.array_equal(said(fitted(kind, X, form(labels)), X), said(fitted(kind, X, labels), X))


def test_a_constant_target():
    np.testing.assert_allclose(fitted("regressor", X, np.full(ROWS, 7.0)).predict(X), 7.0, atol=1e-6)

"""`export_onnx`: onnxruntime predicts what the model does, by 1e-5, on every kind of table, without fewfire."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

import fewfire as ff
from fewfire.tabular import ENCODINGS, AdamW
from fewfire.tabular._trees import load_lightgbm

WITHOUT = "onnx or onnxruntime is not installed (WITH_ONNX=1 make test installs them)"
pytest.importorskip("onnx", reason=WITHOUT)
onnxruntime = pytest.importorskip("onnxruntime", reason=WITHOUT)
QUICK = {"hidden": (16, 8), "members": 2, "optimiser": AdamW(0.02, epochs=8), "random_state": 0}


@pytest.fixture(autouse=True)
def _lightgbm():
    load_lightgbm()  # where it cannot be, the test is skipped


def session_of(model, folder):
    path = folder / "model.onnx"
    model.export_onnx(path)
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def feeds(session, frame):
    """What docs/tabular.md tells users to pass."""
    metadata = {key: json.loads(text) for key, text in session.get_modelmeta().custom_metadata_map.items()}
    frame = (
        pd.DataFrame(np.asarray(frame, object), columns=[f"x{i}" for i in range(np.shape(frame)[1])])
        if not hasattr(frame, "iloc")
        else frame
    )
    found = {}
    if metadata["X"]:
        found["X"] = np.column_stack([frame[name].astype(float) for name in metadata["X"]])
    if metadata["categories"]:
        texts = [frame[name].astype(object) for name in metadata["categories"]]
        parts = [text.map(str).where(text.notna(), metadata["missing"][text.name]) for text in texts]
        found["categories"] = np.column_stack([part.to_numpy(object) for part in parts])
    return found


def check(model, table, folder):
    """The session, after all outputs have been compared."""
    session = session_of(model, folder)
    found = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds(session, table)), strict=True))
    if isinstance(model, ff.TabularRegressor):
        expected = model.predict(table)
        assert found["prediction"].shape == expected.shape
        assert np.abs((found["prediction"] - expected) / model._scale.max()).max() < 1e-5
    else:
        expected = model.predict_proba(table)
        assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == model.classes_.tolist()
        assert np.abs(found["probabilities"] - expected).max() < 1e-5
        sure = np.sort(expected, axis=1)
        sure = sure[:, -1] - sure[:, -2] > 1e-4
        assert np.array_equal(found["label"][sure], model.predict(table)[sure])
    return session


def edges(model, X):
    """Rows at thresholds of trees, knots of ranks and edges of bins, the floats next to them, and far outside."""
    ensemble, rows = model._ensemble, []
    columns = [set() for _ in range(X.shape[1])]
    for group in ensemble.trees.values():
        for booster in (booster for one in group.models for booster in one.boosters):
            text = booster.model_to_string()
            places, thresholds = (
                " ".join(re.findall(rf"^{name}=(.*)$", text, re.M)).split() for name in ("split_feature", "threshold")
            )
            for place, threshold in zip(map(int, places), map(float, thresholds), strict=True):
                columns[ensemble.columns.used[place]].add(threshold + ensemble.columns.offsets[place])
    for name in ("knots_", "edges_"):
        for encoding in ensemble.columns.encodings.values():
            for place, values in enumerate(getattr(encoding, name, [])):
                columns[ensemble.columns.used[place]].update(values[0] if name == "knots_" else values)
    for index, values in enumerate(columns):
        for value in filter(np.isfinite, values):
            for near in (value, np.nextafter(value, -np.inf), np.nextafter(value, np.inf)):
                rows.append(X[len(rows) % len(X)].copy())
                rows[-1][index] = near
    for far in (1e9, -1e9, 1.7e308, -1.7e308, 0.0, 5e-324, np.nan):
        rows.append(np.full(X.shape[1], far))
    return np.array(rows)


def gappy(X, share=0.1):
    X = X.copy()
    X[np.random.default_rng(0).random(X.shape) < share] = np.nan
    return X


@pytest.mark.parametrize("scaling", ["auto", *ENCODINGS])
@pytest.mark.parametrize("gaps", [False, True])
def test_two_classes_at_every_threshold(scaling, gaps, tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    X = gappy(X[:, :4]) if gaps else X[:, :4]
    model = ff.TabularClassifier(scaling=scaling, **QUICK).fit(X[:300], y[:300])
    check(model, X, tmp_path)
    if scaling != "standard":  # which is not clipped: 1e9 deviations out, float32 has no digits to agree on
        check(model, edges(model, X), tmp_path)


def test_many_classes_of_text_and_other_kinds_of_labels(tmp_path):
    X, y = load_iris(return_X_y=True)
    for labels in (np.array(["setosa", "é", ""])[y], y * 10, y == 1, y + 1.0):
        model = ff.TabularClassifier(**QUICK).fit(X, labels)
        check(model, np.vstack([X, edges(model, X)]), tmp_path)


def test_regression_of_one_and_of_several_outputs(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    for target in (y, y[:, None], np.column_stack([y, -1e6 + 1e5 * X[:, 2], X[:, 3]])):
        model = ff.TabularRegressor(**QUICK).fit(gappy(X), target)
        check(model, np.vstack([X, gappy(X, 0.3), edges(model, X)]), tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        {"trees": False},
        {"skip": False, "gains": "strong"},
        {"hidden": (8,)},
        {"hidden": (8, 8, 8), "members": 3},
        {"early_stopping": False},
        {"warm_start": True},
    ],
)
def test_settings(settings, tmp_path):
    X, y = load_iris(return_X_y=True)
    check(ff.TabularClassifier(**QUICK | settings).fit(gappy(X), y), gappy(X, 0.3), tmp_path)


def test_after_partial_fit_and_on_a_handful_of_rows(tmp_path):
    X, y = load_iris(return_X_y=True)
    check(ff.TabularClassifier(**QUICK).partial_fit(X, y, classes=[0, 1, 2]), X, tmp_path)
    check(ff.TabularRegressor(**QUICK).fit(X[:3], y[:3]), X, tmp_path)
    check(ff.TabularRegressor(**QUICK).fit(np.ones((30, 2)), y[40:70]), X[:, :2], tmp_path)  # no column varies
    odd = np.column_stack([np.where(np.arange(150) % 2, np.nan, 3.0), X[:, 0], np.full(150, np.nan)])
    check(ff.TabularClassifier(**QUICK).fit(odd, y), odd, tmp_path)  # one value and gaps; gaps alone


def test_columns_that_float32_blurs_and_huge_or_tiny_values(tmp_path):
    X, y = load_iris(return_X_y=True)
    for table in (X + 1e9, X * 1e307, X * 1e-305, np.round(X) * 1e17):
        model = ff.TabularClassifier(**QUICK).fit(table, y)
        check(model, np.vstack([table, edges(model, table)]), tmp_path)


def town_frame(rows=400, towns=40, missing=0.05):
    rng = np.random.default_rng(0)
    town, trade, size = rng.integers(0, towns, rows), rng.integers(0, 15, rows), rng.integers(0, 3, rows)
    x = rng.normal(size=rows)
    y = np.sign(town - towns / 2) * np.sign(trade - 7) + (size == 1) + np.sign(town % 5 - 2) * x
    frame = pd.DataFrame(
        {
            "x": x,
            "town": [f"town {t}" for t in town],
            "trade": [f"trade {t}" for t in trade],
            "size": pd.Categorical.from_codes(size, list("SML")),
            "rate": rng.integers(0, 12, rows) / 4,
            "left": rng.choice(["yes", "no"], rows),
        }
    )
    frame.loc[rng.random(rows) < missing, "town"] = None
    frame.loc[rng.random(rows) < missing, "left"] = None
    frame.loc[rng.random(rows) < missing, "rate"] = np.nan
    return frame, y


def fresh(frame):
    """Rows with categories that training did not see, and with missing ones where it saw none."""
    frame = frame.copy().astype({"size": object})
    frame.loc[::7, "town"] = "elsewhere"
    frame.loc[::5, "size"] = "XL"
    frame.loc[::11, "trade"] = None
    frame.loc[::9, "rate"] = 7.75
    frame.loc[::8, "left"] = "perhaps"
    return frame


def test_categories_of_text_and_numbers_slopes_and_pairs(tmp_path):
    frame, y = town_frame(1500)
    model = ff.TabularRegressor(**QUICK, categorical_features=["rate"]).fit(frame[:1200], y[:1200])
    assert model._categories.pairs and any(model._categories.slopes.values())
    session = check(model, pd.concat([frame, fresh(frame)]), tmp_path)
    metadata = session.get_modelmeta().custom_metadata_map
    assert json.loads(metadata["X"]) == ["x", "rate"]
    assert json.loads(metadata["categories"]) == ["town", "trade", "size", "left"]
    assert json.loads(metadata["missing"]) == dict.fromkeys(["town", "trade", "size", "left"], "")


def test_classes_by_categories_alone(tmp_path):
    frame, y = town_frame()
    frame = frame[["town", "left", "trade"]]
    model = ff.TabularClassifier(**QUICK).fit(frame[:300], np.sign(y[:300]))
    assert [entry.name for entry in check(model, frame, tmp_path).get_inputs()] == ["categories"]


def test_an_array_of_codes_and_an_array_of_objects(tmp_path):
    frame, y = town_frame()
    coded = np.column_stack([pd.factorize(frame["town"])[0], frame["x"], frame["rate"]])
    model = ff.TabularRegressor(**QUICK, categorical_features=[0, 2]).fit(coded[:300], y[:300])
    assert [entry.name for entry in check(model, coded, tmp_path).get_inputs()] == ["X"]
    objects = frame[["x", "town"]].astype(object).to_numpy()
    check(ff.TabularRegressor(**QUICK, categorical_features=[1]).fit(objects, y), objects, tmp_path)


def test_an_empty_text_that_is_a_category(tmp_path):
    frame, y = town_frame()
    frame["left"] = frame["left"].fillna("").replace("yes", None)
    session = check(ff.TabularRegressor(**QUICK).fit(frame, y), frame, tmp_path)
    assert json.loads(session.get_modelmeta().custom_metadata_map["missing"])["left"] == "?"


def test_what_cannot_be_told_apart_is_refused(tmp_path):
    frame, y = town_frame(60)
    frame["mixed"] = ["1", 1, 2] * 20
    model = ff.TabularRegressor(**QUICK).fit(frame, y)
    message = "export_onnx needs categories that differ as text, or as float64; got a pair alike in column 'mixed'. Remedy: turn the column into text before the fit."
    with pytest.raises(ff.InvalidArgument, match=f"^{message}$"):
        model.export_onnx(tmp_path / "model.onnx")
    frame["mixed"] = [2**60, 2**60 + 1, 3] * 20
    model = ff.TabularRegressor(**QUICK, categorical_features=["mixed"]).fit(frame, y)
    with pytest.raises(ff.InvalidArgument, match="a pair alike in column 'mixed'"):
        model.export_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_an_encoding_from_elsewhere_is_refused(tmp_path, monkeypatch):
    class Own(ENCODINGS["rank"]):
        pass

    monkeypatch.setitem(ENCODINGS, "own", Own)
    X, y = load_iris(return_X_y=True)
    model = ff.TabularClassifier(scaling="own", **QUICK).fit(X, y)
    message = (
        "export_onnx exports the encodings that fewfire has; got a Own for 'own'. Remedy: fit with scaling='auto'."
    )
    with pytest.raises(ff.InvalidArgument, match=f"^{message}$"):
        model.export_onnx(tmp_path / "model.onnx")


def test_before_a_fit(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        ff.TabularClassifier().export_onnx(tmp_path / "model.onnx")


def test_zero_and_single_rows(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = ff.TabularClassifier(**QUICK).fit(X, y)
    session = session_of(model, tmp_path)
    assert session.run(["probabilities"], {"X": X[:0]})[0].shape == (0, 3)
    single = np.vstack([session.run(["probabilities"], {"X": X[[row]]})[0] for row in range(0, 150, 10)])
    assert np.abs(single - model.predict_proba(X[::10])).max() < 1e-5


def test_a_file_serves_without_fewfire(tmp_path):
    frame, y = town_frame()
    model = ff.TabularClassifier(**QUICK).fit(frame, y > 0)
    given = feeds(session_of(model, tmp_path), frame)
    np.savez(tmp_path / "rows.npz", X=given["X"], categories=given["categories"].astype(str))
    code = """
import sys, numpy as np, onnxruntime
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
rows = np.load("rows.npz")
found = session.run(["probabilities"], {"X": rows["X"], "categories": rows["categories"].astype(object)})[0]
assert not {"fewfire", "sklearn", "lightgbm", "onnx"} & set(sys.modules)
np.save("found.npy", found)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    assert np.abs(np.load(tmp_path / "found.npy") - model.predict_proba(frame)).max() < 1e-5


def test_the_same_model_gives_the_same_file_and_checks(tmp_path):
    import onnx

    X, y = load_iris(return_X_y=True)
    for name in ("one", "two"):
        ff.TabularClassifier(**QUICK).fit(X, y).export_onnx(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    onnx.checker.check_model(onnx.load(tmp_path / "one"), full_check=True)


def test_the_how_to_of_the_docs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).resolve().parents[2] / "docs/tabular.md").read_text()
    (block,) = (block for block in re.findall(r"```py\n(.*?)```", page, re.S) if "onnxruntime" in block)
    frame, y = town_frame()
    names = {"frame": frame, "model": ff.TabularRegressor(**QUICK).fit(frame, y)}
    exec(compile(block, "docs", "exec"), names)
    assert np.abs(names["prediction"] - names["model"].predict(frame)).max() < 1e-5

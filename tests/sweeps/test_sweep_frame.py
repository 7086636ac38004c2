"""Flat settings: the columns of frames and exports, in one order whatever a store holds."""

import csv
import json
import sys

import numpy as np
import pytest

from fewfire._errors import MissingDependency
from fewfire.sweeps import MemoryStore, SqliteStore, export
from fewfire.sweeps.store._export import OWN
from fewfire.sweeps.store._protocol import SweepRecord
from fewfire.testing._sweeps import made_up_row, tiny

PHASES = [
    {"steps": 30, "learning_rate": 0.1, "batch_size": 8},
    {"steps": 10, "learning_rate": {"hidden": 0.2, "output": 0.3}, "batch_size": 8},
]
SETTINGS = [
    "problem.name", "problem.n", "problem.k", "problem.noise", "problem.support",
    "network.start.name", "network.start.s", "network.start.value", "network.width",
    "data.samples", "data.test_samples",
    "training.steps", "training.learning_rate", "training.learning_rate.bias", "training.learning_rate.hidden",
    "training.learning_rate.offset", "training.learning_rate.output",
    "training.weight_decay", "training.batch_size", "training.decay", "training.evaluate", "training.loss",
    "training.phases", "training.sampling", "training.stop_error", "training.truncation", "version",
]  # fmt: skip


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "s.sqlite", write=True)
    rates = {"learning_rate": [0.1, {"hidden": 0.2, "output": 0.3}], "weight_decay": 0.01, "batch_size": [8, 16]}
    with store:
        tiny(training={"steps": 40, "evaluate": 20} | rates, trials=1).run(store)
        yield store


def test_frames_have_flat_settings(store):
    pytest.importorskip("pandas")
    frame = store.to_frame()
    assert list(frame) == [*OWN, *SETTINGS] and len(frame) == len(list(store.rows()))
    for (_, line), row in zip(frame.iterrows(), store.rows(), strict=True):
        spec = json.loads(row.setting)
        (phase,) = spec["training"]["phases"]
        assert line["hash"] == row.hash and line["test_error"] == row.test_error
        assert line["network.width"] == spec["network"]["width"] and line["training.steps"] == 40
        assert line["training.weight_decay"] == 0.01 and line["training.batch_size"] == phase["batch_size"]
        rate = phase["learning_rate"]
        if isinstance(rate, dict):
            assert line["training.learning_rate.hidden"] == 0.2 and line["training.learning_rate.output"] == 0.3
        else:
            assert line["training.learning_rate"] == rate
    assert frame.groupby("network.width")["test_error"].count().tolist() == [16, 16]
    online = frame["data.samples"].isna()
    assert online.sum() == 16 and set(frame["data.samples"][~online]) == {30}


def test_phases_are_summed_and_shared():
    pytest.importorskip("pandas")
    store = MemoryStore()
    tiny(training={"phases": PHASES}, trials=1).run(store)
    frame = store.to_frame()
    assert set(frame["training.steps"]) == {40} and set(frame["training.batch_size"]) == {8}
    assert frame["training.learning_rate"].isna().all()  # the phases differ in it
    assert len(json.loads(frame["training.phases"][0])) == 2
    assert len(MemoryStore().to_frame()) == 0


def test_exports_have_the_same_columns_in_the_same_order(store, tmp_path):
    export(store, tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(newline="", encoding="utf-8") as file:
        heads = next(csv.reader(file))
    assert heads == [*OWN, *SETTINGS, "environment"]
    parquet = pytest.importorskip("pyarrow.parquet")
    export(store, tmp_path / "runs.parquet")
    assert parquet.read_schema(tmp_path / "runs.parquet").names[: len(heads)] == heads


def test_order_does_not_depend_on_what_came_first(tmp_path):
    heads = []
    for starts in (["dense", {"name": "sparse", "s": 2}], [{"name": "sparse", "s": 2}, "dense"]):
        store = MemoryStore()
        tiny(network={"start": starts, "width": 5}, trials=1).run(store)
        export(store, tmp_path / "runs.csv")
        heads.append((tmp_path / "runs.csv").read_text().splitlines()[0])
    assert heads[0] == heads[1]


def test_latex_has_a_row_per_cell(tmp_path):
    store = MemoryStore()
    store.add([made_up_row(trial, width=width, error=0.02 * trial) for trial in range(10) for width in (5, 8)])
    store.add([made_up_row(20, "diverged", width=8), made_up_row(21, "failed")])
    store.record_sweep(SweepRecord("s", 0.05, {"name": "s"}))
    assert export(store, tmp_path / "cells.tex") == 2
    lines = (tmp_path / "cells.tex").read_text().splitlines()
    assert lines[0] == "% success: a test error of at most 0.05" and "% training.learning_rate = 0.1" in lines
    table = lines[lines.index(r"\begin{tabular}{rrrrrr}") :]
    assert table == [
        r"\begin{tabular}{rrrrrr}",
        r"\toprule",
        r"width & runs & success & 95\% interval & diverged & failed \\",
        r"\midrule",
        r"5 & 10 & 60\% & 31\%--83\% & 0 & 1 \\",
        r"8 & 11 & 55\% & 28\%--79\% & 1 & 0 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert export(MemoryStore(), tmp_path / "none.tex") == 0


def test_latex_has_plain_heads(tmp_path):
    store = MemoryStore()
    starts, schedule = [{"name": "sparse", "s": 2}, "dense"], {"steps": 4, "learning_rate": [0.2, 0.1]}
    network, data = {"start": starts, "width": 5}, {"samples": ["online", 200, 30]}
    tiny(network=network, data=data, training=schedule, trials=1).run(store)
    export(store, tmp_path / "cells.tex")
    lines = (tmp_path / "cells.tex").read_text().splitlines()
    first = lines.index(r"start & examples & learning rate & runs & success & 95\% interval \\") + 2
    rates = [f"{m} & {rate}" for m in ("30", "200", "online") for rate in (0.1, 0.2)]  # sorted by the columns
    expected = [f"{start} & {rest} & 1 & " for start in ("dense", "sparse(s=2)") for rest in rates]
    assert all(line.startswith(told) for line, told in zip(lines[first:], expected, strict=False))
    assert len(lines) == first + 12 + 2


def test_frames_name_what_they_need(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        MissingDependency, match=r"to_frame needs the package 'pandas'.* pip install 'fewfire\[sweep\]'"
    ):
        MemoryStore().to_frame()


def test_numbers_stay_numbers(store):
    pytest.importorskip("pandas")
    frame = store.to_frame()
    assert frame["test_error"].dtype == np.float64 and frame["problem.n"].dtype == "Int64"
    assert frame["training.learning_rate"].dtype == "Float64"

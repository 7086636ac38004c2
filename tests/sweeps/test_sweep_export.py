"""Tables for other tools."""

import csv
import json

import numpy as np
import pytest

from fewfire._errors import InvalidArgument, MissingDependency, StoreError
from fewfire._optional import is_installed
from fewfire.sweeps import MemoryStore, SqliteStore, export
from fewfire.sweeps.store._row import COLUMNS, CURVES
from fewfire.testing._sweeps import made_up_row, tiny

needs_arrow = pytest.mark.skipif(
    not is_installed("pyarrow"), reason="pyarrow is not installed: pip install 'fewfire[sweep]'"
)


@pytest.fixture
def store():
    store = MemoryStore()
    tiny(training=[{"steps": 40, "evaluate": [20, "log"]}]).run(store)
    store.add([made_up_row(50, "failed", message='said "no",\nthen left')])
    return store


def test_csv_has_every_column_and_setting(store, tmp_path):
    path = tmp_path / "runs.csv"
    assert export(store, path) == 33
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    by_hash = {row.hash: row for row in store.rows()}
    assert len(rows) == 33 and [row["hash"] for row in rows] == sorted(by_hash)
    for row in rows:
        source = by_hash[row["hash"]]
        spec = json.loads(source.setting)
        for name in COLUMNS.keys() - {"setting"}:
            value = getattr(source, name)
            assert (
                row[name] == str(value)
                if not isinstance(value, float)
                else np.array_equal(float(row[name]), value, equal_nan=True)
            )
        assert row["network.width"] == str(spec["network"]["width"]) and row["problem.support"] == "[0,1]"
        assert row["data.samples"] == ("" if spec["data"]["samples"] == "online" else "30")
        assert row["network.start.s"] == ("2" if spec["network"]["start"]["name"] == "sparse" else "")
        assert json.loads(row["training.phases"]) == spec["training"]["phases"]
        assert row["environment"] == source.environment


@needs_arrow
def test_parquet_has_types_and_histories(store, tmp_path, monkeypatch):
    from pyarrow import parquet

    monkeypatch.setattr("fewfire.sweeps.store._export.CHUNK", 10)  # several row groups
    path = tmp_path / "runs.parquet"
    assert export(store, path) == 33
    table = parquet.read_table(path)
    assert table.num_rows == 33 and parquet.ParquetFile(path).num_row_groups == 4
    rows = {row["hash"]: row for row in table.to_pylist()}
    for source in store.rows():
        row, spec = rows[source.hash], json.loads(source.setting)
        for name in COLUMNS.keys() - {"setting"}:
            expected = getattr(source, name)
            assert np.array_equal(row[name], expected, equal_nan=isinstance(expected, float))
        assert row["network.width"] == spec["network"]["width"] and row["problem.n"] == 8
        assert row["data.samples"] == (None if spec["data"]["samples"] == "online" else 30)
        assert row["training.evaluate"] == str(spec["training"]["evaluate"])
        assert row["history.step"] == source.history.step.tolist()
        for name in CURVES:
            assert np.array_equal(np.float32(row[f"history.{name}"]), getattr(source.history, name), equal_nan=True)


@needs_arrow
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_empty_store_gives_an_empty_table(tmp_path, suffix):
    path = tmp_path / f"runs{suffix}"
    assert export(MemoryStore(), path) == 0 and path.stat().st_size > 0


def test_the_ending_names_the_format(store, tmp_path):
    with pytest.raises(
        InvalidArgument,
        match=r"path must end in one of .csv, .parquet, .tex; got '.*runs.xlsx'. Remedy: the ending names the format",
    ):
        export(store, tmp_path / "runs.xlsx")


def test_the_store_is_not_written_over(tmp_path):
    path = tmp_path / "runs.csv"
    with SqliteStore(path, write=True) as store:
        store.add([made_up_row(0)])
    (tmp_path / "link.csv").symlink_to(path)
    before = path.read_bytes()
    with SqliteStore(path) as store:
        for place in (path, tmp_path / "link.csv"):
            with pytest.raises(InvalidArgument, match=r"path must not be the store itself; got .* choose another file"):
                export(store, place)
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_written(store, tmp_path):
    with pytest.raises(
        StoreError, match=r"runs.csv cannot be written: No such file or directory. The store is as it was"
    ):
        export(store, tmp_path / "none" / "runs.csv")


def test_an_interrupted_export_leaves_the_old_file(store, tmp_path, monkeypatch):
    path = tmp_path / "runs.csv"
    path.write_text("old")

    def rows():
        yield next(MemoryStore.rows(store))
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "rows", rows)
    with pytest.raises(KeyboardInterrupt):
        export(store, path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_parquet_names_what_it_needs(store, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(
        MissingDependency,
        match=r"writing Parquet needs the package 'pyarrow', which is not installed. Remedy: pip install 'fewfire\[sweep\]'",
    ):
        export(store, tmp_path / "runs.parquet")
    assert list(tmp_path.iterdir()) == []


def test_the_view_for_sql(tmp_path):
    import sqlite3

    tiny().run(tmp_path / "runs.sqlite")
    with SqliteStore(tmp_path / "runs.sqlite") as store:
        columns = store.columns()
    connection = sqlite3.connect(tmp_path / "runs.sqlite")
    found = connection.execute(
        "SELECT hash, width, json_extract(problem, '$.n'), test_error FROM results ORDER BY hash"
    ).fetchall()
    connection.close()
    assert [row[0] for row in found] == columns["hash"].tolist()
    assert [row[3] for row in found] == columns["test_error"].tolist()
    assert {row[1] for row in found} == {5, 8} and {row[2] for row in found} == {8}

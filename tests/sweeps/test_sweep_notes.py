"""Notes and tags: they stand beside a sweep, reach every cell of it, and change no run, hash or older file."""

import csv
import shutil
import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from small_search import small_search

from fewfire._errors import FileFormatError, InvalidArgument
from fewfire.problems import SignProblem, register_problem, unregister_problem
from fewfire.sweeps import MemoryStore, SqliteStore, Sweep, export, merge
from fewfire.sweeps.store._notes import check_tags, noted
from fewfire.sweeps.store._protocol import SweepRecord
from fewfire.sweeps.store._sqlite import SCHEMA_VERSION
from fewfire.testing._sweeps import outcomes, tiny

RECORDED = Path(__file__).parent / "recorded" / "store.sqlite"


def ran(path, sweep, **options):
    sweep.run(path, executor="inline", **options)
    with SqliteStore(path) as store:
        return outcomes(store), store.sweeps(), [one.text for one in store.settings()]


def tables(path):
    with sqlite3.connect(path) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_runs_are_those_of_a_sweep_without_notes(tmp_path):
    plain = ran(tmp_path / "plain.sqlite", tiny())
    marked = ran(tmp_path / "noted.sqlite", tiny(), note=" why\n", tags=["b", "a", "a"])
    assert marked[0] == plain[0] and marked[2] == plain[2]
    assert marked[1] == [replace(plain[1][0], note="why", tags=("a", "b"))]
    assert tables(tmp_path / "noted.sqlite") - tables(tmp_path / "plain.sqlite") == {"notes"}


def test_a_repeated_run_keeps_and_adds(tmp_path):
    path = tmp_path / "runs.sqlite"
    ran(path, tiny(), note="first", tags=["a"])
    assert ran(path, tiny())[1][0].note == "first"
    (record,) = ran(path, tiny(name="renamed"), note="second", tags=["b"])[1]
    assert (record.name, record.note, record.tags) == ("renamed", "first\nsecond", ("a", "b"))
    assert ran(path, tiny(name="renamed"), note="second", tags="b")[1] == [record]


def test_an_older_store_gets_notes_and_stays_readable_by_its_version(tmp_path):
    path = shutil.copy(RECORDED, tmp_path / "runs.sqlite")
    with SqliteStore(path) as store:
        before, (record,) = outcomes(store), store.sweeps()
    assert record.note == "" and "notes" not in tables(path)
    with SqliteStore(path, write=True) as store:
        store.record_sweep(replace(record, note="old", tags=("x",)))
        assert outcomes(store) == before and len(noted(store.settings(), store.sweeps())) == len(store.settings())
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION == 2
        older = connection.execute("SELECT name, success_error, spec FROM sweeps").fetchall()  # as version 2 asks
    assert [name for name, *_ in older] == [record.name]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE notes SET note = x'ff'",
        "UPDATE notes SET tags = x'00'",
        "ALTER TABLE notes RENAME TO kept; CREATE VIRTUAL TABLE notes USING fts5(sweep, note, tags)",
    ],
)
def test_damaged_notes_are_refused(tmp_path, damage):
    path = tmp_path / "runs.sqlite"
    ran(path, tiny(), note="why", tags=["a"])
    with sqlite3.connect(path) as connection:
        connection.executescript(damage)
    with pytest.raises(FileFormatError, match="is damaged"), SqliteStore(path) as store:
        store.sweeps()


@pytest.mark.parametrize("tag", ["", "two words", "a,b", 'a"b', "a\nb", 3])
def test_a_tag_is_one_word(tag):
    store = MemoryStore()
    with pytest.raises(InvalidArgument, match="tags must be words without spaces, commas and quotes"):
        tiny().run(store, tags=[tag])
    assert store.sweeps() == [] and check_tags("one") == ("one",)


def test_cells_have_the_notes_of_their_sweeps():
    store = MemoryStore()
    small, wide = tiny(), tiny(network={"start": "dense", "width": [8, 9]})
    small.run(store, executor="inline", tags=["small"], note="first")
    wide.run(store, executor="inline", tags=["wide", "all"])
    tiny(data={"samples": 7, "test_samples": 40}).run(store, executor="inline")
    found = noted(store.settings(), store.sweeps())
    for setting in store.settings():
        ours = [sweep for sweep in (small, wide) if any(run.setting == setting.text for run in sweep.runs())]
        tags = sorted({tag for sweep in ours for tag in (["small"] if sweep is small else ["wide", "all"])})
        expected = ({"tags": ", ".join(tags)} if tags else {}) | ({"note": "first"} if small in ours else {})
        assert found[setting.id] == expected
    assert {text.get("tags") for text in found.values()} == {"small", "all, small, wide", "all, wide", None}


def test_cells_of_a_search_are_those_that_it_may_try():
    store, search = MemoryStore(), small_search()
    search.run(store, executor="inline", tags=["searched"])
    trained = {setting.id for setting in store.settings()}
    values = {one.samples for one in store.settings()}
    other = next(value for value in range(min(values), max(values)) if value not in search.search.values())
    beside = {**search.tables(), "data": {"samples": other, "test_samples": search.data[0].test_samples}}
    Sweep.from_dict(beside).run(store, executor="inline")
    found = noted(store.settings(), store.sweeps())
    assert {id for id, texts in found.items() if texts} == trained


def test_noisy_and_clean_labels_are_told_apart():
    store, table = MemoryStore(), tiny().tables()
    table["problem"] = {"name": "parity", "n": 8, "k": 2, "noise": [0.0, 0.1]}
    table["network"] = {"start": "dense", "width": 5}
    for labels in ("clean", "noisy"):
        data = {"samples": 30, "test_samples": 40, "test_labels": labels}
        sweep = Sweep.from_dict({**table, "data": data, "success_error": 0.3})
        sweep.run(store, executor="inline", tags=[labels])
    found = noted(store.settings(), store.sweeps())
    told = {
        (one.problem["noise"], one.spec["data"].get("test_labels")): found[one.id]["tags"] for one in store.settings()
    }
    assert told == {(0.0, None): "clean, noisy", (0.1, "clean"): "clean", (0.1, None): "noisy"}


def test_shares_of_a_table_and_problems_that_are_not_known_here(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (WITH_SWEEP=1 make test installs it)")
    rows = "\n".join(f"{i % 7},{i % 3},{i % 2}" for i in range(60))
    (tmp_path / "t.csv").write_text(f"a,b,target\n{rows}\n")
    store = MemoryStore()
    table = {"problem": {"name": "table", "file": str(tmp_path / "t.csv")}, "network": {"start": "dense", "width": 4}}
    for share in (0.5, 1.0):
        spec = {**table, "data": {"samples": share}, "training": {"steps": 5}}
        Sweep.from_dict(spec).run(store, executor="inline", engine="reference", tags=[f"share-{share:g}"])
    assert [texts["tags"] for texts in noted(store.settings(), store.sweeps()).values()] == ["share-0.5", "share-1"]

    @register_problem
    @dataclass(frozen=True)
    class First(SignProblem):
        """The first input."""

        name: ClassVar = "first_input_of_a_test"
        n: int

        def _values(self, X):
            return X[:, 0]

    spec = {"problem": {"name": First.name, "n": 5}, "network": {"start": "dense", "width": 4}}
    own = MemoryStore()
    Sweep.from_dict({**spec, "data": {"samples": 20}, "training": {"steps": 5}}).run(own, executor="inline", tags="own")
    unregister_problem(First)
    assert noted(own.settings(), own.sweeps()) == {1: {"tags": "own"}}


def test_a_note_within_another_word_is_another_note():
    first, second = (SweepRecord("grid", 0.1, {}, note) for note in ("rate 10", "rate 1"))
    assert first.joined(second).note == "rate 10\nrate 1" and second.joined(first).note == "rate 1\nrate 10"
    both = first.joined(second)
    assert (
        both.joined(second) == both.joined(first) == first.joined(both) == both.joined(replace(first, note="")) == both
    )


def test_merges_join_notes(tmp_path):
    stores = [MemoryStore(), MemoryStore(), MemoryStore()]
    for store, note, tags in zip(stores, ("one", "two", ""), (["a"], ["b"], []), strict=True):
        tiny().run(store, executor="inline", note=note, tags=tags)
    merge(stores[2], stores[:2])
    for _ in range(2):  # a second time nothing is new
        merge(stores[2], stores[:2])
        (record,) = stores[2].sweeps()
        assert (record.note, record.tags) == ("one\ntwo", ("a", "b"))
    empty = MemoryStore()
    merge(empty, [stores[2]])
    assert empty.sweeps() == [record]


def test_exports_have_notes_and_tags(tmp_path):
    store = MemoryStore()
    tiny().run(store, executor="inline")
    export(store, tmp_path / "before.csv")
    assert "tags" not in (tmp_path / "before.csv").read_text().splitlines()[0].split(",")
    tiny(network={"start": "dense", "width": 5}).run(store, executor="inline", note="100% & more\nlines", tags="a")
    export(store, tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(newline="") as file:
        found = {
            (row["network.start.name"], row["network.width"]): (row["tags"], row["note"])
            for row in csv.DictReader(file)
        }
    assert found[("dense", "5")] == ("a", "100% & more\nlines") and found[("sparse", "8")] == ("", "")
    export(store, tmp_path / "cells.tex")
    lines = (tmp_path / "cells.tex").read_text().splitlines()
    assert "% sweep [a] 100% & more" in lines and "% lines" in lines
    pytest.importorskip("pandas")
    frame = store.to_frame()
    assert set(frame[frame["network.start.name"] == "sparse"]["tags"].isna()) == {True}

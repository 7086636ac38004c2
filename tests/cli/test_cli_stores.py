"""`fewfire sweep status`, `merge` and `compare` as a user sees them."""

import json
import re
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from fewfire import cli
from fewfire.sweeps import SqliteStore
from fewfire.sweeps.store._protocol import SweepRecord
from fewfire.testing._sweeps import made_up_row, tiny_table

runner = CliRunner()


def sweep(*arguments):
    result = runner.invoke(cli.app, ["sweep", *map(str, arguments)])
    return result.output.splitlines(), result


def write(path, rows, name=None):
    with SqliteStore(path, write=True) as store:
        store.add(rows)
        if name:
            store.record_sweep(SweepRecord(name, 0.1, {"name": name}))
    return path


@pytest.fixture
def stores(tmp_path, monkeypatch):
    """Ten trials each of width 5: none succeeds in one, all in the other, which has width 8 as well."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    one = [made_up_row(trial, error=0.5) for trial in range(10)]
    one += [made_up_row(20, "failed", message="no [room]"), made_up_row(21, "diverged", message="at step 3")]
    other = [made_up_row(trial, error=0.02) for trial in range(10)] + [made_up_row(0, width=8)]
    return write(tmp_path / "one.sqlite", one, "First"), write(tmp_path / "other.sqlite", other)


def test_notes_and_tags(stores):
    lines, result = sweep("note", "one.sqlite")
    assert result.exit_code == 0 and lines == ["Sweep: First (success: a test error of at most 0.1)"]
    lines, _ = sweep("note", "one.sqlite", " see [red]the[/red]\npaper ", "--tag", "final", "--tag", "baseline")
    first = "Sweep: First [baseline, final] (success: a test error of at most 0.1)"
    assert lines == [first, "  see [red]the[/red]", "  paper"]
    assert sweep("note", "one.sqlite")[0] == lines and sweep("status", "one.sqlite")[0][1:4] == lines
    with SqliteStore("one.sqlite", write=True) as store:
        store.record_sweep(SweepRecord("Second", 0.1, {"name": "Second", "trials": 2}))
    assert sweep("note", "one.sqlite", "--untag", "final", "--sweep", "First")[0][0] == first.replace(", final", "")
    error = "(success: a test error of at most 0.1)"
    lines, _ = sweep("note", "one.sqlite", "", "--sweep", "First")
    assert lines == [f"Sweep: First [baseline] {error}", f"Sweep: Second {error}"]
    with SqliteStore("one.sqlite") as store:
        assert len(store.columns()["hash"]) == 12


def test_notes_that_cannot_be_written(stores):
    for words, told in (
        (["one.sqlite", "x", "--sweep", "Firsst"], "--sweep must be the name of one in the store; got 'Firsst'. Remedy: write 'First'"),
        (["one.sqlite", "--tag", "two words"], "tags must be words without spaces, commas and quotes; got 'two words'"),
        (["none.sqlite", "x"], "there is no store none.sqlite"),
        (["other.sqlite", "x"], "--sweep must be the name of one in the store; got a store without sweeps"),
    ):  # fmt: skip
        _, result = sweep("note", *words)
        assert told in str(result.exception)
    with SqliteStore("one.sqlite") as store:
        assert store.sweeps()[0].note == "" and store.sweeps()[0].tags == ()


def test_status(stores):
    lines, result = sweep("status", "one.sqlite")
    assert result.exit_code == 0
    assert re.fullmatch(r"one.sqlite \(\d+ kB\): 12 runs in 1 cell: 10 done, 1 diverged, 1 failed", lines[0])
    assert lines[1:4] == [
        "Sweep: First (success: a test error of at most 0.1)",
        "0.0% reached a test error of 0.1",
        "Engines: cpu (12 runs)",
    ]
    assert sorted(lines[4:]) == ["1 diverged: at step 3", "1 failed: no [room]"]


def test_reasons_that_are_not_listed_are_counted(tmp_path):
    rows = [made_up_row(trial, "failed", message=f"reason {min(trial, 4)}") for trial in range(8)]
    lines, _ = sweep("status", str(write(tmp_path / "s.sqlite", rows)))
    assert lines[-4] == "4 failed: reason 4" and lines[-1] == "2 more with 2 other reasons (column message)"


def test_status_of_a_spec(stores, tmp_path):
    (tmp_path / "s.toml").write_text(
        'trials = 12\n[problem]\nname = "parity"\nn = 8\nk = 2\n[network]\nstart = "dense"\nwidth = 5\n'
        "[data]\nsamples = 30\ntest_samples = 40\n"
        "[training]\nsteps = 40\nlearning_rate = 0.1\nweight_decay = 0.01\nbatch_size = 8\nevaluate = 20\n"
    )
    lines, _ = sweep("status", "one.sqlite", "--spec", "s.toml")
    assert lines[-1] == "Of s.toml: 10 of 12 runs are final, 2 to do"


def test_merge(stores):
    lines, result = sweep("merge", "all.sqlite", "one.sqlite", "other.sqlite")
    assert result.exit_code == 1 and lines[0] == "Added 13 runs from 2 stores: all.sqlite has 13"
    assert lines[1].startswith(
        "10 runs contradict those in all.sqlite, with the same engine and arithmetic; those are kept."
    )
    with SqliteStore("all.sqlite") as merged, SqliteStore("one.sqlite") as one:
        assert merged.counts() == {"done": 11, "diverged": 1, "failed": 1} and merged.sweeps() == one.sweeps()
        first = {row.hash: row.outcome() for row in one.rows()}
        assert {row.hash: row.outcome() for row in merged.rows() if row.hash in first} == first  # the first one counts
    assert sweep("merge", "all.sqlite", "one.sqlite")[0] == ["Added 0 runs from 1 store: all.sqlite has 13"]
    again = write("again.sqlite", [made_up_row(20)])
    assert sweep("merge", "all.sqlite", again)[0] == ["Added 0 runs from 1 store: all.sqlite has 13"]
    with SqliteStore("all.sqlite") as merged:
        assert merged.counts()["failed"] == 0  # replaced by the run that ended
    _, result = sweep("merge", "one.sqlite", "./one.sqlite")
    assert str(result.exception).startswith("TARGET must not be one of the stores that are added; got 'one.sqlite'.")
    _, result = sweep("merge", "new.sqlite", "none.sqlite")
    assert "there is no store none.sqlite" in str(result.exception) and not (stores[0].parent / "new.sqlite").exists()


def changed(row, **environment):
    """The row with another loss, made by a package with these entries in its environment."""
    return replace(row, train_error=row.train_error + 1e-6, environment=json.dumps(environment))


def test_merge_separates_last_digits_from_contradictions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [replace(made_up_row(trial), engine="cpu", environment='{"arithmetic": 2}') for trial in range(4)]
    write("one.sqlite", rows)
    write("older.sqlite", [rows[0], changed(rows[1], fewfire="0.1.0"), changed(rows[2], arithmetic=1)])
    lines, result = sweep("merge", "one.sqlite", "older.sqlite")
    assert result.exit_code == 0 and lines == [
        "Added 0 runs from 1 store: one.sqlite has 4",
        "2 runs differ from those in one.sqlite, with another engine or arithmetic; those are kept",
    ]
    write("wrong.sqlite", [rows[0], changed(rows[3], arithmetic=2, host="another")])
    lines, result = sweep("merge", "one.sqlite", "wrong.sqlite")
    assert result.exit_code == 1 and lines[1:] == [
        "1 runs contradict those in one.sqlite, with the same engine and arithmetic; those are kept. "
        f"First: {rows[3].hash}. Remedy: repeat them into a new store, and compare"
    ]
    write("again.sqlite", [changed(rows[3], arithmetic=2, host="another")])
    assert sweep("merge", "one.sqlite", "wrong.sqlite", "again.sqlite")[0][1:] == lines[1:]  # it is one run
    with SqliteStore("one.sqlite") as store:
        assert [row.outcome() for row in store.rows()] == sorted(
            (row.outcome() for row in rows), key=lambda outcome: outcome[0]
        )


def test_merge_keeps_the_name_of_a_sweep_and_prints_both(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, error in (("one", 0.1), ("two", 0.2)):
        with SqliteStore(f"{name}.sqlite", write=True) as store:
            store.record_sweep(SweepRecord(name, error, tiny_table(name=name, success_error=error)))
    lines, _ = sweep("merge", "one.sqlite", "two.sqlite")
    assert lines[1] == "The sweep 'one' with success at 0.1 is also called 'two' with success at 0.2; the first is kept"
    with SqliteStore("one.sqlite") as store:
        assert [(record.name, record.success_error) for record in store.sweeps()] == [("one", 0.1)]


def test_merge_reports_that_sweeps_count_success_otherwise(tmp_path, monkeypatch):
    """Commands take the success error of the last sweep, which a merge may add."""
    monkeypatch.chdir(tmp_path)
    for name, error, width in (("one", 0.1, 5), ("two", 0.2, 6)):
        with SqliteStore(f"{name}.sqlite", write=True) as store:
            store.add([made_up_row(0, width=width)])
            store.record_sweep(SweepRecord(name, error, tiny_table(name=name, success_error=error, trials=width)))
    lines, _ = sweep("merge", "one.sqlite", "two.sqlite")
    assert lines[1:] == [
        "The sweeps of one.sqlite count success differently: 'one' at 0.1, 'two' at 0.2. "
        "The last counts, or --success-error"
    ]
    assert sweep("merge", "one.sqlite", "two.sqlite")[0] == ["Added 0 runs from 1 store: one.sqlite has 2"]


def compare(*arguments):
    """The first line, and those after the table."""
    lines, result = sweep("compare", *arguments)
    assert result.exit_code == 0
    return lines[0], lines[-2], lines[-1]


def test_compare_takes_shared_runs_as_pairs(stores):
    lines, result = sweep("compare", "one.sqlite", "other.sqlite")
    assert result.exit_code == 0 and max(map(len, lines[1:3])) <= 60
    assert lines[0] == "1 cell in both; 0 only in one.sqlite, 1 only in other.sqlite"
    assert lines[1].split() == ["one.sqlite", "other.sqlite", "difference"]
    assert lines[2].split() == ["0/11", "10/10", "+100%"]
    assert lines[3] == (
        "10 runs in both stores: 0 of them agree in every number; 0 succeed only in one.sqlite, 10 only in other.sqlite"
    )
    # McNemar: ten pairs, all in favour of one side, are 10 / √10 standard errors apart.
    assert lines[4] == "Test error of at most 0.1: 0.0% and 100.0% succeed; the stores differ clearly (z = -3.16)"
    _, result = sweep("compare", "one.sqlite", "other.sqlite", "--success-error", "1")
    assert str(result.exception).startswith("--success-error must be a finite number in (0, 1); got 1.0.")


def test_a_copy_is_no_second_observation(stores):
    _, shared, verdict = compare("one.sqlite", "one.sqlite", "--success-error", "0.6")
    assert shared.startswith("11 runs in both stores: 11 of them agree in every number; 0 succeed only in")
    assert verdict.endswith("; whether the stores differ is open: they hold the same runs")


def test_compare_names_the_other_success_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("one.sqlite", [made_up_row(0, error=0.2)], "First")
    with SqliteStore("other.sqlite", write=True) as store:
        store.add([made_up_row(1, error=0.2)])
        store.record_sweep(SweepRecord("Second", 0.3, {"name": "Second"}))
    told = "other.sqlite counts a test error of 0.3 as success, one.sqlite 0.1, which counts here"
    assert sweep("compare", "one.sqlite", "other.sqlite")[0][1] == told
    assert told not in sweep("compare", "one.sqlite", "other.sqlite", "--success-error", "0.1")[0]


def test_compare_of_runs_that_are_not_shared_is_cell_by_cell(tmp_path, monkeypatch):
    """8 of 10 against 2 of 10 in one cell: by the variance of drawing without replacement z = 2.62."""
    monkeypatch.chdir(tmp_path)
    write("one.sqlite", [made_up_row(trial, error=0.02 if trial < 8 else 0.5) for trial in range(10)])
    write("other.sqlite", [made_up_row(trial, error=0.02 if trial < 12 else 0.5) for trial in range(10, 20)])
    _, shared, verdict = compare("one.sqlite", "other.sqlite")
    assert shared == "No run is in both stores"
    assert verdict.endswith("80.0% and 20.0% succeed; the stores differ clearly (z = 2.62)")
    # Thirty shared runs, whatever their ending, change nothing.
    for name in ("one.sqlite", "other.sqlite"):
        write(name, [made_up_row(trial, error=0.02) for trial in range(100, 130)])
    _, shared, verdict = compare("one.sqlite", "other.sqlite")
    assert shared.startswith("30 runs in both stores: 30 of them agree")
    assert verdict.endswith("the stores differ clearly (z = 2.62)")


def test_a_part_of_a_store_proves_nothing_about_it(tmp_path, monkeypatch):
    """All runs of one store are in the other: there is nothing to compare them with, whatever the others did."""
    monkeypatch.chdir(tmp_path)
    rows = [made_up_row(trial, error=0.02 if trial < 5 else 0.5) for trial in range(12)]
    write("one.sqlite", rows)
    write("part.sqlite", rows[:4])
    _, shared, verdict = compare("one.sqlite", "part.sqlite")
    assert shared.startswith("4 runs in both stores: 4 of them agree in every number")
    assert verdict.endswith(
        "; whether the stores differ is open: shared runs end alike, and no cell has others in both"
    )


def test_compare_prints_how_many_cells_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [made_up_row(0, width=width) for width in range(1, 25)]
    write("one.sqlite", rows)
    lines, _ = sweep("compare", "one.sqlite", "one.sqlite")
    assert lines[0].startswith("24 cells in both") and "20 of 24 cells are shown, those that differ most" in lines

"""Stores that were tampered with, hashes and all: every command prints what is wrong in one line, and ends."""

import json
import os
import signal
import sqlite3
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from fewfire import cli
from fewfire._errors import FewfireError
from fewfire.report import LivePage
from fewfire.sweeps import SqliteStore
from fewfire.sweeps.store._protocol import SweepRecord, run_hash
from fewfire.testing._sweeps import made_up_row, tiny_table

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"


def with_setting(change):
    """A setting that was changed after the fact, with the hashes of its runs made to fit."""

    def tamper(connection):
        (text,) = connection.execute("SELECT spec FROM settings").fetchone()
        spec = json.loads(text)
        change(spec)
        spec = json.dumps(spec, sort_keys=True, separators=(",", ":"))
        connection.execute("UPDATE settings SET spec = ?", (spec,))
        for id, trial in connection.execute("SELECT id, trial FROM runs").fetchall():
            connection.execute("UPDATE runs SET hash = ? WHERE id = ?", (run_hash(spec, trial), id))

    return tamper


def within(table, **changes):
    return with_setting(lambda spec: spec[table].update(changes))


def nested(depth):
    value = 1
    for _ in range(depth):
        value = {"n": value}
    return value


def statements(*texts):
    return lambda connection: [connection.execute(text) for text in texts]


TAMPERED = {
    "a lone surrogate in a problem": within("problem", name="pa\ud800rity"),
    "a lone surrogate in a start": within("network", start={"name": "\udfff"}),
    "NaN for n": within("problem", n=float("nan")),
    "infinity for samples": within("data", samples=float("inf")),
    "a text for n": within("problem", n="eight"),
    "a text for samples": within("data", samples="many"),
    "a width below one": within("network", width=-5),
    "a width of many digits": within("network", width=10**400),
    "a start that is a number": within("network", start=3),
    "a problem within a problem": within("problem", n=nested(3)),
    "a problem that goes on and on": within("problem", n=nested(900)),
    "a table in a problem from elsewhere": within("problem", name="elsewhere", n=nested(2)),
    "no phases": within("training", phases=[]),
    "phases that are numbers": within("training", phases=[1, 2]),
    "a stop error that is a text": within("training", stop_error="soon"),
    "test labels of another kind": within("data", test_labels=7),
    "a success error without end": statements("UPDATE sweeps SET success_error = 9e999"),
    "a negative success error": statements("UPDATE sweeps SET success_error = -1.0"),
    "a sweep that is a list": statements("UPDATE sweeps SET spec = '[1]'"),
    "a sweep with a lone surrogate": statements("""UPDATE sweeps SET spec = '{"problem": "\\ud800"}'"""),
    "a sweep with NaN": statements("""UPDATE sweeps SET spec = '{"trials": NaN}'"""),
    "an endless view called runs": statements(
        "ALTER TABLE runs RENAME TO kept", f"CREATE VIEW runs AS {ENDLESS} * FROM n JOIN kept"
    ),
    "an endless view called sweeps": statements(
        "ALTER TABLE sweeps RENAME TO kept", f"CREATE VIEW sweeps AS {ENDLESS} kept.* FROM n JOIN kept"
    ),
    "no histories": statements("DROP TABLE histories"),
    "a time that is bytes": statements("UPDATE runs SET finished = x'ff'"),
    "records without end": with_setting(
        lambda spec: (
            spec["training"].update(evaluate=1, stop_error=0.1) or spec["training"]["phases"][0].update(steps=10**12)
        )
    ),
    "a trigger": statements("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END"),
}
COMMANDS = [
    ["sweep", "status", "bad.sqlite"],
    ["sweep", "compare", "bad.sqlite", "good.sqlite"],
    ["sweep", "compare", "good.sqlite", "bad.sqlite"],
    ["sweep", "merge", "all.sqlite", "bad.sqlite"],
    ["sweep", "export", "bad.sqlite", "runs.csv"],
    ["sweep", "export", "bad.sqlite", "runs.tex"],
    ["sweep", "plan", "grid.toml", "--store", "bad.sqlite", "--no-probe"],
    ["law", "fit", "bad.sqlite"],
    ["report", "bad.sqlite", "-o", "page.html"],
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A store to tamper with, an untouched one, and a spec."""
    monkeypatch.chdir(tmp_path)
    for name in ("bad", "good"):
        with SqliteStore(f"{name}.sqlite", write=True) as store:
            store.add([made_up_row(trial) for trial in range(3)])
            store.record_sweep(SweepRecord("tiny", 0.1, tiny_table()))
    (tmp_path / "grid.toml").write_text(
        'trials = 2\n[problem]\nname = "parity"\nn = 8\nk = 2\n[network]\nstart = "dense"\nwidth = 5\n'
        "[data]\nsamples = 30\n[training]\nsteps = 40\n"
    )
    return tmp_path


def tamper(change):
    connection = sqlite3.connect("bad.sqlite")
    change(connection)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("what", TAMPERED)
def test_every_command_ends_in_a_line(what):
    """An error of fewfire, which the command prints as one line; a command that does not look at the damage may pass."""
    tamper(TAMPERED[what])
    told = []
    for command in COMMANDS:
        result = CliRunner().invoke(cli.app, command)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            assert isinstance(result.exception, FewfireError), (command, result.exception)
            told.append(str(result.exception))
    assert told and all("\n" not in text and "Traceback" not in text for text in told)
    with pytest.raises(FewfireError):
        LivePage({"bad": "bad.sqlite"})


@pytest.mark.parametrize("text", ["{", "[1]", "[" * 100_000])
def test_environments_that_are_no_table(text):
    """Merge asks them for the arithmetic of runs that differ."""
    tamper(lambda connection: connection.execute("UPDATE environments SET environment = ?", (text,)))
    result = CliRunner().invoke(cli.app, ["sweep", "merge", "good.sqlite", "bad.sqlite"])
    assert isinstance(result.exception, FewfireError) and str(result.exception).startswith("an environment is damaged")


def test_untouched_stores_are_read():
    for command in COMMANDS:
        result = CliRunner().invoke(cli.app, [part.replace("bad", "good") for part in command])
        expected = "law" not in command  # one cell brackets no frontier
        assert (result.exit_code == 0) is expected or "merge" in command, (command, result.output, result.exception)


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limit on the size of files here")
@pytest.mark.parametrize("name", ["runs.csv", "runs.parquet", "runs.tex"])
def test_an_export_to_a_full_disk_prints_one_line(name, folder):
    """A limit on the size of files stands for the full disk: writing fails in the same way."""
    resource = pytest.importorskip("resource")
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")

    def no_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

    with SqliteStore("good.sqlite", write=True) as store:
        store.add([made_up_row(trial) for trial in range(3, 200)])  # more than buffers hold
    (folder / name).write_text("what was there")
    command = [sys.executable, "-m", "fewfire", "sweep", "export", "good.sqlite", name]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=no_room, env=environment, timeout=120)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines() == [f"error: {name} cannot be written: File too large. The store is as it was."]
    assert (folder / name).read_text() == "what was there"
    assert not list(folder.glob(".fewfire-*"))

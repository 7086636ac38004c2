"""What people meet first: errors of the system in one line, -h, completion, narrow terminals."""

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fewfire import InvalidArgument, cli
from fewfire.cli import _output, demo
from fewfire.cli._output import check_file, check_folder, in_words
from fewfire.report import frontier_info
from fewfire.sweeps import SqliteStore, Sweep

runner = CliRunner()
SPEC = {
    "problem": {"name": "parity", "n": 6, "k": 1},
    "network": {"start": ["dense", {"name": "sparse", "s": 2}], "width": [4, 8]},
    "data": {"samples": [20, 30, 40, 50, 60, 80], "test_samples": 50},
    "training": {"steps": 10, "learning_rate": 0.1},
}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SqliteStore("s.sqlite", write=True) as opened:
        Sweep.from_dict(SPEC).run(opened, executor="inline")
    (tmp_path / "taken").write_text("a file")
    return tmp_path


def fewfire(*arguments, **options):
    command = [sys.executable, "-c", "from fewfire.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report", "s.sqlite", "-o", "."], "--output must be a file that can be written (Is a directory); got '.'."),
        (["report", "s.sqlite", "-o", "no/page.html"], "--output must be a file that can be written (there is no folder no); got 'no/page.html'. Remedy: make it with: mkdir -p no."),
        (["report", "s.sqlite", "--png", "taken"], "--png must be a folder that can be written to (taken is a file); got 'taken'."),
        (["report", "s.sqlite", "--pdf", "taken/figures"], "--pdf must be a folder that can be written to (taken is a file); got 'taken/figures'."),
        (["report", "s.sqlite", "--success-error", "1.5"], "--success-error must be a finite number in (0, 1); got 1.5. Remedy: pass 0.1 for 10%."),
        (["report", "s.sqlite", "--success-error", "0"], "--success-error must be a finite number in (0, 1); got 0.0."),
        (["reproduce", "pareto/frontier", "-o", "taken"], "--output must be a folder that can be written to (taken is a file)"),
        (["demo", "-o", "no/page.html"], "--output must be a file that can be written (there is no folder no)"),
    ],
)  # fmt: skip
def test_places_are_refused_before_anything_is_done(store, arguments, said):
    result = runner.invoke(cli.app, arguments)
    assert isinstance(result.exception, InvalidArgument) and str(result.exception).startswith(said)
    assert result.output == "" and sorted(path.name for path in store.iterdir()) == ["s.sqlite", "taken"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folders_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InvalidArgument, match=r"must be a file that can be written \(Permission denied in"):
            check_file("--output", tmp_path / "page.html")
        with pytest.raises(InvalidArgument, match=r"must be a folder that can be written to \(Permission denied in"):
            check_folder("--output", tmp_path / "new")
    finally:
        tmp_path.chmod(0o700)


def test_folders_and_files_that_the_system_refuses(tmp_path, monkeypatch):
    def refuse(**_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(
        InvalidArgument, match=r"must be a file that can be written \(Read-only file system in .*\); got"
    ):
        check_file("--output", tmp_path / "new")
    with pytest.raises(InvalidArgument, match=r"written to \(Read-only file system in .*\); got '.*new/er'"):
        check_folder("--output", tmp_path / "new" / "er")
    monkeypatch.setattr(os, "access", lambda *_: False)
    (tmp_path / "old").write_text("")
    with pytest.raises(
        InvalidArgument, match=r"--output must be a file that can be written \(Permission denied\); got"
    ):
        check_file("--output", tmp_path / "old")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc here")
def test_a_folder_where_even_root_may_write_nothing():
    with pytest.raises(InvalidArgument, match=r"--output must be a folder that can be written to \(.* in /proc\)"):
        check_folder("--output", Path("/proc/results"))


def test_places_that_will_do(tmp_path):
    check_file("--output", None)
    check_file("--output", tmp_path / "new.html")
    check_folder("--output", None)
    check_folder("--output", tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()


def test_errors_of_the_system_are_one_line(monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device", "/data/x\x1b.html")

    monkeypatch.setattr(cli, "app", full)
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert capsys.readouterr().err == "error: /data/x\\x1b.html: No space left on device\n"
    assert in_words(OSError("odd")) == "odd"


def test_a_missing_matplotlib_is_reported_before_the_page_is_written(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = runner.invoke(cli.app, ["report", "s.sqlite", "--png", "figures"])
    assert "--png needs the package 'matplotlib'" in str(result.exception)
    assert "pip install 'fewfire[plot]'" in str(result.exception) and not (store / "report.html").exists()


@pytest.mark.parametrize("verb", [[], ["demo"], ["report"], ["sweep"], ["sweep", "run"], ["bounds"], ["reproduce"]])
def test_h_is_help(verb):
    short, long = (runner.invoke(cli.app, [*verb, option]) for option in ("-h", "--help"))
    assert short.exit_code == 0 and short.output == long.output and "Usage" in short.output


def test_shells_complete_verbs():
    environment = os.environ | {
        "_FEWFIRE_COMPLETE": "complete_bash",
        "COMP_WORDS": "fewfire sweep r",
        "COMP_CWORD": "2",
    }
    done = subprocess.run([sys.executable, "-m", "fewfire"], capture_output=True, text=True, env=environment)
    assert "--show-completion" in re.sub(r"\x1b\[[0-9;]*m", "", runner.invoke(cli.app, ["-h"]).output)
    assert "run" in done.stdout.split()


def test_tables_fit_narrow_terminals(monkeypatch, store):
    monkeypatch.setenv("COLUMNS", "60")
    for arguments in (["reproduce"], ["doctor"], ["bounds", "pareto", "-h"]):
        lines = runner.invoke(cli.app, arguments).output.splitlines()
        assert max(map(len, lines)) <= 60, (arguments, max(lines, key=len))
    with SqliteStore("s.sqlite") as opened:
        (group,) = frontier_info(opened)
    console = _output.PlainConsole(file=io.StringIO(), width=60)
    console.print(demo.heat_maps(group))
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 60 and sum("start" in line for line in lines) == 2  # one map below the other
    assert lines[1].split() == ["width", "20", "30", "40", "50", "60", "80"]


def test_where_there_is_no_terminal_tables_have_room(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert _output.wide_console().width >= 100

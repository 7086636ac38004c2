"""`fewfire report` as a user sees it."""

import json
import re
import signal
import subprocess
import sys
import urllib.request

import pytest
from typer.testing import CliRunner

from fewfire import cli
from fewfire.cli._output import file_size
from fewfire.sweeps import SqliteStore, Sweep

runner = CliRunner()
SPEC = {
    "name": "Tiny [bold]one[/bold]",
    "problem": {"name": "parity", "n": 6, "k": 1},
    "network": {"start": ["dense", {"name": "sparse", "s": 2}], "width": [4, 8]},
    "data": {"samples": [20, 40], "test_samples": 50},
    "training": {"steps": 60, "learning_rate": 0.1, "evaluate": 20},
    "success_error": 0.2,
}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SqliteStore(tmp_path / "s.sqlite", write=True) as opened:
        Sweep.from_dict(SPEC).run(opened, executor="inline")
    return tmp_path / "s.sqlite"


def test_writes_a_page(store):
    result = runner.invoke(cli.app, ["report", "s.sqlite"])
    assert result.exit_code == 0, result.output
    assert re.fullmatch(r"Wrote report.html \(\d+ kB\): 8 runs in 8 cells.\n", result.output)
    page = (store.parent / "report.html").read_text(encoding="utf-8")
    assert "<h1>Tiny [bold]one[/bold]</h1>" in page and "a test error of 20%" in page


def test_options(store):
    result = runner.invoke(
        cli.app, ["report", "s.sqlite", "-o", "[x].html", "--title", "A & B", "--success-error", "0.4"]
    )
    assert result.output.startswith("Wrote [x].html (")
    page = (store.parent / "[x].html").read_text(encoding="utf-8")
    assert "<h1>A &amp; B</h1>" in page and "a test error of 40%" in page


def test_figures(store):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (make test installs it)")
    result = runner.invoke(cli.app, ["report", "s.sqlite", "--png", "figures", "--pdf", "figures"])
    assert result.output.splitlines()[1:] == [
        "Wrote 5 figures as PNG to figures.",
        "Wrote 5 figures as PDF to figures.",
    ]
    assert len(list((store.parent / "figures").glob("*.p*"))) == 10


def test_the_store_is_not_written_over(store):
    before = store.read_bytes()
    result = runner.invoke(cli.app, ["report", "s.sqlite", "-o", "./s.sqlite"])
    assert str(result.exception) == "output must not be the store itself; got 's.sqlite'. Remedy: choose another file."
    assert store.read_bytes() == before


def test_the_page_on_standard_output_is_the_page_alone(store):
    command = [sys.executable, "-c", "from fewfire.cli import main; main()", "report", "s.sqlite", "-o", "/dev/stdout"]
    with (store.parent / "page.html").open("wb") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=True)
    assert done.stderr.startswith("Wrote /dev/stdout (")
    page = (store.parent / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")


def test_a_page_with_a_name_that_cannot_be(store):
    result = runner.invoke(cli.app, ["report", "s.sqlite", "-o", "x" * 300])
    assert str(result.exception).startswith(
        "--output must be a file that can be written (File name too long); got 'xxx"
    )


def test_a_missing_store_is_one_line(tmp_path):
    done = subprocess.run([sys.executable, "-c", "from fewfire.cli import main; main()", "report", "none.sqlite"],
                          capture_output=True, text=True, cwd=tmp_path)  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "error: there is no store none.sqlite. Remedy: run a sweep into it first.\n"


def test_sizes_file_size():
    assert (file_size(61_234), file_size(2_949_999)) == ("61 kB", "2.9 MB")


def test_several_stores_are_compared(store):
    other = store.parent / "more" / "s.sqlite"
    other.parent.mkdir()
    with SqliteStore(other, write=True) as opened:
        Sweep.from_dict({**SPEC, "name": "Longer", "trials": 2}).run(opened, executor="inline")
    result = runner.invoke(cli.app, ["report", "s.sqlite", "more/s.sqlite"])
    assert re.fullmatch(r"Wrote report.html \(\d+ kB\): 24 runs in 16 cells.\n", result.output), result.output
    page = (store.parent / "report.html").read_text(encoding="utf-8")
    assert "dense start · s.sqlite" in page and "dense start · more/s.sqlite" in page
    result = runner.invoke(cli.app, ["report", "s.sqlite", "./s.sqlite"])
    assert str(result.exception) == "STORES must be different files; got 's.sqlite'. Remedy: name each store once."
    result = runner.invoke(cli.app, ["report", "more/s.sqlite", "s.sqlite", "-o", "s.sqlite"])
    assert str(result.exception).startswith("output must not be the store itself")


def test_watching_waits_for_a_store(tmp_path):
    command = [sys.executable, "-c", "from fewfire.cli import main; main()", "report", "none.sqlite", "--watch"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        assert process.stdout.readline().startswith("There is no store none.sqlite yet. Run a sweep into it ")
        assert process.stdout.readline().startswith("Watching none.sqlite: open http://127.0.0.1:")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.usefixtures("core")
def test_watching_serves_the_page_until_it_is_interrupted(store):
    command = [sys.executable, "-c", "from fewfire.cli import main; main()", "report", "s.sqlite", "--watch"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        found = re.fullmatch(
            r"Watching s.sqlite: open (http://127\.0\.0\.1:\d+/) in a browser on this machine\. Ctrl-C ends it\.\n",
            line,
        )
        assert found, line
        with urllib.request.urlopen(f"{found[1]}progress.json", timeout=10) as answer:
            (progress,) = json.load(answer)["stores"]
        assert (progress["done"], progress["total"]) == (8, 8)
        process.send_signal(signal.SIGINT)
        rest, complaints = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert (rest, complaints, process.returncode) == ("Stopped watching. The stores are as they were.\n", "", 0)
    assert [file.name for file in store.parent.iterdir()] == ["s.sqlite"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--watch", "-o", "p.html"], "--output must be left out with --watch, which writes nothing; got 'p.html'."),
        (["--watch", "--png", "x"], "--png must be left out with --watch, which writes nothing; got 'x'."),
        (["--port", "8000"], "--port goes with --watch; got 8000. Remedy: add --watch, or leave it out."),
        (["--watch", "--port", "70000"], "--port must be an integer of at least 0 and at most 65535; got 70000."),
        (["--watch", "--success-error", "2"], "--success-error must be"),
    ],
)
def test_options_of_watching(store, arguments, said):
    result = runner.invoke(cli.app, ["report", "s.sqlite", *arguments])
    assert str(result.exception).startswith(said), result.exception

"""`fewfire demo` as a user sees it."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import nullcontext

import pytest
from typer.testing import CliRunner

from fewfire import cli
from fewfire._extension import load, without_extension
from fewfire.cli.demo import FULL, DemoGrid, heat_maps, hidden_parity, sweep_of
from fewfire.engines import get_engine
from fewfire.sweeps import SqliteStore

runner = CliRunner()
EASY = ["demo", "--n", "12", "--k", "2", "--seed", "4", "--quick"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_shows_a_frontier_and_names_the_support(folder):
    result = runner.invoke(cli.app, EASY)
    assert result.exit_code == 0, result.output
    output = plain(result.output)
    engine = get_engine().name  # the cpu engine, or without the C++ part the reference
    assert f"Runs: 2 widths × 3 sample sizes × 2 starts × 5 trials, 60 in all, on the {engine} engine." in output
    # Two maps side by side: for each width, three shares from a dense and three from a sparse start.
    maps = re.findall(r"^ +(\d+)((?: +\d+%){3}) +(\d+)((?: +\d+%){3})$", output, re.M)
    assert [(one[0], one[2]) for one in maps] == [("200", "200"), ("10", "10")]
    assert maps[0][3].split() == ["100%"] * 3  # two bits among twelve are easy
    assert re.search(r"width buys data.*: from a sparse\(s=2\) start .* at width 10 .* at width 200", output, re.I)
    assert re.search(
        r"a sparse start .*: \d+% of the runs succeed from sparse\(s=2\) and \d+% from dense", output, re.I
    )
    hidden = re.search(r"Hidden bits:\s+(\(.*\))", output).group(1)
    assert re.search(r"Learned support:\s+(\(.*\))", output).group(1) == hidden
    assert float(re.search(r"Test error: ([\d.]+)% on 10000 fresh examples", output).group(1)) <= 0.1
    assert re.search(
        r"Wrote frontier.html \(\d+ kB\): open it in a browser. The runs are kept in frontier.sqlite.", output
    )
    page = (folder / "frontier.html").read_text(encoding="utf-8")
    assert "<h1>A parity of 2 hidden bits among 12</h1>" in page
    with SqliteStore(folder / "frontier.sqlite") as store:
        assert store.counts() == {"done": 60, "diverged": 0, "failed": 0}


def test_a_second_call_trains_nothing_and_writes_the_same_page(folder):
    options = [*EASY, "--output", "mine.html"]
    assert runner.invoke(cli.app, options).exit_code == 0
    before = (folder / "mine.html").read_bytes()
    again = plain(runner.invoke(cli.app, options).output)
    assert "Trained 0 networks in less than 1 s. 60 were there already." in again
    assert (folder / "mine.html").read_bytes() == before
    # Another task in the same store: the page shows the one that was asked for.
    assert runner.invoke(cli.app, [*EASY[:-2], "5", "--quick", "--output", "mine.html"]).exit_code == 0
    with SqliteStore(folder / "mine.sqlite") as store:
        assert store.counts()["done"] == 120
    assert "60 training runs in 12 cells" in (folder / "mine.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("core")
def test_ctrl_c_keeps_what_was_done_and_the_next_call_goes_on(folder):
    command = [sys.executable, "-c", "from fewfire.cli import main; main()", "demo", "--steps", "1500"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 240  # for the first batch, on a machine however slow and busy
    while time.monotonic() < deadline and not kept(folder):
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    number = int(re.search(r"Stopped. (\d+) of 600 runs are kept in frontier.sqlite.", output).group(1))
    assert output.endswith("\nResume with: fewfire demo --steps 1500\n")
    assert 0 < number <= kept(folder) < 600
    assert not (folder / "frontier.html").exists()


def kept(folder):
    try:
        with sqlite3.connect(f"file:{folder / 'frontier.sqlite'}?mode=ro", uri=True) as connection:
            return connection.execute("SELECT count(*) FROM runs").fetchone()[0]
    except sqlite3.Error:
        return 0


def test_a_failure_is_printed():
    result = runner.invoke(cli.app, ["demo", "--n", "20", "--k", "3", "--steps", "10", "--quick"])
    assert result.exit_code == 1
    assert "Not learned. Remedy: more --steps" in plain(result.output)
    assert "Wrote frontier.html" in plain(result.output)


def test_the_page_cannot_take_the_place_of_the_store(folder):
    result = runner.invoke(cli.app, [*EASY, "--output", "x.sqlite"])
    assert (
        str(result.exception)
        == "output must not end in .sqlite, where the runs are kept; got 'x.sqlite'. Remedy: choose a .html."
    )
    assert not list(folder.iterdir())


@pytest.mark.parametrize("extension", [True, False])
def test_a_slow_engine_gets_a_small_grid(monkeypatch, extension):
    monkeypatch.setattr("fewfire.cli.demo.SMALL", DemoGrid((4, 8), (50,), 1))
    if extension and load() is None:
        pytest.skip("the C++ part is not installed")
    with nullcontext() if extension else without_extension():
        result = runner.invoke(cli.app, ["demo", "--n", "8", "--k", "2", "--steps", "700", "--engine", "reference"])
    output = plain(result.output)
    assert "Runs: 2 widths × 1 sample sizes × 2 starts × 1 trials, 4 in all, on the reference engine." in output
    why = "Without the C++ part this is a small grid; 'fewfire doctor' says how to get the full one."
    assert (why in output) == (not extension)


def test_the_full_grid_is_the_one_promised():
    grid = FULL
    assert len(grid.widths) >= 5 and len(grid.samples) >= 6 and grid.trials >= 5
    assert len(sweep_of(hidden_parity(30, 3, 0), grid, 8000)) == 600


def test_maps_are_coloured_on_a_terminal_and_plain_elsewhere():
    import io

    from rich.console import Console

    from fewfire.report import frontier_info
    from fewfire.sweeps import MemoryStore

    store = MemoryStore()
    sweep_of(hidden_parity(6, 1, 0), DemoGrid((4, 8), (20, 40), 1), 50).run(store, executor="inline")
    group = frontier_info(store)[0]
    text, colour = io.StringIO(), io.StringIO()
    Console(file=text, width=100).print(heat_maps(group))
    Console(file=colour, width=100, force_terminal=True, color_system="truecolor").print(heat_maps(group))
    assert "\x1b" not in text.getvalue()
    assert re.search(r"\x1b\[38;2;\d+;\d+;\d+;48;2;\d+;\d+;\d+m +\d+%", colour.getvalue())
    assert "dense start" in text.getvalue() and "sparse(s=2) start" in text.getvalue()

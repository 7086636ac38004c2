"""The one bar of a sweep: on a terminal, off it, in a notebook."""

import io
import re
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from fewfire.sweeps import MemoryStore, Sweep
from fewfire.sweeps.run import _progress
from fewfire.sweeps.run._progress import Progress, SweepBar, duration, facts


def state(**changes):
    values = {"total": 100, "already": 10, "ran": 40, "successes": 20, "diverged": 0, "failed": 0, "seconds": 20.0,
              "share": 0.25, "engine": "cpu", "executor": "inline"}  # fmt: skip
    return Progress(**values | changes)


def test_the_bar_shows_rate_success_and_time_left():
    assert facts(state()) == "2.0 runs/s · success 40% · 1 min left"
    assert facts(state(share=1.0)) == "2.0 runs/s · success 40%"
    assert facts(state(already=0, ran=0, share=0.0, seconds=0.0)) == "0.0 runs/s"
    assert facts(state(diverged=2, failed=1)) == "2.0 runs/s · success 40% · 2 diverged, 1 failed · 1 min left"


def test_what_a_sweep_returns_reads_as_a_sentence():
    text = (
        "50 of 100 runs: 10 from before, 40 trained in 20 s (2.0 runs/s, cpu engine, inline); 20 succeeded, 0 diverged"
    )
    assert repr(state()) == str(state()) == f"{text}, 0 failed"
    page = re.sub(r"<[^>]+>", " ", state(failed=3)._repr_html_())
    assert all(fact in page for fact in (f" {text.partition('; ')[0]} ", " 20 succeeded, 0 diverged, 3 failed "))


def test_the_bar_on_a_terminal():
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with SweepBar(console) as bar:
        bar.show(state())
    assert "50/100 runs" in console.file.getvalue() and "success 40%" in console.file.getvalue()
    assert bar.state == state()


def test_where_there_is_no_terminal_a_line_comes_every_half_minute(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    console = Console(file=io.StringIO(), force_terminal=False, width=40)
    with SweepBar(console) as bar:
        for seconds in (1, 28, 2, 20, 15):
            now[0] += seconds
            bar.show(state(ran=int(now[0]) - 100))
    assert console.file.getvalue().splitlines() == [
        "41/100 runs · 1.6 runs/s · success 49% · 1 min left",
        "76/100 runs · 3.3 runs/s · success 26% · 1 min left",
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "less than 1 s"), (8.4, "8 s"), (60, "1 min"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (3600, "1 h"),
     (90_000, "1 d 1 h"), (59.7, "1 min")],
)  # fmt: skip
def test_durations(seconds, words):
    assert duration(seconds) == words


class Handle:
    """What IPython gives for a display that can be written anew."""

    def __init__(self, shown):
        self.shown = [shown]

    def update(self, shown):
        self.shown.append(shown)


@pytest.fixture
def notebook(monkeypatch):
    """As if a Jupyter kernel ran this; gives the displays that were made."""
    made = []

    def display(shown, display_id):
        assert display_id is True
        made.append(Handle(shown))
        return made[-1]

    module = SimpleNamespace(HTML=lambda text: text, display=display)
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=module))
    return made


SPEC = {
    "problem": {"name": "parity", "n": 6, "k": 2},
    "network": {"start": "dense", "width": 4},
    "data": {"samples": 20, "test_samples": 20},
    "training": {"steps": 3},
    "trials": 3,
}


def test_a_notebook_shows_one_bar_that_is_written_anew(notebook, capsys):
    store = MemoryStore()
    state = Sweep.from_dict(SPEC).run(store, engine="reference", executor="inline", progress=True)
    assert state.ran == 3
    assert len(notebook) == 1
    first, last = notebook[0].shown[0], notebook[0].shown[-1]
    assert first.startswith('<progress value="0" max="3"></progress> 0/3 runs')
    assert last.startswith('<progress value="3" max="3"></progress> 3/3 runs')
    assert capsys.readouterr().out == ""


def test_a_console_that_is_given_is_used_in_a_notebook_too(notebook):
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with SweepBar(console) as bar:
        bar.show(state())
    assert notebook == [] and "50/100 runs" in console.file.getvalue()


def test_ipython_on_a_terminal_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))
    assert not _progress.in_notebook()


def test_progress_elsewhere_is_quiet_for_half_a_minute(capsys):
    assert Sweep.from_dict(SPEC).run(MemoryStore(), engine="reference", executor="inline", progress=True).done == 3
    assert Sweep.from_dict(SPEC).run(MemoryStore(), engine="reference", executor="inline", progress=False).done == 3
    assert capsys.readouterr().out == ""

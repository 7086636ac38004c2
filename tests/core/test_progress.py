"""One bar for long calls: on a terminal, in a notebook, as lines elsewhere."""

import io
import sys
import types

import numpy as np
import pytest

import fewfire as ff
from fewfire import _progress
from fewfire._progress import Bar, progress_callback
from fewfire.engines import Phase, Run, Schedule


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    return now


def test_no_listener_a_function_and_a_bar_get_progress():
    assert progress_callback(None, "fit") is None and progress_callback(False, "fit") is None
    assert progress_callback(print, "fit") is print and isinstance(progress_callback(True, "fit"), Bar)
    with pytest.raises(ValueError, match=r"progress must be True, False or callable with \(done, total\); got 3\."):
        progress_callback(3, "fit")


def test_a_terminal_has_one_line_that_is_written_anew(monkeypatch, clock):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "60")
    bar = Bar("fit")
    for done in range(5):
        clock[0] = float(done)
        bar(done, 4, "loss 1")
    frames = screen.getvalue().split("\r")[1:]
    assert len(frames) == 4 and screen.getvalue().count("\n") == 1  # the first state is too fresh
    assert frames[0].rstrip() == "[#####---------------] fit: 1 of 4, loss 1, 1 s"
    assert {len(frame.rstrip("\n")) for frame in frames} == {59}
    monkeypatch.setenv("COLUMNS", "30")
    bar(4, 4)
    assert screen.getvalue().split("\r")[-1].rstrip() == "fit: 4 of 4, 0 s"


def test_elsewhere_lines_come_every_half_minute_and_at_the_end(capsys, clock):
    bar = Bar("fit")
    for second in range(1, 71):
        clock[0] = float(second)
        bar(second, 70)
    assert capsys.readouterr().err.splitlines() == ["fit: 30 of 70, 30 s", "fit: 60 of 70, 60 s", "fit: 70 of 70, 70 s"]


def test_a_forecast_is_what_is_left_at_the_rate_so_far(capsys, clock):
    bar = Bar("fit", forecast=True)
    clock[0] = 40.0
    bar(2.0, 10.0)
    clock[0] = 90.0
    bar(10, 10)
    assert capsys.readouterr().err.splitlines() == ["fit: 2 of 10, 40 s, 160 s left", "fit: 10 of 10, 90 s"]


def test_a_notebook_has_one_display_per_call(monkeypatch, clock):
    shown = []

    class Handle:
        def update(self, html):
            shown.append(("anew", html))

    def display(html, display_id):
        shown.append(("first", html))
        return Handle()

    module = types.ModuleType("IPython")
    module.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    module.display = types.SimpleNamespace(HTML=lambda text: text, display=display)
    monkeypatch.setitem(sys.modules, "IPython", module)
    bar = Bar("a < b")
    for done in (1, 2, 1, 2):
        clock[0] += 1.0
        bar(done, 2)
    assert [kind for kind, _ in shown] == ["first", "anew", "first", "anew"]
    assert shown[0][1] == '<progress value="1" max="2"></progress> a &lt; b: 1 of 2, 1 s'


@pytest.mark.parametrize("name", ["reference", "cpu"])
def test_engines_show_a_bar(request, name, capsys):
    if name == "cpu":
        request.getfixturevalue("core")
    engine = ff.engines.get_engine(name)
    X, y = ff.problems.Parity(6, 1, support=[2]).sample(30, seed=0)
    network = ff.networks.init.sparse(2)(6, width=8, seed=0)
    run = Run(network, Schedule(Phase(40, learning_rate=0.1), evaluate=10, stop_error=0.9), X, y, X, y)
    engine.train([run], progress=True)
    assert capsys.readouterr().err.splitlines()[-1].startswith("training: 40 of 40, ")


@pytest.mark.usefixtures("core")
def test_fits_show_a_bar(capsys):
    X, y = ff.problems.Parity(8, 2, support=[2, 5]).sample(100, seed=0)
    ff.fourier.estimate(X, y, 2, progress=True)
    ff.fourier.least_squares(X, y, 2, progress=True)
    ff.ParityNetClassifier(width=20, max_steps=50, random_state=0, verbose=True).fit(X, np.asarray(y))
    said = {line.split(":")[0] for line in capsys.readouterr().err.splitlines()}
    assert said == {"estimate", "least squares", "training"}

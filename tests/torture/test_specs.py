"""Hostile specs: whatever a file or a table holds, it is a sweep or it is refused in one line, and soon."""

import contextlib
import copy
import io
import json
import tomllib

import pytest

from fewfire import FewfireError, cli
from fewfire.sweeps import RunSpec, Sweep, make_plan
from fewfire.testing._sweeps import tiny_table

HOSTILE = [
    None, True, False, 0, -1, 1, 2, 3, 8, 10**6, 10**9, 2**31, 2**53, 2**63 - 1, -(2**63), 2**63, 10**30, 16**5000, -(16**5000),
    0.0, -0.0, 0.5, 1.0, -1.5, 1e-320, 1e308, -1e308, float("inf"), float("-inf"), float("nan"),
    "", "dense", "sparse", "parity", "online", "full", "log", "[/red]", "\x1b[2J", "\n", "\ud800", "x" * 10_000, "e\u0301",
    [], [[]], [1, [2, [3]]], {}, {"": ""}, {"name": "sparse"}, {"log": [1, 10], "points": 10**9}, {"linear": [1, 2]},
    {"log": [0, 1], "points": 2}, {"linear": [-1e308, 1e308], "points": 5}, {"log": [1e-320, 1e308], "points": 4},
    list(range(1000)), [{"a": list(range(1000))}], (1, 2), b"bytes", 1j, object(), {1: 2}, {None: None}, {(1,): 1},
]  # fmt: skip

TOML = """
name = "tiny"
trials = 2
success_error = 0.5
[problem]
name = "parity"
n = 8
k = 2
[network]
start = ["dense", {name = "sparse", s = 2}]
width = {log = [5, 80], points = 3}
[data]
samples = [30, "online"]
test_samples = 40
[[training]]
steps = 40
learning_rate = {hidden = 0.1, output = 0.01}
loss = "square"
[[training]]
phases = [{steps = 3}, {steps = 2, batch_size = 4}]
"""


@contextlib.contextmanager
def one_line():
    """What is refused is refused by an error of this package, in one line that can be read."""
    try:
        yield
    except FewfireError as error:
        text = str(error)
        assert 0 < len(text) < 3000 and "Traceback" not in text


def places(value, path=()):
    """The paths of everything in a table, as far as a spec reaches."""
    yield path
    if isinstance(value, dict | list) and len(path) < 6:
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(member, (*path, key))


def changed(draw, table):
    """The table with one place replaced, removed, wrapped or repeated."""
    paths = [path for path in places(table) if path]
    if not paths:
        return table
    *parents, last = paths[draw.integers(len(paths))]
    place = table
    for parent in parents:
        place = place[parent]
    value = copy.copy(HOSTILE[draw.integers(len(HOSTILE))])
    action = draw.integers(6)
    if action == 0 and isinstance(place, dict):
        del place[last]
    elif action == 1:
        place[last] = [place[last]] * int(draw.integers(1, 4))
    elif action == 2 and isinstance(place, dict):
        place[draw.choice(["n", "k", "steps", "support", "phases", "evaluate", "noise", "?"])] = value
    elif action == 3:
        for _ in range(int(draw.choice([3, 20, 5000]))):
            place[last] = [place[last]]
    else:
        place[last] = value
    return table


def try_out(sweep):
    """What is accepted can be counted, written out, read back and planned."""
    assert 1 <= len(sweep) <= 10**7
    again = Sweep.from_dict(sweep.to_dict())
    assert again == sweep and again.run_at(len(sweep) - 1).hash == sweep.run_at(len(sweep) - 1).hash
    if len(sweep) <= 1000:
        assert make_plan(sweep).total == len(sweep)
        sweep.run_at(0).describe()


@pytest.mark.least({"hostile spec tables": 1000})
def test_hostile_tables(rounds, draw, tally):
    for _ in rounds:
        for _ in range(50):
            table = tiny_table() if draw.integers(2) else tomllib.loads(TOML)
            for _ in range(int(draw.integers(1, 4))):
                table = changed(draw, table)
            tally("hostile spec tables")
            with one_line():
                try_out(Sweep.from_dict(table))


def mutated(draw, text):
    """A text with pieces deleted, doubled, exchanged, or replaced by noise."""
    for _ in range(int(draw.integers(1, 5))):
        first, last = sorted(draw.integers(0, len(text) + 1, 2).tolist())
        last = min(last, first + int(draw.integers(1, 30)))
        piece = text[first:last]
        noise = ["", piece * 2, piece[::-1], "[" * 3000, "9" * 5000, "1e999", "0x" + "f" * 5000, '"', "'''", "\x00", "\u202e", "{", "=",
                 "-", "a.b.c = 1\n", "\n", "nan", "2020-01-01", "1_0", "[[training]]\n", "points = 1000000000", "\ud800"]  # fmt: skip
        text = text[:first] + noise[draw.integers(len(noise))] + text[last:]
    return text


@pytest.mark.least({"hostile spec files": 200})
def test_hostile_files(rounds, draw, tally, tmp_path, monkeypatch):
    """Read as the command line does: it plans, or prints in one line why not."""
    for _ in rounds:
        for _ in range(20):
            path = tmp_path / ["spec.toml", "[b].toml", "\x1b[1m.toml", "\udcff.toml"][draw.integers(4)]
            path.write_bytes(mutated(draw, TOML).encode(errors="surrogatepass"))
            out, err = io.StringIO(), io.StringIO()
            monkeypatch.setattr("sys.argv", ["fewfire", "sweep", "plan", str(path), "--no-probe"])
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as caught:
                cli.main()
            tally("hostile spec files")
            assert caught.value.code in (0, 2), err.getvalue()
            assert all(c.isprintable() or c == "\n" for c in out.getvalue() + err.getvalue())
            if caught.value.code == 2:
                assert err.getvalue().count("\n") == 1 and err.getvalue().startswith("error: ")


@pytest.mark.least({"hostile texts of runs": 2000})
def test_hostile_texts_of_runs(rounds, draw, tally):
    """What workers are handed, and what stores hold."""
    text = next(Sweep.from_dict(tiny_table()).runs()).canonical
    for _ in rounds:
        for _ in range(50):
            tally("hostile texts of runs")
            hostile = mutated(draw, text)
            if draw.integers(2):
                with contextlib.suppress(ValueError, TypeError, RecursionError):  # what JSON cannot write
                    hostile = json.dumps(changed(draw, json.loads(text)))
            with one_line():
                RunSpec.from_json(hostile)

"""Recipes side by side: each in a process with cores of its own, told as they end, stopped together."""

import json
import os
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from fewfire import cli
from fewfire.cli import _recipe_process
from fewfire.cli import reproduce as command
from fewfire.cli._output import PlainConsole
from fewfire.cli._side_by_side import COMMAND, THREADS, EndedRecipe, RecipeTask, SideBySide, _lanes

runner = CliRunner()


def task(name, **options):
    return RecipeTask(name, "quick", None, False, options)


def python(code):
    """A process that knows its task as `task` and leaves after it, instead of one that runs recipes."""
    return [sys.executable, "-c", f"import json, os, sys, time; task = json.loads(sys.stdin.readline()); {code}"]


def patient(code):
    """The same for one task after another; those called "gone" it leaves in the middle of."""
    loop = (
        "import json, os, sys\n"
        "for line in sys.stdin:\n"
        "    task = json.loads(line)\n"
        f"    {code}\n"
        "    if task['name'] == 'gone': sys.exit(7)\n"
        "    print('\\0', int(task['name'] == 'b'), sep='', flush=True)\n"
    )
    return [sys.executable, "-c", loop]


def test_each_process_is_told_its_task_and_its_threads():
    code = f"print(task['name'], task['options'], *(os.environ[name] for name in {THREADS!r})); sys.exit(task['name'] == 'b')"
    console = PlainConsole(width=70)
    ended = {
        result.name: result for result in SideBySide(console, command=python(code)).run([task("a", x=1), task("b")])
    }
    each = max(1, len(_lanes(2)[0]))
    assert ended["a"] == EndedRecipe("a", 0, f"a {{'x': 1}} {each} {each} {each}\n")
    assert ended["b"].status == 1


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="processes cannot be held to cores here")
def test_cores_are_dealt_out_and_none_is_shared(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 2, 3, 5, 6})
    assert _lanes(26) == [[0], [2], [3], [5], [6]]
    assert _lanes(2) == [[0, 3, 6], [2, 5]]
    assert _lanes(1) == [[0, 2, 3, 5, 6]]


def test_tasks_begin_in_their_order_and_what_runs_is_shown(monkeypatch):
    monkeypatch.setattr("fewfire.cli._side_by_side._lanes", lambda tasks: [[]])
    seen = []
    console = PlainConsole(width=70)
    ended = [result.name for result in SideBySide(console, seen.append, python("pass")).run([task("b"), task("a")])]
    assert ended == ["b", "a"] and seen == [["b"], [], ["a"], []]


def test_a_process_runs_one_task_after_another_and_has_a_successor_when_it_is_gone(monkeypatch):
    monkeypatch.setattr("fewfire.cli._side_by_side._lanes", lambda tasks: [[]])
    tasks = [task(name) for name in ("a", "b", "gone", "c")]
    ended = list(SideBySide(PlainConsole(width=70), command=patient("print(os.getpid())")).run(tasks))
    assert [(result.name, result.status) for result in ended] == [("a", 0), ("b", 1), ("gone", 7), ("c", 0)]
    first, second, third, fourth = (int(result.text) for result in ended)
    assert first == second == third != fourth


def test_who_breaks_off_stops_the_processes(monkeypatch, tmp_path):
    monkeypatch.setattr("fewfire.cli._side_by_side._lanes", lambda tasks: [[], []])
    code = f"open(f'{tmp_path}/' + task['name'], 'w').close(); time.sleep(0 if task['name'] == 'a' else 60)"
    results = SideBySide(PlainConsole(width=70), command=python(code)).run([task(name) for name in "abcd"])
    assert next(results).name == "a"
    start = time.monotonic()
    results.close()
    assert time.monotonic() - start < 30
    assert not (tmp_path / "d").exists()  # there were two at a time, and no third was begun


def test_recipes_in_a_process_of_their_own_say_what_they_say_alone(monkeypatch):
    monkeypatch.setattr("fewfire.cli._side_by_side._lanes", lambda tasks: [[]])
    tasks = [task("sparse-activations/bounds"), task("no/such"), task("sparse-activations/bounds", nothing=1)]
    good, unknown, wrong = SideBySide(PlainConsole(width=90)).run(tasks)
    assert good.status == 0 and good.text.startswith("sparse-activations/bounds: ")
    assert "4k²W² (sharp) holds" in good.text and "\0" not in good.text
    assert (unknown.status, wrong.status) == (2, 2)
    assert "recipe must be one of" in unknown.text and "Traceback" not in unknown.text
    assert "options of sparse-activations/bounds" in wrong.text


def test_an_error_that_nobody_foresaw_is_told_and_the_process_goes_on(monkeypatch, capfd):
    def fails(task):
        raise ZeroDivisionError(task.name)

    monkeypatch.setattr(_recipe_process, "run_task", fails)
    assert _recipe_process._run(task("a")) == 2
    assert "ZeroDivisionError: a" in capfd.readouterr().err


def test_a_process_leaves_when_its_parent_is_gone():
    given = json.dumps({"name": "pareto/frontier", "scale": "quick", "output": None, "pdf": False, "options": {}})
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(given.encode() + b"\n")
        process.stdin.close()
        assert process.wait(60) == 130


@pytest.fixture
def two_cores(monkeypatch):
    """Two cores, and processes that end as the test says: with a status, or with an error that is raised."""
    ends, begun = {}, []

    class Ended:
        def __init__(self, console, show):
            self.show = show

        def run(self, tasks):
            for entry in tasks:
                begun.append(entry)
                self.show([entry.name])
                end = ends.get(entry.name, 0)
                if not isinstance(end, int):
                    raise end
                yield EndedRecipe(entry.name, end, f"{entry.name}: told\n")

    monkeypatch.setattr(command, "usable_cores", lambda: 2)
    monkeypatch.setattr(command, "SideBySide", Ended)
    return ends, begun


NAMES = ["sparse-activations/bounds", "pareto/frontier", "pareto/table2"]


def test_several_recipes_run_longest_first(two_cores, tmp_path):
    result = runner.invoke(cli.app, ["reproduce", *NAMES, "-o", str(tmp_path), "--pdf"])
    assert result.exit_code == 0
    assert result.output.startswith("3 recipes, 2 at a time, longest first: about ")
    begun = two_cores[1]
    assert {entry.name for entry in begun} == set(NAMES) and begun[-1].name == "sparse-activations/bounds"
    assert all((entry.output, entry.pdf) == (str(tmp_path), True) for entry in begun)
    assert all(f"{name}: told" in result.output for name in NAMES)


def test_failed_claims_are_listed_in_the_order_asked_for(two_cores):
    two_cores[0].update(dict.fromkeys(NAMES[:2], 1))
    result = runner.invoke(cli.app, ["reproduce", *NAMES])
    assert result.exit_code == 1 and "Not confirmed: sparse-activations/bounds, pareto/frontier" in result.output


def test_a_recipe_that_broke_off_is_named(two_cores):
    two_cores[0]["pareto/table2"] = -9
    result = runner.invoke(cli.app, ["reproduce", *NAMES])
    assert result.exit_code == 2 and "Broke off: pareto/table2" in result.output


def test_ctrl_c_says_how_far_it_came(two_cores):
    two_cores[0]["sparse-activations/bounds"] = KeyboardInterrupt()
    result = runner.invoke(cli.app, ["reproduce", *NAMES])
    assert result.exit_code == 130 and "Stopped: 2 of 3 recipes had ended." in result.output

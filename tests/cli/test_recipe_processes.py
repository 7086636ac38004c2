"""Recipes side by side: each in a process with cores of its own, printed as they end, stopped together."""

import json
import os
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from fewfire import cli
from fewfire.cli import reproduce as command
from fewfire.cli._output import PlainConsole
from fewfire.cli._recipe_processes import COMMAND, THREADS, EndedRecipe, RecipePool, RecipeTask, _shares, run_here

runner = CliRunner()


def task(name, output=None):
    return RecipeTask(name, "quick", output)


def python(code):
    """A process with its task as `task`, instead of one that runs recipes."""
    return [sys.executable, "-c", f"import json, os, sys, time; task = json.loads(sys.argv[1]); {code}"]


def test_each_process_has_its_task_and_its_threads():
    code = f"print(task['name'], task['output'], *(os.environ[name] for name in {THREADS!r})); sys.exit(task['name'] == 'b')"
    console = PlainConsole(width=70)
    ended = {
        result.name: result for result in RecipePool(console, command=python(code)).run([task("a", "out"), task("b")])
    }
    each = max(1, len(_shares(2)[0]))
    assert ended["a"] == EndedRecipe("a", 0, f"a out {each} {each} {each}\n")
    assert ended["b"].status == 1


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="processes cannot be held to cores here")
def test_cores_are_dealt_out_and_none_is_shared(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 2, 3, 5, 6})
    assert _shares(26) == [[0], [2], [3], [5], [6]]
    assert _shares(2) == [[0, 3, 6], [2, 5]]
    assert _shares(1) == [[0, 2, 3, 5, 6]]


def test_tasks_begin_in_their_order_and_what_runs_is_shown(monkeypatch):
    monkeypatch.setattr("fewfire.cli._recipe_processes._shares", lambda tasks: [[]])
    seen = []
    console = PlainConsole(width=70)
    ended = [result.name for result in RecipePool(console, seen.append, python("pass")).run([task("b"), task("a")])]
    assert ended == ["b", "a"] and seen == [["b"], [], ["a"], []]


def test_a_process_that_is_killed_ends_its_own_task_alone(monkeypatch):
    monkeypatch.setattr("fewfire.cli._recipe_processes._shares", lambda tasks: [[]])
    code = "print(1, flush=True); os.kill(os.getpid(), 9 * (task['name'] == 'gone'))"
    ended = list(RecipePool(PlainConsole(width=70), command=python(code)).run([task("gone"), task("a")]))
    assert ended == [EndedRecipe("gone", -9, "1\n"), EndedRecipe("a", 0, "1\n")]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="processes cannot be held to cores here")
def test_a_process_is_bound_to_its_cores(monkeypatch):
    core = max(os.sched_getaffinity(0))
    monkeypatch.setattr("fewfire.cli._recipe_processes._shares", lambda tasks: [[core]])
    code = "time.sleep(1); print(os.sched_getaffinity(0))"
    (ended,) = RecipePool(PlainConsole(width=70), command=python(code)).run([task("a")])
    assert ended.text == f"{{{core}}}\n"


def test_who_breaks_off_stops_the_processes(monkeypatch, tmp_path):
    monkeypatch.setattr("fewfire.cli._recipe_processes._shares", lambda tasks: [[], []])
    code = f"open(f'{tmp_path}/' + task['name'], 'w').close(); time.sleep(0 if task['name'] == 'a' else 60)"
    results = RecipePool(PlainConsole(width=70), command=python(code)).run([task(name) for name in "abcd"])
    assert next(results).name == "a"
    start = time.monotonic()
    results.close()
    assert time.monotonic() - start < 30
    assert not (tmp_path / "d").exists()  # there were two at a time, and no third was begun


def test_recipes_in_a_process_of_their_own_print_what_they_print_alone(monkeypatch):
    monkeypatch.setattr("fewfire.cli._recipe_processes._shares", lambda tasks: [[]])
    good, unknown = RecipePool(PlainConsole(width=90)).run([task("sparse-activations/bounds"), task("no/such")])
    assert good.status == 0 and good.text.startswith("sparse-activations/bounds: ")
    assert "4k²W² (sharp) holds" in good.text
    assert unknown.status == 2
    assert "recipe must be one of" in unknown.text and "Traceback" not in unknown.text


def test_an_unforeseen_error_is_printed(monkeypatch, capfd):
    def fails(console, task):
        raise ZeroDivisionError(task.name)

    monkeypatch.setattr(command, "run_task", fails)
    monkeypatch.setattr("fewfire.cli._recipe_processes._leave_with_the_parent", lambda: None)
    monkeypatch.setattr(sys, "argv", ["", json.dumps({"name": "a", "scale": "quick"})])
    with pytest.raises(SystemExit) as end:
        run_here()
    assert end.value.code == 2 and "ZeroDivisionError: a" in capfd.readouterr().err


def test_a_process_leaves_when_its_parent_is_gone():
    given = json.dumps({"name": "pareto/frontier", "scale": "quick", "output": None, "pdf": False})
    with subprocess.Popen([*COMMAND, given], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.close()
        assert process.wait(60) == 130


@pytest.fixture
def two_cores(monkeypatch):
    """Two cores, and processes that end as the test sets: with a status, or with an error that is raised."""
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
                yield EndedRecipe(entry.name, end, f"{entry.name}: printed\n")

    monkeypatch.setattr(command, "usable_cores", lambda: 2)
    monkeypatch.setattr(command, "RecipePool", Ended)
    return ends, begun


NAMES = ["sparse-activations/bounds", "pareto/frontier", "pareto/table2"]


def test_several_recipes_run_longest_first(two_cores, tmp_path):
    result = runner.invoke(cli.app, ["reproduce", *NAMES, "-o", str(tmp_path), "--pdf"])
    assert result.exit_code == 0
    assert result.output.startswith("3 recipes, 2 at a time, longest first: about ")
    begun = two_cores[1]
    assert {entry.name for entry in begun} == set(NAMES) and begun[-1].name == "sparse-activations/bounds"
    assert all((entry.output, entry.pdf) == (str(tmp_path), True) for entry in begun)
    assert all(f"{name}: printed" in result.output for name in NAMES)


def test_failed_claims_are_listed_in_the_order_asked_for(two_cores):
    two_cores[0].update(dict.fromkeys(NAMES[:2], 1))
    result = runner.invoke(cli.app, ["reproduce", *NAMES])
    assert result.exit_code == 1 and "Not confirmed: sparse-activations/bounds, pareto/frontier" in result.output


def test_a_recipe_that_broke_off_is_named(two_cores):
    two_cores[0]["pareto/table2"] = -9
    result = runner.invoke(cli.app, ["reproduce", *NAMES])
    assert result.exit_code == 2 and "Broke off: pareto/table2" in result.output


def test_ctrl_c_prints_how_far_it_came(two_cores):
    two_cores[0]["sparse-activations/bounds"] = KeyboardInterrupt()
    result = runner.invoke(cli.app, ["reproduce", *NAMES])
    assert result.exit_code == 130 and "Stopped: 2 of 3 recipes had ended." in result.output

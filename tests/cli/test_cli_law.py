"""`fewfire law`: fitted to a store, asked before a run, and what it refuses."""

import json
import re

import pytest
from typer.testing import CliRunner

from fewfire import cli
from fewfire._errors import FileFormatError, InvalidArgument
from fewfire.sweeps import SqliteStore, Sweep
from fewfire.sweeps.laws import shipped_law
from fewfire.sweeps.laws._frontier_law import LEVEL


def invoke(*arguments):
    return CliRunner().invoke(cli.app, ["law", *map(str, arguments)], env={"COLUMNS": "200"})


def say(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Parities of two among 6, 9 and 12 bits: four frontiers per start that learn within a second."""
    path = tmp_path_factory.mktemp("law") / "store.sqlite"
    table = {
        "problem": {"name": "parity", "n": [6, 9, 12], "k": 2},
        "network": {"start": {"name": "sparse", "s": 2}, "width": [8, 16, 32]},
        "data": {"samples": [5, 10, 20, 40, 80, 160], "test_samples": 200},
        "training": {
            "steps": 500,
            "learning_rate": 0.1,
            "weight_decay": 0.01,
            "stop_error": 0.1,
            "evaluate": 125,
        },
        "trials": 6,
    }
    Sweep.from_dict(table).run(path, executor="inline")
    return path


def test_a_law_is_fitted_shown_and_asked(store, tmp_path):
    file = tmp_path / "law.json"
    output = say("fit", store, "-o", file)
    assert re.search(r"log m\* by 9 frontiers of 3\d\d runs\.", output)
    assert "log n·log width" in output and "largest residuals" in output
    assert re.search(r"Held out by frontier: \d of 9 inside the 90% predictive interval\.", output)
    told = say("predict", "--n", 9, "--k", 2, "--width", 20, "--law", file)
    assert re.match(r"\(9, 2\)-parity, width 20, sparse start: half of the runs need \d+ examples, 90% interval", told)
    with SqliteStore(store) as opened:
        assert opened.counts()["done"] == 324


def test_the_shipped_law_is_asked_by_default():
    found = shipped_law().predict(40, 3, 200, "sparse")
    assert f"half of the runs need {found}." in say("predict", "--n", 40, "--k", 3, "--width", 200)


def test_the_level_of_the_help_is_the_one_that_serves():
    assert f"holds the frontier; {LEVEL} unless given." in say("predict", "--help")
    told = ("predict", "--n", 50, "--k", 3, "--width", 100)
    assert say(*told) == say(*told, "--level", LEVEL)


def test_what_was_not_fitted_is_refused():
    result = invoke("predict", "--n", 400, "--k", 3, "--width", 200)
    assert isinstance(result.exception, InvalidArgument)
    assert str(result.exception) == (
        "n and width must lie inside what was fitted; got 'n = 400 (fitted: 15 to 200)'. "
        "Remedy: fit a store that reaches there, or ask beyond with --extrapolate."
    )
    assert "extrapolated: n = 400" in say("predict", "--n", 400, "--k", 3, "--width", 200, "--extrapolate")


def test_files_that_are_no_law_are_refused(tmp_path):
    file = tmp_path / "law.json"
    ask = ("predict", "--n", 40, "--k", 3, "--width", 200, "--law", file)
    assert "must be a file of JSON" in str(invoke(*ask).exception)
    for content, kind, match in (
        ([], InvalidArgument, "--law must hold a table; got a list"),
        ({}, FileFormatError, "this is no law: KeyError"),
    ):
        file.write_text(json.dumps(content))
        result = invoke(*ask)
        assert isinstance(result.exception, kind) and match in str(result.exception)


def test_a_copy_of_a_store_does_not_count_twice(store, tmp_path):
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(store.read_bytes())
    refused = str(invoke("fit", store, copy).exception)
    assert refused.startswith("STORES must not share runs, which would count twice; got ")


def test_runs_evaluated_after_different_steps_need_a_number_of_steps(tmp_path):
    """They were called a store without parities."""
    path = tmp_path / "steps.sqlite"
    table = {
        "problem": {"name": "parity", "n": 6, "k": 2},
        "network": {"start": {"name": "sparse", "s": 2}, "width": 8},
        "data": {"samples": [10, 40], "test_samples": 50},
        "training": {"steps": [20, 30], "learning_rate": 0.1},
    }
    Sweep.from_dict(table).run(path, executor="inline")
    refused = str(invoke("fit", path).exception)
    assert "steps must be given" in refused and "no common number of steps" in refused and "[20, 30]" in refused
    assert str(invoke("fit", path, "--steps", 20).exception).startswith(
        "store must have at least 4 frontiers; got a store with 0 frontiers, and 1 outside the samples that were run."
    )

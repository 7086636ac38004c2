"""`fewfire sweep` with a search, as a user sees it: what it will look for, and what it found."""

import re

import pytest
from typer.testing import CliRunner

from fewfire import cli
from fewfire._errors import InvalidArgument
from fewfire.engines import get_engine

SPEC = """
name = "small search"
[problem]
name = "parity"
n = 8
k = 2
[network]
start = [{name = "sparse", s = 2}, "dense"]
width = [8, 40]
[data]
test_samples = 200
[training]
steps = 1500
learning_rate = 0.1
evaluate = 50
stop_error = 0.1
[search]
axis = "data.samples"
low = 10
high = HIGH
precision = 0.5
budget = BUDGET
"""


def write_spec(folder, high=1000, budget=60):
    path = folder / f"search {high} {budget}.toml"
    path.write_text(SPEC.replace("HIGH", str(high)).replace("BUDGET", str(budget)))
    return path


def sweep(*arguments):
    result = CliRunner().invoke(cli.app, ["sweep", *map(str, arguments)])
    return result.exit_code, re.sub(r"\x1b\[[0-9;]*m", "", result.output), result


@pytest.mark.usefixtures("core")  # the reference engine takes long enough to print its progress
def test_plan_run_plan(tmp_path):
    spec, store = write_spec(tmp_path), tmp_path / "runs.sqlite"
    code, output, _ = sweep("plan", spec, "--store", store)
    name, what, runs, seconds = output.splitlines()
    assert (code, name) == (0, "small search")
    assert what == "4 frontiers: data.samples at which 50% of the runs succeed, 10 to 1,000, to ±50% at 95%"
    guess = re.fullmatch(r"About (\d+) runs \(at most 240\): 0 done, about \1 to do", runs)
    assert guess and 16 <= int(guess[1]) <= 240
    assert seconds.startswith(("About ", "Less than 1 s")) and not store.exists()

    code, output, _ = sweep("run", spec, "--store", store)
    lines = output.splitlines()
    total = re.match(r"(\d+) of \1 runs in .*: 0 from before, \1 trained in", lines[0])
    assert code == 0 and total and int(total[1]) <= 240
    assert lines[2].strip() == "data.samples at which 50% of the runs succeed"
    assert lines[3].split() == ["start", "width", "frontier", "runs"]
    rows = [re.fullmatch(r"(\S+) +(\d+) +([\d,.]+), 95% interval (\S+) to (\S+) +(\d+) *", line) for line in lines[4:]]
    assert [(row[1], row[2]) for row in rows] == [
        ("sparse(s=2)", "8"), ("sparse(s=2)", "40"), ("dense", "8"), ("dense", "40")
    ]  # fmt: skip
    assert all(float(row[4]) < float(row[3]) < float(row[5]) <= 1.5**2 * 1.05 * float(row[4]) for row in rows)
    assert sum(int(row[6]) for row in rows) == int(total[1])

    code, output, _ = sweep("plan", spec, "--store", store)
    assert output.splitlines()[2:] == [f"About {total[1]} runs (at most 240): {total[1]} done, about 0 to do"]
    code, output, _ = sweep("run", spec, "--store", store)
    assert output.splitlines()[0] == f"{total[1]} of {total[1]} runs in {store}: {total[1]} from before"
    assert output.splitlines()[2:] == lines[2:]


def test_what_is_beyond_the_bracket_or_the_budget_is_reported(tmp_path):
    code, output, _ = sweep("run", write_spec(tmp_path, high=14), "--store", tmp_path / "low.sqlite")
    assert code == 0 and re.search(r"sparse\(s=2\) +40 +not below 14: 0 of \d+ runs succeed at 14 +\d+", output)
    code, output, _ = sweep("run", write_spec(tmp_path, budget=8), "--store", tmp_path / "few.sqlite")
    assert code == 0 and re.search(r"95% interval .* to .*, budget spent +8", output)


def test_failed_runs_hold_up_the_search(tmp_path, monkeypatch):
    def broken(self, runs, **options):
        raise MemoryError("no room")

    monkeypatch.setattr(f"{type(get_engine()).__module__}.{type(get_engine()).__name__}.train", broken)
    code, output, _ = sweep("run", write_spec(tmp_path), "--store", tmp_path / "runs.sqlite")
    assert code == 1 and "16 failed with an error (column message). Repeat the command to try them again" in output
    assert output.count("no runs, waits for failed runs") == 4


def test_bad_searches_are_refused(tmp_path):
    spec = write_spec(tmp_path, high=5)
    _, _, result = sweep("plan", spec)
    assert isinstance(result.exception, InvalidArgument)
    assert str(result.exception) == "search.high must be above low = 10; got 5. Remedy: give the ends in order."
    with pytest.raises(InvalidArgument, match=r"search must be a table"):
        from fewfire.sweeps import Sweep

        Sweep.from_dict({"search": 3})

"""`fewfire sweep` as a user sees it."""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from fewfire import cli
from fewfire._errors import InvalidArgument
from fewfire.engines import get_engine
from fewfire.sweeps import SqliteStore
from fewfire.sweeps.run._estimate import TimeEstimate

runner = CliRunner()

SPEC = """
name = "tiny [red]grid[/red]"
trials = 2
success_error = 0.5
[problem]
name = "parity"
n = 8
k = 2
[network]
start = ["dense", {name = "sparse", s = 2}]
width = [5, 8]
[data]
samples = 30
test_samples = 40
[training]
steps = 40
learning_rate = LEARNING_RATE
loss = "square"
"""


@pytest.fixture
def spec(tmp_path):
    return write_spec(tmp_path, "0.01")


def write_spec(folder, rate):
    path = folder / f"spec {rate}.toml"
    path.write_text(SPEC.replace("LEARNING_RATE", rate))
    return path


def sweep(*arguments):
    result = runner.invoke(cli.app, ["sweep", *map(str, arguments)])
    return result.exit_code, re.sub(r"\x1b\[[0-9;]*m", "", result.output), result


def test_plan_run_plan_export(spec, tmp_path):
    store = tmp_path / "runs.sqlite"
    code, output, _ = sweep("plan", spec, "--store", store)
    lines = output.splitlines()
    assert code == 0 and lines[:3] == [
        "tiny [red]grid[/red]",
        "8 runs: 1 problem × 4 networks × 1 data size × 1 schedule × 2 trials",
        "0 done, 8 to do",
    ]
    assert re.fullmatch(rf"(About .+|Less than 1 s) on \d+ cores? with the {get_engine().name} engine", lines[3])
    assert not store.exists()

    code, output, _ = sweep("run", spec, "--store", store)
    assert code == 0
    first, second = output.splitlines()
    assert re.fullmatch(
        rf"8 of 8 runs in {store}: 0 from before, 8 trained in .+ \([\d.]+ runs/s, {get_engine().name} engine, inline\)",
        first,
    )
    assert re.fullmatch(r"\d+\.\d% reached a test error of 0.5; 0 diverged", second)

    code, output, _ = sweep("run", spec, "--store", store)
    assert code == 0 and output.splitlines()[0] == f"8 of 8 runs in {store}: 8 from before"
    code, output, _ = sweep("plan", spec, "--store", store)
    assert output.splitlines()[2:] == ["8 done, 0 to do"]
    code, output, _ = sweep("export", store, tmp_path / "runs.csv")
    assert code == 0 and output == f"Wrote 8 runs to {tmp_path / 'runs.csv'}\n"
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 9


def test_one_run_is_counted_in_the_singular(tmp_path):
    spec = tmp_path / "one.toml"
    one = SPEC.replace("trials = 2", "trials = 1").replace('["dense", {name = "sparse", s = 2}]', '"dense"')
    spec.write_text(one.replace("[5, 8]", "5").replace("LEARNING_RATE", "0.01"))
    store, table = tmp_path / "one.sqlite", tmp_path / "one.tex"
    lines = sweep("plan", spec, "--no-probe")[1].splitlines()
    assert lines[1] == "1 run: 1 problem × 1 network × 1 data size × 1 schedule × 1 trial"
    sweep("run", spec, "--store", store)
    assert "): 1 run in 1 cell: 1 done" in sweep("status", store)[1]
    assert sweep("export", store, table)[1] == f"Wrote 1 cell to {table}\n"


def test_diverged_runs_are_recorded_or_stop_the_sweep(tmp_path, monkeypatch):
    monkeypatch.setattr(type(get_engine()), "batch_runs", 1)
    spec, store = write_spec(tmp_path, "[0.01, 1e6]"), tmp_path / "runs.sqlite"
    code, _, result = sweep("run", spec, "--store", store, "--fail-fast")
    assert (
        code == 1
        and str(result.exception).startswith("run ")
        and "diverged: training diverged at step" in str(result.exception)
    )
    with SqliteStore(store) as opened:
        assert opened.counts() == {"done": 1, "diverged": 1, "failed": 0}
    code, output, _ = sweep("run", spec, "--store", store, "--keep-going")
    assert code == 0 and "16 of 16 runs" in output and output.endswith("; 8 diverged\n")


def test_failed_runs_give_exit_status_1(spec, tmp_path, monkeypatch):
    def broken(self, runs, **options):
        raise MemoryError("no room")

    monkeypatch.setattr(f"{type(get_engine()).__module__}.{type(get_engine()).__name__}.train", broken)
    code, output, _ = sweep("run", spec, "--store", tmp_path / "runs.sqlite")
    assert code == 1
    assert output.splitlines()[-2:] == [
        "8 failed with an error (column message). Repeat the command to try them again",
        "The first: MemoryError: no room",
    ]


def test_errors_are_one_line(spec, tmp_path):
    spec.write_text(spec.read_text().replace("widt", "wdth"))
    command = [sys.executable, "-c", "from fewfire.cli import main; main()", "sweep", "plan", str(spec)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr == (
        "error: network.wdthh is not a known key; the keys here are start, width, depth; got 5. "
        "Remedy: write 'width' if that is what was meant.\n"
    )


@pytest.mark.parametrize(
    ("estimate", "stops", "text"),
    [
        (TimeEstimate(90.0, None, "cpu", 0, 0), False, "About 1 min 30 s on 4 cores with the cpu engine"),
        (TimeEstimate(0.4, None, "cpu", 0, 0), False, "Less than 1 s on 4 cores with the cpu engine"),
        (TimeEstimate(90.0, None, "cpu", 0, 0), True, "About 1 min 30 s on 4 cores with the cpu engine, less with early stops"),
        (TimeEstimate(90.0, 45.0, "cpu", 0, 8), True, "About 1 min 30 s on 4 cores with the cpu engine; 45 s with early stops as in 8 finished runs"),
        (TimeEstimate(36_000.0, None, "cuda", 1, 0), False, "About 10 GPU-hours, 10 h on 1 device with the cuda engine"),
        (TimeEstimate(36_000.0, 9000.0, "cuda", 2, 500), True, "About 20 GPU-hours, 10 h on 2 devices with the cuda engine; 5 GPU-hours with early stops as in 500 finished runs"),
    ],
)  # fmt: skip
def test_times_in_words(monkeypatch, estimate, stops, text):
    monkeypatch.setattr(cli.sweep, "usable_cores", lambda: 4)
    assert cli.sweep._time(estimate, stops) == text


def test_a_plan_learns_of_early_stops_from_other_stores(spec, tmp_path):
    spec.write_text(spec.read_text() + "stop_error = 0.5\n")
    store = tmp_path / "runs.sqlite"
    assert sweep("run", spec, "--store", store)[0] == 0
    _, output, _ = sweep("plan", spec)
    assert output.splitlines()[-1].endswith("engine, less with early stops")
    _, output, _ = sweep("plan", spec, "--measured", store)
    assert output.splitlines()[-1].endswith("with early stops as in 8 finished runs")


def test_unknown_engines_and_addresses(spec, tmp_path):
    _, _, result = sweep("run", spec, "--store", tmp_path / "runs.sqlite", "--engine", "gpu")
    assert isinstance(result.exception, InvalidArgument) and "engine must be one of" in str(result.exception)
    _, _, result = sweep("run", spec, "--store", tmp_path / "runs.sqlite", "--dask", "slurm")
    assert "--dask must be \"local\" or the address of a scheduler; got 'slurm'." in str(result.exception)
    _, _, result = sweep("run", spec, "--store", tmp_path / "runs.sqlite", "--workers", "0")
    assert "must be an integer of at least 1" in str(result.exception)
    assert not (tmp_path / "runs.sqlite").exists()  # a rejected option leaves no empty store

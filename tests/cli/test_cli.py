"""The command line as a user sees it."""

import io
import os
import re
import subprocess
import sys
import warnings

import pytest
from rich.table import Table
from typer.testing import CliRunner

from fewfire import MissingExtensionWarning, __version__, cli
from fewfire._extension import MESSAGE
from fewfire.cli import doctor
from fewfire.cli._output import PlainConsole, as_typed, say
from fewfire.engines import ReferenceEngine, register_engine, unregister_engine
from fewfire.sweeps import Sweep
from fewfire.sweeps.executors import DaskExecutor

runner = CliRunner()


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_help_lists_the_verbs():
    result = runner.invoke(cli.app, ["--help"])
    assert result.exit_code == 0
    for verb in ("demo", "doctor", "sweep"):
        assert verb in plain(result.output)
    assert runner.invoke(cli.app, ["--version"]).output == f"fewfire {__version__}\n"


@pytest.mark.parametrize("words", ["", "sweep", "sweep run", "law predict", "profile", "reproduce", "bounds pareto"])
def test_help_shows_a_type_only_for_what_takes_a_value(words):
    text = plain(runner.invoke(cli.app, [*words.split(), "--help"]).output)
    assert "--help" in text and "<bool>" not in text and "BOOLEAN" not in text


@pytest.mark.parametrize(
    ("called", "found", "start"),
    [
        ("{folder}/fewfire", "{folder}/fewfire", "fewfire"),
        ("{folder}/fewfire", None, "'{folder}/fewfire'"),
        ("{folder}/other/fewfire", "{folder}/fewfire", "'{folder}/other/fewfire'"),
        ("{folder}/pytest", None, "fewfire"),
        ("/lib/fewfire/__main__.py", None, f"{sys.executable} -m fewfire"),
    ],
)
def test_a_printed_command_runs_where_it_is_printed(tmp_path, monkeypatch, called, found, start):
    folder = tmp_path / "my tools"
    for path in (folder / "fewfire", folder / "other" / "fewfire"):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    monkeypatch.setattr(sys, "argv", [called.format(folder=folder)])
    monkeypatch.setattr("shutil.which", lambda name: found and found.format(folder=folder))
    assert as_typed("sweep", "a $b") == f"{start.format(folder=folder)} sweep 'a $b'"


def test_doctor_reports_versions_features_and_engines():
    result = runner.invoke(cli.app, ["doctor"])
    assert result.exit_code == 0
    output = plain(result.output)
    for subject in ("fewfire", "numpy", "C++ part", "engine reference", "extra torch"):
        assert subject in output
    facts = dict(doctor.facts())
    assert facts["engine reference"] == "available"


def test_doctor_names_the_devices_of_an_engine(monkeypatch):
    class Fake(ReferenceEngine):
        side_by_side = True

        def devices(self):
            return ["NVIDIA H200 (sm_90, 139 GiB free)", "NVIDIA H200 (sm_90, 12 GiB free)"]

        use_device = prepare = pace = devices

    register_engine("fake", lambda threads: Fake())
    try:
        facts = dict(doctor.facts())
    finally:
        unregister_engine("fake")
    assert facts["engine reference"] == "available"
    assert facts["engine fake"] == (
        "available, and used by sweeps of 1e+12 multiply-adds and more: "
        "NVIDIA H200 (sm_90, 139 GiB free), NVIDIA H200 (sm_90, 12 GiB free)"
    )


def test_doctor_prints_how_to_get_what_is_missing(monkeypatch):
    monkeypatch.setattr(doctor, "load", lambda: None)
    monkeypatch.setattr("fewfire.engines.cuda.CudaEngine.unusable", lambda self: "it needs a CUDA device")
    facts = dict(doctor.facts())
    assert facts["C++ part"].startswith("missing.") and "install a C++20 compiler" in facts["C++ part"]
    assert facts["engine cuda"] == "not available: it needs a CUDA device"
    assert "pip install 'fewfire[cuda12]'" in facts["extra cuda12"]


@pytest.mark.usefixtures("core")
def test_errors_are_one_line_without_traceback():
    done = subprocess.run([sys.executable, "-c", "from fewfire.cli import main; main()", "demo", "--k", "40"],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: k must be an integer of at least 1 and at most 30; got 40.")


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "fewfire", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"fewfire {__version__}\n"


def fewfire(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", "from fewfire.cli import main; main()", *map(str, arguments)],
        capture_output=True,
        text=True,
        **options,
    )


def test_warnings_are_one_line_without_source(monkeypatch, capsys):
    def warn():
        warnings.simplefilter("always")
        warnings.warn(MESSAGE, MissingExtensionWarning, stacklevel=1)

    monkeypatch.setattr(cli, "app", warn)
    cli.main()
    assert capsys.readouterr().err == f"warning: {MESSAGE}\n"


def test_errors_keep_brackets_of_remedies(monkeypatch, capsys):
    """Square brackets are no markup: `fewfire[sweep]` is what has to be installed."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setattr(sys, "argv", ["fewfire", "sweep", "run", "SPEC", "--store", "s.sqlite", "--dask", "local"])
    monkeypatch.setattr(Sweep, "from_toml", lambda path: DaskExecutor())
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert capsys.readouterr().err.endswith("Remedy: pip install 'fewfire[sweep]'.\n")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("[red][/].toml", "[red][/].toml"),
        (":smile:.toml", ":smile:.toml"),
        ("\x1b[2J\x07\r\n.toml", r"\x1b[2J\x07\r\n.toml"),
        ("\udcff\u202e.toml", r"\udcff\u202e.toml"),
    ],
)
def test_names_in_errors_are_text_with_controls_escaped(tmp_path, name, shown):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('"[/red]" = 1\n')
    done = fewfire("sweep", "plan", path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: [/red] is not a known key; the keys here are name,")
    path.write_text("[[[")
    done = fewfire("sweep", "plan", path)
    assert done.stderr.count("\n") == 1 and f"{tmp_path}/{shown} is not valid TOML" in done.stderr


def test_output_is_escaped_where_the_terminal_lacks_a_character():
    done = fewfire("bounds", "sublinear", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and r"\u03c4" in done.stdout


def test_tables_and_lines_show_controls_as_escapes():
    stream = io.StringIO()
    console = PlainConsole(file=stream, width=80)
    table = Table(box=None)
    table.add_column("[b]name[/b]")
    table.add_row("\x1b[2J[/red]")
    console.print(table)
    console.print("one \x9b:smile:\ntwo [/]")
    say("three\x00\nfour", console)
    lines = [line.strip() for line in stream.getvalue().splitlines()]
    assert lines == ["[b]name[/b]", r"\x1b[2J[/red]", r"one \x9b:smile:", "two [/]", r"three\x00\nfour"]

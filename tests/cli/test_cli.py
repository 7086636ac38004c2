"""The command line as a user sees it."""

import re
import subprocess
import sys

from typer.testing import CliRunner

from fewfire import __version__, cli
from fewfire.cli import doctor

runner = CliRunner()


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_help_lists_the_verbs():
    result = runner.invoke(cli.app, ["--help"])
    assert result.exit_code == 0
    for verb in ("demo", "doctor", "sweep"):
        assert verb in plain(result.output)
    assert runner.invoke(cli.app, ["--version"]).output == f"fewfire {__version__}\n"


def test_doctor_reports_versions_features_and_engines():
    result = runner.invoke(cli.app, ["doctor"])
    assert result.exit_code == 0
    output = plain(result.output)
    for subject in ("fewfire", "numpy", "C++ part", "engine reference", "extra torch"):
        assert subject in output
    facts = dict(doctor.facts())
    assert facts["engine reference"] == "available"


def test_doctor_says_how_to_get_what_is_missing(monkeypatch):
    monkeypatch.setattr(doctor, "load", lambda: None)
    monkeypatch.setattr(doctor, "engine_report", lambda: {"cuda": "it needs a CUDA device"})
    facts = dict(doctor.facts())
    assert facts["C++ part"].startswith("missing.") and "install a C++20 compiler" in facts["C++ part"]
    assert facts["engine cuda"] == "not available: it needs a CUDA device"
    assert "pip install 'fewfire[cuda12]'" in facts["extra cuda12"]


def test_errors_are_one_line_without_traceback():
    done = subprocess.run([sys.executable, "-c", "from fewfire.cli import main; main()", "demo", "--k", "40"],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: k must be an integer of at least 1 and at most 30; got 40.")


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "fewfire", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"fewfire {__version__}\n"

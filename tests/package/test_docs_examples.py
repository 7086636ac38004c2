"""The examples of the documentation's site run as plain scripts; `make docs` runs them again and shows what they give."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed (make test installs it)")
pytest.importorskip("pandas", reason="pandas is not installed (make test installs it)")

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "examples"
PRINTS = {"frontier": "Width buys data", "own_table": "fewfire: accuracy 0.9", "robust_and_certified": "(proved)"}
QUICK = {"robust_and_certified"}  # the others take some ten seconds each


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in sorted(PRINTS)]
)
def test_an_example_runs(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert PRINTS[name] in capsys.readouterr().out


def test_every_example_is_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(PRINTS)

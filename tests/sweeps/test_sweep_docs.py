"""The pages about sweeps and stores: their code runs, and their tables name every column and key."""

import re
from dataclasses import fields
from pathlib import Path

from fewfire.problems._base import PROBLEMS
from fewfire.sweeps import FrontierSearch
from fewfire.sweeps.spec._tables import PHASE_KEYS, SCHEDULE_KEYS
from fewfire.sweeps.store._row import COLUMNS, CURVES, STATUSES

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "sweeps.md").read_text()
STORE = (DOCS / "store.md").read_text()


def test_the_code_runs(capsys):
    grid, search = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(compile(grid, "sweeps.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["5", "50"] and all(line.endswith("of 5") for line in lines)
    exec(compile(search, "sweeps.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["8", "40"] and all("95% interval" in line for line in lines)


def test_every_name_is_explained():
    search = [field.name for field in fields(FrontierSearch)]
    for name in (*PROBLEMS, *PHASE_KEYS, *SCHEDULE_KEYS, *search):
        assert f"`{name}`" in PAGE, name
    for name in (*COLUMNS, *CURVES, *STATUSES):
        assert f"`{name}`" in STORE, name

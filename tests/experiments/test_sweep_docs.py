"""The page about sweeps: its code runs, and its tables name every column and key."""

import re
from pathlib import Path

from fewfire.experiments import COLUMNS, CURVES, STATUSES
from fewfire.experiments.spec._tables import PHASE_KEYS, SCHEDULE_KEYS
from fewfire.problems import PROBLEMS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "sweeps.md").read_text()


def test_the_code_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(compile(block, "sweeps.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["5", "50"] and all(line.endswith("of 5") for line in lines)


def test_every_name_is_explained():
    for name in (*COLUMNS, *CURVES, *STATUSES, *PROBLEMS, *PHASE_KEYS, *SCHEDULE_KEYS):
        assert f"`{name}`" in PAGE, name

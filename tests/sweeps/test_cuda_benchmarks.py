"""examples/figure4_part.toml, and benchmarks/train_cuda.py's agreement without a GPU."""

import importlib
import json
from pathlib import Path

import pytest
from scipy.stats import fisher_exact

from fewfire.sweeps import Sweep

ROOT = Path(__file__).parents[2]


def last(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_the_part_is_a_part_of_figure_4():
    whole, part = (Sweep.from_toml(ROOT / "examples" / name) for name in ("figure4.toml", "figure4_part.toml"))
    assert (len(whole), len(part)) == (194_400, 24_000)
    cells = {whole.run_at(cell).hash for cell in range(whole.settings)}
    assert all(part.run_at(cell).hash in cells for cell in range(part.settings))


def test_agreement_is_tested_by_fishers_test(monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    module = importlib.import_module("train_cuda")
    for a, b in ((10, 30), (100, 120), (0, 5), (77, 77)):
        expected = fisher_exact([[a, 200 - a], [b, 200 - b]]).pvalue
        assert module.fisher(a, b, 200) == pytest.approx(expected)
    assert len(module.CELLS) >= 8 and {cell[1] for cell in module.CELLS} == {3, 4}
    half = {module.label(cell): "01" * 100 for cell in module.CELLS}
    assert module.judge(half, half) == 0
    assert last(capsys)["p"] == 1.0
    apart = half | {module.label(module.CELLS[3]): "1" * 170 + "0" * 30}
    assert module.judge(half, apart) == 1
    assert last(capsys)["figures"][module.label(module.CELLS[3])]["runs_that_differ"] == 100

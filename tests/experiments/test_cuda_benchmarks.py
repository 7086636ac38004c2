"""benchmarks/figure4.py and cuda_agreement.py without a GPU: goes that end early, pages, judgements."""

import gzip
import importlib
import json
from pathlib import Path

import pytest
from scipy.stats import fisher_exact

from fewfire.experiments import Sweep

ROOT = Path(__file__).parents[2]
TINY = """
trials = 3
[problem]
name = "parity"
n = [8, 9]
k = 2
[network]
start = ["dense", {name = "sparse", s = 2}]
width = [5, 8, 12]
[data]
samples = [20, 200, "online"]
test_samples = 100
[training]
steps = 120
learning_rate = 0.1
evaluate = 40
stop_error = 0.1
"""


@pytest.fixture
def figure4(monkeypatch, tmp_path):
    """Calls the script on a tiny spec; its exit status."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    module = importlib.import_module("figure4")
    (tmp_path / "tiny.toml").write_text(TINY)

    def main(*arguments):
        given = ["figure4", *map(str, arguments), "--spec", str(tmp_path / "tiny.toml"), "--engine", "reference"]
        monkeypatch.setattr("sys.argv", given)
        return module.main()

    return main


def last(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_goes_that_end_early_are_continued(figure4, tmp_path, capsys):
    first, second = tmp_path / "one", tmp_path / "two"
    assert figure4("run", first, "--seconds", "0") == 0
    begun = last(capsys)
    assert begun["ran"] < begun["total"] == 108
    assert figure4("run", first, second) == 0
    ended = last(capsys)
    assert ended["done"] == 108 and ended["ran"] == 108 - begun["done"] and ended["failed"] == 0
    assert sorted(ended["bytes"]) == ["figure4-n8-k2.sqlite.gz", "figure4-n9-k2.sqlite.gz"]
    assert gzip.decompress((second / "figure4-n8-k2.sqlite.gz").read_bytes())[:6] == b"SQLite"
    table = json.loads((second / "figure4.json").read_text())
    assert len(table) == 36 and {entry["trials"] for entry in table} == {3}
    assert [entry["samples"] for entry in table[:3]] == [20, 200, "online"]
    assert figure4("page", second, tmp_path) == 0
    page = (tmp_path / "figure4.md").read_text()
    assert "## (8, 2)-parity" in page and "| width | 20 | 200 | online |" in page and "| more data can hurt |" in page
    assert "## Claim by claim" in page
    assert figure4("plan", second) == 0
    told = last(capsys)
    assert told["runs"] == 108 and set(told["widths"]) == {"5", "8", "12"} and told["with_early_stops"] == 0.0


def test_the_part_is_a_part_of_figure_4():
    whole, part = (Sweep.from_toml(ROOT / "examples" / name) for name in ("figure4.toml", "figure4_part.toml"))
    assert (len(whole), len(part)) == (194_400, 24_000)
    cells = {whole.run_at(cell).hash for cell in range(whole.settings)}
    assert all(part.run_at(cell).hash in cells for cell in range(part.settings))


def test_agreement_is_judged_by_fishers_test(monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    module = importlib.import_module("cuda_agreement")
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

"""tools/figure4.py without a GPU: its summary is all that sessions need, pages, judgements with unequal trials."""

import json

import figure4 as script
import numpy as np
import pytest

from fewfire.papers.pareto.recipes.frontier import judge
from fewfire.sweeps import Sweep

TINY = """
trials = 4
[problem]
name = "parity"
n = 8
k = 2
[network]
start = ["dense", {name = "sparse", s = 2}]
width = [5, 8, 12, 40]
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
def module(monkeypatch):
    """The module, for two trials per cell up to width 12, and four where a cell is mixed."""
    for name, value in (("FEWEST", 2), ("MOST", 4), ("WIDEST", 12), ("DRAWS", 50), ("SAVE_EVERY", 0.0)):
        monkeypatch.setattr(script, name, value)
    return script


@pytest.fixture
def figure4(module, monkeypatch, tmp_path):
    """Calls the script on a tiny spec; its exit status."""
    (tmp_path / "tiny.toml").write_text(TINY)

    def main(*arguments):
        options = "--spec", tmp_path / "tiny.toml", "--engine", "reference"
        monkeypatch.setattr("sys.argv", ["figure4", *map(str, (*arguments, *options))])
        return module.main()

    return main


def last(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_sessions_that_end_early_are_continued_to_the_same_summary(figure4, module, monkeypatch, tmp_path, capsys):
    whole, parts = tmp_path / "whole.json", tmp_path / "parts.json"
    assert figure4("run", whole) == 0
    assert last(capsys)["missing"] == 0
    cells = json.loads(whole.read_text())
    assert len(cells) == 18 and {cell["width"] for cell in cells} == {5, 8, 12}
    assert [cell["samples"] for cell in cells[:3]] == [20, 200, "online"]
    assert all(cell["successes"] == sum(count for _, count in cell["times"]) for cell in cells)
    trials = {cell["trials"] for cell in cells}
    assert trials == {2, 4}, "some cells are mixed, and some are far from those"
    assert all(cell["trials"] == 4 for cell in cells if 0 < cell["successes"] < cell["trials"])

    # Ctrl-C after the second batch, whose runs are not the first ones that are missing: nothing counts twice.
    real = module.trained

    def interrupted(sweep, numbers, engine, until):
        yield from real(sweep, numbers[:5], engine, until)
        yield from real(sweep, numbers[8:11], engine, until)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "trained", interrupted)
    ran = []
    for _ in range(4):
        assert figure4("run", parts) == 0
        ran.append(last(capsys)["runs"])
    assert ran == sorted(set(ran)) and ran[0] > 0, "every session adds to what is there"
    monkeypatch.setattr(module, "trained", real)
    assert figure4("run", parts, "--seconds", "0") == 0
    assert last(capsys)["ran"] == 0
    assert figure4("run", parts) == 0
    ended = last(capsys)
    assert ended["ran"] + ran[-1] == ended["runs"] == sum(cell["trials"] for cell in cells)
    assert parts.read_text() == whole.read_text()


def test_trials_count_once_those_before_them_do(module, tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    sweep = Sweep.from_toml(tmp_path / "tiny.toml")
    numbers = np.arange(3) * sweep.settings
    (rows,) = module.trained(sweep, numbers, "reference", np.inf)
    summary = module.Summary(sweep, tmp_path / "none.json")
    entry = summary.entries[module.cell_of(sweep.run_at(0))]
    summary.add([rows[2]])
    assert entry.trials == 0 and 0 in summary.missing()
    summary.add([rows[0]])
    assert entry.trials == 1
    summary.add([rows[1]])
    assert entry.trials == 3
    summary.add(rows)
    assert entry.trials == 3, "a trial counts once"


def test_pages_and_plans_are_made_of_a_summary(figure4, tmp_path, capsys):
    summary, page = tmp_path / "figure4.json", tmp_path / "figure4.md"
    assert figure4("run", summary) == 0
    assert figure4("page", summary, page) == 0
    text = page.read_text()
    prose = " ".join(text.split())
    assert "18 of 18 cells (100%)" in prose and "of the 96 runs" in prose and "18 of its 24 cells" in prose
    assert "## (8, 2)-parity" in text and "| width | 20 | 200 | online |" in text and "0/2" in text
    assert "Tested on widths 5, 8, 12" in text and "| more data can hurt |" in text and "## Claim by claim" in text
    capsys.readouterr()
    assert figure4("plan", summary) == 0
    planned = last(capsys)
    assert planned["runs"] == 96 and set(planned["widths"]) == {"5", "8", "12", "40"}
    assert planned["with_early_stops"] is None, "nothing is known of width 40"


def test_judgements_are_the_recipes_where_trials_are_equal(module):
    rng = np.random.default_rng(1)
    rows = []
    for start in ("dense", "sparse"):
        for width in (10, 100, 1000):
            for samples in (100, 300, 1000, 10**9):
                won = int(rng.integers(0, 21))
                steps = [*rng.integers(1, 9, won).tolist(), *[None] * (20 - won)]
                rows.append(
                    {"start": start, "width": width, "samples": samples, "trials": 20, "successes": won, "steps": steps}
                )
    mine = {entry.claim: entry for entry in module.judgements(rows)}
    theirs = judge(rows)
    for entry in theirs:
        assert mine[entry.claim].value == pytest.approx(entry.value), entry.claim
        assert mine[entry.claim].power.probability == pytest.approx(entry.power.probability), entry.claim
    assert len(mine) == len(theirs) + 4


def verdicts(module, won, steps):
    """Whether the claims beyond the recipe's hold where so many of 20 runs succeed, after so many steps."""
    rows = [
        {
            "start": start,
            "width": width,
            "samples": samples,
            "trials": 20,
            "successes": won(start, width, place),
            "steps": [steps(width) + run if run < won(start, width, place) else None for run in range(20)],
        }
        for start in ("dense", "sparse")
        for width in (10, 100, 1000)
        for place, samples in enumerate((300, 400, 500, 700))
    ]
    return {entry.claim: entry for entry in module.judgements(rows)}


def test_steps_up_in_width_save_time_only_if_all_do(module):
    claim = "every step up in width saves time"
    assert verdicts(module, lambda *_: 20, lambda width: 40_000 // width)[claim].passed
    same = verdicts(module, lambda *_: 20, lambda width: min(400, 40_000 // width))[claim]
    assert not same.passed and "10 against 100" in same.statistic


@pytest.mark.parametrize(
    ("line", "hurts", "returns"), [((0, 19, 3, 18), 1, 1), ((0, 19, 3, 3), 1, 0), ((0, 10, 18, 20), 0, 0)]
)
def test_finding_4_needs_a_fall_and_then_a_rise(module, monkeypatch, line, hurts, returns):
    monkeypatch.setattr(module, "DRAWS", 200)  # 50 cannot give a p of 0.01
    found = verdicts(
        module, lambda start, width, place: line[place] if (start, width) == ("dense", 10) else 20, lambda _: 9
    )
    assert found["more data can hurt"].passed == hurts
    assert found["with still more data learning comes back"].passed == returns


def test_curves_that_rise_and_then_fall_are_no_dips(module):
    trials = np.full((3, 5), 20)
    won = np.array([[0, 5, 20, 10, 1], [3, 3, 3, 9, 20], [20, 2, 2, 18, 18]])
    lack, curves = module.short_of(won, trials)
    assert lack[:2] == pytest.approx(0.0) and lack[2] > 20
    assert curves[:2] == pytest.approx(won[:2] / 20)
    rises = np.diff(curves[2]) > 1e-12
    falls = np.diff(curves[2]) < -1e-12
    assert not (falls.any() and rises[np.argmax(falls) :].any())
    more = np.array([[40, 4, 4, 36, 36]])
    assert module.short_of(more, np.full((1, 5), 40))[0] == pytest.approx(2 * lack[2:])

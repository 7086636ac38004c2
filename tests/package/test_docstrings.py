"""The examples of docstrings run and give what they show; every estimator and main function has one."""

import doctest
import importlib
import inspect
import pkgutil
import shutil
import tomllib
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import fewfire
from fewfire.sweeps import Sweep
from fewfire.tabular._trees import load_lightgbm

# Compiled, a command, and suites that pytest must see first; none holds an example.
SKIPPED = ("fewfire._core", "fewfire.__main__", "fewfire.testing")
NEEDS = {
    "fewfire.torch": "torch",
    "fewfire.papers.sparse_activations.lazy_neurons": "torch",
    "fewfire.report._profile": "torch",
    "fewfire.report": "matplotlib",
    "fewfire.problems._table": "pyarrow",
}
CPP = ("fewfire.engines.robust._registry", "fewfire.halfspace._index")  # print what the NumPy code does otherwise
ROOT = Path(__file__).parents[2]

MAIN = {
    "fewfire.problems",
    "fewfire.networks",
    "fewfire.networks.init",
    "fewfire.networks.construct",
    "fewfire.fourier",
    "fewfire.halfspace",
    "fewfire.engines",
    "fewfire.learners",
    "fewfire.learners.baselines",
    "fewfire.papers.sparse_activations.statistical_queries",
    "fewfire.tabular",
    "fewfire.sweeps",
    "fewfire.sweeps.laws",
    "fewfire.report",
    "fewfire.robustness",
    "fewfire.papers.pareto",
    "fewfire.papers.parities",
    "fewfire.papers.sparse_activations",
    "fewfire.papers.sublinear",
    "fewfire.torch",
}
# Functions that are for those who extend the package, or that only make sense inside a longer description on a page.
EXEMPT = {
    "fewfire.halfspace": {"unregister_method"},
    "fewfire.problems": {"register_problem"},
    "fewfire.sweeps": {"found_frontiers"},
    "fewfire.sweeps.laws": {"fit_law"},
    "fewfire.tabular": {"Encoding"},
}


@pytest.fixture(scope="session")
def first_grid(tmp_path_factory):
    """The store of the README's first sweep, each cell tried once."""
    spec = tomllib.loads((ROOT / "examples" / "first.toml").read_text())
    spec["trials"] = 1
    path = tmp_path_factory.mktemp("first") / "grid.sqlite"
    Sweep.from_dict(spec).run(path, executor="inline")
    return path


def modules():
    names = [found.name for found in pkgutil.walk_packages(fewfire.__path__, "fewfire.")]
    return ["fewfire", *(name for name in names if not name.startswith(SKIPPED))]


def holds_examples(name):
    """Read from the file, so that nothing is imported before its test runs."""
    path = Path(fewfire.__file__).parent.joinpath(*name.split(".")[1:])
    files = [path / "__init__.py", path.with_suffix(".py")]
    return any(">>> " in file.read_text(encoding="utf-8") for file in files if file.is_file())


@pytest.mark.parametrize("name", [name for name in modules() if holds_examples(name)])
def test_examples_run(request, name, tmp_path, monkeypatch, first_grid):
    for prefix, package in NEEDS.items():
        if name.startswith(prefix):
            pytest.importorskip(package)
    if name in CPP:
        request.getfixturevalue("core")
    if name.startswith("fewfire.tabular."):
        load_lightgbm()  # where it cannot be, the test is skipped
    monkeypatch.chdir(tmp_path)
    shutil.copy(first_grid, tmp_path)
    shutil.copytree(ROOT / "docs" / "results", tmp_path / "out", ignore=shutil.ignore_patterns("*.png", "*.md"))
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0 and result.failed == 0


def public(package):
    module = importlib.import_module(package)
    return {name: getattr(module, name) for name in module.__all__}


@pytest.mark.parametrize("package", sorted(MAIN))
def test_main_functions_have_examples(package):
    if package in NEEDS:
        pytest.importorskip(NEEDS[package])
    missing = {
        name
        for name, thing in public(package).items()
        if (inspect.isfunction(thing) or (inspect.isclass(thing) and issubclass(thing, BaseEstimator)))
        and ">>> " not in (thing.__doc__ or "")
    }
    assert missing == EXEMPT.get(package, set())


@pytest.mark.parametrize("name", ["attack", "certify", "robust_score", "CompressedRows", "Stream"])
def test_names_at_the_top_have_examples(name):
    assert ">>> " in getattr(fewfire, name).__doc__

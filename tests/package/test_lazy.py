"""Lazy packages: what an import leaves alone, and the names that are found all the same."""

import ast
import importlib
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import fewfire
from fewfire._lazy import SUBPACKAGES, lazy_names
from fewfire.sweeps.executors._protocol import Work
from fewfire.testing._sweeps import run_spec

SOURCE = Path(fewfire.__file__).parent
# What takes long to load, and parts of fewfire that a help text does not need.
HEAVY = [
    "scipy",
    "sklearn",
    "pandas",
    "matplotlib",
    "torch",
    "jax",
    "pyarrow",
    "dask",
    "cupy",
    "plotly",
    "sqlite3",
    "lightgbm",
    "onnx",
]
OWN = [f"fewfire.{name}" for name in ("engines", "networks", "problems", "report", "learners", "tabular", "robustness")]


def lazy_packages():
    """Read from the files, so that nothing is imported before its test runs."""
    paths = [path for path in SOURCE.rglob("__init__.py") if "lazy_names(" in path.read_text(encoding="utf-8")]
    return sorted(".".join(("fewfire", *path.parent.relative_to(SOURCE).parts)) for path in paths)


LAZY = lazy_packages()


def loaded_by(code, heavy, *arguments, **options):
    """Which of these modules are loaded after the code, in a process of its own."""
    listed = f"json.dumps([name for name in {heavy} if name in sys.modules])"
    told = f"import atexit, json, sys; atexit.register(lambda: print({listed}, file=sys.stderr))"
    command = [sys.executable, "-W", "error", "-c", f"{told}\n{code}", *arguments]
    done = subprocess.run(command, capture_output=True, cwd="/", check=True, **options)
    return json.loads(done.stderr.splitlines()[-1]), done.stdout


def test_import_loads_nothing_heavy():
    assert loaded_by("import fewfire", [*HEAVY, *OWN, "numpy", "rich", "typer", "fewfire.sweeps"])[0] == []


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["--help"], "reproduce"),
        (["--version"], fewfire.__version__),
        (["sweep", "run", "--help"], "--store"),
        (["bounds", "parities", "--help"], "Theorem 2"),
        (["report", "--help"], "--watch"),
    ],
)
def test_help_loads_nothing_heavy(arguments, printed):
    found, text = loaded_by("from fewfire.cli import main; main()", [*HEAVY, *OWN], *arguments)
    assert found == [] and printed.encode() in text


@pytest.mark.parametrize(
    "code",
    [
        "from fewfire.report._figure import canvas, colour",
        "from fewfire.report import *",
    ],
)
def test_reports_load_no_models(code):
    """A colour loads no store; all names together no model, SciPy or matplotlib, which wait for what is drawn."""
    models = ["fewfire.learners", "fewfire.tabular", "fewfire.robustness", "fewfire.torch"]
    heavy = [name for name in HEAVY if name != "sqlite3"]
    assert loaded_by(code, [*heavy, *models])[0] == []
    if "colour" in code:
        assert loaded_by(code, [*HEAVY, "fewfire.sweeps", "fewfire.engines", "fewfire.report._plots"])[0] == []


@pytest.mark.usefixtures("core")
def test_lightgbm_is_loaded_for_trees_alone():
    code = (
        "import fewfire, numpy as np; fewfire.TabularRegressor(trees=False, members=1).fit(np.eye(24), np.arange(24))"
    )
    assert loaded_by(code, ["lightgbm"])[0] == []


@pytest.mark.usefixtures("core")
def test_a_worker_of_a_sweep_loads_what_runs_need():
    """It is sent a `Work` and texts of runs: from there on it needs specs, problems and an engine."""
    sent = pickle.dumps((Work("reference", threads=1), [run_spec().canonical]))
    heavy = [
        *HEAVY,
        "fewfire.report",
        "fewfire.learners",
        "fewfire.tabular",
        "fewfire.papers",
        "fewfire.sweeps.laws",
    ]
    heavy.remove("sqlite3")  # rows are described by the columns of the store, which lives next to it
    code = "import pickle, sys; work, texts = pickle.loads(sys.stdin.buffer.read()); print(work(texts)[0].status)"
    found, told = loaded_by(code, heavy, input=sent)
    assert found == [] and told == b"done\n"


@pytest.mark.parametrize("package", LAZY)
def test_the_three_lists_of_a_lazy_package_agree(package):
    """What type checkers see, what `__all__` lists, and what is found when it is asked for."""
    tree = ast.parse((SOURCE.joinpath(*package.split(".")[1:]) / "__init__.py").read_text(encoding="utf-8"))
    plain = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    checked, table = {}, {}
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            checked = {name.name: line.module for line in node.body for name in line.names}
        if isinstance(node, ast.If) and ast.unparse(node.test) == "not TYPE_CHECKING":
            found = eval(ast.unparse(node.body[0].value.args[1]), {"SUBPACKAGES": SUBPACKAGES})
            table = {name: module for module, names in found.items() for name in names.split()}
        assert not (isinstance(node, ast.FunctionDef) and node.name == "__getattr__")  # type checkers would see it
    module = importlib.import_module(package)
    homes = {
        name: package if home == SUBPACKAGES else importlib.util.resolve_name(f".{home}", package)
        for name, home in table.items()
    }
    unlisted = {name for name in set(homes) - set(module.__all__) if homes[name] == package}
    assert checked == {name: home for name, home in homes.items() if name not in unlisted}
    assert set(module.__all__) - plain - {"__version__"} == set(checked)


@pytest.mark.parametrize("package", LAZY)
def test_every_name_is_found_and_completed(package):
    if package == "fewfire.torch":
        pytest.importorskip("torch")
    module = importlib.import_module(package)
    assert set(module.__all__) <= set(dir(module))
    assert all(getattr(module, name) is not None for name in module.__all__)
    starred = {}
    exec(f"from {package} import *", starred)
    assert set(module.__all__) <= set(starred)
    with pytest.raises(
        AttributeError, match=f"module '{package}' has no attribute 'netwrk'; it has .*{module.__all__[-1]}"
    ):
        _ = module.netwrk


def test_a_name_is_looked_up_once(monkeypatch):
    import types

    package = types.ModuleType("fewfire_toy")
    package.__path__ = []
    package.__all__ = ["answer"]
    inner = types.ModuleType("fewfire_toy.inner")
    inner.answer = 42
    monkeypatch.setitem(sys.modules, "fewfire_toy", package)
    monkeypatch.setitem(sys.modules, "fewfire_toy.inner", inner)
    package.__getattr__, package.__dir__ = lazy_names("fewfire_toy", {SUBPACKAGES: "inner", "inner": "answer"})
    assert "answer" in dir(package) and "answer" not in vars(package)
    assert package.answer == 42 and vars(package)["answer"] == 42
    assert package.inner is inner

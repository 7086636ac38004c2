"""The package as installed: subpackages that stay light, the extension's stub, versions that agree."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fewfire

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ["torch", "dask", "cupy", "matplotlib", "plotly", "pandas"]


def run_python(code, *arguments, **options):
    command = [sys.executable, *arguments, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, cwd="/", **options)


SUBPACKAGES = [name for name in fewfire.__all__ if (Path(fewfire.__file__).parent / name).is_dir()]


@pytest.fixture(scope="module")
def beside_scikit_learn():
    """What scikit-learn itself loads: pandas where that is installed."""
    return run_python("import sys, sklearn.base; print(*sys.modules)").stdout.split()


@pytest.mark.parametrize("name", SUBPACKAGES)
def test_subpackages_load_on_use_and_stay_light(name, beside_scikit_learn):
    """Nothing heavy with all of its names, or with the package alone where these are for PyTorch's models."""
    code = f"""
import sys, json, fewfire
package = fewfire.{name}
names = [] if {name!r} == "torch" else [getattr(package, name) for name in package.__all__]
print(json.dumps([m for m in [*{HEAVY}, "sklearn"] if m in sys.modules]))
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) <= {"sklearn"} | (set(beside_scikit_learn) if "sklearn" in found else set())
    assert name in dir(fewfire)


def test_what_calls_take_and_give_has_public_names():
    stream = fewfire.Stream(0, "data")
    X, _ = fewfire.problems.Parity(5, 2).sample(4, stream)
    net = fewfire.networks.init.dense()(5, 3, 0)
    assert isinstance(net.active(X), fewfire.CompressedRows)
    assert issubclass(fewfire.ConvergenceWarning, fewfire.FewfireWarning)


def test_missing_extension_gives_one_warning_and_the_same_numbers():
    code = """
import sys, warnings
sys.modules["fewfire._core"] = None
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import fewfire as ff
    problem = ff.problems.Parity(8, 2)
    X, y = problem.sample(50, seed=3)
    net = ff.networks.init.sparse(2)(8, 20, seed=1)
    run = ff.engines.Run(net, ff.engines.Schedule(ff.engines.Phase(5)), X, y)
    result = ff.engines.get_engine("auto").train([run])[0]
print(len(caught), caught[0].category.__name__, caught[0].message)
print(result.engine, repr(float(result.network(X).sum())))
"""
    without = run_python(code).stdout.splitlines()
    assert without[0].startswith(
        "1 MissingExtensionWarning fewfire's C++ part is not installed, so the NumPy reference"
    )
    assert "Remedy: install a C++20 compiler" in without[0]
    name, value = without[1].split()
    assert name == "reference"
    problem = fewfire.problems.Parity(8, 2)
    X, y = problem.sample(50, seed=3)
    net = fewfire.networks.init.sparse(2)(8, 20, seed=1)
    run = fewfire.engines.Run(net, fewfire.engines.Schedule(fewfire.engines.Phase(5)), X, y)
    assert float(value) == float(fewfire.engines.ReferenceEngine().train([run])[0].network(X).sum())


def test_the_stub_lists_what_the_extension_exports(core):
    tree = ast.parse((ROOT / "src/fewfire/_core.pyi").read_text())
    declared = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    declared |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    assert declared == {name for name in dir(core) if not name.startswith("_")}


def test_instruction_sets_can_be_lowered(core):
    assert core.available_isas()[0] == "baseline"
    core.set_isa("baseline")
    assert core.isa() == "baseline"
    with pytest.raises(ValueError, match="instruction set not available here: mmx"):
        core.set_isa("mmx")
    code = "from fewfire import _core; print(_core.isa())"
    import os

    assert run_python(code, env={**os.environ, "FEWFIRE_ISA": "baseline"}).stdout.strip() == "baseline"


def test_versions_agree():
    pyproject = (ROOT / "pyproject.toml").read_text()
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r'^version = "(.*)"', pyproject, re.M).group(1) == fewfire.__version__
    assert re.search(r"^version: (.*)$", citation, re.M).group(1) == fewfire.__version__


def test_the_changelog_dates_this_version_below_what_follows():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(fewfire.__version__)} - \d{{4}}-\d\d-\d\d", headings[1])


def test_every_requirement_is_pinned_exactly_and_once():
    """A range would take whatever is newest, which for torch means gigabytes for GPUs."""
    pinned = "".join(path.read_text() for path in (ROOT / "requirements").glob("*.txt"))
    assert len(re.findall(r"^torch==", pinned, re.M)) == 1
    for line in pinned.splitlines():
        assert not line or line.startswith("#") or re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9a-z.]+", line), line

"""No C++ compiler: the package still installs, warns once, and trains on the reference engine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytest.importorskip("scikit_build_core", reason="the build tools are not installed (make test installs them)")

JOB = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import fewfire as ff
    X, y = ff.problems.Parity(6, 2).sample(40, seed=0)
    run = ff.engines.Run(ff.networks.init.dense()(6, 10, seed=0), ff.engines.Schedule(ff.engines.Phase(10)), X, y)
    print(ff.engines.get_engine("auto").train([run])[0].engine)
print(ff.__file__)
print([str(warning.category.__name__) for warning in caught])
"""


def test_install_without_compiler(tmp_path):
    broken = {**os.environ, "CC": "/nonexistent/cc", "CXX": "/nonexistent/c++"}
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    build += ["--config-settings", f"build-dir={tmp_path / 'build'}", "--wheel-dir", str(tmp_path), str(ROOT)]
    done = subprocess.run(build, env=broken, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-none-any.whl")
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site)]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    assert not list(site.glob("fewfire/_core*.so"))
    assert {file.suffix for file in site.glob("fewfire/report/page/*")} == {".html", ".css", ".js"}
    # A fresh interpreter that sees the new copy first; -P and the path order keep the editable install out of the way.
    code = f"import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'ScikitBuild' not in type(f).__name__]; sys.path.insert(0, {str(site)!r})"
    job = subprocess.run([sys.executable, "-c", code + JOB], capture_output=True, text=True, cwd=tmp_path)
    assert job.returncode == 0, job.stderr
    engine, location, warned = job.stdout.splitlines()
    assert engine == "reference"
    assert Path(location).is_relative_to(site)
    assert warned == "['MissingExtensionWarning']"

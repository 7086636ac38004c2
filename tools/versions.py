"""Run the tests with other versions: the newest of every dependency, or the oldest that pyproject.toml allows.

    python3 tools/versions.py newest [--pythons 3.11 …] [--full 3.11] [--workers 2]
    python3 tools/versions.py minimum [--workers 2]

`newest` makes an environment in build/newest for each Python from 3.11 to 3.14 that is found here (in PATH or among
pyenv's), with the newest released versions that the package index has for that Python. The names come from
pyproject.toml and requirements/dev.txt, without their versions. fewfire's own dependencies are resolved first and then
pinned, so that a peer that needs an older one is left out. The whole suite runs on one Python, 3.11 where it is
found, with the torch of requirements/torch.txt (any other fetches gigabytes for GPUs); on the others runs what touches
NumPy, SciPy and scikit-learn, without torch.

`minimum` makes build/minimum on Python 3.11 from requirements/minimum.txt and runs the whole suite.

Deprecation warnings are errors in both: they are raised in the name of the caller's module, so those of NumPy, SciPy,
scikit-learn and PyTorch look like all others. What cannot hold on the oldest versions is listed in `EXCUSED`.
Uses the standard library alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
MINORS = range(11, 15)
EXTRAS = ("sweep", "plot", "tabular", "jax", "onnx")
DEPRECATIONS = (
    *("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning"),
    "numpy.exceptions.VisibleDeprecationWarning",
)
EXCUSED = ("default::pytest.PytestRemovedIn10Warning",)  # scikit-learn 1.6 parametrises its checks with an iterator
# On Pythons other than the one of the whole suite: three minutes or so on two cores.
PART = ("core", "networks", "engines", "fourier", "halfspace", "learners", "problems", "tabular", "papers")


@dataclass(frozen=True)
class Environment:
    """A virtual environment and its commands."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def create(self, interpreter: str) -> None:
        """Make it anew, with the newest pip."""
        shutil.rmtree(self.folder, ignore_errors=True)
        call(interpreter, "-m", "venv", self.folder)
        self.install("--upgrade", "pip")

    def install(self, *what: object, stop: bool = True) -> bool:
        """Install with pip; whether it succeeded."""
        return call(self.python, "-m", "pip", "install", *PIP, *what, stop=stop)

    def versions(self, *options: str) -> dict[str, dict[str, str]]:
        """What `pip list` prints, by normalised name."""
        command = [str(self.python), "-m", "pip", "--disable-pip-version-check", "list", "--format", "json", *options]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return {normalised(entry["name"]): entry for entry in json.loads(listed)}

    def test(self, *arguments: str) -> bool:
        """Run tests in the repository; whether all passed."""
        return call(self.python, "-m", "pytest", *arguments, stop=False)


PIP = ("--quiet", "--quiet", "--disable-pip-version-check")  # errors alone


def main() -> None:
    """Make the environments, run the tests, and end with status 1 where some failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=("newest", "minimum"))
    parser.add_argument("--pythons", nargs="+", default=[f"3.{minor}" for minor in MINORS], metavar="3.N")
    parser.add_argument("--full", default="3.11", metavar="3.N", help="the Python on which newest runs the whole suite")
    parser.add_argument("--workers", default="2")
    chosen = parser.parse_args()
    begun = time.monotonic()
    if chosen.which == "minimum":
        results = {"Python 3.11": minimum(chosen.workers)}
    else:
        results = newest(chosen.pythons, chosen.full, chosen.workers)
    for name, result in results.items():
        print(f"versions: {chosen.which}, {name}: {result}")
    print(f"versions: {(time.monotonic() - begun) / 60:.0f} minutes")
    if FAILED in results.values() or PASSED not in results.values():
        raise SystemExit(1)


PASSED, FAILED, MISSING = "passed", "FAILED", "not found, left out"


def newest(pythons: list[str], full: str, workers: str) -> dict[str, str]:
    """The tests with the newest versions, on every interpreter that is here."""
    folder, results = BUILD / "newest", {}
    wheels = folder / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    found = {python: find(python) for python in pythons}
    whole = full if find(full) else next((python for python in pythons if found[python]), None)
    for python, interpreter in found.items():
        if interpreter is None:
            print(f"versions: Python {python}: {MISSING}", flush=True)
            results[f"Python {python}"] = MISSING
            continue
        environment = Environment(folder / python)
        environment.create(interpreter)
        constraints = folder / f"{python}-constraints.txt"
        constraints.write_text("")
        if python == full:
            environment.install("--requirement", ROOT / "requirements" / "torch.txt")
            hold(environment, constraints, {"torch"})
        wheel = fewfire_wheel(environment, wheels, python)
        environment.install("--constraint", constraints, f"{wheel}[{','.join(EXTRAS)}]")
        hold(environment, constraints, {"torch", *dependencies()})
        left_out = install_peers(environment, constraints)
        print_versions(environment, left_out)
        options = ["-n", workers, "--dist", "worksteal"]
        options += [] if python == whole else [f"tests/{name}" for name in PART]
        results[f"Python {python}"] = PASSED if environment.test(*options) else FAILED
    return results


def minimum(workers: str) -> str:
    """The tests with the oldest versions, on the oldest Python."""
    interpreter = find("3.11")
    if interpreter is None:
        return MISSING
    environment = Environment(BUILD / "minimum")
    environment.create(interpreter)
    wheels = BUILD / "minimum-wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    wheel = fewfire_wheel(environment, wheels, "3.11")
    environment.install("--requirement", ROOT / "requirements" / "minimum.txt", wheel)
    print_versions(environment, [], outdated=False)
    filters = ["default", *(f"error::{category}" for category in DEPRECATIONS), *EXCUSED]
    overridden = "filterwarnings=" + "\n".join(filters)
    return PASSED if environment.test("-n", workers, "--dist", "worksteal", "--override-ini", overridden) else FAILED


def find(python: str) -> str | None:
    """An interpreter of this version that starts (a shim of pyenv's may have none behind it)."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    installed = sorted(pyenv.glob(f"{python}.*"), key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)])
    for name in (f"python{python}", *(str(path / "bin" / f"python{python}") for path in reversed(installed))):
        if shutil.which(name) and subprocess.run([name, "-c", "import venv"], capture_output=True).returncode == 0:
            return name
    return None


def fewfire_wheel(environment: Environment, folder: Path, python: str) -> Path:
    """fewfire from this tree, built in a folder of its own; one wheel serves Python 3.12 and all later ones."""
    kind = "cp311" if python == "3.11" else "cp312"
    if not list(folder.glob(f"*-{kind}-*.whl")):
        settings = ("--config-settings", f"build-dir={folder / 'build-{wheel_tag}'}")
        os.environ["FEWFIRE_REQUIRE_EXTENSION"] = "1"
        call(environment.python, "-m", "pip", "wheel", *PIP, "--no-deps", *settings, "--wheel-dir", folder, ROOT)
    (wheel,) = folder.glob(f"*-{kind}-*.whl")
    return wheel


def hold(environment: Environment, constraints: Path, names: set[str]) -> None:
    """Later installations keep these packages at the versions that they have."""
    found = environment.versions()
    constraints.write_text("".join(f"{name}=={found[name]['version']}\n" for name in sorted(names & found.keys())))


def install_peers(environment: Environment, constraints: Path) -> list[str]:
    """What runs the tests, and what they compare with; gives the names that do not go with the pinned versions."""
    names = sorted(required("dev"))
    if environment.install("--constraint", constraints, *names, stop=False):
        return []
    return [name for name in names if not environment.install("--constraint", constraints, name, stop=False)]


def print_versions(environment: Environment, left_out: list[str], *, outdated: bool = True) -> None:
    """One line with the versions, and what is not the newest of its kind."""
    found = environment.versions()
    described = subprocess.run([environment.python, "--version"], stdout=subprocess.PIPE, text=True).stdout.strip()
    wanted = dependencies() | required("dev") | {"torch"}
    taken = ", ".join(f"{name} {found[name]['version']}" for name in sorted(wanted & found.keys()))
    print(f"versions: {described}: {taken}", flush=True)
    if outdated:
        for name, entry in environment.versions("--outdated").items():
            print(f"versions: {name} {entry['version']} is not the newest, {entry['latest_version']}", flush=True)
    for name in left_out:
        print(f"versions: {name} does not go with these versions, left out", flush=True)


def dependencies() -> set[str]:
    """The names of what pyproject.toml requires, extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = (line for name in EXTRAS for line in project["optional-dependencies"][name])
    return {normalised(line) for line in (*project["dependencies"], *extras)} | {"distributed"}


def required(name: str) -> set[str]:
    """The names in requirements/NAME.txt."""
    lines = (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
    return {normalised(line) for line in lines if line and not line.startswith("#")}


def normalised(requirement: str) -> str:
    """The name of a requirement, as the package index spells it."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found.group()).lower()


def call(*command: object, stop: bool = True) -> bool:
    """Run a command in the repository; end where it fails and has to succeed."""
    done = subprocess.run([str(part) for part in command], cwd=ROOT)
    if stop and done.returncode != 0:
        raise SystemExit(f"versions: {' '.join(map(str, command))} failed")
    return done.returncode == 0


if __name__ == "__main__":
    main()

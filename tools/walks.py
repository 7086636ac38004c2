"""The files of fewfire that six tasks cross: written into docs/architecture.md; none may cross more than its limit.

    python tools/walks.py             write the page; exit status 1 when a walk is too long
    python tools/walks.py --check     write nothing; exit status 1 also when the page lacks a file of a walk

A file is crossed when a function in it runs. Each task runs twice in this process, and the second run counts, so that
what only happens while modules are imported is left out. `--check` leaves out walks that need a package that is not
installed; where there is one core, or no GPU, fewer files may be crossed than the page lists.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from generated_part import options, renew
from sklearn.datasets import load_breast_cancer
from sklearn.neural_network import MLPClassifier

import fewfire

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(fewfire.__file__).resolve().parent
EXAMPLE = ROOT / "examples" / "first.toml"
BEGIN, END = "<!-- walks: written by tools/walks.py -->", "<!-- end of walks -->"


def main() -> int:
    """Write the page or check it; the exit status."""
    parser = options(__doc__.splitlines()[0], "--page", ROOT / "docs" / "architecture.md")
    chosen = parser.parse_args()
    lines, wrong = [], []
    for name, walk in WALKS.items():
        if walk.needs is not None and importlib.util.find_spec(walk.needs) is None:
            print(f"{name}: left out, {walk.needs} is not installed")
            continue
        files = crossed(walk.task)
        lines.append(line(name, files))
        print(f"{name}: {len(files)} files, at most {walk.limit}")
        if len(files) > walk.limit:
            wrong.append(f"{name} crosses more than {walk.limit} files: {' '.join(files)}")
        if chosen.check:
            missing = set(files) - listed(chosen.page, name)
            wrong += [f"{chosen.page} lacks {' '.join(sorted(missing))} in {name}"] if missing else []
    if not chosen.check:
        renew(chosen.page, "\n".join([BEGIN, *lines, END]), check=False, source="the walks", tool="walks.py")
    print(*wrong, sep="\n")
    return bool(wrong)


def line(name: str, files: list[str]) -> str:
    """A walk as a list item: its files by folder, without their endings."""
    folders: dict[str, list[str]] = {}
    for file in files:
        folder, _, module = file.removesuffix(".py").rpartition("/")
        folders.setdefault(folder, []).append(module)
    parts = "; ".join(f"`{folder or '.'}`: {', '.join(modules)}" for folder, modules in folders.items())
    return f"- **{name}**, {len(files)} files. {parts}"


def listed(page: Path, name: str) -> set[str]:
    """The files that a page lists for a walk."""
    (found,) = (text for text in page.read_text(encoding="utf-8").splitlines() if text.startswith(f"- **{name}**, "))
    folders = (part.split("`: ") for part in found.partition(". ")[2].split("; "))
    return {
        f"{folder.strip('`')}/{module}.py".removeprefix("./")
        for folder, modules in folders
        for module in modules.split(", ")
    }


@dataclass(frozen=True)
class Walk:
    """A task, the most files that it may cross, and a package that it needs."""

    limit: int
    task: Callable[[], object]
    needs: str | None = None


def crossed(task: Callable[[], object]) -> list[str]:
    """Files of fewfire in which a function runs, in all threads of this process."""
    codes = set()

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    with contextlib.redirect_stdout(io.StringIO()):
        task()
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            task()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    paths = {Path(code.co_filename) for code in codes if code.co_name != "<module>"}
    return sorted(str(path.relative_to(PACKAGE)) for path in paths if path.is_relative_to(PACKAGE))


def command(*arguments: str) -> Callable[[], None]:
    """A call of `fewfire` in an empty folder."""

    def run() -> None:
        from fewfire.cli import main as fewfire_command

        arguments_before, folder = sys.argv, Path.cwd()
        with tempfile.TemporaryDirectory() as empty:
            os.chdir(empty)
            sys.argv = ["fewfire", *arguments]
            try:
                fewfire_command()
            except SystemExit as end:
                if end.code:
                    raise
            finally:
                os.chdir(folder)
                sys.argv = arguments_before

    return run


def tabular_fit() -> None:
    """A default fit and its probabilities."""
    X, y = load_breast_cancer(return_X_y=True)
    fewfire.TabularClassifier(random_state=0).fit(X[:200], y[:200]).predict_proba(X[200:])


def certified_perceptron() -> None:
    """Certificates of a perceptron of scikit-learn."""
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = (X[:, 0] > 0).astype(int)
    model = MLPClassifier((8,), max_iter=2000, random_state=0).fit(X, y)
    fewfire.certify(model, X[:20], y[:20], 0.1)


def sparsified_forward() -> None:
    """A block made sparse, and its outputs."""
    import torch

    import fewfire.torch as ft

    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)).eval()
    rows = torch.randn(4, 64)
    with torch.no_grad():
        next(model.parameters()).sub_(0.1)
        ft.sparsify(model, [rows])
        model(rows)


WALKS = {
    "demo": Walk(45, command("demo", "--quick", "--engine", "cpu")),
    "tabular fit": Walk(14, tabular_fit),
    "sparsify": Walk(15, sparsified_forward, needs="torch"),
    "certify": Walk(10, certified_perceptron),
    "sweep": Walk(40, command("sweep", "run", str(EXAMPLE), "--store", "grid.sqlite", "--engine", "cpu")),
    "reproduce": Walk(45, command("reproduce", "sublinear/activity", "-o", "out")),
}

if __name__ == "__main__":
    raise SystemExit(main())

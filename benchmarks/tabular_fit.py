"""How much faster are default fits than at an earlier commit, and do two cores help?

The earlier commit is checked out next to this one (`git archive`) and built, unless a folder with its built package is given;
both are measured in processes of their own, in turn, with `n_jobs=2`, on 1000 × 20 generated rows and 18,000 × 10 rows of covertype (generated
where the set is not at hand). Each must predict fresh rows about as well. Asked: 3× and 5× in wall time; and `n_jobs=2` 1.7× as
fast as `n_jobs=1`, or 0.9 of what two processes at a time reach. Processor time is printed as well: it does not depend on what else uses the machine.

    FEWFIRE_DATA=folder python benchmarks/tabular_fit.py
    FEWFIRE_DATA=folder python benchmarks/tabular_fit.py --earlier FOLDER --repeats 5
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMIT = "d41090e"
CASES = {"1000 x 20": 3.0, "18000 x 10": 5.0}
"""Tables, and how many times faster their fits must be."""
BLAS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def table(case: str):
    """Training rows with their labels, and fresh rows with theirs."""
    from sklearn.datasets import make_classification

    rows, columns = map(int, case.split(" x "))
    if columns == 10:
        from fewfire.problems.tabular import load, split

        try:
            parts = split(load("covertype", download=False), trial=100, fraction=0.1)
            return parts.X_train, parts.y_train, parts.X_test[:10_000], parts.y_test[:10_000]
        except Exception as error:
            print(f"covertype is not at hand, rows are generated: {error}".splitlines()[0], file=sys.stderr)
    X, y = make_classification(rows + 10_000, columns, n_informative=8, flip_y=0.05, random_state=0)
    return X[:rows], y[:rows], X[rows:], y[rows:]


def work(case: str, jobs: int, source: Path) -> None:
    """One fit by the package in a folder; its figures on the last line."""
    if source != ROOT / "src":  # an editable installation of this checkout would be found before it
        sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
    import numpy as np

    import fewfire as ff

    if not Path(ff.__file__).resolve().is_relative_to(source.resolve()):
        raise SystemExit(f"{source} was to be measured, but {ff.__file__} was found first")
    X, y, fresh, labels = table(case)
    ff.TabularClassifier(random_state=0, scaling="standard", gains="none").fit(X[:200], y[:200])  # all is loaded
    wall, processor = time.perf_counter(), time.process_time()
    model = ff.TabularClassifier(random_state=0, n_jobs=jobs).fit(X, y)
    figures = {"wall": time.perf_counter() - wall, "processor": time.process_time() - processor}
    begin = time.process_time()
    right = float(np.mean(model.predict(fresh) == labels))
    print(json.dumps({**figures, "predict": time.process_time() - begin, "right": right}))


def start(source: Path, case: str, jobs: int) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--work", case, "--jobs", str(jobs), "--source", str(source)]
    return subprocess.Popen(
        command, env={**os.environ, **BLAS, "PYTHONPATH": str(source)}, stdout=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> dict[str, float]:
    out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a fit failed: {process.args}")
    return json.loads(out.splitlines()[-1])


def build_earlier(folder: Path) -> Path:
    """Check the earlier commit out into a folder and build its extension; where its package lies."""
    archive = subprocess.run(["git", "-C", ROOT, "archive", COMMIT], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    build, python = folder / "build", f"-DPython_EXECUTABLE={sys.executable}"
    subprocess.run(["cmake", "-S", folder, "-B", build, "-DCMAKE_BUILD_TYPE=Release", python], check=True)
    subprocess.run(["cmake", "--build", build, "-j2"], check=True)
    for module in build.glob("_core*"):
        module.rename(folder / "src/fewfire" / module.name)
    return folder / "src"


def median(runs: list[dict[str, float]], what: str) -> float:
    return statistics.median(run[what] for run in runs)


def compare(case: str, earlier: Path, repeats: int) -> dict[str, float]:
    """Fits of both commits in turn."""
    runs: dict[str, list[dict[str, float]]] = {"earlier": [], "now": []}
    for _ in range(repeats):
        for name, source in (("earlier", earlier), ("now", ROOT / "src")):
            runs[name].append(finish(start(source, case, 2)))
    told = {f"{name}_{what}": median(runs[name], what) for name in runs for what in ("wall", "processor", "right")}
    ratios = {what: told[f"earlier_{what}"] / told[f"now_{what}"] for what in ("wall", "processor")}
    predict = median(runs["earlier"], "predict") / median(runs["now"], "predict")
    print(
        f"{case}, n_jobs=2: {told['earlier_wall']:.1f} s then, {told['now_wall']:.1f} s now: {ratios['wall']:.1f}× "
        f"({ratios['processor']:.1f}× in processor time); fresh rows right {told['earlier_right']:.4f}, "
        f"{told['now_right']:.4f}; predictions {predict:.1f}×"
    )
    return {**told, "ratio": ratios["wall"], "processor_ratio": ratios["processor"], "predict_ratio": predict}


def two_cores(case: str, repeats: int) -> dict[str, float]:
    """What n_jobs=2 brings, and what two fits at a time do."""
    alone, both, pairs = [], [], []
    for _ in range(repeats):
        alone.append(finish(start(ROOT / "src", case, 1))["wall"])
        both.append(finish(start(ROOT / "src", case, 2))["wall"])
        pair = [start(ROOT / "src", case, 1) for _ in range(2)]
        pairs.append(statistics.mean(finish(process)["wall"] for process in pair))
    one = statistics.median(alone)
    gain, reach = one / statistics.median(both), 2 * one / statistics.median(pairs)
    print(f"{case}: n_jobs=2 is {gain:.2f}× n_jobs=1; two processes at a time do {reach:.2f}× the work of one")
    return {"gain": gain, "two_processes": reach}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--earlier", type=Path, help="folder with the built package of the earlier commit")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cases", default=",".join(CASES), help="tables, separated by commas")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments.work, arguments.jobs, arguments.source)
        return 0
    cases = arguments.cases.split(",")
    with tempfile.TemporaryDirectory() as folder:
        earlier = arguments.earlier or build_earlier(Path(folder))
        figures = {case: compare(case, earlier, arguments.repeats) for case in cases}
    cores = two_cores(cases[0], arguments.repeats)
    missed = any(
        figures[case]["ratio"] < CASES[case] or figures[case]["now_right"] < figures[case]["earlier_right"] - 0.01
        for case in cases
    )
    missed |= cores["gain"] < min(1.7, 0.9 * cores["two_processes"])
    rounded = {case: {name: round(value, 4) for name, value in told.items()} for case, told in figures.items()}
    result = {
        "name": "tabular_fit",
        "ratio": round(min(told["ratio"] for told in figures.values()), 2),
        "threads": 2,
    }
    print(json.dumps({**result, "earlier": COMMIT, "figures": rounded, "cores": cores, "asked": CASES}))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

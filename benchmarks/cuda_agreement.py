"""Do the cuda and the cpu engine succeed equally often?

200 runs on each of ten cells of parities whose success lies between 0 and 1: dense and sparse starts, k = 3 and 4, four
layouts of the kernels, training sets and fresh examples. Each cell is judged by Fisher's exact test, two-sided; the
smallest p, times the number of cells, has to be above 0.01 (Bonferroni). Both engines train the very same runs, so the
runs that end differently are counted too, which a test of shares would not see.

Two halves, because a machine with a GPU need not have the C++ part:

    python benchmarks/cuda_agreement.py cpu counts.json     # a few minutes of one core
    python benchmarks/cuda_agreement.py cuda counts.json    # reads the first half and judges
"""

from __future__ import annotations

import json
import sys
from math import comb, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

from fewfire.engines import get_engine
from fewfire.experiments import RunSpec, Sweep

TRIALS, LEVEL, SUCCESS = 200, 0.01, 0.1
SPARSE = {"name": "sparse", "s": 2}
# n, k, width, start, samples, steps
CELLS: tuple[tuple[int, int, int, Any, int | str, int], ...] = (
    (30, 3, 10, "dense", 600, 5000),
    (30, 3, 100, SPARSE, 450, 5000),
    (30, 3, 300, SPARSE, 450, 4000),
    (40, 3, 30, "dense", 1000, 5000),
    (40, 3, 30, SPARSE, 1000, 5000),
    (20, 4, 100, "dense", 250, 5000),
    (30, 4, 10, "dense", 1000, 5000),
    (30, 4, 10, SPARSE, "online", 5000),
    (30, 4, 100, "dense", 700, 5000),
    (30, 4, 100, SPARSE, 600, 5000),
)


def label(cell: tuple[Any, ...]) -> str:
    n, k, width, start, samples, _ = cell
    kind = start if isinstance(start, str) else start["name"]
    return f"({n}, {k}) width {width} {kind} m = {samples}"


def specs(cell: tuple[Any, ...]) -> list[RunSpec]:
    n, k, width, start, samples, steps = cell
    sweep = Sweep.from_dict(
        {
            "problem": {"name": "parity", "n": n, "k": k},
            "network": {"start": start, "width": width},
            "data": {"samples": samples, "test_samples": 1000},
            "training": {
                "steps": steps,
                "learning_rate": 0.1,
                "weight_decay": 0.01,
                "evaluate": 250,
                "stop_error": SUCCESS,
            },
            "trials": TRIALS,
        }
    )
    return list(sweep.runs())


def successes(engine: str) -> dict[str, str]:
    """For each cell a digit per run: 1 for a success."""
    trainer, found = get_engine(engine, threads=None if engine == "cuda" else 1), {}
    for cell in CELLS:
        results = trainer.train([spec.describe() for spec in specs(cell)], keep_networks=False, on_divergence="record")
        found[label(cell)] = "".join(str(int(result.stopped == "test_error")) for result in results)
        print(f"{label(cell)}: {found[label(cell)].count('1')} of {TRIALS} with the {engine} engine", flush=True)
    return found


def fisher(a: int, b: int, trials: int) -> float:
    """Fisher's exact test of a against b successes out of as many trials, two-sided, in whole numbers."""
    total = a + b
    ways = {i: comb(trials, i) * comb(trials, total - i) for i in range(max(0, total - trials), min(trials, total) + 1)}
    return sum(way for way in ways.values() if way <= ways[a]) / sum(ways.values())


def noticed(share: float, trials: int, level: float, power: float = 0.8) -> float:
    """The difference from this share that a two-sided test at this level would notice with this power."""
    z = NormalDist().inv_cdf
    return (z(1 - level / 2) + z(power)) * sqrt(2 * share * (1 - share) / trials)


def judge(cpu: dict[str, str], cuda: dict[str, str]) -> int:
    figures: dict[str, Any] = {}
    for cell in CELLS:
        name = label(cell)
        a, b = cpu[name].count("1"), cuda[name].count("1")
        differ = sum(one != other for one, other in zip(cpu[name], cuda[name], strict=True))
        figures[name] = {"cpu": a, "cuda": b, "p": round(fisher(a, b, TRIALS), 4), "runs_that_differ": differ}
        print(f"{name}: cpu {a}, cuda {b} of {TRIALS}, p = {figures[name]['p']}; {differ} runs end differently")
        assert 0 < a < TRIALS, "a cell where all or none succeed says nothing"
    worst = min(1.0, min(figure["p"] for figure in figures.values()) * len(CELLS))
    difference = noticed(0.5, TRIALS, LEVEL / len(CELLS))
    print(f"A difference of {difference:.0%} around one half would be noticed in 8 of 10 tries")
    verdict = {"name": "cuda_agreement", "p": round(worst, 4), "asked": LEVEL, "noticed": round(difference, 3)}
    print(json.dumps({**verdict, "trials": TRIALS, "figures": figures}))
    return int(worst <= LEVEL)


def main() -> int:
    engine, path = sys.argv[1], Path(sys.argv[2])
    if engine == "cpu":
        path.write_text(json.dumps(successes("cpu"), indent=1) + "\n")
        return 0
    return judge(json.loads(path.read_text()), successes("cuda"))


if __name__ == "__main__":
    sys.exit(main())

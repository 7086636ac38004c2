"""The frontier of n = 50 on a GPU, found by a search, compared with the grid's.

For k = 3 and 4, five widths and two starts: the number of examples at which half of the runs succeed within 10⁵ steps,
each to ±15% at 95% (`examples/frontier_gpu.toml`); for comparison the same curve fitted to a grid of 17 sample sizes from 300
to 10,000 with 50 trials each, trained by the same engine. Asked: every frontier of the search located as narrowly as
that, and no more of the twenty pairs of intervals apart than chance allows (two 95% intervals of independent estimates
of one number are apart with probability below 1%: at most 2 of 20).

    python benchmarks/frontier_gpu.py [--out docs/results] [--engine cuda]

With `--out` it writes frontier_gpu.json and frontier_gpu.md there. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from fewfire.sweeps import MemoryStore, Sweep, cells, estimate_frontier, found_frontiers

SPEC = Path(__file__).parent.parent / "examples" / "frontier_gpu.toml"
COLUMNS = tuple(int(m) for m in np.unique(np.round(np.geomspace(300, 10_000, 17), -1)))
TRIALS = 50
ASKED = 1.15**2
APART = 2

PAGE = """# The frontier of n = 50, by search and by grid

For readers who ask what a [search for a frontier](../sweeps.md#searching-for-a-frontier) saves against a grid.

`python benchmarks/frontier_gpu.py --out docs/results`: the number of examples at which half of the networks learn
the parity of k of 50 bits to 10% test error within 10⁵ steps, with 95% intervals. The search took {search} runs in
{search_s:.0f} s, a grid of {columns} sample sizes and {trials} trials each {grid} runs in {grid_s:.0f} s, on one {device}.
{narrow} of {count} frontiers of the search are as narrow as ±15%; {met} of {count} meet the grid's interval.

| k | start | width | by search | runs | by grid | runs |
| --- | --- | --- | --- | --- | --- | --- |
{rows}
"""


def as_grid() -> Sweep:
    """The grid that the search leaves out."""
    table = tomllib.loads(SPEC.read_text())
    del table["search"]
    table["data"]["samples"] = list(COLUMNS)
    return Sweep.from_dict(table | {"trials": TRIALS})


def told(one: Any) -> str:
    return f"{one.value:,.0f} ({one.low:,.0f} to {one.high:,.0f})"


def ends(one: Any) -> dict[str, Any]:
    return {"value": round(one.value, 1), "low": round(one.low, 1), "high": round(one.high, 1), "runs": one.runs}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--engine", default="cuda")
    given = parser.parse_args()
    looking = Sweep.from_toml(SPEC)
    store, kept = MemoryStore(), MemoryStore()
    began = time.perf_counter()
    looking.run(store, engine=given.engine)
    searched = time.perf_counter()
    whole = as_grid()
    whole.run(kept, engine=given.engine)
    seconds = {"search": searched - began, "grid": time.perf_counter() - searched}
    counts = {
        (cell.setting.problem["k"], cell.setting.start["name"], cell.setting.width, cell.setting.samples): cell
        for cell in cells(kept, whole.success_error)
    }
    found, rows, narrow, met = [], [], 0, 0
    for one in found_frontiers(looking, store):
        key = (one.spec.problem.k, one.spec.start.name, one.spec.width)
        row = [counts[*key, m] for m in COLUMNS]
        fitted = estimate_frontier(COLUMNS, [cell.successes for cell in row], [cell.runs for cell in row], level=0.95)
        narrow += one.estimate.factor <= ASKED * (1 + 1e-9)
        met += fitted.low <= one.estimate.high and one.estimate.low <= fitted.high
        found.append(
            {"k": key[0], "start": key[1], "width": key[2], "search": ends(one.estimate), "grid": ends(fitted)}
        )
        cells_of_row = [*map(str, key), told(one.estimate), str(one.estimate.runs), told(fitted), str(fitted.runs)]
        rows.append(f"| {' | '.join(cells_of_row)} |")
        print(f"k = {key[0]}, {key[1]}, width {key[2]}: search {one.estimate}, {one.estimate.runs} runs; grid {fitted}")
    runs = {"search": len(store.finished()), "grid": len(kept.finished())}
    missed = [
        *(["narrow"] if narrow < len(found) else []),
        *(["met"] if len(found) - met > APART else []),
    ]
    result = {
        "name": "frontier_gpu",
        "ratio": round(runs["grid"] / runs["search"], 2),
        "runs": runs,
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "frontiers": len(found),
        "narrow": narrow,
        "met": met,
        "missed": missed,
    }
    if given.out:
        (given.out / "frontier_gpu.json").write_text(json.dumps({**result, "found": found}, indent=1) + "\n")
        (given.out / "frontier_gpu.md").write_text(
            PAGE.format(
                search=f"{runs['search']:,}",
                grid=f"{runs['grid']:,}",
                search_s=seconds["search"],
                grid_s=seconds["grid"],
                columns=len(COLUMNS),
                trials=TRIALS,
                device="H200",
                narrow=narrow,
                met=met,
                count=len(found),
                rows="\n".join(rows),
            )
        )
    print(json.dumps(result))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())

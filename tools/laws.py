"""The sweeps behind the laws of `fewfire.sweeps`, the table of their cells, and the laws fitted to it.

    python tools/laws.py sweep STORE            # the calibration on the cores: some 40 minutes on two
    python tools/laws.py table STORE …          # cells of these stores: calibration.csv and calibration.json
    python tools/laws.py random STORE           # random_cells.csv, between those: some 10 minutes on one core
    python tools/laws.py spread FILE            # spread_cells.csv, of `benchmarks/diagnose.py fresh FILE --seed 1`
    python tools/laws.py fit                    # laws of these tables: frontier_law.json and success_laws.json

The cells of `spread` were drawn where the fit before this scaling left the outcome in doubt, so drawing them again by
the shipped law gives somewhat other ones. `table` also takes the store of `examples/figure4_part.toml` (24,000 runs on
a GPU). benchmarks/diagnose.py tests the laws.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from success_law import fit_success_law, law_table, spread

from fewfire._errors import FileFormatError
from fewfire._random import Stream
from fewfire.sweeps import SqliteStore, Sweep
from fewfire.sweeps.laws import fit_law, parity_cells
from fewfire.sweeps.laws._cells import ParityCell, merged_cells

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGE = Path(__file__).parents[1] / "src" / "fewfire" / "sweeps" / "laws"
START_TABLES = {"dense": {"name": "dense"}, "sparse(2)": {"name": "sparse", "s": 2}}
SHARES = (0.35, 0.6, 0.85, 1.2, 1.7, 3, 8, 30, 100)
ORIGIN = {2: (70, 1.0), 3: (450, 1.5), 4: (550, 1.8)}
"""Samples at n = 30 and a power of n: where frontiers were expected, the middle of the columns."""

PARTS = (
    ((3, 10, 30), 32_000, {2: 8, 3: 8, 4: 8}),
    ((100,), 32_000, {2: 4, 3: 8, 4: 8}),
    ((300,), 16_000, {2: 4, 3: 4, 4: 4}),
    ((1000,), 8000, {2: 4, 3: 4, 4: 4}),
)
"""Widths, steps, trials by k."""

LARGEST = 100
"""The largest n of success laws: at n = 200 SGD forgets its start before it learns where examples hardly repeat."""

NARROWEST = 10
"""The smallest width of the law of data: at width 3 many runs fail however much data there is."""

RANDOM_CELLS, RANDOM_RUNS, RANDOM_WIDEST = 763, 16, 300
DEAREST = 4e7
"""The most that inputs times width times steps may be in a random cell."""

TRAINING = {"learning_rate": 0.1, "weight_decay": 0.01, "stop_error": 0.1}


def expected(n: int, k: int) -> float:
    """Samples where the frontier was expected before anything was measured."""
    base, power = ORIGIN[k]
    return float(base * (n / 30) ** power)


def two_digits(value: float) -> int:
    """A number of samples rounded to two digits."""
    return int(float(f"{value:.2g}"))


def calibration_sweeps() -> Iterator[Sweep]:
    """The grid of the calibration, part by part."""
    for widths, steps, trials in PARTS:
        for k in (3, 4, 2):
            for n in (30, 20, 15, 50):
                if widths == (1000,) and n == 50 and k > 2:
                    continue  # Figure 4 has these
                yield calibration_sweep(n, k, widths, SHARES, steps, trials[k])
    # Wide networks that have time, close below their frontier.
    yield calibration_sweep(30, 3, (300, 1000), (0.65, 0.75), 32_000, 4)


def calibration_sweep(
    n: int, k: int, widths: tuple[int, ...], shares: tuple[float, ...], steps: int, trials: int
) -> Sweep:
    """One problem of the grid."""
    return Sweep.from_dict(
        {
            "name": f"laws: ({n}, {k}), widths {min(widths)} to {max(widths)}",
            "problem": {"name": "parity", "n": n, "k": k},
            "network": {"start": list(START_TABLES.values()), "width": list(widths)},
            "data": {
                "samples": sorted({two_digits(expected(n, k) * share) for share in shares}),
                "test_samples": 1000,
            },
            "training": {"steps": steps, "evaluate": 125 if k == 2 else 250, **TRAINING},
            "trials": trials,
        }
    )


def random_cell(number: int) -> Sweep:
    """A cell between those of the grid: width, samples and steps at random, at the grid's own n."""
    draw = Stream(32, "laws/random").child(str(number)).uniform(7)
    k = 2 + int(draw[0] * 3)
    inputs = (15, 20, 30, 50, 100)[: 4 if k == 2 else 5]
    n = inputs[int(draw[1] * len(inputs))]
    least = 10 if n == LARGEST else 3
    width = round(least * (RANDOM_WIDEST / least) ** draw[2])
    share = 0.4 * 7.5 ** draw[4] if draw[3] < 0.5 else 3 * 33 ** draw[4]
    steps = min(2000 * 6 ** draw[5], DEAREST / (n * width))
    return Sweep.from_dict(
        {
            "name": f"laws: random cell {number}",
            "problem": {"name": "parity", "n": n, "k": k},
            "network": {"start": list(START_TABLES.values())[int(draw[6] * 2)], "width": width},
            "data": {"samples": two_digits(expected(n, k) * share), "test_samples": 1000},
            "training": {"steps": 1000 * max(round(steps / 1000), 1), "evaluate": 125, **TRAINING},
            "trials": RANDOM_RUNS,
        }
    )


def make_table(name: str, paths: list[Path]) -> None:
    """Write the cells of these stores, and where they come from, into the package."""
    found: list[ParityCell] = []
    sources = []
    for path in paths:
        with SqliteStore(path) as store:
            here = parity_cells(store)
            found += here
            engines = sorted(set(store.columns()["engine"].tolist()))
            names = sorted({record.name for record in store.sweeps()})
        names = names if len(names) <= 3 else [names[0], "…", names[-1]]
        runs = sum(cell.runs for cell in here)
        sources.append({"sweeps": names, "engines": engines, "cells": len(here), "runs": runs, "table": name})
    write_table(name, merged_cells(found), sources)


def make_spread(path: Path) -> None:
    """The same with fresh cells of `benchmarks/diagnose.py`."""
    found = []
    for line in path.read_text().splitlines():
        one = json.loads(line)
        place, won = one["cell"], one["won"]
        shape = (place["n"], place["k"], place["start"], place["width"], place["samples"])
        found.append(ParityCell(*shape, len(won), (place["steps"],), (sum(won),)))
    runs = sum(cell.runs for cell in found)
    source = {"sweeps": ["fresh cells, seed 1"], "engines": ["cpu"], "cells": len(found), "runs": runs}
    write_table("spread_cells.csv", found, [source | {"table": "spread_cells.csv"}])


def write_table(name: str, cells: list[ParityCell], sources: list[dict]) -> None:
    """One table of the package, with the origin of all."""
    sources = [source for source in provenance()["sources"] if source["table"] != name] + sources
    (PACKAGE / name).write_text(cells_to_csv(cells), encoding="utf-8")
    told = {
        "what": "successes of sweeps of noiseless parities by cell and number of steps; "
        "an empty field was not looked at",
        "schedule": "hinge loss, learning rate 0.1, weight decay 0.01 (coupled), batches of 32 with replacement",
        "success": "a test error of at most 0.1 at a recorded step",
        "cells": sum(len(read(table)) for table in sorted({source["table"] for source in sources})),
        "runs": sum(source["runs"] for source in sources),
        "commands": [
            "python tools/laws.py sweep laws.sqlite",
            "fewfire sweep run examples/figure4_part.toml --store figure4.sqlite --engine cuda",
            "python tools/laws.py table laws.sqlite figure4.sqlite",
            "python tools/laws.py random random.sqlite",
            "python benchmarks/diagnose.py fresh spread.jsonl --seed 1",
            "python tools/laws.py spread spread.jsonl",
            "python tools/laws.py fit",
        ],
        "sources": sources,
    }
    (PACKAGE / "calibration.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{told['runs']:,} runs in {told['cells']:,} cells")


def read(name: str) -> list[ParityCell]:
    """A table of the package."""
    return cells_from_csv((PACKAGE / name).read_text(encoding="utf-8"))


def cells_to_csv(cells: Iterable[ParityCell]) -> str:
    """Cells as CSV: a column per number of steps, empty where runs were not evaluated then; samples may be online."""
    cells = list(cells)
    grid = sorted({t for cell in cells for t in cell.steps})
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["n", "k", "start", "width", "samples", "runs", *grid])
    for cell in cells:
        counts = ["" if (count := cell.at(t)) is None else count for t in grid]
        samples = "online" if cell.samples is None else cell.samples
        writer.writerow([cell.n, cell.k, cell.start, cell.width, samples, cell.runs, *counts])
    return text.getvalue()


def cells_from_csv(text: str) -> list[ParityCell]:
    """The cells of a CSV that `cells_to_csv` wrote."""
    rows = list(csv.reader(StringIO(text)))
    try:
        grid = [int(title) for title in rows[0][6:]]
        found = []
        for n, k, start, width, samples, runs, *counts in rows[1:]:
            seen = [(t, int(count)) for t, count in zip(grid, counts, strict=True) if count]
            steps, successes = (tuple(part) for part in zip(*seen, strict=True))
            size = None if samples == "online" else int(samples)
            found.append(ParityCell(int(n), int(k), start, int(width), size, int(runs), steps, successes))
    except (ValueError, IndexError) as error:
        raise FileFormatError(f"this is no table of cells: {error}.") from None
    return found


def provenance() -> dict:
    """Where the shipped cells come from: specs, commands, numbers of runs."""
    return json.loads((PACKAGE / "calibration.json").read_text(encoding="utf-8"))


def fit_laws() -> None:
    """Fit the law of data to the grid, whose lines bracket frontiers, and success laws to the random cells as well."""
    table = read("calibration.csv") + read("random_cells.csv")
    kinds = sorted({(cell.k, cell.start) for cell in table})
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        kin = [[c for c in table if (c.k, c.start) == kind and c.n <= LARGEST] for kind in kinds]
        others = [[c for c in read("spread_cells.csv") if (c.k, c.start) == kind] for kind in kinds]
        fits = pool.map(fit_one, kin, others)
        law = fit_law(cell for cell in read("calibration.csv") if cell.width >= NARROWEST)
        (PACKAGE / "frontier_law.json").write_text(json.dumps(law.to_dict()) + "\n", encoding="utf-8")
        print(f"law of data: {len(law.points)} frontiers, scatter {law.spread:.3f}", flush=True)
        rows = ",\n".join(fits)
    (PACKAGE / "success_laws.json").write_text(f"[{rows}]\n", encoding="utf-8")


def fit_one(kin: list[ParityCell], others: list[ParityCell]) -> str:
    """The success law of one number of bits and one start, as JSON."""
    law = spread(fit_success_law(kin), others)
    print(f"success law: k = {law.k}, {law.start}, {len(kin)} cells", flush=True)
    return json.dumps(law_table(law), ensure_ascii=False, separators=(",", ":"))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["sweep", "table", "random", "spread", "fit"])
    parser.add_argument("paths", nargs="*", type=Path)
    told = parser.parse_args()
    if told.command == "sweep":
        for sweep in calibration_sweeps():
            print(sweep.name, sweep.run(told.paths[0], engine="cpu").total, flush=True)
    elif told.command == "random":
        for number in range(RANDOM_CELLS):
            sweep = random_cell(number)
            print(sweep.name, sweep.run(told.paths[0], engine="cpu", workers=1).total, flush=True)
        make_table("random_cells.csv", told.paths)
    elif told.command == "spread":
        make_spread(told.paths[0])
    elif told.command == "table":
        make_table("calibration.csv", told.paths)
    else:
        fit_laws()
    return 0


if __name__ == "__main__":
    sys.exit(main())

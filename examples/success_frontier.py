"""Width buys data: success of SGD on a sparse parity, by width and number of samples, sparse beside dense start.

pareto, Figure 1 in small: (n, k) = (30, 3), 10 runs a cell. Prints the two tables; with a file name it
also draws them (pip install 'fewfire[plot]').

    python examples/success_frontier.py [frontier.png]
"""

from __future__ import annotations

import sys

import numpy as np

import fewfire as ff
from fewfire.engines import Phase, Run, Schedule

PROBLEM = ff.problems.Parity(30, 3)
WIDTHS = (10, 30, 100, 300, 1000)
SAMPLES = (200, 300, 400, 500, 700, 1000)
STARTS = {"dense start": ff.networks.init.dense(), "2-sparse start": ff.networks.init.sparse(2)}
TRIALS = 10
SCHEDULE = Schedule(Phase(20_000, learning_rate=0.1, weight_decay=0.01), evaluate=2000, stop_error=0.1)


def run(start, width: int, samples: int, trial: int) -> Run:
    X, y = PROBLEM.sample(samples, seed=trial)
    X_test, y_test = PROBLEM.sample(2000, seed=10_000 + trial)
    return Run(start(PROBLEM.n, width, seed=trial), SCHEDULE, X, y, X_test, y_test, seed=trial)


def success() -> dict[str, np.ndarray]:
    engine, tables = ff.engines.get_engine("auto"), {}
    for name, start in STARTS.items():
        cells = [(w, m, t) for w in WIDTHS for m in SAMPLES for t in range(TRIALS)]
        results = engine.train([run(start, *cell) for cell in cells])
        errors = np.array([result.test_error for result in results]).reshape(len(WIDTHS), len(SAMPLES), TRIALS)
        tables[name] = (errors <= 0.1).mean(axis=2)
    return tables


def draw(tables: dict[str, np.ndarray], path: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for axis, (name, table) in zip(axes, tables.items(), strict=True):
        image = axis.imshow(table, origin="lower", cmap="viridis", vmin=0, vmax=1, aspect="auto")
        axis.set_xticks(range(len(SAMPLES)), SAMPLES)
        axis.set_yticks(range(len(WIDTHS)), WIDTHS)
        axis.set_xlabel("training examples")
        axis.set_title(name)
        for (i, j), value in np.ndenumerate(table):
            axis.text(j, i, f"{value:.0%}", ha="center", va="center", color="black" if value > 0.6 else "white")
    axes[0].set_ylabel("neurons")
    figure.suptitle("Share of runs that learn a parity of 3 hidden bits among 30")
    figure.colorbar(image, ax=axes, label="success")
    figure.savefig(path, dpi=130)


def main() -> None:
    tables = success()
    for name, table in tables.items():
        print(f"{name}: success by width (rows) and samples (columns)")
        print("width  " + "".join(f"{m:>7}" for m in SAMPLES))
        for width, row in zip(WIDTHS, table, strict=True):
            print(f"{width:>5}  " + "".join(f"{value:>7.0%}" for value in row))
    if len(sys.argv) > 1:
        draw(tables, sys.argv[1])


if __name__ == "__main__":
    main()

"""
Width buys data
===============

Which networks learn a parity of three hidden bits among 30? A grid over width and number of examples, eight networks
per cell, from a dense start and from one in which each neuron sees two inputs (pareto, Figure 1, in small).
"""

from textwrap import fill

from fewfire import report
from fewfire.sweeps import MemoryStore, Sweep

# %%
# The grid
# --------
#
# A sweep is a table, the same as in the TOML file that ``fewfire sweep run`` reads. Lists make a grid.

sweep = Sweep.from_dict(
    {
        "name": "Width buys data: (30, 3)-parity",
        "problem": {"name": "parity", "n": 30, "k": 3},
        "network": {"start": ["dense", {"name": "sparse", "s": 2}], "width": [30, 100, 300]},
        "data": {"samples": [300, 350, 400, 450, 500, 600]},
        "training": {"steps": 8000, "weight_decay": 0.01, "evaluate": 250, "stop_error": 0.1},
        "trials": 8,
    }
)
sweep

# %%
# The runs
# --------
#
# Every run is kept as it ends; given a path instead of ``MemoryStore()``, a sweep that was stopped goes on when it is
# run again. ``progress=True`` shows one bar, in a notebook and on a terminal.

store = MemoryStore()
state = sweep.run(store, progress=True)
store

# %%
# The frontier
# ------------
#
# Success rises with width and with data. The black line is where half of the runs succeed, the bars
# are its 95% intervals.

(group,) = report.frontier_info(store)
report.plot_frontier(group)

# %%
# The same as a line per start:

report.plot_even_odds(group)

# %%
# What do the runs support? Each finding comes from a test over all cells, not from a look at the map.

for finding in report.findings_info(group):
    print(fill(finding.text, 80))

# %%
# One cell
# --------
#
# Training and test error of the eight runs of a cell. The training error (dashed) falls long before the test error.

cells = report.curves_info(store)
report.plot_curves(group, cells, width=100, samples=500)

# %%
# All runs are one table away: ``store.to_frame()`` gives a pandas frame with every setting as a column, and
# ``fewfire report STORE -o page.html`` writes all of this as one page. The rest is in :doc:`../sweeps`.

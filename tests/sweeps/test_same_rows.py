"""Hashes of runs and rows of the demo are the same on every processor: digests made once are those of today."""

import hashlib

from fewfire.cli.demo import DemoGrid, hidden_parity, sweep_of
from fewfire.engines._result import ARITHMETIC
from fewfire.sweeps import MemoryStore

GRID = DemoGrid((10, 100), (300, 1000), 1)
HASHES = "1596730c9a2fdedd"
ROWS = {2: "83f9bce2c1e3f2e0"}


def test_hashes_of_the_demo():
    found = sorted(spec.hash for spec in sweep_of(hidden_parity(30, 3, 0), GRID, 8000).runs())
    assert (len(found), hashlib.sha256("".join(found).encode()).hexdigest()[:16]) == (8, HASHES)


def test_rows_of_the_demo(core):
    """Eight of the runs whose table README prints, to the bit, on every instruction set and by two processes."""
    sweep, found = sweep_of(hidden_parity(30, 3, 0), GRID, 8000), set()
    for isa in (*core.available_isas(), None):
        if isa is not None:
            core.set_isa(isa)
        store = MemoryStore()
        sweep.run(store, engine="cpu", executor="processes" if isa is None else "inline", workers=2)
        rows = repr([row.outcome() for row in store.rows()])
        found.add(hashlib.sha256(rows.encode()).hexdigest()[:16])
    assert found == {ROWS[ARITHMETIC]}, "the arithmetic has changed: raise ARITHMETIC, and enter the digest here"

"""A store that an earlier version filled: its runs are found again, and what they were made of is drawn again.

`recorded/store.sqlite` holds the sweep of `recorded/sweep.toml`; `recorded/digests.json` the hashes of what each run
drew: examples, held-out examples, initial weights and the batch after 24 examples. All were written before runs were
described instead of drawn. A change of either file's meaning would make users' stores compute everything anew.
"""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fewfire.engines._run import draw_batch
from fewfire.sweeps import MemoryStore, SqliteStore, Sweep

FOLDER = Path(__file__).parent / "recorded"
SWEEP = Sweep.from_toml(FOLDER / "sweep.toml")


def digest(*arrays):
    total = hashlib.blake2b(digest_size=8)
    for array in arrays:
        total.update(str((array.dtype.str, array.shape)).encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def drawn_digests(run):
    network = run.network
    if run.source is None:
        data = digest(run.X, run.y)
        batches = digest(draw_batch(run.schedule.sampling, run.stream, len(run.X), 8, 24))
    else:
        data = None
        batches = digest(*map(np.asarray, run.source.sample(8, run.stream.child("online"), start=24)))
    return {
        "data": data,
        "test": digest(run.X_test, run.y_test),
        "start": digest(network.hidden, network.bias, network.output, np.array(network.offset)),
        "batches": batches,
    }


def test_nothing_is_computed_again(tmp_path):
    path = tmp_path / "runs.sqlite"
    shutil.copy(FOLDER / "store.sqlite", path)
    with SqliteStore(path) as store:
        before = {row.hash: row.outcome() for row in store.rows()}
    state = SWEEP.run(path)
    assert (state.total, state.already, state.ran, state.successes, state.diverged) == (72, 72, 0, 15, 24)
    with SqliteStore(path) as store:
        assert {row.hash: row.outcome() for row in store.rows()} == before
        told = SWEEP.to_dict()
        then = [{key: value for key, value in data.items() if key != "test_labels"} for data in told["data"]]
        assert store.sweeps()[0].spec == told | {"data": then}  # there was no such key


def test_every_run_draws_what_it_drew():
    expected = json.loads((FOLDER / "digests.json").read_text())
    assert {spec.hash: drawn_digests(spec.describe().drawn()) for spec in SWEEP.runs()} == expected


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_every_run_ends_as_it_ended(engine):
    """Trained anew, on any engine: the same endings and, to rounding, the same errors."""
    again = MemoryStore()
    SWEEP.run(again, engine=engine, executor="inline")
    with SqliteStore(FOLDER / "store.sqlite") as store:
        old, new = store.columns(), again.columns()
    for name in ("hash", "status", "stopped", "trial"):
        assert np.array_equal(old[name], new[name]), name
    done = old["status"] == "done"
    assert np.array_equal(old["steps"][done], new["steps"][done])
    assert np.allclose(old["train_loss"][done], new["train_loss"][done], rtol=1e-4, atol=1e-5, equal_nan=True)
    assert np.allclose(old["test_error"][done], new["test_error"][done], atol=1e-3, equal_nan=True)

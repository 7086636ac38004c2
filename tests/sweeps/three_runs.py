"""A store file with three runs, which tests of files and of writers share."""

from fewfire.sweeps import SqliteStore
from fewfire.testing._sweeps import made_up_row, outcomes


def three_runs(folder):
    """Make it; gives its path."""
    path = folder / "runs.sqlite"
    with SqliteStore(path, write=True) as store:
        store.add([made_up_row(trial) for trial in range(3)])
    return path


def kept(path):
    """Whether all three are as they were."""
    with SqliteStore(path) as store:
        return outcomes(store) == sorted(made_up_row(trial).outcome() for trial in range(3))

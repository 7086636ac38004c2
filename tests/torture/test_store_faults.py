"""A store whose writer is killed, whose disk fails or whose machine loses power, at every system call it makes.

What was reported as kept must be there, once and unchanged; what was not may be there whole or not at all; and the same
work done again must end in the store of an undisturbed writer.
"""

import shutil

import pytest
from faults import ERRORS, FAILURES, KILLS, PowerLoss, Victim, quick_folder, read_log
from victim import BATCHES, ROWS, SIZE

from fewfire._errors import StoreError
from fewfire.sweeps import MemoryStore, SqliteStore, Sweep
from fewfire.testing._sweeps import outcomes, tiny_table

EXPECTED = {row.hash: row.outcome() for rows in ROWS for row in rows}


@pytest.fixture(scope="module")
def victim(tmp_path_factory):
    with Victim(tmp_path_factory.mktemp("disk")) as process:
        yield process


@pytest.fixture
def folder(tmp_path):
    with quick_folder(tmp_path) as quick:
        yield quick


def check(path, kept):
    """Every batch is there whole or not at all, and those in `kept` are; gives the number of rows."""
    try:
        with SqliteStore(path) as store:
            rows = list(store.rows())
            measured = {found.hash for found in store.measurements()}
            assert next(store._read("PRAGMA integrity_check")) == ("ok",)
            assert next(store._read("SELECT count(*) FROM histories")) == (len(rows),)
    except StoreError as error:
        assert not kept and ("there is no store" in str(error) or "is empty" in str(error)), error
        return 0
    found = {row.hash: row.outcome() for row in rows}
    assert len(found) == len(rows), "a row is there twice"
    assert found.items() <= EXPECTED.items(), "a row has changed"
    for batch in range(BATCHES):
        there = sum(row.hash in found for row in ROWS[batch])
        assert there in ((SIZE,) if batch in kept else (0, SIZE)), f"batch {batch} has {there} of {SIZE} rows"
    assert len(measured) >= len(kept)
    return len(rows)


def finish(victim, path):
    """The same work again, undisturbed, on whatever was left."""
    kept, refused, signal, _ = victim("store", path=path)
    assert (kept, refused, signal) == (list(range(BATCHES)), [], 0)
    assert check(path, range(BATCHES)) == BATCHES * SIZE
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def counted(victim, folder):
    folder.mkdir()
    calls = victim("store", path=folder / "runs.sqlite")[3]
    assert calls > 30
    return calls


@pytest.mark.least({"store kills": 90})
def test_writers_that_are_killed(victim, folder, rounds, draw, tally):
    """Killed at one call after the other, then several times in a row, until the work is done."""
    calls = counted(victim, folder / "whole")
    for number in rounds:
        path = folder / str(number) / "runs.sqlite"
        path.parent.mkdir()
        kept, at = set(), number % calls
        for action in [KILLS[name] for name in draw.permutation(list(KILLS))]:
            new, refused, signal, _ = victim("store", path=path, at=at, action=action)
            kept |= set(new)
            assert not refused
            tally("store kills", int(signal == 9))
            check(path, kept)
            at = int(draw.integers(calls))
        finish(victim, path)
        shutil.rmtree(path.parent)


@pytest.mark.least({"store disk faults": 120})
def test_disks_that_fail(victim, folder, rounds, draw, tally):
    calls = counted(victim, folder / "whole")
    for number in rounds:
        path = folder / str(number) / "runs.sqlite"
        path.parent.mkdir()
        kept, at = set(), number % calls
        for name in draw.permutation(list(FAILURES)):
            error = int(draw.choice(ERRORS))
            new, refused, signal, _ = victim("store", path=path, at=at, action=FAILURES[name], error=error)
            kept |= set(new)
            assert signal == 0 and all("Traceback" not in text for text in refused)
            tally("store disk faults")
            check(path, kept)
            at = int(draw.integers(calls))
        finish(victim, path)
        shutil.rmtree(path.parent)


@pytest.mark.least({"sweep kills": 20})
def test_sweeps_that_are_killed_resume(victim, folder, rounds, draw, tally):
    whole, undisturbed = Sweep.from_dict(tiny_table()), MemoryStore()
    whole.run(undisturbed, executor="inline")
    expected = dict(zip((row.hash for row in undisturbed.rows()), outcomes(undisturbed), strict=True))
    for number in rounds:
        path, done, signal = folder / str(number) / "runs.sqlite", 0, 9
        path.parent.mkdir()
        while signal:
            action = KILLS[str(draw.choice(list(KILLS)))]
            kept, refused, signal, _ = victim("sweep", path=path, at=int(draw.integers(90)), action=action)
            assert not refused
            done = max([done, *kept])
            tally("sweep kills", int(signal == 9))
            if done:
                with SqliteStore(path) as store:
                    rows = list(store.rows())
                assert len({row.hash for row in rows}) == len(rows) >= done
                assert {row.hash: row.outcome() for row in rows}.items() <= expected.items()
        with SqliteStore(path) as store:
            assert outcomes(store) == outcomes(undisturbed)
        shutil.rmtree(path.parent)


@pytest.mark.least({"store power losses": 200})
def test_machines_that_lose_power(victim, folder, rounds, draw, tally):
    """The calls of a writer, recorded and cut off anywhere, on a disk that had only done what it was made to."""
    source = folder / "recorded"
    source.mkdir()
    victim("store", path=source / "runs.sqlite", log=folder / "log")
    calls = read_log(folder / "log")
    assert sum(kind == "sync" for kind, *_ in calls) >= BATCHES
    for number in rounds:
        disk = PowerLoss()
        for call in calls[: number % (len(calls) + 1)]:
            disk.play(*call)
        left = folder / str(number)
        left.mkdir()
        disk.left(draw, left, source)
        tally("store power losses")
        check(left / "runs.sqlite", {more for what, more in disk.told if what == "kept"})
        if number % 5 == 0:
            finish(victim, left / "runs.sqlite")
        shutil.rmtree(left)

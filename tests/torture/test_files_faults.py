"""Files that the project writes, when the writer is killed, the disk fails or power is lost at any system call.

At every moment the file is the old one or the new one, whole; once the writer reports that it is done, it is the new one.
"""

import shutil

import numpy as np
import pytest
from faults import ERRORS, FAILURES, KILLS, PowerLoss, Victim, quick_folder, read_log
from victim import ROWS, net_of

from fewfire.networks import load
from fewfire.sweeps import SqliteStore

JOBS = ("network", "page", "table")


@pytest.fixture(scope="module")
def victim(tmp_path_factory):
    with Victim(tmp_path_factory.mktemp("disk")) as process:
        yield process


@pytest.fixture
def folder(tmp_path):
    with quick_folder(tmp_path) as quick:
        yield quick


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A store to report and export."""
    path = tmp_path_factory.mktemp("source") / "runs.sqlite"
    with SqliteStore(path, write=True) as store:
        store.add(ROWS[0])
    return path


def arguments(job, source):
    return {"seed": 1} if job == "network" else {"source": source}


def place(folder, job):
    return folder / {"network": "net", "page": "page.html", "table": "runs.csv"}[job]


def whole(victim, folder, job, source):
    """The content that an undisturbed job writes, and the calls it takes."""
    folder.mkdir()
    kept, refused, _, calls = victim(job, path=place(folder, job), **arguments(job, source))
    assert kept and not refused and calls >= 5
    return place(folder, job).read_bytes(), calls


@pytest.mark.least({"file kills": 100})
def test_writers_that_are_killed(victim, source, folder, rounds, draw, tally):
    made = {job: whole(victim, folder / job, job, source) for job in JOBS}
    for number in rounds:
        job = JOBS[number % len(JOBS)]
        (content, calls), here = made[job], folder / str(number)
        here.mkdir()
        old = None if draw.random() < 0.3 else b"the old file"
        if old is not None:
            place(here, job).write_bytes(old)
        action = KILLS[str(draw.choice(list(KILLS)))]
        kept, refused, signal, _ = victim(
            job, path=place(here, job), at=number // len(JOBS) % calls, action=action, **arguments(job, source)
        )
        assert not refused
        tally("file kills", int(signal == 9))
        found = place(here, job).read_bytes() if place(here, job).exists() else None
        assert found == content if kept else found in (old, content)
        shutil.rmtree(here)


@pytest.mark.least({"file disk faults": 100})
def test_disks_that_fail(victim, source, folder, rounds, draw, tally):
    made = {job: whole(victim, folder / job, job, source) for job in JOBS}
    for number in rounds:
        job = JOBS[number % len(JOBS)]
        (content, calls), here = made[job], folder / str(number)
        here.mkdir()
        place(here, job).write_bytes(b"the old file")
        kind = str(draw.choice(list(FAILURES)))
        fault = {"at": number // len(JOBS) % calls, "action": FAILURES[kind], "error": int(draw.choice(ERRORS))}
        kept, refused, signal, _ = victim(job, path=place(here, job), **fault, **arguments(job, source))
        tally("file disk faults")
        assert signal == 0 and bool(kept) != bool(refused)
        assert place(here, job).read_bytes() in ((content,) if kept else (b"the old file", content))
        if kind == "once":  # nothing else is left, as long as a file can be removed
            assert [found.name for found in here.iterdir()] == [place(here, job).name]
        shutil.rmtree(here)


@pytest.mark.least({"file power losses": 500})
def test_machines_that_lose_power(victim, source, folder, rounds, draw, tally):
    recorded = {}
    for job in JOBS:
        content, _ = whole(victim, folder / job, job, source)
        here = folder / f"{job} again"
        here.mkdir()
        victim(job, path=place(here, job), log=folder / f"{job}.log", **arguments(job, source))
        recorded[job] = content, here, read_log(folder / f"{job}.log")
    for number in rounds:
        job = JOBS[number % len(JOBS)]
        content, here, calls = recorded[job]
        disk, left = PowerLoss(), folder / str(number)
        left.mkdir()
        for call in calls[: int(draw.integers(len(calls) + 1))]:
            disk.play(*call)
        disk.left(draw, left, here)
        tally("file power losses")
        kept = any(what == "kept" for what, _ in disk.told)
        found = place(left, job).read_bytes() if place(left, job).exists() else None
        assert found == content if kept else found in (None, content)
        shutil.rmtree(left)


def test_a_network_is_what_was_saved(victim, tmp_path):
    victim("network", path=tmp_path / "net", seed=5)
    assert np.array_equal(load(tmp_path / "net").hidden, net_of(5).hidden)

"""Files that the project writes, when the writer is killed, the disk fails or power is lost at any system call.

At every moment the file is the old one or the new one, whole; once the writer says that it is done, it is the new one.
"""

import numpy as np
import pytest
from faults import ERRORS, FAILURES, KILLS, PowerLoss, Victim, read_log
from victim import ROWS, net_of

from fewfire.experiments import SqliteStore
from fewfire.networks import load

JOBS = ("network", "page", "table")


@pytest.fixture(scope="module")
def victim(tmp_path_factory):
    with Victim(tmp_path_factory.mktemp("disk")) as process:
        yield process


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


def test_writers_that_are_killed(victim, source, tmp_path, rounds, draw, tally):
    made = {job: whole(victim, tmp_path / job, job, source) for job in JOBS}
    for number in rounds:
        job = JOBS[number % len(JOBS)]
        (content, calls), folder = made[job], tmp_path / str(number)
        folder.mkdir()
        old = None if draw.random() < 0.3 else b"the old file"
        if old is not None:
            place(folder, job).write_bytes(old)
        action = KILLS[str(draw.choice(list(KILLS)))]
        kept, refused, signal, _ = victim(
            job, path=place(folder, job), at=number // len(JOBS) % calls, action=action, **arguments(job, source)
        )
        assert not refused
        tally("file kills", int(signal == 9))
        found = place(folder, job).read_bytes() if place(folder, job).exists() else None
        assert found == content if kept else found in (old, content)


def test_disks_that_fail(victim, source, tmp_path, rounds, draw, tally):
    made = {job: whole(victim, tmp_path / job, job, source) for job in JOBS}
    for number in rounds:
        job = JOBS[number % len(JOBS)]
        (content, calls), folder = made[job], tmp_path / str(number)
        folder.mkdir()
        place(folder, job).write_bytes(b"the old file")
        kind = str(draw.choice(list(FAILURES)))
        fault = {"at": number // len(JOBS) % calls, "action": FAILURES[kind], "error": int(draw.choice(ERRORS))}
        kept, refused, signal, _ = victim(job, path=place(folder, job), **fault, **arguments(job, source))
        tally("file disk faults")
        assert signal == 0 and bool(kept) != bool(refused)
        assert place(folder, job).read_bytes() in ((content,) if kept else (b"the old file", content))
        if kind == "once":  # nothing else is left, as long as a file can be removed
            assert [found.name for found in folder.iterdir()] == [place(folder, job).name]


def test_machines_that_lose_power(victim, source, tmp_path, rounds, draw, tally):
    recorded = {}
    for job in JOBS:
        content, _ = whole(victim, tmp_path / job, job, source)
        folder = tmp_path / f"{job} again"
        folder.mkdir()
        victim(job, path=place(folder, job), log=tmp_path / f"{job}.log", **arguments(job, source))
        recorded[job] = content, folder, read_log(tmp_path / f"{job}.log")
    for number in rounds:
        job = JOBS[number % len(JOBS)]
        content, folder, calls = recorded[job]
        disk, left = PowerLoss(), tmp_path / str(number)
        left.mkdir()
        for call in calls[: int(draw.integers(len(calls) + 1))]:
            disk.play(*call)
        disk.left(draw, left, folder)
        tally("file power losses")
        kept = any(what == "kept" for what, _ in disk.told)
        found = place(left, job).read_bytes() if place(left, job).exists() else None
        assert found == content if kept else found in (None, content)


def test_a_network_is_what_was_saved(victim, tmp_path):
    victim("network", path=tmp_path / "net", seed=5)
    assert np.array_equal(load(tmp_path / "net").hidden, net_of(5).hidden)

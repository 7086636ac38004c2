"""Writers and paths of a store: one writer at a time by whatever path, nothing planted next to it is touched."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from three_runs import kept, three_runs

from fewfire._errors import StoreError
from fewfire.sweeps import SqliteStore
from fewfire.sweeps.store._access import WriterLock
from fewfire.testing._sweeps import made_up_row


@pytest.fixture
def path(tmp_path):
    """A store with three runs."""
    return three_runs(tmp_path)


def test_a_second_writer_gets_the_name_of_the_first(path):
    with SqliteStore(path, write=True) as first:
        with pytest.raises(
            StoreError,
            match=rf"runs.sqlite is being written by process {os.getpid()} on .*\. Nothing was changed. Remedy: wait for that sweep to end",
        ):
            SqliteStore(path, write=True)
        first.add([made_up_row(3)])
        assert first.counts()["done"] == 4
    with SqliteStore(path, write=True) as second:
        second.add([made_up_row(4)])
    assert list(path.parent.iterdir()) == [path]


HOLD = """
import sys
from fewfire.sweeps import SqliteStore
store = SqliteStore(sys.argv[1], write=True)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_writer_that_is_killed_leaves_no_lock(path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreError, match=f"is being written by process {holder.pid} on "):
            SqliteStore(path, write=True)
        assert kept(path)  # readers may look on
    finally:
        holder.kill()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()
    with SqliteStore(path, write=True) as store:
        store.add([made_up_row(3)])
        assert store.counts()["done"] == 4
    assert list(path.parent.iterdir()) == [path]


def test_places_that_are_no_store_are_named(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    long = tmp_path / ("x" * 300)
    for place, message in (
        (tmp_path, f"{tmp_path} is a folder, not a store. Remedy: name a file inside it."),
        (tmp_path / "loop", "loop cannot be opened: Too many levels of symbolic links. Nothing was changed."),
        (tmp_path / "pipe", "pipe is not a regular file, so it is no store. Remedy: name a file on a disk."),
        (long, f"{long} cannot be opened: File name too long. Nothing was changed."),
        (Path("a\0b"), "a\0b cannot be opened: embedded null byte. Nothing was changed."),
    ):
        for write in (False, True):
            with pytest.raises(StoreError) as caught:
                SqliteStore(place, write=write)
            assert str(caught.value).endswith(message)
    assert {found.name for found in tmp_path.iterdir()} == {"loop", "pipe"}


def test_all_paths_to_a_store_share_its_lock(path, tmp_path):
    (tmp_path / "alias.sqlite").symlink_to(path.name)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "up").symlink_to("..")
    others = (tmp_path / "alias.sqlite", tmp_path / "folder" / "up" / path.name)
    for one, two in ((path, others[0]), (others[0], path), (others[0], others[1])):
        with SqliteStore(one, write=True) as store:
            store.add([made_up_row(3)])
            with pytest.raises(StoreError, match=f"{two.name} is being written by process {os.getpid()} on "):
                SqliteStore(two, write=True)
            with SqliteStore(two) as reader:
                assert reader.counts()["done"] == 4
    assert {found.name for found in tmp_path.iterdir()} == {path.name, "alias.sqlite", "folder"}


def test_a_link_to_nothing_becomes_a_store_where_it_points(tmp_path):
    (tmp_path / "link.sqlite").symlink_to("real.sqlite")
    with SqliteStore(tmp_path / "link.sqlite", write=True) as store:
        store.add([made_up_row(trial) for trial in range(3)])
    assert (tmp_path / "link.sqlite").is_symlink() and kept(tmp_path / "real.sqlite") and kept(tmp_path / "link.sqlite")


def test_a_store_of_two_names_is_read_and_not_written(path, tmp_path):
    """Two sweeps through two names lost half of their rows: each had a log and a lock of its own."""
    (tmp_path / "second.sqlite").hardlink_to(path)
    for name in (path, tmp_path / "second.sqlite"):
        assert kept(name)
        with pytest.raises(
            StoreError,
            match=r"has 2 names \(hard links\), .*\. Nothing was changed\. Remedy: copy it \(cp, not ln\) and write to",
        ):
            SqliteStore(name, write=True)
    (tmp_path / "second.sqlite").unlink()
    with SqliteStore(path, write=True) as store:
        assert store.counts()["done"] == 3


PLANTED = [
    (helper, kind)
    for helper in ("-writer", "-wal", "-shm", "-journal")
    for kind in ("link", "hard link", "folder", "pipe")
]


@pytest.mark.parametrize(("helper", "planted"), [*PLANTED, ("-writer", "file")])
def test_what_lies_where_helper_files_belong_is_not_written_to(path, tmp_path, helper, planted):
    place, victim = Path(f"{path}{helper}"), tmp_path / "victim"
    victim.write_text("precious")
    if planted == "link":
        place.symlink_to(victim)
    elif planted == "hard link":
        place.hardlink_to(victim)
    elif planted == "folder":
        place.mkdir()
    elif planted == "pipe":
        os.mkfifo(place)
    else:
        place.write_text("precious")
    with pytest.raises(StoreError, match=rf"runs.sqlite cannot be opened: .*{helper} is a link or another's file"):
        SqliteStore(path, write=True)
    assert victim.read_text() == "precious"
    if planted == "file":
        assert place.read_text() == "precious"
    place.rmdir() if planted == "folder" else place.unlink()
    assert kept(path)


def test_a_lock_that_cannot_be_removed_hides_no_error_and_is_taken_over(path, monkeypatch):
    def stuck(*_, **__):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", stuck)
        with pytest.raises(ZeroDivisionError), SqliteStore(path, write=True):
            raise ZeroDivisionError
    assert Path(f"{path}-writer").exists()
    with SqliteStore(path, write=True) as store:
        store.add([made_up_row(3)])
    assert list(path.parent.iterdir()) == [path]


def test_a_lock_that_was_removed_is_made_anew(path, monkeypatch):
    """The holder before us removes its file between our opening it and our locking it."""
    beside, real, removed = Path(f"{path}-writer"), os.open, []

    def open_and_lose(place, *options):
        file = real(place, *options)
        if not removed:
            beside.unlink()
            removed.append(place)
        return file

    monkeypatch.setattr("fewfire.sweeps.store._access.os.open", open_and_lose)
    lock = WriterLock(path)
    assert removed and beside.read_text().startswith(f"process {os.getpid()} on ")
    with pytest.raises(StoreError, match="is being written by process"):
        WriterLock(path)
    lock.release()
    lock.release()
    assert not beside.exists()

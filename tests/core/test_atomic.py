"""Files appear whole or not at all, at the place that was named, and nothing that was planted is written to."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fewfire import _atomic
from fewfire._atomic import replacing, write_bytes, write_text
from fewfire.networks import TwoLayer
from fewfire.report import write_page
from fewfire.sweeps import MemoryStore, export


def names(folder):
    return [path.name for path in folder.iterdir()]


def net(path):
    TwoLayer([[1.0]], [0.0], [1.0]).save(path)


def test_a_new_file_and_its_permissions(tmp_path):
    old = os.umask(0o027)
    try:
        write_text(tmp_path / "new", "é")
    finally:
        os.umask(old)
    assert (tmp_path / "new").read_bytes() == "é".encode()
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert names(tmp_path) == ["new"]


def test_an_old_file_keeps_its_permissions(tmp_path):
    target = tmp_path / "old"
    target.write_bytes(b"before")
    target.chmod(0o604)
    write_bytes(target, b"after")
    assert target.read_bytes() == b"after" and stat.S_IMODE(target.stat().st_mode) == 0o604


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_may_not_be_written_stays(tmp_path):
    target = tmp_path / "old"
    target.write_bytes(b"before")
    target.chmod(0o444)
    with pytest.raises(PermissionError):
        write_bytes(target, b"after")
    assert target.read_bytes() == b"before"


def test_the_longest_name(tmp_path):
    write_bytes(tmp_path / ("x" * 255), b"here")
    assert (tmp_path / ("x" * 255)).read_bytes() == b"here"


def test_links_stay_and_what_they_point_to_is_replaced(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("hop")
    (tmp_path / "hop").symlink_to(tmp_path / "far" / "file")
    for content in (b"made through the link", b"replaced through the link"):
        write_bytes(tmp_path / "link", content)
        assert (tmp_path / "far" / "file").read_bytes() == content
    assert (tmp_path / "link").is_symlink() and (tmp_path / "hop").is_symlink()
    assert names(tmp_path / "far") == ["file"]


def test_a_loop_of_links(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        write_bytes(tmp_path / "loop", b"")
    assert names(tmp_path) == ["loop"]


def test_the_other_name_of_a_file_keeps_its_content(tmp_path):
    (tmp_path / "one").write_bytes(b"before")
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    write_bytes(tmp_path / "one", b"after")
    assert (tmp_path / "two").read_bytes() == b"before"


@pytest.mark.parametrize("write", [lambda path: write_bytes(path, b"x"), net])
def test_nothing_that_was_planted_is_followed(tmp_path, monkeypatch, write):
    """Even a name that was guessed: the file is created exclusively."""
    monkeypatch.setattr(_atomic.secrets, "token_hex", lambda count: "guessed")
    (tmp_path / "victim").write_bytes(b"precious")
    planted = tmp_path / ".fewfire-guessed.tmp"
    planted.symlink_to(tmp_path / "victim")
    with pytest.raises(FileExistsError):
        write(tmp_path / "target")
    assert (tmp_path / "victim").read_bytes() == b"precious" and planted.is_symlink()
    assert not (tmp_path / "target").exists()


def test_names_used_before_are_not_written(tmp_path):
    """Temporary names that could be foreseen: OUT.unfinished of exports, .OUT.PID of pages."""
    (tmp_path / "victim").write_bytes(b"precious")
    for name in ("runs.csv.unfinished", f".page.html.{os.getpid()}"):
        (tmp_path / name).symlink_to(tmp_path / "victim")
    export(MemoryStore(), tmp_path / "runs.csv")
    write_page(MemoryStore(), tmp_path / "page.html")
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert (tmp_path / "runs.csv").is_file() and (tmp_path / "page.html").is_file()


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize("unlink", ["works", "fails"])
def test_an_error_leaves_the_old_file_and_is_the_one_reported(tmp_path, monkeypatch, call, unlink):
    target = tmp_path / "old"
    target.write_bytes(b"before")

    def fail(*_):
        raise OSError(28, "No space left on device")

    def stuck(*_):
        raise OSError(5, "Input/output error")

    if call != "write":
        monkeypatch.setattr(Path if call == "replace" else os, call, fail)
    if unlink == "fails":
        monkeypatch.setattr(Path, "unlink", stuck)
    with pytest.raises(OSError, match="No space left on device"), replacing(target) as file:
        file.write(b"half")
        if call == "write":
            fail()
    assert target.read_bytes() == b"before"
    monkeypatch.undo()
    assert len(names(tmp_path)) == (1 if unlink == "works" else 2)


def test_everything_is_on_the_disk_before_the_name_is_and_the_name_at_the_end(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, Path.replace

    def syncing(file):
        done.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else f"file of {os.fstat(file).st_size}")
        fsync(file)

    def renaming(old, new):
        done.append("rename")
        replace(old, new)

    monkeypatch.setattr(_atomic.os, "fsync", syncing)
    monkeypatch.setattr(Path, "replace", renaming)
    write_bytes(tmp_path / "file", bytes(100))
    assert done == ["file of 100", "rename", "folder"]


def test_pipes_and_devices_are_written_through(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe.csv").read_bytes()))
    reader.start()
    export(MemoryStore(), tmp_path / "pipe.csv")
    reader.join()
    assert read[0].startswith(b"hash,") and stat.S_ISFIFO((tmp_path / "pipe.csv").stat().st_mode)
    (tmp_path / "nothing").symlink_to("/dev/null")
    net(tmp_path / "nothing")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert sorted(names(tmp_path)) == ["nothing", "pipe.csv"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_full_device():
    with pytest.raises(OSError, match="No space left on device"):
        write_bytes("/dev/full", b"x")
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


WRITE = """
import sys
from fewfire._atomic import write_bytes
print("one", flush=True)
write_bytes(sys.argv[1], b"two\\n")
print("three", flush=True)
"""


@pytest.mark.parametrize("place", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("kind", ["pipe", "file", "appended"])
def test_standard_output_is_written_in_its_turn(tmp_path, place, kind):
    if not Path(place).exists() or (place == "/dev/stdout" and not Path(place).is_symlink()):
        pytest.skip(f"there is no {place}, or it is a file that something has put in its place")
    command = [sys.executable, "-c", WRITE, place]
    if kind == "pipe":
        assert subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout == b"one\ntwo\nthree\n"
        return
    target = tmp_path / "out"
    target.write_bytes(b"before\n")
    with target.open("ab" if kind == "appended" else "wb") as out:
        subprocess.run(command, stdout=out, check=True)
    before = b"before\n" if kind == "appended" else b""
    assert target.read_bytes() == before + b"one\ntwo\nthree\n" and names(tmp_path) == ["out"]

"""A process whose disk fails or that is killed at a chosen system call, and what a power loss would leave of its files."""

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KILLS = {"before": 0, "torn": 1, "after": 2}
FAILURES = {"once": 3, "torn": 4, "from then on": 5}
ERRORS = (errno.EIO, errno.ENOSPC)
SECTOR = 512


@contextmanager
def quick_folder(otherwise):
    """A folder in memory where there is one: what a killed process leaves does not depend on how slow the disk is."""
    memory = Path("/dev/shm")
    if not (memory.is_dir() and os.access(memory, os.W_OK)):
        yield otherwise
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="fewfire-") as folder:
        yield Path(folder)


class Victim:
    """Carries out jobs of `victim.py`; use as a context manager."""

    def __init__(self, folder):
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None or sys.platform != "linux":
            pytest.skip("needs a C compiler and Linux")
        disk = folder / "syscalls.so"
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", disk, HERE / "syscalls.c", "-ldl"], check=True)
        environment = os.environ | {
            "LD_PRELOAD": str(disk),
            "FEWFIRE_TORTURE_DISK": str(disk),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, HERE / "victim.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def __call__(self, job, *, at=-1, action=0, error=0, log=None, **arguments):
        """What was kept, what was refused, and the signal that ended the job; anything else it raised fails the test."""
        order = {"job": job, "arguments": arguments, "at": at, "action": action, "error": error, "log": log}
        self._process.stdin.write(json.dumps(order, default=str) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        told = {kind: [more for what, more in answer["told"] if what == kind] for kind in ("kept", "refused", "calls")}
        raw = [more for what, more in answer["told"] if what == "raw"]
        assert not raw, f"{order}: {raw[0]}"
        assert all("\n" not in text for text in told["refused"]), told["refused"]
        return told["kept"], told["refused"], answer["signal"], (told["calls"] or [None])[0]


def read_log(path):
    """The recorded calls: (kind, offset, path or text, bytes)."""
    content, at, calls = path.read_bytes(), 0, []
    while at < len(content):
        end = content.index(b"\n", at)
        kind, offset, size, place = content[at:end].decode().split("\t", 3)
        has_bytes = kind in ("write", "rename")
        at = end + 1 + (int(size) if has_bytes else 0)
        calls.append((kind, int(offset), place, content[end + 1 : at] if has_bytes else b""))
    return calls


class PowerLoss:
    """Plays recorded calls on a disk that keeps for certain only what was synced.

    At the loss every sector written since the last sync of its file is on the disk or not, as chance has it, and the
    newest changes of names since the last sync of their folder may be missing.
    """

    def __init__(self):
        self.files, self.names, self.changes, self.next = {}, {}, {}, 0
        self.seen = {}  # names as the running process sees them
        self.told = []

    def play(self, kind, offset, place, content):
        if kind == "note":
            self.told.append(json.loads(place))
        elif kind == "create":
            self.files[self.next] = (bytearray(), [])
            self.seen[place] = self.next
            self._change(place, self.next)
            self.next += 1
        elif kind == "unlink":
            self.seen.pop(place, None)
            self._change(place, None)
        elif kind == "rename":
            new = content.decode()
            self.seen[new] = self.seen.pop(place)
            self.changes.setdefault(os.path.dirname(new), []).append(((new, self.seen[new]), (place, None)))  # noqa: PTH120
        elif kind == "sync" and place not in self.seen:  # a folder
            self.names |= {name: file for step in self.changes.pop(place, []) for name, file in step}
        elif place in self.seen:
            durable, pending = self.files[self.seen[place]]
            if kind == "sync":
                for step in pending:
                    _apply(durable, *step)
                pending.clear()
            else:
                pending.extend(_sectors(offset, content) if kind == "write" else [(offset, None)])

    def left(self, draw, folder, source):
        """Write what is left of the folder `source` into another; gives nothing back."""
        names = dict(self.names)
        for steps in self.changes.values():
            for step in steps[: draw.integers(0, len(steps) + 1)]:
                names |= dict(step)
        for name, file in names.items():
            if file is not None and Path(name).parent == Path(source):
                durable, pending = self.files[file]
                content = bytearray(durable)
                chance = draw.random()
                for step in pending:
                    if draw.random() < chance:
                        _apply(content, *step)
                (folder / Path(name).name).write_bytes(content)

    def _change(self, place, file):
        self.changes.setdefault(os.path.dirname(place), []).append(((place, file),))  # noqa: PTH120


def _sectors(offset, content):
    """A write in pieces that a disk writes whole."""
    at = 0
    while at < len(content):
        size = SECTOR - (offset + at) % SECTOR
        yield offset + at, content[at : at + size]
        at += size


def _apply(content, offset, piece):
    if piece is None:  # cut or lengthened to this size
        content[offset:] = bytes(max(0, offset - len(content)))
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(piece)] = piece

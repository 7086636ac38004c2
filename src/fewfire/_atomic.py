"""The one way a file is written: whole or not at all, and never through a name that could be predicted.

The bytes go to a new file with a random name in the target's folder, created exclusively; they are brought to the disk,
and then the file is renamed to the target, whose old content stays until that moment, whatever happens. Links are
followed first, so a link stays and what it points to is replaced. A target that exists and is no regular file (a
device, a pipe, `/dev/stdout`) is never replaced: it is handed the complete bytes.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

EXCLUSIVE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
"""A new file, at a name where there was nothing, not even a link."""

_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
_MOST_LINKS = 40


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write in a `with` block; at its end it replaces `path`, after an error nothing has changed.

    Raises
    ------
    OSError
        The target is a folder or may not be written, its folder does not exist, the disk is full, …
    """
    place = Path(path)
    descriptor = _own_descriptor(place)
    try:
        found = None if descriptor is not None else place.stat()
    except FileNotFoundError:
        found = None
    if descriptor is not None or (found is not None and not stat.S_ISREG(found.st_mode)):
        with _through(place, descriptor) as file:
            yield file
        return
    target = Path(os.path.realpath(place))
    if found is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    partial = target.with_name(f".fewfire-{secrets.token_hex(8)}.tmp")
    file = os.fdopen(os.open(partial, EXCLUSIVE, 0o666), "w+b")
    try:
        if found is not None:
            _take_after(file.fileno(), found)
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.close()
        partial.replace(target)
    except BaseException:
        for tidy in (file.close, partial.unlink):
            with suppress(OSError):  # the error before theirs is the one to report
                tidy()
        raise
    _sync_folder(target.parent)


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a whole file; see `replacing`."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a whole file of UTF-8; see `replacing`."""
    write_bytes(path, text.encode())


def same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two paths lead to one file; not when one of them leads nowhere."""
    try:
        return Path(one).samefile(other)
    except (OSError, ValueError):
        return False


def _take_after(file: int, old: os.stat_result) -> None:
    """Permissions and, where that is allowed, owner and group of the file that is replaced."""
    if hasattr(os, "fchown") and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(OSError):
            os.fchown(file, old.st_uid, old.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(file, stat.S_IMODE(old.st_mode) & 0o777)


def _sync_folder(folder: Path) -> None:
    """Bring a new name to the disk, on systems where folders can be opened and synced."""
    try:
        file = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(file)


@contextmanager
def _through(path: Path, descriptor: int | None) -> Iterator[IO[bytes]]:
    """A file whose content is copied to an open descriptor or to what stands at `path`, once it is complete."""
    if descriptor is None and path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with tempfile.TemporaryFile() as file:  # writers may seek, pipes may not
        yield file
        file.seek(0)
        target = os.open(path, os.O_WRONLY) if descriptor is None else os.dup(descriptor)
        with os.fdopen(target, "wb") as out:
            shutil.copyfileobj(file, out)


def _own_descriptor(path: Path) -> int | None:
    """The number of the open descriptor that a path such as /dev/stdout or /dev/fd/3 stands for.

    Such a descriptor may belong to a regular file (`-o /dev/stdout > page.html`), and is written at its own position.
    """
    ours = re.compile(rf"/proc/{os.getpid()}(/task/\d+)?/fd|/dev/fd")
    for _ in range(_MOST_LINKS):
        if path.name.isdecimal() and ours.fullmatch(os.path.realpath(path.parent)):
            return int(path.name)
        try:
            path = path.parent / path.readlink()
        except (OSError, ValueError):
            return None
    return None

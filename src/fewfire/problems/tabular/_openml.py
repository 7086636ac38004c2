"""Asking openml.org: two answers per data set, a description and a table, within a total time and size.

Answers are kept where scikit-learn keeps those it fetches (SCIKIT_LEARN_DATA, else `~/scikit_learn_data`), under the
same names, so that neither fetches what the other has. A table counts only with the checksum of its description; a
kept answer that is damaged is fetched again.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from fewfire import __version__
from fewfire._atomic import replacing
from fewfire._errors import FileFormatError

API = "https://www.openml.org/api/v1/json/data/"

SECONDS = 120.0
"""For both answers together, and a second more per `CELLS_PER_SECOND` values of the table."""

CELLS_PER_SECOND = 100_000

DESCRIPTION_BYTES = 10_000_000
CELL_BYTES = 64
"""Of a value of the table, at most, in the mean."""


def fetch_table(number: int, rows: int, columns: int) -> tuple[dict[str, Any], Iterator[str]]:
    """The description of data set `number` and the lines of its table.

    `rows` and `columns`, which it should have, bound the time and the memory that it may take. Raises `OSError` where
    no complete answer comes in time, `FileFormatError` where it is none that can be used.
    """
    seconds, most = SECONDS + rows * columns / CELLS_PER_SECOND, DESCRIPTION_BYTES + CELL_BYTES * rows * columns
    deadline = time.monotonic() + seconds
    description, path = _in_time(lambda: _fetch(number, most, deadline), seconds)
    return description, _lines(path, most)


def _in_time(ask: Callable[[], Any], seconds: float) -> Any:
    """What `ask` gives, in time: a server that drips its headers keeps a thread waiting, but not the caller."""
    answer: Future[Any] = Future()

    def work() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True, name="fewfire-openml").start()
    if not wait([answer], seconds).done:
        raise _late()
    return answer.result()


def _late() -> TimeoutError:
    return TimeoutError("no complete answer came in time")


def _fetch(number: int, most: int, deadline: float) -> tuple[dict[str, Any], Path]:
    kept = _kept_file(API + str(number))
    try:
        description = _description(kept)
    except (OSError, EOFError, zlib.error, FileFormatError):
        _download(API + str(number), kept, DESCRIPTION_BYTES, deadline)
        description = _description(kept)
    url = description["url"]
    table = _kept_file(url)
    if not table.exists() or _checksum(table, most) != description["md5_checksum"]:
        _download(url, table, most, deadline)
        if _checksum(table, most) != description["md5_checksum"]:
            table.unlink(missing_ok=True)
            raise FileFormatError(f"the table at {url} does not have the checksum of its description.")
    return description, table


def _kept_file(url: str) -> Path:
    """Where the answer of an address is kept."""
    parts = urlsplit(url)
    names = [name for name in parts.path.split("/") if name]
    trusted = parts.scheme == "https" or url.startswith(API.split("/api/")[0])
    if not trusted or not names or ".." in names or "\0" in url:
        raise FileFormatError(f"the description names {url[:200]!r} as the address of the table, which is none.")
    home = Path(os.environ.get("SCIKIT_LEARN_DATA") or "~/scikit_learn_data").expanduser()
    return home.joinpath("openml", "openml.org", *names[:-1], f"{names[-1]}.gz")


def _description(path: Path) -> dict[str, Any]:
    with gzip.open(path) as file:
        content = file.read(DESCRIPTION_BYTES)
    try:
        table: Any = json.loads(content)["data_set_description"]
        texts = [table[name] for name in ("url", "md5_checksum", "default_target_attribute")]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise FileFormatError(f"the description is not one ({type(error).__name__}: {str(error)[:80]}).") from None
    if not all(isinstance(text, str) for text in texts):
        raise FileFormatError("the description lacks the address, the checksum or the target of the table.")
    found: dict[str, Any] = table
    return found


def _download(url: str, path: Path, most: int, deadline: float) -> None:
    """Fetch an address into a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as raw, gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1) as file:
        for piece in _pieces(url, most, deadline):
            file.write(piece)


def _pieces(url: str, most: int, deadline: float) -> Iterator[bytes]:
    """The answer as it comes, unpacked; no more than `most` bytes, no later than the deadline."""
    headers = {"Accept-Encoding": "gzip", "User-Agent": f"fewfire/{__version__}"}
    size = 0
    try:
        with urlopen(Request(url, headers=headers), timeout=max(0.01, deadline - time.monotonic())) as answer:
            packed = answer.headers.get("Content-Encoding", "") == "gzip"
            unpack = zlib.decompressobj(wbits=31)
            while piece := answer.read1(1 << 16):
                if time.monotonic() > deadline:
                    raise _late()
                while piece:
                    part, piece = (
                        (unpack.decompress(piece, 1 << 20), unpack.unconsumed_tail) if packed else (piece, b"")
                    )
                    size += len(part)
                    if size > most:
                        raise FileFormatError(f"the answer at {url} has more than {most:,} bytes.")
                    yield part
            if answer.length or (packed and not unpack.eof):
                raise ConnectionError(f"the answer at {url} ended early")
    except HTTPError as error:
        error.close()  # it holds the connection
        raise ConnectionError(f"the answer at {url} is {str(error).rstrip('. ')}") from None
    except (http.client.HTTPException, zlib.error) as error:
        raise ConnectionError(f"the answer at {url} is damaged: {error!r}") from None


def _checksum(path: Path, most: int) -> str:
    digest, size = hashlib.md5(usedforsecurity=False), 0
    try:
        with gzip.open(path) as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
                size += len(piece)
                if size > most:
                    return ""
    except (OSError, EOFError, zlib.error):
        return ""
    return digest.hexdigest()


def _lines(path: Path, most: int) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8", errors="replace", newline=None) as file:
        while line := file.readline(most):
            yield line

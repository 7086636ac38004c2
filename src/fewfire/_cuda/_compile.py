"""Kernels compiled at first use and kept: a folder of .cu and .cuh files, a set of definitions, an architecture.

Machine code is kept in the user's cache folder ($XDG_CACHE_HOME or ~/.cache, under fewfire/cuda; FEWFIRE_CACHE names
another) under a hash of everything that went into it, so an edited header or another NVRTC never meets old code. A hash
of the code itself is kept with it: a file that was damaged is compiled again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fewfire._atomic import write_bytes
from fewfire._cuda import _nvrtc
from fewfire._errors import FewfireError

_HOPPER = 90  # whose own instructions, such as wgmma, need a target of their own; its code runs there alone
HASH_BYTES = 16
"""At the end of a kept file: a driver that is handed damaged code may do anything."""

_OPTIONS = ("--std=c++17", "--extra-device-vectorization")


@dataclass(frozen=True)
class KernelSource:
    """A folder of kernels, whose .cuh files may be included by its .cu files."""

    folder: Path

    @cached_property
    def headers(self) -> dict[str, str]:
        """The text of each header by name."""
        return {path.name: path.read_text(encoding="utf-8") for path in sorted(self.folder.glob("*.cuh"))}

    def text(self, file: str) -> str:
        """The text of a .cu file."""
        return (self.folder / file).read_text(encoding="utf-8")


def compiled(source: KernelSource, file: str, architecture: int, definitions: Mapping[str, int] | None = None) -> bytes:
    """The machine code of a file for an architecture such as 90, from the cache where it is there."""
    text, headers = source.text(file), source.headers
    options = (
        *_OPTIONS,
        f"-arch=sm_{architecture}{'a' if architecture == _HOPPER else ''}",
        *(f"-D{key}={value}" for key, value in (definitions or {}).items()),
    )
    parts = (repr(_nvrtc.version()), repr(options), text, *(part for item in headers.items() for part in item))
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
    kept = cache_folder() / f"{Path(file).stem}-sm_{architecture}-{digest}.cubin"
    code = _whole(kept)
    if code is None:
        code = _nvrtc.to_cubin(text, file, headers, options)
        _keep(kept, code)
    return code


def cache_folder(kind: str = "cuda") -> Path:
    """Where machine code of one kind is kept."""
    chosen = os.environ.get("FEWFIRE_CACHE")
    root = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fewfire"
    return root / kind


def _keep(path: Path, code: bytes) -> None:
    """Write the code and its hash, whole or not at all; a cache that cannot be written is no error."""
    with suppress(OSError, FewfireError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, code + _hash(code))


def _whole(path: Path) -> bytes | None:
    """The code of a file, or None where there is none or where it is not what was kept."""
    try:
        kept = path.read_bytes()
    except OSError:
        return None
    code, ending = kept[:-HASH_BYTES], kept[-HASH_BYTES:]
    return code if ending == _hash(code) else None


def _hash(code: bytes) -> bytes:
    return hashlib.blake2b(code, digest_size=HASH_BYTES).digest()

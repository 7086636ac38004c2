"""Compiled kernels in the cache: used as they were kept, and compiled again where they are not."""

import pytest

from fewfire._cuda import _compile, _nvrtc
from fewfire._cuda._compile import KernelSource, cache_folder, compiled

CODE = b"\x7fELF" + bytes(range(256)) * 3


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A kernel, an empty cache, and a compiler that notes its calls."""
    monkeypatch.setenv("FEWFIRE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "add.cu").write_text("// a kernel")
    calls = []
    monkeypatch.setattr(_nvrtc, "version", lambda: (13, 0))
    monkeypatch.setattr(_nvrtc, "to_cubin", lambda *_: calls.append(1) or CODE)
    return KernelSource(tmp_path), calls


def test_a_kernel_is_compiled_once(source):
    kernels, calls = source
    assert compiled(kernels, "add.cu", 90) == compiled(kernels, "add.cu", 90) == CODE
    assert len(calls) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: b"",
        lambda kept: kept[:7],
        lambda kept: kept[:-1],
        lambda kept: kept[: len(kept) // 2],
        lambda kept: kept + b"\0",
        lambda kept: kept[:100] + bytes([kept[100] ^ 1]) + kept[101:],
        lambda kept: kept[:-1] + bytes([kept[-1] ^ 1]),
        lambda kept: bytes(len(kept)),
        lambda kept: CODE,
    ],
    ids=["empty", "few bytes", "one byte less", "half", "one byte more", "a bit", "a bit of the hash", "zeros", "old"],
)
def test_a_damaged_kernel_is_compiled_again(source, damage):
    kernels, calls = source
    compiled(kernels, "add.cu", 90)
    (kept,) = cache_folder().iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    assert compiled(kernels, "add.cu", 90) == CODE
    assert len(calls) == 2 and kept.read_bytes() == whole
    assert compiled(kernels, "add.cu", 90) == CODE and len(calls) == 2  # healed


def test_a_cache_that_cannot_be_read_or_written_is_done_without(source, monkeypatch):
    kernels, calls = source
    cache_folder().parent.mkdir()
    cache_folder().write_text("a file where the folder should be")
    assert compiled(kernels, "add.cu", 90) == compiled(kernels, "add.cu", 90) == CODE
    assert len(calls) == 2 and _compile.HASH_BYTES == 16

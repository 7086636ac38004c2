"""NVRTC through ctypes: CUDA C++ in, machine code out. Needs no GPU and no driver."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from fewfire._errors import FewfireError, MissingDependency

REMEDY = "Remedy: pip install 'fewfire[cuda13]' (or 'fewfire[cuda12]'), or install the CUDA toolkit."


class CompileError(FewfireError):
    """A kernel that NVRTC refused, with its log."""


def _candidates() -> Iterator[str]:
    """Where libnvrtc may lie: NVIDIA's wheels, those that the loader finds, the toolkit; newest version first."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(root) for root in (spec.submodule_search_locations or () if spec else ())]
    folders = [folder for root in roots for folder in sorted(root.glob("*/lib"), reverse=True)]
    toolkits = (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda")
    folders += [Path(root) / part for root in toolkits if root for part in ("lib64", "targets/x86_64-linux/lib")]
    for folder in folders:
        yield from map(str, sorted(folder.glob("libnvrtc.so*"), reverse=True))
    known = ctypes.util.find_library("nvrtc")
    if known:
        yield known


@cache
def find_nvrtc() -> ctypes.CDLL | None:
    """The library, or None where there is none."""
    for path in _candidates():
        if "builtins" in path or ".alt." in path:
            continue
        try:
            # NVRTC looks its builtins up by name alone, which finds them only once they are loaded.
            for builtins in sorted(Path(path).parent.glob("libnvrtc-builtins.so*")):
                ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def _library() -> ctypes.CDLL:
    library = find_nvrtc()
    if library is None:
        raise MissingDependency(f"compiling CUDA kernels needs NVRTC, which was not found. {REMEDY}")
    return library


@cache
def version() -> tuple[int, int]:
    """Major and minor version."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


def to_cubin(source: str, name: str, headers: Mapping[str, str], options: Sequence[str]) -> bytes:
    """Compile one translation unit for the architecture that the options name, such as "-arch=sm_90".

    `name` is what errors call the main file `source`; `headers` has the text of each file that may be included.
    """
    library, program = _library(), ctypes.c_void_p()
    texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
    names = (ctypes.c_char_p * len(headers))(*(header.encode() for header in headers))
    _check(
        library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), len(headers), texts, names)
    )
    try:
        flags = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        if library.nvrtcCompileProgram(program, len(options), flags) != 0:
            raise CompileError(f"NVRTC could not compile {name} with {' '.join(options)}:\n{_log(library, program)}")
        size = ctypes.c_size_t()
        _check(library.nvrtcGetCUBINSize(program, ctypes.byref(size)))
        code = ctypes.create_string_buffer(size.value)
        _check(library.nvrtcGetCUBIN(program, code))
        return code.raw
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _log(library: ctypes.CDLL, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, text)
    return text.value.decode(errors="replace")


def _check(status: int) -> None:
    if status != 0:
        raise CompileError(f"NVRTC answered with status {status}")

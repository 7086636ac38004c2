"""A GPU for tabular networks made of NumPy and of their kernel, compiled for the processor (processor_gpu.hpp)."""

import ctypes
import shutil
import subprocess
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

from fewfire.tabular import _gpu

HERE = Path(__file__).parent
COMPILER = shutil.which("g++")


@cache
def library(folder: Path) -> ctypes.CDLL:
    """The kernel and the made-up GPU, compiled into a folder."""
    target = folder / "epochs.so"
    options = ["-std=c++17", "-O2", "-fno-strict-aliasing", "-U_FORTIFY_SOURCE", "-shared", "-fPIC"]
    sources = ["-I", str(HERE), "-I", str(_gpu.KERNELS.folder), str(HERE / "epochs_on_processor.cpp")]
    assert COMPILER is not None
    subprocess.run([COMPILER, *options, *sources, "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


class EmulatedKernel:
    """Takes the launches of `GpuBatch`; arrays are NumPy's."""

    def __init__(self, folder: Path) -> None:
        self.library, self.launches = library(folder), 0

    def launch(self, grid, threads, arguments, stream=None, together=False):
        assert together and threads == 256 and stream is None
        *addresses, count, first, epochs = arguments
        assert all(isinstance(number, np.int32) for number in (count, first, epochs))
        pointers = [ctypes.c_void_p(address) for address in addresses]
        self.library.train_on_processor(grid[0], *pointers, *map(int, (count, first, epochs)))
        self.launches += 1


class EmulatedDevice:
    """In the place of `GpuDevice`: arrays are NumPy's, and nothing runs concurrently."""

    arrays = np

    def __init__(self, kernel, blocks) -> None:
        self.kernel, self.blocks = kernel, blocks

    @contextmanager
    def at_work(self):
        yield

    copying = at_work

    def wait_for_copies(self) -> None:
        pass

    wait_for_work = finish = wait_for_copies

    def address(self, array):
        return array.ctypes.data

    def to_host(self, array):
        return array.copy()


def emulate(monkeypatch, folder: Path, blocks: int = 3, ahead: int = 3) -> EmulatedKernel:
    """Have `device="cuda"` run here, on so many blocks of threads, so many epochs at a time."""
    kernel = EmulatedKernel(folder)
    monkeypatch.setattr(_gpu, "check_gpu", lambda: None)
    monkeypatch.setattr(_gpu, "GpuDevice", lambda: EmulatedDevice(kernel, blocks))
    monkeypatch.setattr(_gpu, "EPOCHS_AHEAD", ahead)
    return kernel

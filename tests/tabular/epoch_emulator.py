"""The kernel of the tabular networks, compiled for the processor and run on a made-up GPU (processor_gpu.hpp)."""

import ctypes
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np

from fewfire.tabular.cuda import _epoch_kernel

HERE = Path(__file__).parent
COMPILER = shutil.which("g++")


@cache
def library(folder: Path) -> ctypes.CDLL:
    """The kernel and the made-up GPU, compiled into a folder."""
    target = folder / "epochs.so"
    options = ["-std=c++17", "-O2", "-fno-strict-aliasing", "-U_FORTIFY_SOURCE", "-shared", "-fPIC"]
    sources = ["-I", str(HERE), "-I", str(_epoch_kernel.KERNELS.folder), str(HERE / "epochs_on_processor.cpp")]
    assert COMPILER is not None
    subprocess.run([COMPILER, *options, *sources, "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


class EmulatedKernel:
    """Takes the launches of `EpochKernel`; tensors are the processor's."""

    def __init__(self, folder: Path) -> None:
        self.library, self.launches = library(folder), 0

    def launch(self, grid, threads, arguments, stream=None, together=False):
        assert together and threads == 256 and stream is None
        *addresses, count, first, epochs = arguments
        assert all(isinstance(number, np.int32) for number in (count, first, epochs))
        pointers = [ctypes.c_void_p(address) for address in addresses]
        self.library.train_on_processor(grid[0], *pointers, *map(int, (count, first, epochs)))
        self.launches += 1

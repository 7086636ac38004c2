"""Epochs of networks of any layouts in one launch of a kernel (epochs.cu), on memory and streams of PyTorch's.

`DeviceBatch` takes it where CuPy and NVRTC are installed and the kernel knows the networks; else steps of PyTorch's are
recorded. Nothing waits for the device here. Only networks that are wanted get blocks of threads: those that stopped
cost nothing.
"""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._cuda import CompileError, Kernel, KernelSource, compiled, current_device, missing
from fewfire._optional import require
from fewfire.tabular.cuda._records import known, records, share_blocks, work, workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire.tabular._layout_stack import LayoutStack
    from fewfire.tabular._network import Layout
    from fewfire.tabular.cuda._records import NetworkLoad

KERNELS = KernelSource(Path(__file__).parent)
THREADS = 256
PER_MULTIPROCESSOR = 2  # blocks hide each other's waits
SPACE_BYTES = 2**30  # that layers of rows held out may take at a time
APART = 32  # numbers from one team's counter to the next

_LOADED: dict[int, tuple[Any, int] | None] = {}  # by number of the device
_LOADING = threading.Lock()


def load_kernel(layouts: Sequence[Layout]) -> tuple[Any, int] | None:
    """The kernel, and how many blocks of it the device holds at a time; None where it cannot train such networks."""
    if not all(map(known, layouts)):
        return None
    number = int(require("torch", "torch", "engine='torch'").cuda.current_device())
    with _LOADING:
        if number not in _LOADED:
            _LOADED[number] = None if missing() is not None else _load()
        return _LOADED[number]


def _load() -> tuple[Any, int] | None:
    device = current_device()
    try:
        code = compiled(KERNELS, "epochs.cu", device.architecture)
    except CompileError as error:
        remedy = "Fits are right all the same, by recorded steps, but slower. Remedy: install another NVRTC."
        warnings.warn(f"the kernel for tabular networks could not be compiled: {error}\n{remedy}", stacklevel=2)
        return None
    kernel = Kernel(code, "train_epochs")
    per_multiprocessor = min(PER_MULTIPROCESSOR, kernel.blocks_per_multiprocessor(THREADS, 0))
    return kernel, per_multiprocessor * device.multiprocessors


class EpochKernel:
    """Stacks of networks as the kernel sees them.

    Parameters
    ----------
    kernel : Kernel
    blocks : int
        Of threads, that are on the device at a time.
    stacks : list of LayoutStack
        Prepared; their tensors stay where they are.
    loads : list of NetworkLoad per stack
    stream : torch.cuda.Stream, optional
        Where it is launched.
    """

    def __init__(
        self,
        kernel: Any,
        blocks: int,
        stacks: Sequence[LayoutStack],
        loads: Sequence[Sequence[NetworkLoad]],
        stream: Any = None,
    ) -> None:
        self._kernel, self._blocks, self._stream = kernel, blocks, None if stream is None else stream.cuda_stream
        self._stacks, self._spaces, found = stacks, [], []
        networks = sum(map(len, loads))
        for stack, some in zip(stacks, loads, strict=True):
            layout, batch = stack.layout, max(load.batch for load in some)
            numbers = workspace(layout, 1, 0).numbers
            most = max(batch, SPACE_BYTES // (4 * numbers * networks))
            rows = max(batch, min(most, max(load.held for load in some)))
            room = workspace(layout, rows, max(load.part for load in some))
            space = stack.parameters.new_empty((len(some), room.numbers))
            self._spaces.append(space)  # kept as long as the kernel may write there
            found.append(records(stack, some, space, room.begins, rows))
        self._records = np.concatenate(found)
        self._works = [
            work(stack.layout, load.part) for stack, some in zip(stacks, loads, strict=True) for load in some
        ]
        self._shares: dict[tuple[int, ...], tuple[Any, Any, Any, int]] = {}

    def run(self, networks: Sequence[int], first: int, epochs: int) -> None:
        """Begin so many epochs of the blocks, from a number on, of networks counted over all stacks."""
        key = tuple(networks)
        if key not in self._shares:
            self._shares[key] = self._shared(key)
        chosen, shares, arrived, count = self._shares[key]
        arrived.zero_()
        addresses = [tensor.data_ptr() for tensor in (chosen, shares, arrived)]
        self._kernel.launch(
            (len(shares),),
            THREADS,
            (*addresses, np.int32(count), np.int32(first), np.int32(epochs)),
            stream=self._stream,
            together=True,
        )

    def _shared(self, wanted: tuple[int, ...]) -> tuple[Any, Any, Any, int]:
        """On the device: records, shares of blocks, and counters for teams; and how many networks."""
        numbers = list(wanted)
        chosen = self._records[numbers].view(np.int64).reshape(len(numbers), -1)
        shares = share_blocks([self._works[number] for number in numbers], self._blocks)
        place = self._stacks[0].placed
        counters = np.zeros(APART * len(numbers), np.int32)
        return place(chosen), place(shares), place(counters), len(numbers)

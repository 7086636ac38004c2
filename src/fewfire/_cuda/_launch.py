"""Memory, kernels and waiting, through CuPy: the only file that calls it to do something."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fewfire._cuda._device import load_cupy
from fewfire._errors import DeviceMemoryError
from fewfire._types import AnyArray

_ALIGN = 256
_REPORT_EVERY = 0.2  # seconds
_LONGEST_NAP = 0.002
_ORDERED_AT_ONCE = 1 << 24  # words
_STARTING = threading.Lock()
_own = threading.local()


class Arena:
    """One allocation from which a batch takes what it needs, in pieces of 256 bytes; addresses are plain integers.

    Nothing happens on the device before `flush`: a batch is described while the one before it still trains.
    """

    def __init__(self, size: int) -> None:
        cupy = load_cupy()
        self._runtime = cupy.cuda.runtime
        # From the pool of the null stream, whichever thread allocates: what a batch leaves, any other may have.
        with _memory_in_words(), cupy.cuda.Stream.null:
            self._memory = cupy.cuda.alloc(size)
        self._waiting: list[tuple[int, AnyArray]] = []
        self._start, self._size, self._used = int(self._memory.ptr), size, 0
        self._stream = cupy.cuda.Stream(non_blocking=True)

    def reserve(self, size: int) -> int:
        """The address of `size` bytes of zeros."""
        at = self._start + self._used
        self._used += rounded(size)
        assert self._used <= self._size, "a batch outgrew its plan"
        return at

    def put(self, array: AnyArray) -> int:
        """The address that a copy of an array will have; it must not change before `flush`."""
        array = np.ascontiguousarray(array)
        at = self.reserve(array.nbytes)
        self._waiting.append((at, array))
        return at

    def flush(self) -> None:
        """Zero everything and copy what was put, on the current stream."""
        self._memory.memset_async(0, self._size)
        stream = load_cupy().cuda.get_current_stream().ptr
        for at, array in self._waiting:
            self._runtime.memcpyAsync(at, array.ctypes.data, array.nbytes, self._runtime.memcpyHostToDevice, stream)
        self._waiting.clear()

    def get(self, at: int, shape: int | tuple[int, ...], dtype: Any) -> AnyArray:
        """What lies at an address, read while kernels may run."""
        out = np.empty(shape, dtype)
        self._copy(out.ctypes.data, at, out.nbytes, self._runtime.memcpyDeviceToHost)
        return out

    def poke(self, at: int, value: AnyArray) -> None:
        """Write a small array at an address while a kernel runs."""
        self._copy(at, value.ctypes.data, value.nbytes, self._runtime.memcpyHostToDevice)

    def _copy(self, to: int, source: int, size: int, kind: int) -> None:
        self._runtime.memcpyAsync(to, source, size, kind, self._stream.ptr)
        self._stream.synchronize()


@contextmanager
def _memory_in_words() -> Iterator[None]:
    """CuPy's error about memory as the package's own."""
    try:
        yield
    except load_cupy().cuda.memory.OutOfMemoryError as error:
        raise DeviceMemoryError(f"the device has too little memory: {error}") from None


def rounded(size: int) -> int:
    """What `Arena.reserve` takes for so many bytes."""
    return -(-size // _ALIGN) * _ALIGN


class _BorrowedStream:
    """Another package's stream, by CUDA's protocol for handing them over."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        """Version of the protocol, and the handle."""
        return 0, self._handle


class Kernel:
    """A kernel of compiled machine code, by its name there."""

    def __init__(self, code: bytes, name: str) -> None:
        self._cupy = cupy = load_cupy()
        self._module = cupy.cuda.function.Module()
        self._module.load(code)
        self._function = self._module.get_function(name)

    def numbers(self, symbol: str, count: int) -> list[int]:
        """The 32-bit integers that the code keeps under a name."""
        out, runtime = np.zeros(count, np.int32), self._cupy.cuda.runtime
        runtime.memcpy(
            out.ctypes.data, int(self._module.get_global_var(symbol)), out.nbytes, runtime.memcpyDeviceToHost
        )
        return [int(number) for number in out]

    def allow_shared(self, size: int) -> None:
        """Let a block have so many bytes of dynamic shared memory."""
        driver = self._cupy.cuda.driver
        driver.funcSetAttribute(self._function.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, size)

    def blocks_per_multiprocessor(self, threads: int, shared: int) -> int:
        """How many blocks of this shape one multiprocessor holds at a time."""
        driver = self._cupy.cuda.driver
        return int(driver.occupancyMaxActiveBlocksPerMultiprocessor(self._function.ptr, threads, shared))

    def launch(
        self,
        grid: tuple[int, ...],
        threads: int,
        arguments: Sequence[Any],
        shared: int = 0,
        stream: int | None = None,
        together: bool = False,
    ) -> None:
        """Start it, with `shared` bytes of dynamic shared memory; integers among the arguments are addresses.

        `stream` is the handle of another package's stream, CuPy's current one by default. `together`: all blocks have
        to be on the chip at the same time (a cooperative launch).
        """
        given = tuple(np.uint64(value) if type(value) is int else value for value in arguments)
        on = None if stream is None else _borrowed(self._cupy, stream)
        self._function(grid, (threads,), given, shared, on, together)


def _borrowed(cupy: Any, handle: int) -> Any:
    borrow = getattr(cupy.cuda.Stream, "from_external", None)  # since CuPy 14
    return cupy.cuda.ExternalStream(handle) if borrow is None else borrow(_BorrowedStream(handle))


@contextmanager
def own_stream() -> Iterator[None]:
    """Run the work of a thread on the device concurrently with that of others: each thread has one stream per device.

    After an error, what was begun is waited for: memory that is given back then may be another's at once.
    """
    cupy = load_cupy()
    streams: dict[int, Any] = _own.__dict__.setdefault("streams", {})
    device = int(cupy.cuda.Device().id)
    if device not in streams:
        streams[device] = cupy.cuda.Stream(non_blocking=True)
    with streams[device] as stream:
        try:
            yield
        except BaseException:
            stream.synchronize()
            raise


def watch(
    start: Callable[[], None],
    report: Callable[[bool], None],
    stop: Callable[[], None],
    ready: Callable[[], bool] = lambda: True,
) -> float:
    """Start a kernel when the current stream is done with what came before; gives its seconds on the device.

    Until `ready` is true no other kernel is started this way: blocks that wait for each other must all be on the chip,
    and those of a kernel that came between would take their room and might wait in turn. `report` is called now and
    then with whether the kernel was started; what it raises, like Ctrl-C, ends the kernel by `stop`, which is waited
    for.
    """
    cupy = load_cupy()
    begun, done = cupy.cuda.Event(), cupy.cuda.Event()
    reported, started = time.monotonic(), False

    def wait(ended: Callable[[], bool]) -> None:
        nonlocal reported
        nap = 2e-4
        while not ended():
            time.sleep(nap)
            nap = min(2 * nap, _LONGEST_NAP)
            if time.monotonic() - reported > _REPORT_EVERY:
                report(started)
                reported = time.monotonic()

    begun.record()
    wait(lambda: bool(begun.done))
    wait(lambda: _STARTING.acquire(blocking=False))
    try:
        try:
            begun.record()
            start()
            started = True
            done.record()
            wait(lambda: bool(done.done) or ready())
        finally:
            _STARTING.release()
        wait(lambda: bool(done.done))
    except BaseException:
        if started:
            stop()
            done.synchronize()
        raise
    return 1e-3 * float(cupy.cuda.get_elapsed_time(begun, done))


def order_bytes(examples: int) -> int:
    """What `write_orders` takes for a while: words, keys, sorted keys, room to sort, and the order."""
    return 40 * max(_ORDERED_AT_ONCE, examples)


@_memory_in_words()
def write_orders(draw: Kernel, key: int, stream: int, examples: int, positions: int, to: int) -> None:
    """The stable orders of `examples` words each, one after the other, as 32-bit numbers from address `to` on.

    Takes `order_bytes(examples)` more. `draw` writes words `start` … `start + count − 1` of a stream as 64-bit numbers;
    its arguments are (key, stream, start, count, to).
    """
    cupy = load_cupy()
    turns = -(-positions // examples)
    per_turn = max(1, _ORDERED_AT_ONCE // examples)
    index = cupy.arange(examples, dtype=cupy.uint64)
    for first in range(0, turns, per_turn):
        count = min(per_turn, turns - first)
        words = cupy.empty((count, examples), cupy.uint64)
        numbers = (np.uint64(value) for value in (key, stream, first * examples, count * examples))
        draw.launch((256,), 256, (*numbers, int(words.data.ptr)))
        order = (cupy.sort((words << np.uint64(32)) | index, axis=1) & np.uint64(0xFFFFFFFF)).astype(cupy.uint32)
        part = order.reshape(-1)[: positions - first * examples]
        runtime, stream = cupy.cuda.runtime, cupy.cuda.get_current_stream().ptr
        runtime.memcpyAsync(to + 4 * first * examples, part.data.ptr, part.nbytes, runtime.memcpyDeviceToDevice, stream)

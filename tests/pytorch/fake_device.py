"""A GPU made of NumPy: what launches a sparse block is the real thing, the kernel computes on the host's memory.

The CPU's platform becomes that of a GPU, so models on the CPU in half or single precision take its path. A launch
checks what the real kernel relies on: counters that no unfinished launch uses, and that are as they must be.
"""

import ctypes
from types import SimpleNamespace

import numpy as np
import torch

from fewfire._cuda._device import Device
from fewfire.torch import _platforms
from fewfire.torch.cuda import _device_block
from fewfire.torch.cuda._codes import BIAS, SCALES, STEP
from fewfire.torch.cuda._device_block import ACTIVATIONS, GATES

H200 = Device("made up", 90, 132, 232448, 1 << 37)


def read(address, count, kind):
    """Numbers at an address, by reference; half precision of brains as 16-bit integers."""
    dtype = {0: np.uint16, 1: np.float16, 2: np.float32}[kind]
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype)


def floats(address, rows, columns, kind):
    raw = read(address, rows * columns, kind)
    wide = (raw.astype(np.uint32) << 16).view(np.float32) if kind == 0 else raw.astype(np.float32)
    return wide.reshape(rows, columns)


def write(address, values, kind):
    to = read(address, values.size, kind)
    rounded = torch.from_numpy(np.ascontiguousarray(values)).to([torch.bfloat16, torch.float16, torch.float32][kind])
    to[:] = rounded.view(torch.int16).numpy().view(to.dtype).reshape(-1) if kind < 2 else values.reshape(-1)


class FakeKernel:
    """Computes densely, in float32."""

    def __init__(self, gpu, shape):
        self.gpu, self.shape = gpu, SimpleNamespace(**shape)

    def numbers(self, _symbol, _count):
        return [self.shape.BATCH * self.gpu.shared_per_row]

    def allow_shared(self, size):
        assert size <= H200.shared_bytes

    def blocks_per_multiprocessor(self, _threads, shared):
        return H200.shared_bytes // shared

    def launch(self, grid, threads, arguments, shared, stream, together):
        assert together and threads == self.shape.THREADS and shared <= H200.shared_bytes
        s, (blocks,) = self.shape, grid
        arguments = [int(value) if isinstance(value, np.uint64) else value for value in arguments]
        x, y, codes, bounds, first, factor, factor_bias, second, second_bias = arguments[:9]
        width, threshold, counts, _rows, _values, _shares, finished, arrived = arguments[9:]
        assert codes and bounds and arrived % 8 == 0
        self.gpu.launches.append(SimpleNamespace(stream=stream, batch=s.BATCH, counters=finished))
        arrivals = read(arrived, 2, 2).view(np.uint64)
        assert int(arrivals[0]) % blocks == 0 and not read(finished, 1, 2).view(np.uint32).any()
        arrivals += np.uint64(blocks)
        inputs = floats(x, s.BATCH, s.INPUTS, s.TYPE)
        known = -(-(SCALES + -(-s.INPUTS // STEP)) // 4) * 4
        bias = floats(bounds, width, known, 2)[:, BIAS]
        with np.errstate(all="ignore"):
            z = inputs @ floats(first, width, s.INPUTS, s.TYPE).T + bias
            kind = ACTIVATIONS[s.ACTIVATION]
            value = {"shifted": z - threshold, "relu2": z * z}.get(kind, z)
            value = np.where(z <= threshold, np.float32(0), value)
            if GATES[s.GATED] is not None:
                other = inputs @ floats(factor, width, s.INPUTS, s.TYPE).T + floats(factor_bias, 1, width, 2)
                value = value * (np.maximum(other, 0) if GATES[s.GATED] == "drelu" else other)
            out = value @ floats(second, width, s.OUTPUTS, s.TYPE) + floats(second_bias, 1, s.OUTPUTS, 2)
        write(y, out.astype(np.float32), s.TYPE)
        listed = read(counts, blocks, 2).view(np.int32)
        listed[:] = 0
        listed[0] = (value != 0).any(axis=0).sum()


class FakeGpu:
    """What a test may set and look at.

    Attributes
    ----------
    capturing : bool
    stream : int
        The current one.
    shared_per_row : int
        Bytes of shared memory that a kernel needs per row of its batch.
    launches : list
    """

    def __init__(self, monkeypatch):
        self.capturing, self.stream, self.shared_per_row, self.launches = False, 7, 20_000, []
        self.absent = None
        monkeypatch.setattr(_device_block, "_LOADED", {})
        monkeypatch.setattr(_device_block, "missing", lambda: self.absent)
        monkeypatch.setattr(_device_block, "current_device", lambda: H200)
        monkeypatch.setattr(_device_block, "compiled", lambda _source, _file, _architecture, shape: shape)
        monkeypatch.setattr(_device_block, "Kernel", lambda shape, _name: FakeKernel(self, shape))
        monkeypatch.setattr(torch.cuda, "current_stream", lambda _device=None: self)
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: self.capturing)
        monkeypatch.setattr(_platforms, "missing", lambda _otherwise: self.absent)
        monkeypatch.setitem(_platforms.PLATFORMS, "cpu", _platforms.Gpu())

    @property
    def cuda_stream(self):
        return self.stream

    def synchronize(self):
        assert not self.capturing

    @property
    def rows(self):
        """Of the launches so far."""
        return [launch.batch for launch in self.launches]

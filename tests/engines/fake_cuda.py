"""A device that only counts: memory with an end, and kernels that note how they were started and finish every run."""

import time
from contextlib import nullcontext

import numpy as np

from fewfire._cuda._device import Device
from fewfire._cuda._launch import rounded
from fewfire._errors import DeviceMemoryError
from fewfire.engines.cuda import CudaEngine, _batch, _engine
from fewfire.engines.cuda import _records as records

H200 = Device("NVIDIA H200", 90, 132, 232448, 149_557_477_376)
A100 = Device("NVIDIA A100", 80, 108, 166912, 42_000_000_000)
SMALL = Device("small", 90, 132, 232448, 40_000_000)


class FakeDevice:
    """What the fakes share.

    Parameters
    ----------
    properties : Device
    memory : int, optional
        Bytes that can really be had, where that is less than the properties report.
    """

    def __init__(self, properties=H200, memory=None):
        self.properties, self.memory = properties, properties.memory if memory is None else memory
        self.used, self.peak, self.next_address = 0, 0, 1 << 20
        self.held, self.launches, self.poked, self.refused, self.naps = {}, [], [], 0, 0

    def arena(self, size):
        return FakeArena(self, size)

    def kernel(self, file, name, definitions=()):
        return FakeKernel(self, name), [40_000, 4224, records.JOB.itemsize, records.OUTCOME.itemsize]

    def watch(self, start, tell, stop, ready):
        """Trains for `naps` looks of the host."""
        start()
        try:
            for _ in range(self.naps):
                time.sleep(0.01)
                ready()
                tell(True)
        except BaseException:
            stop()
            raise
        return 1e-3

    def install(self, monkeypatch):
        """Have the engine find this device and no other."""
        fakes = ("Arena", self.arena), ("kernel", self.kernel), ("watch", self.watch), ("own_stream", nullcontext)
        for name, fake in fakes:
            monkeypatch.setattr(_batch, name, fake)
        for module in (_batch, _engine):
            monkeypatch.setattr(module, "current_device", lambda: self.properties)
        monkeypatch.setattr(_engine, "all_devices", lambda: [self.properties])
        monkeypatch.setattr(_engine, "compile_ahead", lambda *source: None)
        monkeypatch.setattr(CudaEngine, "unusable", lambda engine: None)
        return self


class FakeArena:
    """Device memory that is only counted; what was put there, or written by a kernel, can be read."""

    def __init__(self, device, size):
        if device.used + size > device.memory:
            device.refused += 1
            raise DeviceMemoryError(f"{size} bytes could not be had")
        device.used += size
        device.peak = max(device.peak, device.used)
        self.device, self.size, self.used, self.held = device, size, 0, device.held
        self.start, device.next_address = device.next_address, device.next_address + size

    def __del__(self):
        if hasattr(self, "size"):
            self.device.used -= self.size

    def reserve(self, size):
        at, self.used = self.start + self.used, self.used + rounded(size)
        assert self.used <= self.size
        return at

    def put(self, array):
        at = self.reserve(array.nbytes)
        self.held[at] = np.array(array)
        return at

    def flush(self):
        pass

    def get(self, at, shape, dtype):
        unwritten = np.ones if dtype is records.CONTROL else np.zeros  # counters of a kernel that runs
        return self.held.get(at, unwritten(shape, dtype))

    def poke(self, at, value):
        self.device.poked.append(value)


class FakeKernel:
    """A kernel that notes what it was started with; training ends every run after all its steps."""

    def __init__(self, device, name):
        self.device, self.name = device, name

    def allow_shared(self, size):
        assert size <= self.device.properties.shared_bytes

    def blocks_per_multiprocessor(self, threads, shared):
        return 1

    def launch(self, grid, threads, arguments, shared=0):
        self.device.launches.append((self.name, grid, threads))
        if self.name.startswith("train"):
            jobs, outcomes = self.device.held[arguments[0]], np.zeros(int(arguments[2]), records.OUTCOME)
            outcomes["stopped"], outcomes["steps"], outcomes["records"] = 1, jobs["steps"], jobs["checks"]
            outcomes["active_pairs"] = jobs["key"] % 1000  # distinguishes the runs
            self.device.held[arguments[1]] = outcomes

"""What the device offers, as plain numbers that planners take, and why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fewfire._cuda._nvrtc import REMEDY, find_nvrtc
from fewfire._optional import is_installed, require


@dataclass(frozen=True)
class Device:
    """Properties of a GPU: architecture as in sm_90, bytes of shared memory per block, bytes of memory free now."""

    name: str
    architecture: int
    multiprocessors: int
    shared_bytes: int
    memory: int


def load_cupy() -> Any:
    """CuPy itself, imported at the first call."""
    return require("cupy", "cuda13", "the cuda engine")


def missing(otherwise: str = "use engine='cpu'") -> str | None:
    """What keeps CUDA from running here, with the remedy, and what to do otherwise; None when nothing does."""
    if not is_installed("cupy"):
        return f"CuPy is not installed. {REMEDY}"
    cupy = load_cupy()
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CUDA found no usable device ({error}). Remedy: install NVIDIA's driver, or {otherwise}."
    if count == 0:
        return f"CUDA found no device. Remedy: run on a machine with an NVIDIA GPU, or {otherwise}."
    if find_nvrtc() is None:
        return f"NVRTC was not found. {REMEDY}"
    if current_device().architecture < 80:
        return f"the GPU is older than compute capability 8.0 (Ampere). Remedy: {otherwise}."
    return None


def device_errors() -> tuple[type[Exception], ...]:
    """What CuPy raises when CUDA answers with an error."""
    if not is_installed("cupy"):
        return ()
    cuda = load_cupy().cuda
    return cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError


def take_device(number: int) -> None:
    """Have CuPy use another device from now on, in this thread; numbers beyond the last begin again."""
    cupy = load_cupy()
    cupy.cuda.Device(number % cupy.cuda.runtime.getDeviceCount()).use()


def all_devices() -> list[Device]:
    """Every device that this process may use."""
    cupy = load_cupy()
    found = []
    for number in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(number):
            found.append(current_device())
    return found


def current_device() -> Device:
    """The device that CuPy uses now."""
    cupy = load_cupy()
    number = cupy.cuda.Device().id
    properties = cupy.cuda.runtime.getDeviceProperties(number)
    free, _ = cupy.cuda.runtime.memGetInfo()
    return Device(
        properties["name"].decode(),
        10 * properties["major"] + properties["minor"],
        properties["multiProcessorCount"],
        properties["sharedMemPerBlockOptin"],
        free + cupy.get_default_memory_pool().free_bytes(),
    )

"""CUDA beneath the engines: finding a device, compiling kernels by NVRTC, keeping them, launching them through CuPy.

CuPy is the one GPU package: it brings memory pools, streams and launches, and has wheels for CUDA 12 and 13. NVRTC is
called directly, because a kernel here is several files and CuPy's own cache does not see included ones.
"""

from fewfire._cuda._compile import KernelSource, compiled
from fewfire._cuda._device import Device, all_devices, current_device, device_errors, missing, take_device
from fewfire._cuda._launch import Arena, Kernel, order_bytes, own_stream, rounded, watch, write_orders
from fewfire._cuda._nvrtc import CompileError, find_nvrtc

__all__ = [
    "Arena",
    "CompileError",
    "Device",
    "Kernel",
    "KernelSource",
    "all_devices",
    "compiled",
    "current_device",
    "device_errors",
    "find_nvrtc",
    "missing",
    "order_bytes",
    "own_stream",
    "rounded",
    "take_device",
    "watch",
    "write_orders",
]

"""CUDA beneath the engines: finding a device, compiling kernels by NVRTC, keeping them, launching them through CuPy.

CuPy is the one GPU package: it has memory pools, streams and launches, and has wheels for CUDA 12 and 13. NVRTC is
called directly, because a kernel here is several files and CuPy's own cache does not see included ones.
"""

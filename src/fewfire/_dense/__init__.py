"""The core of dense networks: `network` (rows, parameters, forward and backward), `losses`, `optimisers`, `kernels`.

NumPy is the reference implementation; `network.FusedNetwork` runs whole epochs in C++ (csrc/kernels/mlp_training.hpp).
"""

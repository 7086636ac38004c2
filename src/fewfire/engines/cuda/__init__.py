"""The CUDA engine: thousands of runs on one GPU, whole trainings inside persistent kernels.

| file | holds |
| --- | --- |
| `philox.cuh`, `job.cuh`, `queue.cuh` | random words, the records of a run, taking runs in turn |
| `draw.cu` | examples and starts drawn on the device |
| `tile.cuh`, `warp_products.cuh`, `warpgroup_products.cuh` | weights in registers; their products on tensor cores |
| `rows.cuh`, `exchange.cuh` | examples on their way, sums over blocks |
| `neurons.cuh`, `training.cuh` | what a step does to a warp's neurons; steps from start to end |
| `checkpoints.cuh` | what is measured at a checkpoint |
| `resident.cu`, `stream.cu` | weights in registers for the whole training; weights streaming through them |
| `general.cu` | any run, correct first |
| `_layouts.py`, `_kernels.py` | which shapes there are, how many runs at once; which kernel serves a run |
| `_memory.py` | batches that fit, planned before anything is allocated |
| `_records.py`, `_shared.py` | the host's side of a batch: records; tables that runs share |
| `_batch.py` | a batch on the device, and the results of its runs |
| `_pace.py`, `_engine.py` | seconds per step, the engine |
"""

from fewfire.engines.cuda._engine import CudaEngine

__all__ = ["CudaEngine"]

"""The CUDA engine: thousands of runs on one GPU, whole trainings inside persistent kernels.

| file | holds |
| --- | --- |
| `philox.cuh`, `job.cuh`, `queue.cuh` | random words, what the host says about a run, taking runs in turn |
| `draw.cu` | examples and starts drawn on the device |
| `tile.cuh`, `warp_products.cuh`, `warpgroup_products.cuh` | weights in registers; their products on tensor cores |
| `rows.cuh`, `exchange.cuh` | examples on their way, sums over blocks |
| `neurons.cuh`, `training.cuh` | what a step does to a warp's neurons; steps from start to end |
| `checkpoints.cuh` | what a run tells on its way |
| `resident.cu`, `stream.cu` | weights in registers for the whole training; weights streaming through them |
| `general.cu` | any run, correct first |
| `_layouts.py` | which kernel and shape serves a run, how many at once |
| `_records.py`, `_schedules.py`, `_batch.py`, `_engine.py` | the host's side: records, tables, a batch, the engine |
"""

from fewfire.engines.cuda._engine import CudaEngine
from fewfire.engines.cuda._layouts import KernelLayout, choose_layout

__all__ = ["CudaEngine", "KernelLayout", "choose_layout"]

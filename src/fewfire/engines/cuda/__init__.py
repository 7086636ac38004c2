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
| `_layouts.py`, `_variants.py` | which shapes there are, how many runs at once; which kernel serves a run |
| `_memory.py` | batches that fit, planned before anything is allocated |
| `_records.py`, `_same.py`, `_schedules.py` | the host's side of a batch: records and tables |
| `_batch.py`, `_results.py` | a batch on the device, and what became of its runs |
| `_ahead.py`, `_pace.py`, `_engine.py` | kernels compiled ahead, microseconds per step, the engine |
"""

from fewfire.engines.cuda._engine import CudaEngine
from fewfire.engines.cuda._layouts import KernelLayout, choose_layout

__all__ = ["CudaEngine", "KernelLayout", "choose_layout"]

"""The JAX engine: many runs of one shape at once, on whatever JAX computes on.

| file | holds |
| --- | --- |
| `_philox.py` | random words and permutations on the device |
| `_steps.py` | what is compiled: steps of training, and what a checkpoint measures |
| `_batch.py` | runs of one shape, from their descriptions to their results |
| `_engine.py` | which runs go together; the engine |
"""

from fewfire.engines.jax._engine import JaxBf16Engine, JaxEngine, JaxTf32Engine

__all__ = ["JaxBf16Engine", "JaxEngine", "JaxTf32Engine"]

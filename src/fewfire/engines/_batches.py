"""Which examples a step sees: one law for all engines.

Step t (from 0) of a run with batch size B reads words tB … tB + B − 1 of its stream "batches":
with replacement, example ⌊word·m / 2³²⌋; by epochs, position p = tB + j of the endless concatenation of
permutations, the e-th being the stable order of words em … em + m − 1 of the child stream "epochs".
Online, step t sees rows tB … tB + B − 1 of the child stream "online".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fewfire._random import Stream
    from fewfire._types import IdArray


def with_replacement(stream: Stream, examples: int, batch_size: int, position: int) -> IdArray:
    """Independent draws; `position` counts the draws made before."""
    return stream.integers(examples, batch_size, start=position)


def by_epochs(stream: Stream, examples: int, batch_size: int, position: int) -> IdArray:
    """The next piece of the endless row of permutations."""
    first, last = position // examples, (position + batch_size - 1) // examples
    epochs = stream.child("epochs")
    order = np.concatenate([epochs.permutation(examples, start=e * examples) for e in range(first, last + 1)])
    return order[position - first * examples :][:batch_size]

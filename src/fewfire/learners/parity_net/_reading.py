"""Reading a trained network: which inputs it uses, and which neurons were lucky from the start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire.networks import TwoLayer, relevance

if TYPE_CHECKING:
    from fewfire._types import IdArray


def find_support(network: TwoLayer, k: int | None) -> tuple[int, ...]:
    """The inputs that carry the weight mass: the k heaviest, or those above the widest gap in ratio.

    The gap is looked for in the upper half of the sorted masses, so at most half of the inputs are named.
    """
    masses = relevance(network)
    if k is None:
        mass = np.sort(masses.mass)[::-1]
        half = max(1, len(mass) // 2)
        ratios = mass[:half] / np.maximum(mass[1 : half + 1], 1e-300) if len(mass) > 1 else np.ones(1)
        k = int(np.argmax(ratios)) + 1
    return tuple(sorted(masses.largest(k)))


def lucky_neurons(initial: TwoLayer, support: tuple[int, ...]) -> IdArray:
    """Neurons whose initial large weights contain the support, or are contained in it (pareto, B.2 and B.3).

    Large are weights above half of the row's largest. Dense starts have no such sets, and no lucky neurons.
    """
    size = np.abs(initial.hidden)
    large = size > 0.5 * size.max(axis=1, keepdims=True)
    inside = large[:, list(support)].sum(axis=1)
    total = large.sum(axis=1)
    lucky = (inside == len(support)) | ((inside == total) & (total > 0))
    is_sparse = bool((np.sort(size, axis=1)[:, :1] < 0.5 * size.max(axis=1, keepdims=True)).all()) and bool(
        np.all(total == total[0])
    )
    return np.flatnonzero(lucky) if is_sparse else np.empty(0, dtype=np.int64)

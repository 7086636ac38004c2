"""What a trainer has done, in counts: exact on every machine, so tests can assert them."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class TrainerCounters:
    """Work since the trainer was made; a pair is a neuron and an example.

    Parameters
    ----------
    active_last : active pairs of the last evaluation
    active : active pairs of all evaluations
    touched : pairs looked at to find them; at least `active`
    neurons_touched : neurons with such pairs, summed over evaluations
    neurons_updated : neurons whose weights changed, summed over steps
    refreshes : neurons scored on all anchors again after the first time
    full_passes : times that all neurons were scored on all examples
    multiply_adds : products of a weight and an input, in 8 or 32 bits, refreshes and full passes included
    dense_multiply_adds : what the same calls take when every pair is computed
    bytes : weights, lists and bookkeeping read and written
    """

    active_last: int = 0
    active: int = 0
    touched: int = 0
    neurons_touched: int = 0
    neurons_updated: int = 0
    refreshes: int = 0
    full_passes: int = 0
    multiply_adds: int = 0
    dense_multiply_adds: int = 0
    bytes: int = 0

    def __sub__(self, earlier: TrainerCounters) -> TrainerCounters:
        """Work between two readings; `active_last` stays that of the later one."""
        differences = {f.name: getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)}
        return TrainerCounters(**differences | {"active_last": self.active_last})

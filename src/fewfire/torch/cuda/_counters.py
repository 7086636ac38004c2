"""Counters for launches whose blocks of threads wait for each other: never two running launches on the same ones.

A launch leaves its counters as the next one needs them, so the launches of one stream, which follow each other, can
share theirs. A CUDA graph may be replayed next to anything, so each launch that is captured gets counters of its own,
for good. They lie in memory taken beforehand, because memory taken while a graph is captured belongs to the graph.
Where they run out, counters are made for the one launch and zeroed before it, by one more small piece of work.
"""

from __future__ import annotations

import threading
from typing import Any

from fewfire._optional import require

torch: Any = require("torch", "torch", "fewfire.torch")

STREAMS, CAPTURED = 8, 24
"""How many streams, and how many launches in graphs, have counters of their own."""


class LaunchCounters:
    """Sets of `words` 32-bit counters that start at 0."""

    def __init__(self, words: int, device: Any) -> None:
        self._words = -(-words // 32) * 32  # lines of their own
        self._memory = torch.zeros(STREAMS + CAPTURED, self._words, dtype=torch.int32, device=device)
        self._start = int(self._memory.data_ptr())
        self._of_stream: dict[int, int] = {}
        self._captured = 0
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        return int(self._memory.nbytes)

    def take(self, stream: int, captured: bool) -> tuple[int, Any]:
        """The address of the counters for a launch on a stream, and what must be kept until it was launched."""
        index = None if captured else self._of_stream.get(stream)
        if index is None:
            index = self._next(stream, captured)
        if index is None:
            lone = torch.zeros(self._words, dtype=torch.int32, device=self._memory.device)
            return lone.data_ptr(), lone
        return self._start + 4 * self._words * index, self._memory

    def _next(self, stream: int, captured: bool) -> int | None:
        with self._lock:
            if captured:
                self._captured += 1
                return STREAMS + self._captured - 1 if self._captured <= CAPTURED else None
            if stream not in self._of_stream and len(self._of_stream) < STREAMS:
                self._of_stream[stream] = len(self._of_stream)
            return self._of_stream.get(stream)

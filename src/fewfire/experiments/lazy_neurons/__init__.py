"""Networks trained from scratch to see how few of their neurons fire ("lazy neurons"); modules here load PyTorch."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fewfire._optional import require

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Hold PyTorch to one thread: networks this small gain nothing from more, and sums round alike on any machine."""
    torch: Any = require("torch", "torch", "fewfire.experiments.lazy_neurons")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)

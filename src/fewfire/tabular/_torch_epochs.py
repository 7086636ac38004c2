"""Epochs of stacks by PyTorch's steps: on a GPU recorded once as a CUDA graph, each stack on a stream of its own.

A network of a few thousand weights costs launches, not arithmetic, and a recording is launched as a whole. On a
processor nothing is recorded.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from fewfire.tabular._torch_steps import TorchSteps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fewfire.tabular._layout_stack import LayoutStack


class TorchEpochs:
    """Prepared stacks, stepped side by side.

    Parameters
    ----------
    torch : module
    stacks : list of LayoutStack
    steps : int
        Of an epoch that are one recording, at most.
    on_gpu : bool
    """

    def __init__(self, torch: Any, stacks: Sequence[LayoutStack], steps: int, on_gpu: bool) -> None:
        self._torch, self._on_gpu = torch, on_gpu
        self._steps = [TorchSteps(stack) for stack in stacks]
        longest = max(stack.block.rows.shape[1] for stack in stacks)
        self._replays = -(-longest // steps)
        self._recorded = steps
        self._graphs: list[Any] = []
        if on_gpu:
            self._stream = torch.cuda.current_stream()
            self._side_streams = [torch.cuda.Stream() for _ in stacks]
            self._record()

    def run(self, networks: Sequence[int], first: int, epochs: int) -> None:
        """Begin so many epochs of the blocks, from a number on; networks without rows there stay as they are."""
        for steps in self._steps:
            steps.epoch.fill_(first)
        for _ in range(epochs):
            for part, times in zip(self._parts_of_epoch(), (1, self._replays, 1), strict=True):
                for _ in range(times):
                    part()

    def _record(self) -> None:
        """Record an epoch's parts. Nothing moves in the epochs of a fresh block, so a rehearsal changes nothing."""
        torch, parts = self._torch, self._parts_of_epoch()
        for act in (TorchSteps.begin, TorchSteps.step, TorchSteps.finish):
            self._each(act, 1)
        torch.cuda.synchronize()
        graphs: list[Any] = []
        for part in parts:
            graph = torch.cuda.CUDAGraph()
            graph.capture_begin(*[graphs[0].pool()] if graphs else [])
            try:
                part()
            finally:
                graph.capture_end()
            graphs.append(graph)
        self._graphs = graphs

    def _parts_of_epoch(self) -> list[Callable[[], None]]:
        """Its beginning, some steps of it, and its end."""
        if self._graphs:
            return [graph.replay for graph in self._graphs]
        return [
            lambda: self._each(TorchSteps.begin, 1),
            lambda: self._each(TorchSteps.step, self._recorded),
            lambda: self._each(TorchSteps.finish, 1),
        ]

    def _each(self, act: Callable[[TorchSteps], None], times: int) -> None:
        """Let every stack act, side by side on a GPU."""
        for number, steps in enumerate(self._steps):
            with self._beside(number):
                for _ in range(times):
                    act(steps)
        if self._on_gpu:
            for stream in self._side_streams:
                self._stream.wait_stream(stream)

    @contextmanager
    def _beside(self, number: int) -> Iterator[None]:
        """On the stream of a stack, after what the batch's own has to do so far."""
        if self._on_gpu:
            self._side_streams[number].wait_stream(self._stream)
        with self._torch.cuda.stream(self._side_streams[number]) if self._on_gpu else nullcontext():
            yield

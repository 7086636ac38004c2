"""Train and query from several threads at once, for the thread sanitizer (`make sanitize`); runs alone as well.

Every part of C++ that starts threads or is shared between them is used as users may: one index asked and changed at
once, several trainings side by side, transforms, estimates, searches and blocks each on several threads. With --alone, for a
process in which no thread can be started: each part in turn, and C++ has to do without as well.
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from fewfire import _core, fourier
from fewfire._bits import pack
from fewfire._random import Stream
from fewfire.halfspace import Index
from fewfire.torch import _kernel
from fewfire.torch._kernel import SparseBlock, SparseDown, SparseUp

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 6
ALONE = "--alone" in sys.argv


def ask_and_change(method: str) -> None:
    """Single queries, batches and counters while points come, move and go."""
    draw = np.random.default_rng(1)
    index = Index(draw.normal(size=(6000, 2)), method=method, threads=3)
    queries = draw.normal(size=(16, 2)).astype(np.float32)

    def ask() -> None:
        for query in queries[:ROUNDS]:
            index.query(query, 2.0)
            index.query_batch(queries, 2.0)
            assert index.counters.queries > 0
            assert len(index) >= 6000

    def change() -> None:
        for _ in range(ROUNDS):
            ids = index.insert(draw.normal(size=(2500, 2)))
            index.update(ids[::2], draw.normal(size=(1250, 2)))
            index.remove(ids)

    side_by_side(ask, ask, change)
    assert len(index) == 6000


def train_runs() -> None:
    """Two batches of runs, each with threads of its own, on data that all of them share."""
    stream = Stream(1, "threads")
    X, y = stream.sign_rows(300, 20), stream.child("labels").signs(300).astype(np.float32)
    bits, hidden = pack(X), stream.child("init").normal(64 * 20).reshape(64, 20).astype(np.float32)
    columns = np.zeros(64, np.float32), np.ones(64, np.float32)
    rates = (np.full((1, 4), 0.01), np.ones((1, 4)), np.zeros((1, 4)))

    def train() -> None:
        names = {"loss": "hinge", "activation": "relu", "sampling": "epochs"}
        keys = {"batch_stream": 2, "epoch_stream": 3, "stop_error": -1.0, "checkpoints": [0, 30, 60], "support": []}
        trainers = [
            _core.Trainer(hidden, *columns, 0.0, threshold=0.0, boolean_labels=True, key=i, **names, **keys)
            for i in range(5)
        ]
        for trainer in trainers:
            trainer.add_phase(60, 16, *rates)
            trainer.set_bits(bits, y, False)
            trainer.set_bits(bits, y, True)
        while any(trainer.stopped is None for trainer in trainers):
            _core.advance(trainers, 0.01, 3)
        assert {trainer.stopped for trainer in trainers} == {"steps"}

    side_by_side(train, train)


def train_on_lists() -> None:
    """The trainer of drift lists, its neurons in pieces."""
    draw = np.random.default_rng(2)
    width, anchors = 20_000, draw.normal(size=(24, 6)).astype(np.float32)
    hidden = draw.normal(size=(width, 6)).astype(np.float32)

    def train() -> None:
        columns = np.zeros(width, np.float32), np.ones(width, np.float32)
        trainer = _core.ActiveTrainer(hidden, *columns, 4.0, anchors, 0.2, 1e-6, 3)
        values, gradients, slopes = np.empty(24), np.empty((24, 6), np.float32), np.full(24, 1e-3, np.float32)
        for round_ in range(ROUNDS):
            assert trainer.place(anchors + np.float32(0.01 * round_)) == -1
            trainer.evaluate(values, gradients)
            trainer.update(slopes, 1e-2)
        assert trainer.missing() is None

    side_by_side(train, train)


def analyse() -> None:
    """Transforms, estimates, least squares and the parity search, each on several threads."""
    stream = Stream(3, "threads")
    X, y = stream.sign_rows(500, 14), stream.child("labels").signs(500)
    values = stream.normal(1 << 18)
    columns, labels = pack(np.ascontiguousarray(X.T)), pack(y[None])[0]

    def compute() -> None:
        fourier.transform(values, threads=3)
        fourier.estimate(X, y, 3, threads=3)
        fourier.least_squares(X, y.astype(float), 2, solver="cg", threads=3)
        fourier.least_squares(X, y.astype(float), 2, solver="gram", threads=3)
        members, correlations = np.empty((2, 3), np.int64), np.empty(2, np.int64)
        _core.parity_search(columns, labels, 500, 3, 3, members, correlations)

    side_by_side(compute, compute)


def infer() -> None:
    """One sparse block and its layers, called by several threads with threads of their own."""
    draw = np.random.default_rng(4)
    up, down = (draw.normal(size=(1500, 40)).astype(np.float32) for _ in range(2))
    bias, x = np.full(1500, -8, np.float32), draw.normal(size=(5, 40)).astype(np.float32)
    first, second = SparseUp(up, bias), SparseDown(down, None)
    _kernel._RESIDUAL_FROM = 0
    block = SparseBlock(up, bias, down, None)
    expected = block(x)

    def compute() -> None:
        for _ in range(ROUNDS):
            assert (block(x, threads=3) == expected).all()
            assert (second(first(x, threads=3), threads=3) == expected).all()

    side_by_side(compute, compute)


def side_by_side(*parts: Callable[[], None]) -> None:
    """Run the parts in a thread each, or in turn where there are no threads; the first error of one of them is raised."""
    if ALONE:
        for part in parts:
            part()
        return
    with ThreadPoolExecutor(len(parts)) as pool:
        for future in [pool.submit(part) for part in parts]:
            future.result()


def threads_start() -> bool:
    """Whether a thread can be started."""
    try:
        threading.Thread(target=int).start()
    except RuntimeError:
        return False
    return True


if __name__ == "__main__":
    if ALONE and threads_start():
        raise SystemExit("threads can be started")
    for name in ("scan", "screen", "tree", "layers", "auto"):
        ask_and_change(name)
    train_runs()
    train_on_lists()
    analyse()
    infer()
    print(f"no errors with the {_core.isa()} variant")

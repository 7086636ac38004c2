"""A worker process: batches come in on standard input, rows go out on standard output, until the input ends.

Each batch is answered twice: when the worker begins with it, so that a death before is not held against its runs, and
with its rows.

The input ends when the parent closes it or dies, however that happens; the worker then leaves at once, in the middle
of a batch if need be. It has nothing to lose: only the parent writes results.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fewfire.experiments.executors._protocol import Work

BEGUN = "begun"


def main() -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anyone prints must not end up among the answers
    tasks: queue.SimpleQueue[tuple[Work, list[str]]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()
    while True:
        work, texts = tasks.get()
        answer: Any = BEGUN
        pickle.dump(answer, answers)
        answers.flush()
        try:
            answer = work(texts)
        except Exception as error:  # not a run's: those are rows already
            answer = error
        pickle.dump(answer, answers)
        answers.flush()


def _listen(tasks: queue.SimpleQueue[tuple[Work, list[str]]]) -> None:
    while True:
        try:
            tasks.put(pickle.load(sys.stdin.buffer))
        except (EOFError, pickle.UnpicklingError):
            os._exit(0)
        except BaseException:  # what the batch needs cannot be imported here
            traceback.print_exc()
            os._exit(1)


if __name__ == "__main__":
    main()

"""What a store keeps of one run.

Statuses: "done" (trained to its end), "diverged" (left the finite numbers, which its spec decides, so it is final as
well), "failed" (an error that need not come back, such as too little memory; tried again by the next sweep).
"""

from __future__ import annotations

import json
import math
import os
import platform
import socket
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from fewfire import __version__
from fewfire._errors import FileFormatError
from fewfire._extension import load
from fewfire.engines import History
from fewfire.engines._result import ARITHMETIC

if TYPE_CHECKING:
    from fewfire._types import AnyArray
    from fewfire.engines import Result
    from fewfire.sweeps.spec._run_spec import RunSpec

STATUSES = ("done", "diverged", "failed")
FINAL = ("done", "diverged")
"""Decided by the spec: such a row stays as it is. The others are tried again by the next sweep."""

CURVES = tuple(field.name for field in fields(History))[1:]  # the columns of a stored history after `step`, in order


@dataclass(frozen=True, eq=False)
class Row:
    """One finished run.

    `setting` is the canonical JSON of its spec without the trial, `status` "done", "diverged" or "failed", `stopped`
    "steps", "test_error", "diverged" or "" for a failed run. Errors and loss are those of the last recorded step, and
    the smallest held-out error of all recorded steps; NaN where not measured. `steps`, `examples`, `active_pairs` and
    `multiply_adds` are the counters of `engine`, which trained it. `message` is why the run diverged or failed; empty
    otherwise. `environment` is as `environment_text` gives it; curves of `history` are float32 vectors, steps int64.
    """

    hash: str
    setting: str
    trial: int
    status: str
    stopped: str
    test_error: float
    best_test_error: float
    train_error: float
    train_loss: float
    steps: int
    examples: int
    active_pairs: int
    multiply_adds: int
    message: str
    engine: str
    environment: str
    history: History

    def outcome(self) -> tuple[object, ...]:
        """Everything that the spec and the engine decide, comparable bit for bit: all but the environment."""
        plain = (getattr(self, field.name) for field in fields(self) if field.name not in ("environment", "history"))
        return (*(v.hex() if isinstance(v, float) else v for v in plain), *encode_history(self.history))


_KINDS: dict[Any, type[Any]] = {"str": np.str_, "int": np.int64, "float": np.float64}

COLUMNS: dict[str, type[Any]] = {
    field.name: _KINDS[field.type] for field in fields(Row) if field.name not in ("environment", "history")
} | {"setting": np.int64}
"""The columns of `Store.columns` with their types: the fields of a row, the setting by its number in the store."""


def final(status: Any) -> Any:
    """Whether runs with this status, or each of these (runs,), are final."""
    return status in FINAL if isinstance(status, str) else np.isin(status, FINAL)


@overload
def succeeded(status: str, best_test_error: float, success_error: float) -> bool: ...


@overload
def succeeded(status: AnyArray, best_test_error: AnyArray, success_error: float) -> AnyArray: ...


def succeeded(status: Any, best_test_error: Any, success_error: float) -> Any:
    """Whether runs succeeded: trained to their end, with a smallest recorded test error of at most `success_error`.

    Parameters
    ----------
    status, best_test_error : of one run, or columns of a store, shape (runs,)
    success_error : float

    Returns
    -------
    bool, or bool array of shape (runs,)

    Examples
    --------
    >>> from fewfire.sweeps import succeeded
    >>> succeeded("done", 0.05, success_error=0.1), succeeded("diverged", 0.05, success_error=0.1)
    (True, False)
    """
    return (status == "done") & (best_test_error <= success_error)


def row_of(spec: RunSpec, result: Result) -> Row:
    """The row of a run trained here."""
    history, counters = single(result.history), result.counters
    diverged = result.divergence is not None
    errors = result.history.test_error
    return Row(
        spec.hash,
        spec.setting,
        spec.trial,
        "diverged" if diverged else "done",
        result.stopped,
        test_error=_last(errors),
        best_test_error=float(np.fmin.reduce(errors)) if len(errors) else math.nan,
        train_error=_last(result.history.train_error),
        train_loss=_last(result.history.train_loss),
        steps=counters.steps,
        examples=counters.examples,
        active_pairs=counters.active_pairs,
        multiply_adds=counters.multiply_adds,
        message=str(result.divergence or ""),
        engine=result.engine,
        environment=environment_text(),
        history=history,
    )


def failed_row(spec: RunSpec, error: BaseException, engine: str) -> Row:
    """The row of a run that ended in an error."""
    errors, counters = (math.nan,) * 4, (0,) * 4
    text = f"{type(error).__name__}: {error}"
    message = text.encode(errors="backslashreplace").decode()  # names of files need not be text, what is kept must be
    made = (*errors, *counters, message, engine, environment_text())
    return Row(spec.hash, spec.setting, spec.trial, "failed", "", *made, History.of([]))


@cache
def environment_text() -> str:
    """Where a run is made, recorded with its row: versions, system and machine, as JSON with sorted keys."""
    core = load()
    return json.dumps(
        {
            "fewfire": __version__,
            "arithmetic": ARITHMETIC,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "system": platform.system(),
            "machine": platform.machine(),
            "host": socket.gethostname(),
            "cores": os.cpu_count(),
            "instructions": "none" if core is None else core.isa(),
        },
        sort_keys=True,
    )


def single(history: History) -> History:
    """The history as it is stored: float32, steps as int64."""
    curves = (np.asarray(getattr(history, name), dtype=np.float32) for name in CURVES)
    return History(np.asarray(history.step, dtype=np.int64), *curves)


def encode_history(history: History) -> tuple[bytes, bytes]:
    """Steps as little-endian int64 of shape (records,), curves as float32 of shape (len(CURVES), records)."""
    curves = np.array([getattr(history, name) for name in CURVES], dtype="<f4")
    return np.asarray(history.step, dtype="<i8").tobytes(), curves.tobytes()


def decode_history(steps: bytes, curves: bytes) -> History:
    """The history of two blobs."""
    if not isinstance(steps, bytes) or not isinstance(curves, bytes):
        raise FileFormatError("a history is damaged: its steps or curves are no bytes.")
    if len(steps) % 8 or len(curves) != len(steps) // 8 * len(CURVES) * 4:
        raise FileFormatError(f"a history is damaged: {len(steps)} bytes of steps, {len(curves)} bytes of curves.")
    step = np.frombuffer(steps, dtype="<i8").astype(np.int64)
    table: AnyArray = np.frombuffer(curves, dtype="<f4").reshape(len(CURVES), len(step)).astype(np.float32)
    return History(step, *table)


def _last(values: AnyArray) -> float:
    return float(values[-1]) if len(values) else math.nan

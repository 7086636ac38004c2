"""The records that host and device share: NumPy records laid out as the structures in the .cu and .cuh files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fewfire._random import Stream
from fewfire._types import AnyArray


def _record(*fields: tuple[str, Any]) -> np.dtype[np.void]:
    return np.dtype(list(fields), align=True)


_POINTER, _WORD = np.uint64, np.uint64

SOURCE = _record(
    *((name, _WORD) for name in ("key", "rows", "noise", "mixture", "flip")),
    ("support", _POINTER), ("problem", np.int32), ("inputs", np.int32),
)  # fmt: skip
EXAMPLES = _record(
    ("bits", _POINTER), ("rows", _POINTER), ("labels", _POINTER), ("count", np.int32), ("words", np.int32)
)
SEGMENT = _record(("steps", np.int32), ("batch", np.int32), ("row", np.int32), ("varies", np.int32))
JOB = _record(
    ("train", EXAMPLES),
    ("test", EXAMPLES),
    ("source", SOURCE),
    ("key", _WORD),
    ("batches", _WORD),
    *((name, _POINTER) for name in ("order", "hidden", "bias", "output", "offset")),
    *((name, _POINTER) for name in ("segments", "rates", "checkpoints", "support", "records")),
    ("stop_error", np.float64),
    *((name, np.int32) for name in ("inputs", "width", "steps", "phases", "checks", "loss")),
    ("low", np.float32),
    ("high", np.float32),
    ("boolean_labels", np.int32),
    ("measured", np.int32),
)
OUTCOME = _record(
    ("active_pairs", _WORD), ("stopped", np.int32), ("steps", np.int32), ("records", np.int32), ("rate", np.float32)
)
SAMPLE_TASK = _record(("source", SOURCE), ("bits", _POINTER), ("count", np.int32), ("words", np.int32))
START_TASK = _record(
    *((name, _WORD) for name in ("key", "hidden", "bias", "output", "offset")),
    *((name, _POINTER) for name in ("to_hidden", "to_bias", "to_output", "to_offset")),
    ("inner", np.float64), ("outer", np.float64),
    ("inputs", np.int32), ("width", np.int32), ("ones", np.int32), ("value", np.float32), ("rest", np.float32),
)  # fmt: skip
SCRATCH = _record(*((name, _POINTER) for name in ("rows", "scores", "gradient", "drawn")))
CONTROL = _record(("next", np.uint32), ("stop", np.uint32), ("steps", _WORD), ("arrived", _WORD))

PROBLEMS = {"parity": 1, "correlated_parity": 2}
STOPPED = {1: "steps", 2: "test_error", 3: "diverged", 4: "interrupted"}

RECORD, SUMS = 3, 5
"""Doubles of a checkpoint that a run has once, and those that each of its blocks has."""

MOST_ONES = 16
"""Largest number of chosen entries per row of a start that the device draws."""


def words_for(inputs: int) -> int:
    """32-bit words of a row of sign bits with its label on top."""
    return inputs // 32 + 1


def source_record(description: dict[str, Any], stream: Stream, support: int) -> AnyArray:
    """The device's form of a described parity under a stream; `support` is the address of its bits."""
    record = np.zeros((), SOURCE)
    record["key"], record["rows"] = stream.key, stream.id
    record["noise"], record["mixture"] = stream.child("noise").id, stream.child("mixture").id
    record["flip"] = int(np.ceil(description["noise"] * 2.0**32))
    record["support"], record["problem"], record["inputs"] = support, PROBLEMS[description["name"]], description["n"]
    return record


def support_bits(support: Sequence[int], inputs: int) -> AnyArray:
    """A bit per input, set for those in the support."""
    bits = np.zeros(32 * words_for(inputs), np.uint8)
    bits[list(support)] = 1
    return np.packbits(bits, bitorder="little").view(np.uint32)


def pack_signs(X: AnyArray, y: AnyArray) -> AnyArray:
    """Rows of ±1 and their labels as words."""
    rows, inputs = X.shape
    bits = np.zeros((rows, 32 * words_for(inputs)), np.uint8)
    bits[:, :inputs], bits[:, -1] = X < 0, y < 0
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint32)

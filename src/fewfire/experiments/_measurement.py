"""One measured error of one model on one task: what a store keeps of experiments that are no sweep of networks.

A measurement is keyed by the hash of its spec, as a run is; the spec is any JSON table. "failed" measurements are made
again by whoever needs them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fewfire.experiments.spec import text_hash


@dataclass(frozen=True)
class Measurement:
    """What came out.

    Parameters
    ----------
    spec : str
        Canonical JSON of everything the error depends on.
    status : "done" or "failed"
    error : float
        NaN for a failed one.
    seconds : float
        Processor time of training.
    message : str
        Why it failed; empty otherwise.
    environment : str
        JSON of the versions and the machine; see `environment_text`.
    """

    spec: str
    status: str
    error: float
    seconds: float
    message: str
    environment: str

    @cached_property
    def hash(self) -> str:
        """128 bits of the BLAKE2b hash of the spec, in hexadecimal."""
        return text_hash(self.spec)

    @cached_property
    def table(self) -> dict[str, Any]:
        """The spec as a table."""
        table: dict[str, Any] = json.loads(self.spec)
        return table

"""How far a sweep has come."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """A look at a sweep under way, or at its end.

    Parameters
    ----------
    total : int
        Runs of the sweep.
    already : int
        Runs that were in the store before.
    ran : int
        Runs finished by this call.
    successes, diverged, failed : int
        Among all finished runs, earlier ones included; failed ones among those of this call.
    seconds : float
        Since this call started.
    share : float
        Of the work that this call found to do, by cost, how much is done.
    engine, executor : str
    """

    total: int
    already: int
    ran: int
    successes: int
    diverged: int
    failed: int
    seconds: float
    share: float
    engine: str
    executor: str

    @property
    def done(self) -> int:
        """Runs that are in the store."""
        return self.already + self.ran

    @property
    def rate(self) -> float:
        """Runs per second, in this call."""
        return self.ran / self.seconds if self.seconds > 0 else 0.0

    @property
    def success(self) -> float:
        """The share of successes among the finished runs; NaN when there are none."""
        return self.successes / self.done if self.done else math.nan

    @property
    def remaining_seconds(self) -> float:
        """An estimate from the work done so far; NaN before anything is done."""
        return self.seconds * (1 - self.share) / self.share if self.share > 0 else math.nan

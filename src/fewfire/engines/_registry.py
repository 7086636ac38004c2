"""Choosing an engine by name, and saying what is missing when one cannot run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fewfire._errors import EngineUnavailable
from fewfire._validate import check_choice
from fewfire.engines.cpu import CpuEngine
from fewfire.engines.reference import ReferenceEngine

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire.engines._protocol import Engine

# Fastest first: "auto" takes the first one that can run.
ENGINES: dict[str, Callable[[], Engine]] = {"cpu": CpuEngine, "reference": ReferenceEngine}


def get_engine(name: str = "auto") -> Engine:
    """The engine of that name, or the fastest usable one for "auto"; a named engine that cannot run raises."""
    check_choice("engine", name, ("auto", *ENGINES))
    candidates = list(ENGINES) if name == "auto" else [name]
    reasons = []
    for candidate in candidates:
        engine = ENGINES[candidate]()
        reason = engine.unusable()
        if reason is None:
            return engine
        reasons.append(f"engine {candidate!r} cannot run here: {reason}")
    raise EngineUnavailable(" ".join(reasons))


def engine_report() -> dict[str, str | None]:
    """For each engine, why it cannot run here, or None."""
    return {name: make().unusable() for name, make in ENGINES.items()}

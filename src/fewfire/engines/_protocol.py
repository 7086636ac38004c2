"""What an engine is, and the register of engines by name.

An engine says by attributes what it draws itself and how it likes its work; nothing else in the package asks for its
name. To add one, write a class with these attributes and `register_engine` it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, runtime_checkable

from fewfire._errors import EngineUnavailable
from fewfire._registry import Registry
from fewfire._validate import check_choice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fewfire.engines._result import Result
    from fewfire.engines._run import Run

OnDivergence = Literal["raise", "record"]
"""What happens when a run diverges: the first one ends the call, or it is noted in its result."""


@runtime_checkable
class Engine(Protocol):
    """Trains batches of independent runs.

    Attributes
    ----------
    name : str
    draws_problems : frozenset of str
        Names of the problems (`describe()["name"]`) whose examples it draws itself.
    draws_starts : frozenset of str
        Names of the initialisers whose weights it draws itself. All else `Run.drawn_for(engine)` draws.
    batch_cost, batch_runs : float, int
        Multiply-adds and runs that make a good batch: a batch is full at either.
    side_by_side : bool
        Whether it wants one caller with large batches, because it has a device of its own, rather than several callers
        with small ones.
    """

    name: ClassVar[str]
    draws_problems: ClassVar[frozenset[str]]
    draws_starts: ClassVar[frozenset[str]]
    batch_cost: ClassVar[float]
    batch_runs: ClassVar[int]
    side_by_side: ClassVar[bool]

    def unusable(self) -> str | None:
        """Why the engine cannot run here, with the remedy; None when it can."""
        ...

    def train(
        self,
        runs: Sequence[Run],
        *,
        keep_networks: bool = True,
        on_divergence: OnDivergence = "raise",
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Result]:
        """Train every run; results come in the order of the runs.

        Parameters
        ----------
        runs : sequence of Run
            Nothing of a described run is drawn before its turn.
        keep_networks : bool
            False leaves the trained weights behind: their results have histories and counters only.
        on_divergence : "raise" or "record"
        progress : callable, optional
            Gets (steps done, steps of all runs).
        """
        ...


ENGINES: Registry[Callable[[int | None], Engine]] = Registry("auto")
"""Makers of engines by name, in the order in which "auto" tries them."""


def register_engine(
    name: str, make: Callable[[int | None], Engine], *, before: str | None = None, own: bool = False
) -> None:
    """Make an engine known by name.

    A sweep that runs in processes or on a cluster looks it up by name there: the module that registers it has to be
    one that can be imported.

    Parameters
    ----------
    name : str
    make : callable
        Called with the number of threads that one call of `train` may use, or None for all cores.
    before : str, optional
        "auto" takes the first engine that can run: this one comes before that one, or else after all others.
    own : bool
        Whether it comes with fewfire and stays.
    """
    ENGINES.add(name, make, before=before, own=own)


def unregister_engine(name: str) -> None:
    """Forget an engine that was registered from outside."""
    ENGINES.remove(name)


def get_engine(name: str = "auto", threads: int | None = None) -> Engine:
    """The engine of that name, or the first usable one for "auto"; a named engine that cannot run raises."""
    check_choice("engine", name, ("auto", *ENGINES))
    candidates = list(ENGINES) if name == "auto" else [name]
    reasons = []
    for candidate in candidates:
        engine = ENGINES[candidate](threads)
        reason = engine.unusable()
        if reason is None:
            return engine
        reasons.append(f"engine {candidate!r} cannot run here: {reason}")
    raise EngineUnavailable(" ".join(reasons))


def engine_report() -> dict[str, str | None]:
    """For each engine, why it cannot run here, or None."""
    return {name: make(None).unusable() for name, make in ENGINES.items()}

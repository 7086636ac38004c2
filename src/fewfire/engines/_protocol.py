"""What an engine is, and the register of engines by name.

The attributes of an engine are what it draws itself and which batches suit it; nothing else in the package asks for
its name. To add one, write a class with these attributes and `register_engine` it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from fewfire._errors import EngineUnavailable, invalid
from fewfire._registry import Registry
from fewfire._validate import check_choice
from fewfire.engines._run import GENERAL, Run
from fewfire.engines.cpu import CpuEngine
from fewfire.engines.reference import ReferenceEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fewfire.engines._result import OnDivergence, Result


@runtime_checkable
class Engine(Protocol):
    """Trains batches of independent runs.

    Attributes
    ----------
    name : str
    draws_problems : frozenset of str
        Names of the problems (`describe()["name"]`) whose examples it draws itself.
    draws_starts : frozenset of str
        Names of the initialisers whose weights it draws itself. All else `Run.drawn(engine)` draws.
    batch_cost, batch_runs : float, int
        Multiply-adds and runs that make a good batch: a batch is full at either.
    side_by_side : bool
        Whether one caller with large batches of runs of one shape suits it, because it has a device of its own, rather
        than several callers with small ones. `DeviceEngine` is what such an engine may offer besides.

    An engine that trains networks of any depth, by every optimiser, has besides an attribute `general`, which is true.
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
        progress: bool | Callable[[int, int], object] | None = None,
    ) -> list[Result]:
        """Train every run; results come in the order of the runs.

        Parameters
        ----------
        runs : sequence of Run
            Nothing of a described run is drawn before its turn.
        keep_networks : bool
            False leaves the trained weights behind: their results have histories and counters only.
        on_divergence : "raise" or "record"
        progress : bool or callable, optional
            True shows one bar, in a notebook or on a terminal; a callable gets (steps done, steps of all runs).
        """
        ...


@dataclass(frozen=True)
class Pace:
    """How fast a device that is full of runs of one shape trains them: seconds of the device per run.

    Parameters
    ----------
    step : float
        Seconds per step of a run.
    row : float
        Seconds per row that a checkpoint of a run looks at.
    """

    step: float
    row: float


@runtime_checkable
class DeviceEngine(Engine, Protocol):
    """An engine with devices of its own, of which a sweep uses all."""

    def devices(self) -> list[str]:
        """What each device of this machine is, in words."""
        ...

    def use_device(self, number: int) -> None:
        """Train on that device from now on, in this thread: the number counts along `devices`, round and round."""
        ...

    def prepare(self, runs: Sequence[Run]) -> None:
        """Begin with what has to be done once for runs of such shapes, such as compiling; waits for nothing."""
        ...

    def pace(self, run: Run) -> Pace:
        """Measured in a moment on the device at hand."""
        ...


DEVICE_WORK = 1e12
"""Multiply-adds from which "auto" takes an engine with a device of its own: less is done by the cores before kernels
are compiled."""

ENGINES: Registry[Callable[[int | None], Engine]] = Registry("auto")
"""Makers of engines by name, in the order in which "auto" tries them where there is little to do."""


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
        "auto" takes the first engine that can run: this one comes before that one, or else after all others. Where
        there is much to do, those with a device of their own come before all that have none.
    own : bool
        Whether it comes with fewfire and stays.

    Examples
    --------
    >>> from fewfire import engines
    >>> engines.register_engine("slow", lambda threads: engines.ReferenceEngine())
    >>> type(engines.get_engine("slow")).__name__
    'ReferenceEngine'
    >>> engines.unregister_engine("slow")
    """
    ENGINES.add(name, make, before=before, own=own)


def unregister_engine(name: str) -> None:
    """Forget an engine that was registered from outside.

    Examples
    --------
    >>> from fewfire import engines
    >>> engines.register_engine("mine", lambda threads: engines.ReferenceEngine())
    >>> engines.unregister_engine("mine")
    """
    ENGINES.remove(name)


def get_engine(name: str = "auto", threads: int | None = None, *, work: float = 0.0, general: bool = False) -> Engine:
    """The engine of that name, or the first usable one for "auto"; a named engine that cannot run raises.

    Parameters
    ----------
    name : str
    threads : int, optional
        How many one call of `train` may use; all cores by default.
    work : float
        Multiply-adds that are to do. From `DEVICE_WORK` on "auto" tries engines with a device of their own first.
    general : bool
        Whether there are networks of several hidden layers or outputs, or other optimisers than plain SGD: "auto" takes
        an engine that trains these, and the name of another is refused.

    Examples
    --------
    >>> import fewfire as ff
    >>> from fewfire.engines import Phase, Run, Schedule
    >>> X, y = ff.problems.Parity(10, 2).sample(300, seed=0)
    >>> network = ff.networks.init.sparse(2)(10, width=50, seed=0)
    >>> run = Run(network, Schedule(Phase(1000, weight_decay=0.01)), X, y, X, y)
    >>> ff.engines.get_engine("auto").train([run])[0].test_error
    0.0
    """
    check_choice("engine", name, ("auto", *ENGINES))
    engines = [make(threads) for make in ENGINES.values()] if name == "auto" else [ENGINES[name](threads)]
    if general:
        engines = [engine for engine in engines if getattr(engine, "general", False)]
        if not engines:
            rule = "must be one that trains deeper networks and by other optimisers than plain SGD"
            raise invalid("engine", rule, name, GENERAL)
    if work >= DEVICE_WORK:
        engines.sort(key=lambda engine: not isinstance(engine, DeviceEngine))
    reasons = []
    for engine in engines:
        reason = engine.unusable()
        if reason is None:
            return engine
        reasons.append(f"engine {engine.name!r} cannot run here: {reason}")
    raise EngineUnavailable(" ".join(reasons))


def _loaded(threads: int | None, package: str, kind: str) -> Engine:
    """An engine whose package is loaded when it is asked for."""
    engine: Engine = getattr(import_module(f"fewfire.engines.{package}"), kind)()
    return engine


# "auto" takes the first one that can run, and where there is much to do one with a device of its own.
register_engine(CpuEngine.name, CpuEngine, own=True)
register_engine("cuda", partial(_loaded, package="cuda", kind="CudaEngine"), own=True)
register_engine(ReferenceEngine.name, lambda threads: ReferenceEngine(), own=True)
for _name, _kind in (("jax", "JaxEngine"), ("jax-tf32", "JaxTf32Engine"), ("jax-bf16", "JaxBf16Engine")):
    register_engine(_name, partial(_loaded, package="jax", kind=_kind), own=True)

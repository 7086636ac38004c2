"""A sweep: the grid of runs that a spec file stands for.

Runs come trial by trial: after the first round every cell has one result, so a sweep that is stopped early already
shows the whole picture. With a search, only those runs of the grid are trained that it chooses.
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fewfire._errors import FileFormatError, InvalidArgument, invalid
from fewfire._html import card, listed
from fewfire._validate import check_integer, check_number
from fewfire.engines import Phase, Run, Schedule, Start
from fewfire.sweeps.spec._grid import expand
from fewfire.sweeps.spec._run_spec import (
    Data,
    RunSpec,
    is_noisy,
    outputs_of,
    parse_data,
    parse_network,
    plain_data,
    plain_network,
)
from fewfire.sweeps.spec._search import FrontierSearch
from fewfire.sweeps.spec._tables import (
    DEPTH,
    FILE_BYTES,
    check_keys,
    check_plain,
    check_size,
    check_table,
    check_work,
    parse_problem,
    parse_training,
    plain_problem,
    plain_training,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from fewfire.engines._run import Widths
    from fewfire.networks.init._base import Initialiser
    from fewfire.problems import Problem, TableFile
    from fewfire.sweeps.executors._protocol import Executor
    from fewfire.sweeps.run._progress import Progress
    from fewfire.sweeps.store._protocol import Store

SECTIONS = ("problem", "network", "data", "training")
KEYS = ("name", "trials", "success_error", *SECTIONS, "search")
AXES = ("problems", "networks", "data", "schedules")


@dataclass(frozen=True, repr=False)
class Sweep:
    """Every combination of problems, networks, data sizes and schedules, each repeated `trials` times.

    Parameters
    ----------
    problems : tuple of Problem
    networks : tuple of (start, width)
        The width of the hidden layer, or a tuple of those of several.
    data : tuple of Data
        Each a number of samples or None for online, a number of test samples and "clean" or "noisy" test labels.
    schedules : tuple of Schedule
    trials : int
    name : str
        A title for reports.
    success_error : float
        A run succeeded when its smallest recorded test error is at most this. Like the name it is no part of a run:
        changing it changes no hash.
    search : FrontierSearch, optional
        What to look for along an axis, whose values are those of the search; `trials` is then its budget, and `len` and
        `runs` count the whole grid that it chooses from.

    Examples
    --------
    >>> from fewfire.sweeps import MemoryStore, Sweep
    >>> sweep = Sweep.from_dict(
    ...     {
    ...         "problem": {"name": "parity", "n": 10, "k": 2},
    ...         "network": {"start": ["dense", {"name": "sparse", "s": 2}], "width": [10, 100]},
    ...         "data": {"samples": [50, 500]},
    ...         "training": {"steps": 500},
    ...         "trials": 2,
    ...     }
    ... )
    >>> sweep
    Sweep('sweep': 16 runs, 8 settings × 2 trials)
    >>> store = MemoryStore()
    >>> sweep.run(store, executor="inline").ran
    16
    >>> store
    MemoryStore(16 runs: 16 done)
    """

    problems: tuple[Problem, ...]
    networks: tuple[tuple[Initialiser, Widths], ...]
    data: tuple[Data, ...]
    schedules: tuple[Schedule, ...]
    trials: int = 1
    name: str = "sweep"
    success_error: float = 0.1
    search: FrontierSearch | None = None

    def __post_init__(self) -> None:
        trials = check_integer("trials", self.trials, 1)
        if self.search is not None and trials != self.search.budget:
            if trials != 1:
                raise invalid("trials", "must be left out, because [search] has a budget", trials, "remove it")
            trials = self.search.budget
            object.__setattr__(self, "trials", trials)
        check_number("success_error", self.success_error, 0.0)
        for schedule in self.schedules:
            plain_training(check_work(schedule))  # refuses rates that change from step to step
            if schedule.stop_error is not None and schedule.stop_error > self.success_error:
                rule = f"must be at most success_error = {self.success_error:g}, or runs end before they can succeed"
                raise invalid("training.stop_error", rule, schedule.stop_error, "lower it, or raise success_error")
        object.__setattr__(self, "data", tuple(Data(*sizes) for sizes in self.data))
        for axis in AXES:
            distinct = tuple(dict.fromkeys(getattr(self, axis)))
            if not distinct:
                raise invalid(axis, "must not be empty", (), "give at least one")
            object.__setattr__(self, axis, distinct)
        check_size({axis: len(getattr(self, axis)) for axis in AXES}, trials)
        if self.search is not None:
            self.search.lines(self)  # refuses an axis with other values than those of the search
        _check_combinations(self)

    @classmethod
    def from_toml(cls, path: str | Path) -> Sweep:
        """Read a spec file; its name without the suffix is the sweep's name unless the file gives one."""
        path = Path(path)
        try:
            with path.open("rb") as file:
                content = file.read(FILE_BYTES + 1)
        except (OSError, ValueError) as error:  # ValueError: a name that no file can have
            reason = getattr(error, "strerror", None) or error
            raise invalid("spec", f"must be a file that can be read ({reason})", str(path)) from None
        if len(content) > FILE_BYTES:
            raise FileFormatError(f"{path} is no spec: it has more than {FILE_BYTES:,} bytes.")
        try:
            table = tomllib.loads(content.decode())
        except RecursionError:
            raise FileFormatError(f"{path} is no spec: it is nested deeper than {DEPTH}.") from None
        except ValueError as error:  # no TOML, no UTF-8, or a number of thousands of digits
            raise FileFormatError(f"{path} is not valid TOML: {error}.") from None
        return cls.from_dict({"name": path.stem.encode(errors="replace").decode(), **table})

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Sweep:
        """The sweep of a spec given as nested dictionaries and lists, as TOML and JSON hold them."""
        check_plain(check_table("the spec", table), "")
        search = FrontierSearch.from_dict(table["search"]) if "search" in table else None
        if search is not None:
            if "trials" in table:
                raise invalid("trials", "must be left out, because [search] has a budget", table["trials"], "remove it")
            table = search.fill(table)
        check_keys("", table, KEYS, SECTIONS)
        name = table.get("name", "sweep")
        if not isinstance(name, str):
            raise invalid("name", "must be a text", name)
        return cls(
            tuple(parse_problem(one) for one in expand(table["problem"], "problem")),
            tuple(parse_network(one) for one in expand(table["network"], "network")),
            tuple(parse_data(one) for one in expand(table["data"], "data")),
            tuple(parse_training(one) for one in expand(table["training"], "training")),
            check_integer("trials", table.get("trials", 1), 1),
            name,
            check_number("success_error", table.get("success_error", 0.1), 0.0),
            search,
        )

    def to_dict(self) -> dict[str, Any]:
        """The spec with every grid and default written out: `Sweep.from_dict` of it gives the same sweep."""
        tables = self.tables()
        named = {"name": self.name, "trials": self.trials, "success_error": self.success_error}
        if self.search is None:
            return named | tables
        del named["trials"]
        return named | self.search.empty(tables) | {"search": asdict(self.search)}

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The tables of a spec, each with everything it stands for written out."""
        noisy = any(map(is_noisy, self.problems))
        return {
            "problem": [plain_problem(problem) for problem in self.problems],
            "network": [plain_network(*network) for network in self.networks],
            "data": [plain_data(*data[:2], data.test_labels if noisy else None) for data in self.data],
            "training": [plain_training(schedule) for schedule in self.schedules],
        }

    def __len__(self) -> int:
        return self.settings * self.trials

    @property
    def general(self) -> bool:
        """Whether it takes an engine for networks of several hidden layers or outputs, or for other optimisers."""
        deep = any(not isinstance(width, int) for _, width in self.networks)
        plain = all(schedule.plain for schedule in self.schedules)
        return deep or not plain or any(outputs_of(problem) > 1 for problem in self.problems)

    @cached_property
    def settings(self) -> int:
        """The number of cells: combinations, not counting repetitions."""
        return len(self.problems) * len(self.networks) * len(self.data) * len(self.schedules)

    def runs(self) -> Iterator[RunSpec]:
        """The spec of every run, one after the other, trial by trial."""
        return (self.run_at(number) for number in range(len(self)))

    def run_at(self, number: int) -> RunSpec:
        """The spec of one run, numbered as `runs` gives them."""
        trial, cell = divmod(check_integer("number", number, 0, len(self) - 1), self.settings)
        first = self._first_runs.get(cell)
        if first is None:
            rest, fourth = divmod(cell, len(self.schedules))
            rest, third = divmod(rest, len(self.data))
            one, second = divmod(rest, len(self.networks))
            problem, sizes, schedule = self.problems[one], self.data[third], self.schedules[fourth]
            share = sizes.samples
            samples = cast("TableFile", problem).training_rows(share) if isinstance(share, float) else share
            first = RunSpec(problem, *self.networks[second], samples, schedule, 0, *sizes[1:])
            self._first_runs[cell] = first
        return first.with_trial(trial) if trial else first

    @cached_property
    def _first_runs(self) -> dict[int, RunSpec]:
        """The first run of each cell that was asked for; a grid repeats its cells trial by trial."""
        return {}

    def run(
        self,
        store: Store | str | Path,
        *,
        engine: str = "auto",
        executor: str | Executor = "local",
        workers: int | None = None,
        keep_going: bool = True,
        progress: Callable[[Progress], None] | bool | None = None,
        note: str = "",
        tags: Iterable[str] = (),
    ) -> Progress:
        """Train every run that the store does not have yet, keeping each as it ends.

        Stopping it at any moment, by Ctrl-C or worse, loses only what is being trained; calling it again goes on. With
        a search these are the runs of its rounds; `found_frontiers` gives the result.

        Parameters
        ----------
        store : path of a store file, made when it does not exist, or a Store such as `MemoryStore()`
        engine : str
            "auto" takes the fastest that can run here; rows record which it was.
        executor : "local", "dask", the address of a Dask scheduler, "inline", "processes", or an Executor
        workers : int, optional
            Runs trained at the same time on this machine; one per core by default.
        keep_going : bool
            True: a run that diverges or fails is recorded and the others go on. False: it stops the sweep.
        progress : True or callable, optional
            True shows one bar, in a notebook or on a terminal; elsewhere a line is printed every half minute. A
            callable is called with a `Progress` at the start and after each batch.
        note, tags : str and texts, optional
            Kept with the sweep in the store, in addition to those that are there.

        Returns
        -------
        Progress
            The state at the end.
        """
        from fewfire.sweeps.run._execute import execute

        if progress is True:
            from fewfire.sweeps.run._progress import SweepBar

            with SweepBar() as bar:
                return execute(self, store, engine, executor, workers, keep_going, bar.show, note, tags)
        return execute(self, store, engine, executor, workers, keep_going, progress or None, note, tags)

    def __repr__(self) -> str:
        return f"Sweep({self.name!r}: {len(self)} runs, {self.settings} settings × {self.trials} trials)"

    def _repr_html_(self) -> str:
        facts = {
            "runs": f"{len(self)}: {self.settings} settings × {self.trials} trials",
            "problems": listed(self.problems),
            "starts": listed(list(dict.fromkeys(start for start, _ in self.networks))),
            "widths": listed(list(dict.fromkeys(width for _, width in self.networks))),
            "examples": listed(["online" if data.samples is None else data.samples for data in self.data]),
            "schedules": listed([_length(schedule) for schedule in self.schedules]),
            "success": f"a test error of at most {self.success_error:g}",
        }
        if self.search is not None:
            facts["search"] = "only those runs that it chooses are trained"
        return card(f"Sweep {self.name}", facts)


def _check_combinations(sweep: Sweep) -> None:
    """Refuse combinations that cannot run (too sparse a start, a loss that does not fit the labels …), by tiny runs.

    A start is tried with each number of inputs, a schedule with each problem: they share nothing else.
    """
    _check_test_labels(sweep)
    for data, problem in product(sweep.data, sweep.problems):
        finite, samples = hasattr(problem, "training_rows"), data.samples
        if isinstance(samples, float) and not finite:
            raise invalid("data.samples", "must be a whole number: only tables have rows to take a share of", samples)
        if samples is None and finite:
            raise invalid("data.samples", "must be a number or a share where the problem is a table", "online")
    online = {data.samples is None for data in sweep.data}
    # Starts may ask for pairs of neurons, so a small width of the same parity stands for the others.
    firsts = [(start, width if isinstance(width, int) else width[0]) for start, width in sweep.networks]
    networks = list(dict.fromkeys((start, width if width < 6 else 4 + width % 2) for start, width in firsts))
    schedules = list(dict.fromkeys(_shortest(schedule) for schedule in sweep.schedules))
    tried: set[int] = set()
    for problem in sweep.problems:
        X, y = problem.sample(8, 0)
        for number, (start, width) in enumerate(networks if problem.inputs not in tried else networks[:1]):
            for schedule, fresh in product(schedules if number == 0 else schedules[:1], online):
                examples: dict[str, Any] = {"source": problem} if fresh else {"X": X, "y": y}
                try:
                    network = Start(start, problem.inputs, width, 0, outputs_of(problem)).draw()
                    Run(network, schedule, X_test=X, y_test=y, **examples)
                except InvalidArgument as error:
                    parts = f"{problem}, {start} and " + ("online data" if fresh else "a training set")
                    raise InvalidArgument(f"the spec combines {parts}, which cannot run: {error}") from None
        tried.add(problem.inputs)


def _check_test_labels(sweep: Sweep) -> None:
    """Refuse noisy test labels where they repeat runs, or make success random."""
    asked = {data.test_labels for data in sweep.data}
    if len(asked) > 1 and not all(map(is_noisy, sweep.problems)):
        rule = "must be one value where a problem has no label noise, since its runs would be there twice"
        raise invalid("data.test_labels", rule, "clean and noisy", "ask for noisy test labels in a spec of their own")
    for problem in sweep.problems:
        if "noisy" in asked and is_noisy(problem) and sweep.success_error <= problem.bayes_error:
            rule = f"must be above {problem.bayes_error:g}, the error of {problem} itself on noisy test labels"
            raise invalid("success_error", rule, sweep.success_error, 'raise it, or leave test_labels at "clean"')


def _length(schedule: Schedule) -> str:
    epochs = sum(phase.epochs or 0 for phase in schedule.phases)
    return f"{f'{epochs} epochs' if epochs else f'{schedule.steps} steps'}, {schedule.loss} loss"


def _shortest(schedule: Schedule) -> Schedule:
    """What a combination may depend on: the loss, whole training sets as batches, and an early stop."""
    sizes = dict.fromkeys(None if phase.batch_size is None else 1 for phase in schedule.phases)
    phases = [Phase(1, batch_size=size) for size in sizes]
    return Schedule(phases, schedule.loss, stop_error=None if schedule.stop_error is None else 1.0)

"""What fewfire's own engines share: the checks of `train`, progress, and results in the order of the runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import ClassVar, TypeAlias, get_args

import numpy as np

from fewfire._errors import EngineUnavailable, invalid
from fewfire._progress import progress_callback
from fewfire._validate import check_choice
from fewfire.engines._result import OnDivergence, Result
from fewfire.engines._run import GENERAL, Run, Start

Trained: TypeAlias = Generator[tuple[int, Result], None, None]
"""The number of each run and its result, as it ends."""


class OwnEngine(ABC):
    """An engine whose runs are independent, so that results come as runs end."""

    name: ClassVar[str]
    draws_problems: ClassVar[frozenset[str]] = frozenset()
    draws_starts: ClassVar[frozenset[str]] = frozenset()
    batch_cost: ClassVar[float]
    batch_runs: ClassVar[int]
    side_by_side: ClassVar[bool] = False
    general: ClassVar[bool] = False

    def unusable(self) -> str | None:
        """Why the engine cannot run here, with the remedy; None when it can."""
        return None

    def train(
        self,
        runs: Sequence[Run],
        *,
        keep_networks: bool = True,
        on_divergence: OnDivergence = "raise",
        progress: bool | Callable[[int, int], object] | None = None,
    ) -> list[Result]:
        """Train the runs; results come in the order of the runs, whatever order they end in."""
        notify = progress_callback(progress, "training") or (lambda done, total: None)
        check_choice("on_divergence", on_divergence, get_args(OnDivergence))
        for run in runs:
            self._check(run)
        reason = self.unusable()
        if reason is not None:
            raise EngineUnavailable(f"engine {self.name!r} cannot run here: {reason}")
        total, results = sum(run.schedule.steps for run in runs), dict[int, Result]()
        with closing(self._train(runs, keep_networks, lambda done: notify(done, total))) as ended:
            for index, result in ended:
                if result.divergence is not None and on_divergence == "raise":
                    raise result.divergence
                results[index] = result
        return [results[index] for index in range(len(runs))]

    @abstractmethod
    def _train(self, runs: Sequence[Run], keep_networks: bool, notify: Callable[[int], object]) -> Trained:
        """Train checked runs; `notify` gets the steps of all runs that are done."""

    def _check(self, run: Run) -> None:
        """Refuse float64 weights, which only the reference engine trains, and what needs a `general` engine."""
        if not isinstance(run.network, Start) and run.network.dtype != np.float32:
            rule, got = f"must be float32 for the {self.name} engine", f"dtype {run.network.dtype}"
            raise invalid("network", rule, got, "use the reference engine, or cast the weights")
        if not self.general:
            self._check_plain(run)

    def _check_plain(self, run: Run) -> None:
        """Refuse other networks than those of two layers, and other optimisers than plain SGD."""
        schedule = run.schedule
        if len(run.widths) > 1 or run.outputs > 1:
            rule = f"must have one hidden layer and one output for the {self.name} engine"
            raise invalid("network", rule, f"widths {run.widths} and {run.outputs} outputs", GENERAL)
        if not schedule.plain:
            rule = f"must be plain 'sgd' for the {self.name} engine"
            got = f"{schedule.optimiser} with momentum {schedule.momentum:g}"
            raise invalid("optimiser", rule, got, GENERAL)

"""How long a fit will take, told before it begins: a short look at each of its parts, scaled to all rows.

One epoch of one network, one random tree and ten rounds of boosting are timed on some rows of the table. Networks and
boosting take time in proportion to their rows, a tree to rows · log(rows). How many epochs and rounds held-out rows
will ask for is not known beforehand: typical numbers are assumed, which are to cover the epochs that networks cool
down in as well, and the forecast says how far off it may be.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire.tabular._boosting import binned
from fewfire.tabular._flat_trees import narrowed
from fewfire.tabular._queue import work_off
from fewfire.tabular._settings import FINALISTS, FOLDS, TRIAL_NETWORKS, TRIAL_ROWS
from fewfire.tabular._trees import Boosting, ExtraTrees, boosting_rule, tree_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire.tabular._ensemble import Ensemble
    from fewfire.tabular._examples import Examples, Variant
    from fewfire.tabular._settings import Settings

TRAINED_ON = (FOLDS - 1) / FOLDS  # of the rows, where some are held out
LOOKED_AT = 2000  # rows of networks and of a tree
BOOSTED_AT = 10_000  # rows of boosting, whose rounds have a fixed cost as well
ROUNDS = 10
EPOCHS, TYPICAL_ROUNDS = 30, 200  # of what held-out rows ask for
SPREAD = 3.0  # fits take from a third of the forecast to three times it


@dataclass(frozen=True)
class FitRates:
    """Seconds of one core: per row of a network's epoch, of a tree over rows · log2(rows), per row of a round."""

    network: float
    tree: float
    boosting: float


@dataclass(frozen=True)
class Forecast:
    """Seconds by the clock that networks and trees of a fit will take.

    Parameters
    ----------
    rows, columns : int
    networks, trees : float
    """

    rows: int
    columns: int
    networks: float
    trees: float

    def __str__(self) -> str:
        total = self.networks + self.trees
        parts = f"networks {spoken(self.networks)}, trees {spoken(self.trees)}" if self.trees else "networks alone"
        span = f"{spoken(total / SPREAD)} to {spoken(total * SPREAD)}"
        return f"{self.rows:,} rows × {self.columns} columns: about {spoken(total)} ({parts}; expect {span})"


def announce(ensemble: Ensemble, examples: Examples, settings: Settings, *, judged: bool) -> None:
    """Tell on standard error how long training will take, of more rows than a trial has; fewer are done in seconds."""
    if len(examples) > TRIAL_ROWS:
        rates, columns = measure_rates(ensemble, examples, settings), len(ensemble.columns.places)
        told = foretell(rates, len(examples), columns, len(ensemble.groups), settings, judged=judged)
        print(told, file=sys.stderr, flush=True)


def foretell(rates: FitRates, rows: int, columns: int, variants: int, settings: Settings, *, judged: bool) -> Forecast:
    """What a fit of so many rows takes; `judged` says whether rows are held out, which trees and trials need."""
    epochs = min(settings.optimiser.epochs, EPOCHS) if judged else settings.optimiser.epochs
    share = TRAINED_ON if judged else 1.0
    shown = rows * variants * settings.members
    if judged and rows > TRIAL_ROWS and variants > FINALISTS:
        tried = min(settings.members, TRIAL_NETWORKS)
        shown = TRIAL_ROWS * variants * tried + rows * FINALISTS * settings.members
    networks = rates.network * shown * epochs * share
    trees = 0.0
    if judged and settings.trees:
        part = max(2.0, share * rows)
        extra = tree_count(int(part)) * rates.tree * part * np.log2(part)
        trees = settings.members * float(extra + TYPICAL_ROUNDS * rates.boosting * part)
    return Forecast(rows, columns, networks / settings.threads, trees / min(settings.threads, settings.members))


def measure_rates(ensemble: Ensemble, examples: Examples, settings: Settings) -> FitRates:
    """Time each part on some rows, in one thread; of the ensemble only the shares may be learned."""
    ensemble.learn_shares(examples, settings.threads)
    one = replace(settings, members=1, engine="cpu", threads=1)
    some = examples[_some(len(examples), LOOKED_AT)]
    network = float(np.mean([_epoch_seconds(ensemble, variant, some, one) for variant in ensemble.groups])) / len(some)
    if not settings.trees or not len(ensemble.columns.places):
        return FitRates(network, 0.0, 0.0)
    outputs = 2 if ensemble.loss == "logistic" else len(ensemble.offset)
    extra, rows = ExtraTrees(ensemble.loss, outputs, ensemble.stream), some.for_trees()
    tree = _seconds(extra.fitted, rows, 1)
    more = examples[_some(len(examples), BOOSTED_AT)].for_trees()
    rule = boosting_rule(int(TRAINED_ON * len(examples)))  # it goes by the rows of a fold's model
    ids, bins = np.arange(len(more)), binned(narrowed(more.table), rule.bins)
    booster = Boosting(ensemble.loss, outputs, ensemble.stream).begun(more, bins, rule, ids, ids[:1])
    rounds = _seconds(booster.advance, ROUNDS)
    return FitRates(network, tree / (len(rows) * float(np.log2(len(rows)))), rounds / (ROUNDS * len(more)))


def _epoch_seconds(ensemble: Ensemble, variant: Variant, rows: Examples, settings: Settings) -> float:
    """Of one network's second epoch; the first also makes it."""
    group = ensemble._fresh(variant, settings)
    shown = rows.rows(variant).with_gains(ensemble._gains(variant, ensemble.shares))
    return [_seconds(work_off, [group.train_epoch(shown, settings)], 1) for _ in range(2)][-1]


def _seconds(work: Callable[..., object], *arguments: object) -> float:
    begin = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begin


def spoken(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> spoken(0.4), spoken(75), spoken(1000), spoken(20000)
    ('1 s', '75 s', '17 min', '5.6 h')
    """
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _some(rows: int, most: int) -> Any:
    return np.linspace(0, rows - 1, min(rows, most)).astype(np.int64)

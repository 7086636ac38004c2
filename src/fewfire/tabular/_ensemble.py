"""The fitted model: groups of networks, one group per variant of the inputs, mixed by what held-out rows say.

A variant is an encoding and a relevance gain. None suits all tables: ranks ruin columns that are one value nine times
of ten, raw units are ruled by outliers; piecewise-linear encodings help where the target jumps along a column and
periodic embeddings where it swings, and both cost rows to learn; gains save a table of mostly idle columns but hide
interactions. So networks are trained on every variant.

Mixing weights, none negative and 1 together, are those whose weighted mean of outputs has the lowest loss on held-out
rows; a variant that says nothing new gets none. Smoothed labels and means of many networks leave classifiers timid, so
a temperature, again the best on held-out rows, makes probabilities of their outputs and leaves the likeliest class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import softmax

from fewfire.tabular._encodings import AUTO
from fewfire.tabular._group import NetworkGroup
from fewfire.tabular._network import LOSSES, Layout
from fewfire.tabular._preprocessing import EncodedTable, learn_columns
from fewfire.tabular._queue import work_off
from fewfire.tabular._race import Race
from fewfire.tabular._relevance import GAINS, explained_shares, relevance_gains
from fewfire.tabular._settings import FINALISTS, FOLDS, TRIAL_ROWS, Settings
from fewfire.tabular._training import TrainingRows, held_out_folds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array, IdArray
    from fewfire.tabular._network import TabularLoss
    from fewfire.tabular._preprocessing import Columns
    from fewfire.tabular._training import GroupJob, Stop


LEAST_WEIGHT = 0.01  # a variant of less weight is dropped
HOTTEST = 3.0  # and 1/HOTTEST the coldest: rows that are all predicted right would ask for a temperature of 0
DOUBT = 2.0  # a temperature e^t costs DOUBT · t² over all rows together: thirty rows do not say much about it

# Seeds of networks are drawn from streams that bear the first names of the encodings: the same seed, the same fit.
STREAMS = {"rank": "quantile", "piecewise_linear": "bins", "periodic": "waves"}


@dataclass(frozen=True)
class Variant:
    """A way to present the inputs: an encoding and a relevance gain by name."""

    encoding: str
    gain: str

    def __str__(self) -> str:
        return f"{self.encoding}, {self.gain} gains"


def choose_variants(scaling: str, gains: str) -> list[Variant]:
    """All variants that two settings, a name or "auto" each, leave open."""
    encodings = AUTO if scaling == "auto" else (scaling,)
    return [Variant(*names) for names in product(encodings, GAINS if gains == "auto" else (gains,))]


@dataclass(frozen=True)
class Examples:
    """Encoded rows with targets: target (rows, outputs), weight and strata (rows,); `chosen` of the encoded rows."""

    inputs: EncodedTable
    target: AnyArray
    weight: AnyArray
    strata: AnyArray
    chosen: IdArray | None = None

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, rows: IdArray) -> Examples:
        chosen = rows if self.chosen is None else self.chosen[rows]
        return Examples(self.inputs, self.target[rows], self.weight[rows], self.strata[rows], chosen)

    def encoded(self, encoding: str) -> AnyArray:
        """Inputs (rows, inputs), float32, without gains."""
        return self.inputs[encoding] if self.chosen is None else self.inputs[encoding][self.chosen]

    def rows(self, variant: Variant) -> TrainingRows:
        """What networks of a variant train on, gains not yet included."""
        return TrainingRows(self.encoded(variant.encoding), self.target, self.weight)

    def shares(self) -> Float64Array:
        """What each column and flag explains of the target; by ranks, which outliers do not squeeze together."""
        return explained_shares(self.encoded("rank"), self.target, self.weight)


@dataclass(frozen=True)
class Division:
    """Examples, the rows each network leaves out, what inputs explain on its other rows, rows to stop by instead."""

    examples: Examples
    folds: list[IdArray] | None
    shares: list[Float64Array]
    validation: Examples | None


class Ensemble:
    """Groups of networks on several variants of one table.

    Parameters
    ----------
    columns : Columns
    examples : Examples
        What gains are learned from.
    loss : str
    offset : array (outputs,)
    settings : Settings
    stream : Stream
    """

    def __init__(
        self,
        columns: Columns,
        examples: Examples,
        loss: TabularLoss,
        offset: AnyArray,
        settings: Settings,
        stream: Stream,
    ) -> None:
        self.columns, self.shares = columns, examples.shares()
        self.loss, self.offset, self.stream = loss, offset, stream
        variants = choose_variants(settings.scaling, settings.gains)
        self.groups = {variant: self._fresh(variant, settings) for variant in variants}
        self.weights = np.full(len(variants), 1.0 / len(variants))
        self.temperature = 1.0

    def train(self, examples: Examples, validation: Examples | None, settings: Settings, verbose: bool) -> None:
        """Train every group; with held-out rows, weigh the groups by them. Many rows: only the best of a trial."""
        weighed = validation is not None or settings.patience is not None
        if weighed and len(examples) > TRIAL_ROWS and len(self.groups) > FINALISTS and not self._begun():
            self._hold_trial(examples, validation, settings, verbose)
        division = self._divide(examples, validation, settings)
        stops = self._train_groups(division, settings, verbose)
        if validation is not None:
            self._weigh(stops, validation)
        elif division.folds is not None:
            self._weigh(stops, examples[np.unique(np.concatenate(division.folds))])

    def train_epoch(self, examples: Examples, settings: Settings, verbose: bool) -> None:
        """One epoch of every network over all rows."""
        jobs = []
        for variant, group in self.groups.items():
            shown = examples.rows(variant).with_gains(self._gains(variant, self.shares))
            jobs.append(group.train_epoch(shown, settings, str(variant) if verbose else ""))
        self._run(jobs, settings)

    def outputs(self, table: Float64Array) -> Float64Array:
        """Weighted mean output (rows, outputs) at a table (rows, columns), over the temperature."""
        inputs, total = self.columns.encode(table), 0.0
        for weight, (variant, group) in zip(self.weights, self.groups.items(), strict=True):
            total = total + weight * group.outputs(inputs[variant.encoding], self._gains(variant, self.shares))
        return np.asarray(total / self.temperature)

    def main(self) -> NetworkGroup:
        """The group of the largest weight."""
        return list(self.groups.values())[int(self.weights.argmax())]

    def forget_training(self) -> None:
        """Keep what predicts alone."""
        for group in self.groups.values():
            group.forget_training()

    def _hold_trial(self, examples: Examples, validation: Examples | None, settings: Settings, verbose: bool) -> None:
        """Train every group on TRIAL_ROWS rows and go on, afresh, with the FINALISTS best."""
        sample = examples[self.stream.child("trial").permutation(len(examples))[:TRIAL_ROWS]]
        division = self._divide(sample, validation, settings)
        stops = self._train_groups(division, settings, verbose)
        losses = {variant: stop.loss for variant, stop in zip(self.groups, stops, strict=True)}
        best = sorted(losses, key=lambda variant: losses[variant])[:FINALISTS]
        self.groups = {variant: self._fresh(variant, settings) for variant in best}

    def _divide(self, examples: Examples, validation: Examples | None, settings: Settings) -> Division:
        """What every group is trained on: rows left out are the same in all, so that their outputs can be mixed."""
        count = next(iter(self.groups.values())).count
        if validation is not None or settings.patience is None or len(examples) < 2:
            return Division(examples, None, [self.shares] * count, validation)
        parts = min(FOLDS, len(examples))
        folds = held_out_folds(examples.strata, count, parts, self.stream.child("folds"))
        return Division(examples, folds, [self._shares_without(examples, fold) for fold in folds], None)

    def _shares_without(self, examples: Examples, fold: IdArray) -> Float64Array:
        """What inputs explain of the targets, for a network that leaves a fold out.

        Gains that know a row's target flatter it when the row is held out. Of many inputs and few rows some explain
        much by chance, and held-out losses would be fiction; then the fold's rows do not count. Of few inputs none
        does, and shares of all rows are better shares.
        """
        if len(self.shares) <= len(examples):
            return self.shares
        return examples[np.setdiff1d(np.arange(len(examples)), fold)].shares()

    def _gains(self, variant: Variant, shares: Float64Array) -> AnyArray:
        """Gains (inputs,), float32."""
        return relevance_gains(shares, variant.gain)[self.columns.sources(variant.encoding)]

    def _train_groups(self, division: Division, settings: Settings, verbose: bool) -> list[Stop]:
        jobs = [self._training(variant, division, settings, verbose) for variant in self.groups]
        judged = division.examples if division.validation is None else division.validation
        if division.folds is not None:
            judged = judged[np.unique(np.concatenate(division.folds))]
        mix = partial(mixing_weights, self.loss, target=judged.target, weight=judged.weight)
        return self._run(jobs, settings, Race(mix, len(jobs)))

    def _run(self, jobs: Sequence[GroupJob], settings: Settings, race: Race | None = None) -> list[Stop]:
        """Train groups, all networks in one queue; on threads, or one after another by PyTorch."""
        return work_off(jobs, 1 if settings.engine == "torch" else settings.threads, race)

    def _training(self, variant: Variant, division: Division, settings: Settings, verbose: bool) -> GroupJob:
        gains = [self._gains(variant, shares) for shares in division.shares]
        held = None if division.validation is None else division.validation.rows(variant)
        label = str(variant) if verbose else ""
        rows = division.examples.rows(variant)
        return self.groups[variant].train(rows, gains, division.folds, held, settings, label)

    def _weigh(self, stops: list[Stop], judges: Examples) -> None:
        """Weigh the groups by the rows held out, drop the least, and learn the temperature."""
        outputs = np.stack([stop.pooled for stop in stops if stop.pooled is not None])
        weights = mixing_weights(self.loss, outputs, judges.target, judges.weight)
        if self.loss != "squared":
            mixed = np.tensordot(weights, outputs, 1)
            self.temperature = best_temperature(self.loss, mixed, judges.target, judges.weight)
        kept = weights > 0
        self.groups = {name: group for (name, group), stays in zip(self.groups.items(), kept, strict=True) if stays}
        self.weights = weights[kept]

    def _fresh(self, variant: Variant, settings: Settings) -> NetworkGroup:
        inputs = len(self.columns.sources(variant.encoding))
        embedding = self.columns.embedding(variant.encoding)
        layout = Layout(inputs, settings.hidden, len(self.offset), settings.skip, embedding)
        stream = self.stream.child(f"{STREAMS.get(variant.encoding, variant.encoding)}/{variant.gain}")
        return NetworkGroup(layout, self.loss, self.offset, stream, settings.members)

    def _begun(self) -> bool:
        return any(group.weights is not None for group in self.groups.values())


def columns_for(table: Float64Array, weight: Float64Array, settings: Settings) -> Columns:
    """The columns of a table (rows, columns) in the encodings an ensemble needs; ranks tell what inputs explain."""
    encodings = {variant.encoding: None for variant in choose_variants(settings.scaling, settings.gains)}
    return learn_columns(table, weight, encodings | {"rank": None})


def mixing_weights(loss: TabularLoss, outputs: Float64Array, target: AnyArray, weight: AnyArray) -> Float64Array:
    """Weights (groups,) of outputs (groups, rows, outputs) at rows with targets and weights, the least cut off."""

    def mean_loss(logits: Float64Array) -> tuple[float, Float64Array]:
        shares = softmax(logits)
        losses, errors = LOSSES[loss](np.tensordot(shares, outputs, 1), target)
        slopes = np.einsum("vro,ro,r->v", outputs, errors, weight) / weight.sum()
        return float(np.average(losses, weights=weight)), shares * (slopes - shares @ slopes)

    found = softmax(minimize(mean_loss, np.zeros(len(outputs)), jac=True, method="L-BFGS-B").x)
    found[found < LEAST_WEIGHT] = 0.0
    return np.asarray(found / found.sum())


def best_temperature(loss: TabularLoss, outputs: Float64Array, target: AnyArray, weight: AnyArray) -> float:
    """The number in [1/3, 3] over which outputs (rows, outputs) predict classes best, nearer to 1 for few rows."""

    def mean_loss(logarithm: float) -> float:
        losses, _ = LOSSES[loss](np.exp(logarithm) * outputs, target)
        return float(np.average(losses, weights=weight)) + DOUBT * logarithm**2 / len(target)

    bound = np.log(HOTTEST)
    return float(np.exp(-minimize_scalar(mean_loss, bounds=(-bound, bound), method="bounded").x))

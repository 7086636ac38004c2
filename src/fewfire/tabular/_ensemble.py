"""The fitted model: groups of networks, one group per variant of the inputs, mixed by held-out rows, and trees.

A variant is an encoding and a relevance gain. None suits all tables: ranks ruin columns that are one value nine times
of ten, raw units are ruled by outliers; piecewise-linear encodings help where the target jumps along a column and
periodic embeddings where it oscillates, and both cost rows to learn; gains save a table of mostly idle columns but hide
interactions. So networks are trained on every variant. Of many rows a part chooses finalists. It shows which gain suits
an encoding, but not which encoding will suit all rows: periodic embeddings need many to learn, and then are ahead where
a target oscillates. So every encoding has its best.

Weights of variants, none negative and 1 together, are those whose weighted mean of outputs has the lowest loss, drawn a
little towards even ones, which counts where rows are few; a variant that adds nothing gets none. Smoothed labels and
means of many networks leave classifiers under-confident: their outputs are too near to those of the class frequencies,
and a temperature scales the distance from there.

Trees (_trees.py) are fitted on the same folds and mixed with the networks: probabilities with probabilities, numbers
with numbers. Networks were stopped and weighed by the held-out rows, so their losses there are too low; the shares that
predict these rows best are drawn towards a half for the networks and a half for the trees, of which boosting has the
less the fewer rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_expit, log_softmax, softmax
from sklearn.base import clone

from fewfire._dense.losses import TABLE_LOSSES
from fewfire._dense.network import Layout, Rows, held_out_folds
from fewfire._threads import Helpers
from fewfire.tabular._encodings import (
    AUTO,
    GAINS,
    PiecewiseLinearEncoding,
    explained_shares,
    learn_columns,
    relevance_gains,
)
from fewfire.tabular._training import FOLDED, NetworkGroup, SuccessiveHalving, run_jobs
from fewfire.tabular._trees import TREES, TreeGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fewfire._dense.losses import TabularLoss
    from fewfire._random import Stream
    from fewfire._types import AnyArray, Float64Array, IdArray
    from fewfire.tabular._base import Settings
    from fewfire.tabular._encodings import Columns
    from fewfire.tabular._training import Job, Stop

    Score = Callable[[Float64Array], tuple[float, Float64Array]]

FOLDS = 4  # each network trains on three of four parts
TRIAL_ROWS = 2000  # of more rows, so many choose the variants of the inputs
TRIAL_EPOCHS = 20  # at most: which variant is best shows early
TRIAL_NETWORKS = 2  # of each variant, at most; they are validated on the same rows
EXPECTED = 30  # epochs of each finalist, for all that is known during the trial
FINALISTS = 4  # variants that are then trained on all rows
WORTH = 4  # bins per column from which on their tables are worth it (Layout.ladders)
BLOCK = 16_384  # rows that are encoded at a time for predictions: an encoding takes many times the room of its table
STREAMS = {"rank": "quantile", "piecewise_linear": "bins", "periodic": "waves"}
"""Seeds of networks are drawn from streams that have the first names of the encodings: the same seed, the same fit."""
LEAST_WEIGHT = 0.03  # a variant of less weight is dropped
HOTTEST = 3.0  # and 1/HOTTEST the coldest: rows that are all predicted right would give a temperature of 0
DOUBT = 2.0  # a temperature e^t costs DOUBT · t² over all rows together: thirty rows determine little of it
EVEN = 5.0  # what weights of variants cost: −EVEN · mean of log(weight) over all rows together
DOUBTED = 20.0  # what shares of trees cost: −DOUBTED · Σ prior · log(share) over all rows together
DOUBTED_NUMBERS = 2.0  # the same where numbers are predicted: squared errors distinguish members in fewer rows
BOOSTED_ROWS = 200  # at so many rows boosting has half the prior it has at any number
TINY = 1e-12  # of a probability, or of a mean squared error of standardised targets


@dataclass(frozen=True)
class Variant:
    """A way to present the inputs: an encoding and a relevance gain by name."""

    encoding: str
    gain: str

    def __str__(self) -> str:
        return f"{self.encoding}, {'no' if self.gain == 'none' else self.gain} gains"


def choose_variants(scaling: str, gains: str) -> list[Variant]:
    """All variants that two settings, a name or "auto" each, leave open."""
    encodings = AUTO if scaling == "auto" else (scaling,)
    return [Variant(*names) for names in product(encodings, GAINS if gains == "auto" else (gains,))]


def finalists(losses: Mapping[Variant, float], count: int) -> list[Variant]:
    """So many variants, by their losses: the best of every encoding, then the best of the others; the best first."""
    ranked = sorted(losses, key=lambda variant: losses[variant])
    leaders = {variant.encoding: variant for variant in reversed(ranked)}.values()
    chosen = sorted(ranked, key=lambda variant: variant not in leaders)[:count]
    return sorted(chosen, key=lambda variant: losses[variant])


def folds_of(rows: int) -> int:
    """Into how many parts so many rows are divided, of which each network leaves one out."""
    return min(FOLDS, rows)


@dataclass(frozen=True)
class Division:
    """Encoded rows, and the rows each network leaves out, or rows to stop by instead."""

    rows: Rows
    folds: list[IdArray] | None
    validation: Rows | None

    def held_out(self) -> tuple[AnyArray, AnyArray] | None:
        """Targets and weights of the rows that some network does not train on, if there are any."""
        if self.validation is not None:
            return self.validation.target, self.validation.weight
        if self.folds is None:
            return None
        chosen = np.unique(np.concatenate(self.folds))
        return self.rows.target[chosen], self.rows.weight[chosen]


class Ensemble:
    """Groups of networks on several variants of one table."""

    def __init__(
        self,
        columns: Columns,
        loss: TabularLoss,
        offset: AnyArray,
        settings: Settings,
        stream: Stream,
    ) -> None:
        self.columns, self.shares = columns, np.zeros(0)
        self.loss, self.offset, self.stream = loss, offset, stream
        variants = choose_variants(settings.scaling, settings.gains)
        self.groups = {variant: self._fresh(variant, settings) for variant in variants}
        self.weights = np.full(len(variants), 1.0 / len(variants))
        self.temperature = 1.0
        self.seconds: dict[str, float] = {}  # of the last training, by what was done
        self._leave_trees_out()

    def train(self, rows: Rows, validation: Rows | None, settings: Settings) -> None:
        """Train every group on encoded rows; with held-out rows, weigh the groups by them.

        Of many rows only the best of a trial are trained.
        """
        self.seconds = {}
        division = self._divide(rows, validation, settings)
        held_out = division.held_out()
        if not settings.trees:  # an earlier fit may have grown some
            self._leave_trees_out()
        trees = self._grow_trees(division) if settings.trees and held_out is not None and len(self.columns.used) else []
        self._learn_shares(rows, settings.threads)
        validated = validation is not None or settings.patience is not None
        begun = any(group.weights is not None for group in self.groups.values())
        if validated and len(rows) > TRIAL_ROWS and len(self.groups) > FINALISTS and not begun:
            self._hold_trial(rows, validation, settings)
        settings.progress.begin(anneals=division.folds is not None)
        stops, of_trees = self._train_groups(division, settings, "networks", trees)
        if held_out is not None:
            mixed = self._weigh(stops, *held_out)
            if division.folds is not None:
                self._anneal(rows, settings)
            if trees:
                self.shares_of_kinds = tree_shares(self.loss, mixed, of_trees, *held_out)

    def train_epoch(self, rows: Rows, settings: Settings) -> None:
        """One epoch of every network over all encoded rows."""
        self._learn_shares(rows, settings.threads)
        groups = self.groups.items()
        jobs = [group.train_epoch(self._shown(rows, variant), settings, str(variant)) for variant, group in groups]
        self._run(jobs, settings)

    def outputs(self, table: Float64Array) -> Float64Array:
        """Weighted mean output (rows, outputs) at a table (rows, columns), scaled by the temperature."""
        blocks = [self._outputs_of_block(table[at : at + BLOCK]) for at in range(0, len(table), BLOCK)]
        return np.concatenate(blocks) if blocks else np.zeros((0, len(self.offset)))

    def mixing_weights(self) -> dict[str, float]:
        """Weights of the variants of the networks and of the kinds of trees, by name; 1 together."""
        names = [*map(str, self.groups), *self.trees]
        weights = [*(self.shares_of_kinds[0] * self.weights), *self.shares_of_kinds[1:]]
        return {name: float(weight) for name, weight in zip(names, weights, strict=True)}

    def main(self) -> NetworkGroup:
        """The group of the largest weight."""
        return list(self.groups.values())[int(self.weights.argmax())]

    def forget_training(self) -> None:
        """Keep only what predicts."""
        for group in self.groups.values():
            group.forget_training()

    def _outputs_of_block(self, table: Float64Array) -> Float64Array:
        inputs, total = self.columns.encode(table), 0.0
        for weight, (variant, group) in zip(self.weights, self.groups.items(), strict=True):
            total = total + weight * group.outputs(inputs[variant.encoding], self._gains(variant, self.shares))
        mixed = scaled_outputs(np.asarray(total), self.offset, self.temperature)
        if not self.trees:
            return mixed
        raw = inputs.raw()
        return mix(self.loss, self.shares_of_kinds, mixed, [trees.predictions(raw) for trees in self.trees.values()])

    def _learn_shares(self, rows: Rows, threads: int) -> None:
        """Learn what each input explains of the targets, by ranks, which gains are made of; once."""
        if not len(self.shares):
            self.shares = explained_shares(rows.X["rank"], rows.target, rows.weight, threads)

    def _hold_trial(self, rows: Rows, validation: Rows | None, settings: Settings) -> None:
        """Train a few networks of every group on TRIAL_ROWS rows, for a while; go on, afresh, with the FINALISTS."""
        optimiser = clone(settings.optimiser)
        optimiser.epochs = min(optimiser.epochs, TRIAL_EPOCHS)
        shortened = replace(settings, optimiser=optimiser, members=min(settings.members, TRIAL_NETWORKS))
        self.groups = {variant: self._fresh(variant, shortened) for variant in self.groups}
        chosen = self.stream.child("trial").permutation(len(rows))[:TRIAL_ROWS]
        assert rows.strata is not None
        parts = rows.target[chosen], rows.weight[chosen], rows.strata[chosen]
        sample = Rows(rows.X.part(chosen), *parts, groups=None if rows.groups is None else rows.groups[chosen])
        division = self._divide(sample, validation, settings)
        with Helpers(1) as helper:
            if settings.threads > 1:  # the inputs of the finalists
                helper.submit(lambda: [rows.X[variant.encoding] for variant in self.groups])
            cost = TRIAL_ROWS * shortened.members / (len(rows) * settings.members)
            settings.progress.begin(cost, FINALISTS * EXPECTED)
            stops, _ = self._train_groups(division, shortened, "trial of the variants")
        losses = {variant: stop.loss for variant, stop in zip(self.groups, stops, strict=True)}
        self.groups = {variant: self._fresh(variant, settings) for variant in finalists(losses, FINALISTS)}

    def _divide(self, rows: Rows, validation: Rows | None, settings: Settings) -> Division:
        """Folds that are the same for every group, so that outputs at held-out rows can be mixed."""
        count = next(iter(self.groups.values())).count
        if validation is not None or settings.patience is None or len(rows) < 2:
            return Division(rows, None, validation)
        assert rows.strata is not None
        groups = len(rows) if rows.groups is None else len(np.unique(rows.groups))
        folds = held_out_folds(rows.strata, count, folds_of(groups), self.stream.child("folds"), rows.groups)
        return Division(rows, folds, None)

    def _shares_of(self, division: Division) -> list[Float64Array]:
        """What inputs explain of the targets, for each network.

        Gains that include the target of a held-out row make its loss too low. Of many inputs and few rows some explain
        much by chance, so the fold's rows do not count then. Of few inputs none does, and shares of all rows are
        better shares.
        """
        rows, folds = division.rows, division.folds
        if folds is None or len(self.shares) <= len(rows):
            return [self.shares] * next(iter(self.groups.values())).count
        others = [np.setdiff1d(np.arange(len(rows)), fold) for fold in folds]
        return [explained_shares(rows.X["rank"][part], rows.target[part], rows.weight[part]) for part in others]

    def _gains(self, variant: Variant, shares: Float64Array) -> AnyArray:
        """Gains (inputs,), float32."""
        return relevance_gains(shares, variant.gain)[self.columns.sources(variant.encoding)]

    def _shown(self, rows: Rows, variant: Variant) -> Rows:
        """Encoded rows as the networks of a variant predict them."""
        return replace(rows, X=rows.X[variant.encoding]).with_gains(self._gains(variant, self.shares))

    def _train_groups(
        self, division: Division, settings: Settings, phase: str, trees: Sequence[Job] = ()
    ) -> tuple[list[Stop], list[Float64Array]]:
        """Where the groups stopped, and predictions of trees, which are grown concurrently, for the rows held out."""
        shares = self._shares_of(division)
        jobs = [self._training(variant, division, shares, settings) for variant in self.groups]
        target, weight = division.held_out() or (division.rows.target, division.rows.weight)
        weigh = partial(mixing_weights, self.loss, target=target, weight=weight)
        found = self._run(jobs, settings, phase, SuccessiveHalving(weigh, len(jobs)), trees)
        return found[: len(jobs)], found[len(jobs) :]

    def _anneal(self, rows: Rows, settings: Settings) -> None:
        """Take the groups that are left through their last epochs, on all rows (_dense/optimisers.py)."""
        settings.progress.begin(FOLDED)
        groups = self.groups.items()
        jobs = [group.anneal(self._shown(rows, v), settings, f"{v}, annealing") for v, group in groups]
        self._run(jobs, settings, "annealing")

    def _run(
        self,
        jobs: Sequence[Job],
        settings: Settings,
        phase: str | None = None,
        prune: SuccessiveHalving | None = None,
        trees: Sequence[Job] = (),
    ) -> list[Any]:
        """Train groups and grow trees concurrently; the time of the groups is added to that of a phase."""
        if settings.device == "cpu":
            found, seconds = run_jobs(jobs, settings.threads, prune, trees)
        else:
            from fewfire.tabular._gpu import HELPERS, GpuRunner

            with Helpers(min(settings.threads, HELPERS)) as pool:
                found, seconds = run_jobs(jobs, settings.threads, prune, trees, GpuRunner(pool))
        if phase is not None:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + sum(seconds[: len(jobs)])
        if trees:
            self.seconds["trees"] = sum(seconds[len(jobs) :])
        return found

    def _training(self, variant: Variant, division: Division, shares: list[Float64Array], settings: Settings) -> Job:
        gains = [self._gains(variant, of_network) for of_network in shares]
        rows, validation = division.rows, division.validation
        rows = replace(rows, X=rows.X[variant.encoding])
        if validation is not None:
            validation = replace(validation, X=validation.X[variant.encoding])
        return self.groups[variant].train(rows, gains, division.folds, validation, settings, str(variant))

    def _weigh(self, stops: list[Stop], target: AnyArray, weight: AnyArray) -> Float64Array:
        """Weigh the groups by the rows held out, drop the least, and learn the temperature; their mixed outputs."""
        outputs = np.stack([stop.pooled for stop in stops if stop.pooled is not None])
        weights = mixing_weights(self.loss, outputs, target, weight)
        mixed = np.tensordot(weights, outputs, 1)
        if self.loss != "squared":
            self.temperature = best_temperature(self.loss, mixed, self.offset, target, weight)
        kept = weights > 0
        self.groups = {name: group for (name, group), stays in zip(self.groups.items(), kept, strict=True) if stays}
        self.weights = weights[kept]
        return scaled_outputs(mixed, self.offset, self.temperature)

    def _leave_trees_out(self) -> None:
        self.trees: dict[str, TreeGroup] = {}
        self.shares_of_kinds = np.ones(1)  # the networks' share, then those of the trees

    def _grow_trees(self, division: Division) -> list[Job]:
        """Jobs that fit trees on the folds of the networks."""
        outputs = 2 if self.loss == "logistic" else len(self.offset)
        rows, validation = division.rows, division.validation
        rows = replace(rows, X=rows.X.raw())
        if validation is not None:
            validation = replace(validation, X=validation.X.raw())
        self.trees = {name: kind(self.loss, outputs, self.stream.child(name)) for name, kind in TREES.items()}
        return [trees.train(rows, division.folds, validation) for trees in self.trees.values()]

    def _fresh(self, variant: Variant, settings: Settings) -> NetworkGroup:
        inputs = len(self.columns.sources(variant.encoding))
        embedding = self.columns.embedding(variant.encoding)
        layout = Layout(inputs, settings.hidden, len(self.offset), settings.skip, embedding, self._ladders(variant))
        stream = self.stream.child(f"{STREAMS.get(variant.encoding, variant.encoding)}/{variant.gain}")
        return NetworkGroup(layout, self.loss, self.offset, stream, settings.members)

    def _ladders(self, variant: Variant) -> tuple[int, ...]:
        """Bins of the columns, if there are enough of them to be worth it."""
        encoding = self.columns.encodings[variant.encoding]
        if not isinstance(encoding, PiecewiseLinearEncoding):
            return ()
        bins = [len(edges) - 1 for edges in encoding.edges_ if len(edges) > 1]
        return tuple(bins) if sum(bins) >= WORTH * len(bins) else ()


def columns_for(table: Float64Array, weight: Float64Array, settings: Settings) -> Columns:
    """The columns of a table (rows, columns) in the encodings an ensemble needs; ranks show what inputs explain."""
    encodings = {variant.encoding: None for variant in choose_variants(settings.scaling, settings.gains)}
    return learn_columns(table, weight, encodings | {"rank": None}, settings.threads)


def mixing_weights(loss: TabularLoss, outputs: Float64Array, target: AnyArray, weight: AnyArray) -> Float64Array:
    """Weights (groups,) of outputs (groups, rows, outputs) at rows with targets and weights, the least cut off."""
    even, doubt = np.full(len(outputs), 1.0 / len(outputs)), EVEN / _effective(weight)

    def cost(logits: Float64Array) -> tuple[float, Float64Array]:
        shares = softmax(logits)
        losses, errors = TABLE_LOSSES[loss](np.tensordot(shares, outputs, 1), target)
        slopes = np.einsum("vro,ro,r->v", outputs, errors, weight) / weight.sum()
        value = float(np.average(losses, weights=weight)) - doubt * float(even @ log_softmax(logits))
        return value, shares * (slopes - shares @ slopes) + doubt * (shares - even)

    found = softmax(minimize(cost, np.zeros(len(outputs)), jac=True, method="L-BFGS-B").x)
    found[found < LEAST_WEIGHT] = 0.0
    return np.asarray(found / found.sum())


def scaled_outputs(outputs: Float64Array, offset: AnyArray, temperature: float) -> Float64Array:
    """offset + (outputs − offset) / temperature, which changes no bit where the temperature is 1."""
    return np.asarray(outputs / temperature + (1 - 1 / temperature) * offset)


def best_temperature(
    loss: TabularLoss, outputs: Float64Array, offset: AnyArray, target: AnyArray, weight: AnyArray
) -> float:
    """The number in [1/3, 3] by which scaled outputs (rows, outputs) predict classes best, nearer to 1 for few rows."""

    def mean_loss(logarithm: float) -> float:
        losses, _ = TABLE_LOSSES[loss](scaled_outputs(outputs, offset, np.exp(logarithm)), target)
        return float(np.average(losses, weights=weight)) + DOUBT * logarithm**2 / len(target)

    bound = np.log(HOTTEST)
    return float(np.exp(minimize_scalar(mean_loss, bounds=(-bound, bound), method="bounded").x))


def log_probabilities(loss: TabularLoss, outputs: Float64Array) -> Float64Array:
    """Logarithms of the probabilities of all classes (rows, classes) of outputs (rows, outputs)."""
    if loss == "logistic":
        return np.hstack([log_expit(-outputs), log_expit(outputs)])
    return np.asarray(log_softmax(outputs, axis=1))


def mix(loss: TabularLoss, shares: Float64Array, outputs: Float64Array, trees: list[Float64Array]) -> Float64Array:
    """Outputs (rows, outputs) of networks mixed with predictions of trees, probabilities (rows, classes) or numbers."""
    if loss == "squared":
        return np.asarray(shares[0] * outputs + sum(share * of for share, of in zip(shares[1:], trees, strict=True)))
    of_trees = np.asarray(sum(share * of for share, of in zip(shares[1:], trees, strict=True)))
    with np.errstate(divide="ignore"):  # a class that no tree expects; networks never predict 0
        mixed = np.logaddexp(np.log(shares[0]) + log_probabilities(loss, outputs), np.log(of_trees))
    return np.asarray(mixed[:, 1:] - mixed[:, :1] if loss == "logistic" else mixed)


def tree_shares(
    loss: TabularLoss, outputs: Float64Array, trees: list[Float64Array], target: AnyArray, weight: AnyArray
) -> Float64Array:
    """Shares of networks, a random forest, boosting and further kinds by which `mix` predicts weighted rows best.

    Errors of numbers count as those of a normal distribution of unknown deviation.
    """
    rows = _effective(weight)
    boosted = 0.25 * rows / (rows + BOOSTED_ROWS)
    prior = np.array([0.5, 0.5 - boosted, boosted, *(0.25 for _ in trees[2:])])
    prior /= prior.sum()
    networks = outputs if loss == "squared" else np.exp(log_probabilities(loss, outputs))
    score = likelihood(loss, np.stack([networks, *trees]), target, weight)
    doubt = (DOUBTED_NUMBERS if loss == "squared" else DOUBTED) / rows

    def cost(logits: Float64Array) -> tuple[float, Float64Array]:
        shares = softmax(logits)
        value, slopes = score(shares)
        # The prior's slope by the logits: d log softmax.
        prior_slope = doubt * (shares - prior)
        return value - doubt * float(prior @ log_softmax(logits)), shares * (slopes - shares @ slopes) + prior_slope

    return np.asarray(softmax(minimize(cost, np.log(prior), jac=True, method="L-BFGS-B").x))


def _effective(weight: AnyArray) -> float:
    """The effective number of rows of these weights (Kish 1965)."""
    relative = np.asarray(weight, dtype=np.float64) / weight.max()
    return float(relative.sum() ** 2 / (relative @ relative))


def likelihood(loss: TabularLoss, members: Float64Array, target: AnyArray, weight: AnyArray) -> Score:
    """The loss of shares (members,) of predictions (members, rows, classes or targets), and its slopes by them.

    The mean −log of the probability of each row's class, or half the logarithm of the mean squared error.
    """
    weight = weight / weight.sum()
    if loss == "squared":
        errors = members - target
        products = np.einsum("iro,jro,r->ij", errors, errors, weight) / target.shape[1]
    else:
        classes = target.argmax(axis=1) if target.shape[1] > 1 else (target[:, 0] > 0.5).astype(np.int64)
        given = np.maximum(members[:, np.arange(len(target)), classes], TINY)

    def score(shares: Float64Array) -> tuple[float, Float64Array]:
        if loss == "squared":
            mean = max(float(shares @ products @ shares), TINY)
            return 0.5 * np.log(mean), products @ shares / mean
        mixed = shares @ given
        return -float(weight @ np.log(mixed)), -(given / mixed) @ weight

    return score

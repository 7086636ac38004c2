"""Learning inside H(n, s, k) beside dense networks of the same width: samples needed, errors, generalisation gap.

Targets are random members of H(n, 8, 1) (Appendix A), so of every H(n, s, k) with s ≥ 8. Both sides are the same
estimator, `SparseActivationRegressor`, members with k = 4 (or 1) and dense networks with k = s: the same start, steps,
minibatches and rates, each with its weight decay chosen on held-out rows. Theorem 17 has k·s·n samples inside the
class, where without sparsity s² are needed; one of s, k and n changes at a time. Samples are counted in multiples of
the 8(n + 1) parameters of the target; needed are those at which the test error falls to a tenth of the variance, target
by target.

Claimed is an advantage over dense networks trained alike: they need more samples, and with the most samples and the
same steps have a larger error; judged over targets by Student's lower ends. And claimed is that this is an advantage of
training, not of samples: dense networks trained four times as long need no more samples than members, by Student's
upper end; on the way they become nearly 1-sparse without being asked. And, of Theorem 17, that fewer active neurons
need fewer samples, which fails: k = 1 needs more than k = 4, since its descent gets stuck. Told and not judged is what
s and n change, and at paper scale what members gain from the same patience. Nothing grows as the theory has it: samples
hardly change with s on either side. Settings were fixed on other targets.

Verdicts are by ends that hold with 95% confidence each; effects have intervals of 95% for both ends together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from fewfire._cores import usable_cores
from fewfire.experiments.recipes import _effects
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Effect, Judgement, Power
from fewfire.experiments.recipes._paired import PairedMean, paired_mean
from fewfire.learners import SparseActivationRegressor
from fewfire.networks import check_sparsity, construct
from fewfire.problems import NetworkTarget
from fewfire.theory import sparse_activations as theory

TARGET_NEURONS, TESTS, GOAL, DELTA = 8, 4000, 0.1, 0.05
EFFECT, LOWER, LONGER, SPARSER = 1.2, 1.5, 4, 0.2
"""A ratio of samples and one of errors that are worth noticing; how much longer patience trains; the fall of
Pr[more than 1 fire] that is asked for."""
FALL, FEWER = 0.4, 0.5
"""The power is also for a fall this large, and for fewer active neurons that need half of the samples."""
DENSE = 0
"""In place of k: as many as there are neurons."""


@dataclass(frozen=True)
class MemberCell:
    """One class, one sample size: inputs, neurons, k (0 for dense), multiple of the target's parameters, steps."""

    n: int
    s: int
    k: int
    multiple: float
    steps: int

    @property
    def samples(self) -> int:
        """How many rows are learned from."""
        return round(self.multiple * TARGET_NEURONS * (self.n + 1))


@dataclass(frozen=True)
class MembersSettings:
    """Targets, sample sizes, values of n, s and k (the first are common), which k train longer, steps, first seed."""

    targets: int
    multiples: tuple[float, ...]
    n: tuple[int, ...]
    s: tuple[int, ...]
    k: tuple[int, ...]
    patient: tuple[int, ...] = (DENSE,)
    steps: int = 2000
    first: int = 100


Learned: TypeAlias = dict[str, float]
"""Of one fit: test and training error over the variance of the target, and Pr[more than k fire] on new inputs."""

Learning: TypeAlias = Callable[[MemberCell, int], Learned]
"""(cell, seed of the target) -> what was learned."""


def measure(settings: MembersSettings, *, learn: Learning | None = None) -> RecipeOutcome:
    """Rows of cell and errors per target; samples needed per class and target; comparisons with intervals.

    Parameters
    ----------
    settings : MembersSettings
    learn : Learning, optional
        How a cell is measured; `SparseActivationRegressor` one process per core unless given.
    """
    cells, seeds = _cells(settings), range(settings.first, settings.first + settings.targets)
    tasks = [(cell, seed) for cell in cells for seed in seeds]
    if learn is None:
        found = Parallel(n_jobs=usable_cores())(delayed(learn_member)(*task) for task in tasks)
    else:
        found = [learn(*task) for task in tasks]
    by_task = dict(zip(tasks, found, strict=True))
    rows = [
        {**asdict(cell), "samples": cell.samples, **_told(cell), **_columns([by_task[cell, seed] for seed in seeds])}
        for cell in cells
    ]
    needed = _needed(rows)
    pairs = _pairs(settings)
    ratios = {pair: np.log(needed[pair[1]] / needed[pair[0]]) for pair in pairs}
    alike = np.mean(list(ratios.values()), axis=0)
    lower = np.mean([np.log(_last(rows, pair[1]) / _last(rows, pair[0])) for pair in pairs], axis=0)
    ours, plain = pairs[0]
    longer = (*plain[:3], LONGER * settings.steps)
    fewest = (*ours[:2], min(settings.k), settings.steps)
    judgements = judge(
        alike=alike,
        lower=lower,
        patience=np.log(needed[longer] / needed[ours]),
        sparser=_exceeds(rows, plain) - _exceeds(rows, longer),
        fewer=np.log(needed[fewest] / needed[ours]),
        k=(min(settings.k), settings.k[0]),
    )
    classes = [
        {"n": n, "s": s, "k": k, "steps": steps, "needed": values.tolist(), **_predicted(n, s, k)}
        for (n, s, k, steps), values in needed.items()
    ]
    told = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(settings).items()}
    return RecipeOutcome(
        parameters={**told, "goal": GOAL, "target_neurons": TARGET_NEURONS, "effect": EFFECT},
        judgements=judgements,
        measured=_sentences(settings, rows, needed, ratios, paired_mean(alike)),
        data={"rows": rows, "classes": classes},
    )


def judge(
    *,
    alike: np.ndarray,
    lower: np.ndarray,
    patience: np.ndarray,
    sparser: np.ndarray,
    fewer: np.ndarray,
    k: tuple[int, int],
) -> list[Judgement]:
    """The claims on numbers per target.

    Parameters
    ----------
    alike, lower, patience : arrays of shape (targets,)
        Logarithms, dense networks over members: of samples and of errors trained alike, of samples trained longer.
    sparser : array of shape (targets,)
        The fall of Pr[more than 1 fire] of dense networks trained longer.
    fewer : array of shape (targets,)
        Logarithms of the samples of members with the first of `k` over those with the second.
    k : pair of int
    """
    more, less, level, falls, active = (paired_mean(values) for values in (alike, lower, patience, sparser, fewer))
    samples = "samples of dense networks over samples of members"
    return [
        Judgement(
            "trained alike, dense networks need more samples than members",
            f"{samples}, lower end of the 95% interval",
            np.exp(more.low),
            1.0,
            "at least",
            refuted_by="dense networks that may need no more samples",
            effect=_ratio(samples, alike),
            power=Power(f"a ratio of {EFFECT:g}", more.power(float(np.log(EFFECT)))),
        ),
        Judgement(
            "trained alike on the most samples, members have the lower error",
            "error of dense networks over error of members, lower end of the 95% interval",
            np.exp(less.low),
            1.0,
            "at least",
            refuted_by="dense networks whose error may be as low",
            effect=_ratio("error of dense networks over error of members", lower),
            power=Power(f"a ratio of {LOWER:g}", less.power(float(np.log(LOWER)))),
        ),
        Judgement(
            f"trained {LONGER} times as long, dense networks need no more: an advantage of {EFFECT:g} is excluded",
            f"{samples}, upper end of the 95% interval",
            np.exp(level.high),
            EFFECT,
            refuted_by=f"members that may need {EFFECT:g} times fewer samples, as the paper argues for",
            effect=_ratio(samples, patience),
            power=Power("no advantage at all, a ratio of 1", level.power(float(np.log(EFFECT)))),
        ),
        Judgement(
            "dense networks become sparse by patience alone",
            f"fall of Pr[more than 1 fire] when trained {LONGER} times as long, lower end of the 95% interval",
            falls.low,
            SPARSER,
            "at least",
            refuted_by="a fall that may be below a fifth",
            effect=_effects.mean("fall of Pr[more than 1 fire]", sparser),
            power=Power(f"a fall of {FALL:g}", falls.power(FALL - SPARSER)),
        ),
        Judgement(
            f"fewer active neurons need fewer samples: k = {k[0]} than k = {k[1]}",
            f"samples at k = {k[0]} over samples at k = {k[1]}, upper end of the 95% interval",
            np.exp(active.high),
            1.0,
            refuted_by="members of the smaller k that may need as many; Theorem 17 has samples in proportion to k",
            effect=_ratio(f"samples at k = {k[0]} over samples at k = {k[1]}", fewer),
            power=Power("half of the samples", active.power(float(-np.log(FEWER)))),
        ),
    ]


def _ratio(name: str, logarithms: np.ndarray) -> Effect:
    found = _effects.mean(name, logarithms)
    return Effect(name, *(float(np.exp(end)) for end in (found.value, found.low, found.high)))


def learn_member(cell: MemberCell, seed: int) -> Learned:
    """Fit one class to one random member, and test it on fresh inputs."""
    problem = NetworkTarget(construct.random_member(cell.n, TARGET_NEURONS, 1, seed))
    X, y = problem.sample(cell.samples, seed)
    X_test, y_test = problem.sample(TESTS, seed + 10**6)
    k = cell.k or cell.s
    model = SparseActivationRegressor(cell.s, k, steps=cell.steps, random_state=seed).fit(X, y)
    return {
        "test": float(np.mean((model.predict(X_test) - y_test) ** 2) / np.var(y_test)),
        "train": float(np.mean((model.predict(X) - y) ** 2) / np.var(y_test)),
        "exceeds": check_sparsity(model.network_, cell.k or 1, X=X_test).exceeds().value,
    }


def samples_needed(sizes: list[int], errors: np.ndarray) -> float:
    """Where the error falls to the goal: a line in logarithms between sizes, through the least errors so far.

    One that has fallen there at the first size is given that size, one that never does a step beyond the last.
    """
    best = np.minimum.accumulate(np.maximum(errors, 1e-12))
    if best[0] <= GOAL:
        return float(sizes[0])
    if best[-1] > GOAL:
        return float(sizes[-1] * sizes[-1] / sizes[-2])
    place = int(np.argmax(best <= GOAL))
    share = np.log(best[place - 1] / GOAL) / np.log(best[place - 1] / best[place])
    return float(np.exp(np.log(sizes[place - 1]) + share * np.log(sizes[place] / sizes[place - 1])))


Class: TypeAlias = tuple[int, int, int, int]
"""n, s, k and steps."""


def _pairs(settings: MembersSettings) -> list[tuple[Class, Class]]:
    """Members of the first k beside dense networks, for each s and each n; the common n and s come first."""
    (n, *inputs), (s, *widths), k = settings.n, settings.s, settings.k[0]
    places = [(n, s), *((n, width) for width in widths), *((other, s) for other in inputs)]
    return [((*place, k, settings.steps), (*place, DENSE, settings.steps)) for place in places]


def _cells(settings: MembersSettings) -> list[MemberCell]:
    n, s, others = settings.n[0], settings.s[0], settings.k[1:]
    classes = [side for pair in _pairs(settings) for side in pair]
    classes += [(n, s, other, settings.steps) for other in others]
    classes += [(n, s, side, LONGER * settings.steps) for side in settings.patient]
    return [
        MemberCell(inputs, width, side, multiple, steps)
        for inputs, width, side, steps in classes
        for multiple in settings.multiples
    ]


def _columns(found: list[Learned]) -> dict[str, list[float]]:
    return {key: [round(entry[key], 6) for entry in found] for key in ("test", "train", "exceeds")}


def _told(cell: MemberCell) -> dict[str, float]:
    """Theorem 19 for the class at this sample size, with the scales of the targets."""
    bound = theory.rademacher(cell.n, cell.s, cell.k or cell.s, *_scales(cell.n), cell.samples)
    return {
        "theorem_19": bound if cell.k else theory.rademacher_classical(cell.n, cell.s, *_scales(cell.n), cell.samples)
    }


def _predicted(n: int, s: int, k: int) -> dict[str, float]:
    """Samples of Theorem 17, or for dense networks of Lemma 18's form (WR + B)² s²/ε²."""
    W, B = _scales(n)
    if k:
        return {"predicted": theory.general_samples(n, s, k, W, B, GOAL, DELTA)}
    return {"predicted": ((W * n**0.5 + B) * s / GOAL) ** 2}


def _scales(n: int) -> tuple[float, float]:
    """W and B of the targets, which all share them: Γ = √q on b address bits and a unit vector beside."""
    return tuple(construct.random_member(n, TARGET_NEURONS, 1, 0).norms())  # type: ignore[return-value]


def _of_class(rows: list[dict[str, Any]], key: Class) -> list[dict[str, Any]]:
    return [row for row in rows if (row["n"], row["s"], row["k"], row["steps"]) == key]


def _needed(rows: list[dict[str, Any]]) -> dict[Class, np.ndarray]:
    """For each class the samples needed, one number per target."""
    answer = {}
    for key in dict.fromkeys((row["n"], row["s"], row["k"], row["steps"]) for row in rows):
        mine = _of_class(rows, key)
        sizes, errors = [row["samples"] for row in mine], np.array([row["test"] for row in mine])
        answer[key] = np.array([samples_needed(sizes, column) for column in errors.T])
    return answer


def _last(rows: list[dict[str, Any]], key: Class) -> np.ndarray:
    """Test errors at the largest sample, one number per target."""
    return np.asarray(np.maximum(_of_class(rows, key)[-1]["test"], 1e-12))


def _exceeds(rows: list[dict[str, Any]], key: Class) -> np.ndarray:
    """Pr[more than 1 fire], or more than k of members: the mean over sample sizes, one number per target."""
    return np.asarray(np.mean([row["exceeds"] for row in _of_class(rows, key)], axis=0))


def _sentences(
    settings: MembersSettings,
    rows: list[dict[str, Any]],
    needed: dict[Class, np.ndarray],
    ratios: dict[tuple[Class, Class], np.ndarray],
    alike: PairedMean,
) -> list[str]:
    n, s, k, steps = settings.n[0], settings.s[0], settings.k[0], settings.steps
    ours = needed[n, s, k, steps]
    sentences = [f"samples of dense networks over samples of members, trained alike: {_interval(alike)} over all cells"]
    for (member, dense), values in ratios.items():
        error = paired_mean(np.log(_last(rows, dense) / _last(rows, member)))
        sentences.append(
            f"at n = {member[0]}, s = {member[1]}: samples {_interval(paired_mean(values))}, error at the most samples "
            f"{_interval(error)}, gap {np.mean(_gap(rows, dense)):.2f} against {np.mean(_gap(rows, member)):.2f}"
        )
    for side in settings.patient:
        name = "members" if side else "dense networks"
        ratio = paired_mean(np.log(needed[n, s, side, LONGER * steps] / ours))
        fire = [np.mean(_exceeds(rows, (n, s, side, length))) for length in (steps, LONGER * steps)]
        sentences.append(
            f"{name} trained {LONGER} times as long need {_interval(ratio)} times the samples of members; more than "
            f"{side or 1} fire on {fire[0]:.0%} of new inputs before and {fire[1]:.0%} after"
        )
    if {DENSE, k} <= set(settings.patient):
        level = paired_mean(np.log(needed[n, s, DENSE, LONGER * steps] / needed[n, s, k, LONGER * steps]))
        sentences.append(
            f"both trained {LONGER} times as long, dense networks need {_interval(level)} times the samples"
        )
    for more in settings.k[1:]:
        other = paired_mean(np.log(needed[n, s, more, steps] / ours))
        sentences.append(
            f"k = {more} needs {_interval(other)} times the samples of k = {k}; Theorem 17 has {more / k:g}"
        )
    for name, side, law in ((f"k = {k}", k, "s"), ("dense", DENSE, "s²")):
        sizes = (min(settings.s), max(settings.s))
        first, last = (needed[n, width, side, steps] for width in sizes)
        slope = paired_mean(np.log(last / first) / np.log(sizes[1] / sizes[0]))
        sentences.append(
            f"{name}: samples grow like s to the power {slope.mean:.2f} ({slope.low:.2f} to {slope.high:.2f}), "
            f"where the theory has {law}"
        )
    return sentences


def _gap(rows: list[dict[str, Any]], key: Class) -> np.ndarray:
    """Test less training error, the mean over sample sizes, one number per target."""
    return np.asarray(np.mean([np.subtract(row["test"], row["train"]) for row in _of_class(rows, key)], axis=0))


def _interval(found: PairedMean) -> str:
    return f"{np.exp(found.mean):.2f} ({np.exp(found.low):.2f} to {np.exp(found.high):.2f})"


RECIPE = Recipe(
    name="sparse-activations/inside-the-class",
    title="Learning inside H(n, s, k) beside dense networks of the same width: samples needed, errors, patience",
    seconds=43,
    expectation="trained alike, members need fewer samples; dense networks trained longer need no more, being sparse",
    figure="inside_the_class",
    scales={
        "quick": MembersSettings(targets=9, multiples=(2.0, 3.0, 4.5), n=(16, 12), s=(64, 128), k=(4, 1)),
        "paper": MembersSettings(
            targets=20,
            multiples=(2.0, 3.0, 4.5, 6.75),
            n=(16, 12, 24),
            s=(64, 32, 128, 256),
            k=(4, 1, 2, 8),
            patient=(DENSE, 4),
        ),
    },
    measure=measure,
    paper_seconds=700,
    busy=2,
)

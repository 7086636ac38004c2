"""Learning inside H(n, s, k) and by dense networks of the same width: samples needed, errors, generalisation gap.

Targets are random members of H(n, t, 1) with t = 8 neurons, or in proportion to s where s varies. Both sides are
`SparseActivationRegressor`, members with k = 4 (or 1) and dense networks with k = s, each with its weight decay chosen
on validation rows. Theorem 17 has k·s·n samples inside the class, where without sparsity s² are needed; one of s, k and
n changes at a time. Samples are multiples of the t(n + 1) parameters of the target; needed are those at which the test
error falls to a tenth of the variance, target by target.

Claimed is an advantage over dense networks trained alike, in samples and in the error with the most samples; that it
is an advantage of training, since dense networks trained four times as long need no more; and, of Theorem 17, that
fewer active neurons need fewer samples, which fails: the descent of k = 1 gets stuck. Settings were fixed on other
targets. Verdicts are by ends that hold with 95% confidence each; effects have intervals of 95% for both ends together.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.stats import gmean, sem
from sklearn.utils.parallel import Parallel, delayed

from fewfire._threads import usable_cores
from fewfire.learners import SparseActivationRegressor
from fewfire.networks import check_sparsity, construct
from fewfire.papers import _effects
from fewfire.papers import sparse_activations as theory
from fewfire.papers._claims import Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, grouped, rows_of
from fewfire.papers._statistics import LEVEL, spread_power
from fewfire.papers.sparse_activations.recipes._shared import mean_ratio
from fewfire.problems import NetworkTarget
from fewfire.report._figure import SomeAxes, canvas, colour, label_axes, marked

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TARGET_NEURONS, TESTS, GOAL, DELTA = 8, 4000, 0.1, 0.05
EFFECT, LOWER, LONGER, SPARSER = 1.2, 1.5, 4, 0.2
"""A ratio of samples and one of errors that are worth noticing; how much longer patience trains; the fall of
Pr[more than 1 fire] that is required."""
FALL, FEWER = 0.4, 0.5
"""The power is also for a fall this large, and for fewer active neurons that need half of the samples."""
DENSE = 0  # instead of k: as many as there are neurons


@dataclass(frozen=True)
class MemberCell:
    """One class, one sample size: `k` is 0 for dense, `multiple` of the parameters of a target of so many neurons."""

    n: int
    s: int
    k: int
    multiple: float
    steps: int
    target: int = TARGET_NEURONS

    @property
    def samples(self) -> int:
        """How many rows are learned from."""
        return round(self.multiple * self.target * (self.n + 1))


Class: TypeAlias = tuple[int, int, int, int]
"""n, s, k and steps."""

Seen: TypeAlias = dict[Class, dict[str, np.ndarray]]
"""For each class, arrays of one number per target; see `per_target`."""


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


def measure(settings: MembersSettings) -> RecipeOutcome:
    """Rows of cell and errors per target; samples needed per class and target; comparisons with intervals."""
    kinds = [side for pair in _pairs(settings) for side in pair]
    kinds += [(settings.n[0], settings.s[0], other, settings.steps) for other in settings.k[1:]]
    kinds += [(settings.n[0], settings.s[0], side, LONGER * settings.steps) for side in settings.patient]
    keys = product(kinds, settings.multiples)
    cells = [MemberCell(*key[:3], multiple, key[3], _target(settings, key[1])) for key, multiple in keys]
    seeds = range(settings.first, settings.first + settings.targets)
    learned = learn_all(list(product(cells, seeds)))
    rows = []
    for place, cell in enumerate(cells):
        of_cell = learned[place * len(seeds) :][: len(seeds)]
        errors = {key: [round(one[key], 6) for one in of_cell] for key in of_cell[0]}
        n, s, k, (W, B) = cell.n, cell.s, cell.k, construct.random_member(cell.n, cell.target, 1, 0).norms()
        if k:
            bound = theory.rademacher(n, s, k, W, B, cell.samples)
        else:
            bound = theory.rademacher_classical(n, s, W, B, cell.samples)
        rows.append({**asdict(cell), "samples": cell.samples, "theorem_19": bound, **errors})
    seen = per_target(rows)
    classes = []
    for (n, s, k, steps), found in seen.items():
        W, B = construct.random_member(n, _target(settings, s), 1, 0).norms()  # all targets share these scales
        # Theorem 17, or for dense networks Lemma 18's form (WR + B)² s²/ε².
        predicted = theory.general_samples(n, s, k, W, B, GOAL, DELTA) if k else ((W * n**0.5 + B) * s / GOAL) ** 2
        needed = found["needed"].tolist()
        classes.append({"n": n, "s": s, "k": k, "steps": steps, "needed": needed, "predicted": predicted})
    return RecipeOutcome(
        parameters={**asdict(settings), "goal": GOAL, "target_neurons": TARGET_NEURONS, "effect": EFFECT},
        judgements=judge(settings, seen),
        measured=_sentences(settings, seen),
        data={"rows": rows, "classes": classes},
    )


def judge(settings: MembersSettings, seen: Seen) -> list[Judgement]:
    """The claims on what was seen of each class, target by target."""
    pairs = _pairs(settings)
    ours, dense = pairs[0]
    longer = (*dense[:3], LONGER * settings.steps)
    few, usual = min(settings.k), settings.k[0]
    alike = np.mean([_log_ratio(seen, "needed", other, member) for member, other in pairs], axis=0)
    lower = np.mean([_log_ratio(seen, "last", other, member) for member, other in pairs], axis=0)
    patience = _log_ratio(seen, "needed", longer, ours)
    sparser = seen[dense]["exceeds"] - seen[longer]["exceeds"]
    fewer = _log_ratio(seen, "needed", (*ours[:2], few, settings.steps), ours)
    more, less, level, active = (mean_ratio("", values, LEVEL) for values in (alike, lower, patience, fewer))
    samples, errors = (f"{what} of dense networks over {what} of members" for what in ("samples", "error"))
    at_few = f"samples at k = {few} over samples at k = {usual}"
    return [
        Judgement(
            "trained alike, dense networks need more samples than members",
            f"{samples}, lower end of the 95% interval",
            more.low,
            1.0,
            "at least",
            refuted_by="dense networks that may need no more samples",
            effect=mean_ratio(samples, alike),
            power=Power(f"a ratio of {EFFECT:g}", spread_power(alike, float(np.log(EFFECT)))),
        ),
        Judgement(
            "trained alike on the most samples, members have the lower error",
            f"{errors}, lower end of the 95% interval",
            less.low,
            1.0,
            "at least",
            refuted_by="dense networks whose error may be as low",
            effect=mean_ratio(errors, lower),
            power=Power(f"a ratio of {LOWER:g}", spread_power(lower, float(np.log(LOWER)))),
        ),
        Judgement(
            f"trained {LONGER} times as long, dense networks need no more: an advantage of {EFFECT:g} is excluded",
            f"{samples}, upper end of the 95% interval",
            level.high,
            EFFECT,
            refuted_by=f"members that may need {EFFECT:g} times fewer samples, as the paper argues for",
            effect=mean_ratio(samples, patience),
            power=Power("no advantage at all, a ratio of 1", spread_power(patience, float(np.log(EFFECT)))),
        ),
        Judgement(
            "dense networks become sparse by patience alone",
            f"fall of Pr[more than 1 fire] when trained {LONGER} times as long, lower end of the 95% interval",
            _effects.mean("", sparser, LEVEL).low,
            SPARSER,
            "at least",
            refuted_by="a fall that may be below a fifth",
            effect=_effects.mean("fall of Pr[more than 1 fire]", sparser),
            power=Power(f"a fall of {FALL:g}", spread_power(sparser, FALL - SPARSER)),
        ),
        Judgement(
            f"fewer active neurons need fewer samples: k = {few} than k = {usual}",
            f"{at_few}, upper end of the 95% interval",
            active.high,
            1.0,
            refuted_by="members of the smaller k that may need as many; Theorem 17 has samples in proportion to k",
            effect=mean_ratio(at_few, fewer),
            power=Power("half of the samples", spread_power(fewer, float(-np.log(FEWER)))),
        ),
    ]


def learn_all(tasks: list[tuple[MemberCell, int]]) -> list[dict[str, float]]:
    """`learn_member` of each cell and seed, a process per core."""
    return list(Parallel(n_jobs=usable_cores())(delayed(learn_member)(*task) for task in tasks))


def learn_member(cell: MemberCell, seed: int) -> dict[str, float]:
    """Test and training error of one class on one random member, over its variance, and Pr[more than k fire]."""
    problem = NetworkTarget(construct.random_member(cell.n, cell.target, 1, seed))
    X, y = problem.sample(cell.samples, seed)
    X_test, y_test = problem.sample(TESTS, seed + 10**6)
    model = SparseActivationRegressor(cell.s, cell.k or cell.s, steps=cell.steps, random_state=seed).fit(X, y)
    sides = {"test": (X_test, y_test), "train": (X, y)}
    errors = {side: float(np.mean((model.predict(A) - b) ** 2) / np.var(y_test)) for side, (A, b) in sides.items()}
    return {**errors, "exceeds": check_sparsity(model.network_, cell.k or 1, X=X_test).exceeds().value}


def samples_needed(sizes: list[int], errors: np.ndarray) -> float:
    """Where the error falls to the goal: a line in logarithms between sizes, through the least errors so far.

    It is the first size where the goal is reached there, and a step beyond the last where it never is.
    """
    best = np.minimum.accumulate(np.maximum(errors, 1e-12))
    if best[-1] > GOAL:
        return float(sizes[-1] * sizes[-1] / sizes[-2])
    return float(np.exp(np.interp(-np.log(GOAL), -np.log(best), np.log(sizes))))


def _pairs(settings: MembersSettings) -> list[tuple[Class, Class]]:
    """Members of the first k and dense networks, for each s and each n; the common n and s come first."""
    (n, *inputs), (s, *widths), k = settings.n, settings.s, settings.k[0]
    places = [(n, s), *((n, width) for width in widths), *((other, s) for other in inputs)]
    return [((*index, k, settings.steps), (*index, DENSE, settings.steps)) for index in places]


def _target(settings: MembersSettings, s: int) -> int:
    """The neurons of targets of networks of s neurons: as many times more as there are than usual."""
    return max(2, TARGET_NEURONS * s // settings.s[0])


def per_target(rows: list[Row]) -> Seen:
    """By class, of each target: samples needed, error at the most samples, Pr[more than k or 1 fire], gap of errors."""
    seen = {}
    for key, mine in grouped(rows, "n", "s", "k", "steps").items():
        sizes = [row["samples"] for row in mine]
        test, train, exceeds = (np.array([row[name] for row in mine]) for name in ("test", "train", "exceeds"))
        seen[key] = {
            "needed": np.array([samples_needed(sizes, column) for column in test.T]),
            "last": np.maximum(test[-1], 1e-12),
            "exceeds": exceeds.mean(axis=0),
            "gap": (test - train).mean(axis=0),
        }
    return seen


def _log_ratio(seen: Seen, name: str, over: Class, under: Class) -> np.ndarray:
    return np.asarray(np.log(seen[over][name] / seen[under][name]))


def _sentences(settings: MembersSettings, seen: Seen) -> list[str]:
    def ratio(over: Class, under: Class, name: str = "needed") -> str:
        return _interval(_log_ratio(seen, name, over, under))

    n, s, k, steps = settings.n[0], settings.s[0], settings.k[0], settings.steps
    ours, long = (n, s, k, steps), LONGER * steps
    pairs = _pairs(settings)
    alike = _interval(np.mean([_log_ratio(seen, "needed", dense, member) for member, dense in pairs], axis=0))
    sentences = [f"samples of dense networks over samples of members, trained alike: {alike} over all cells"]
    for member, dense in pairs:
        gaps = [seen[key]["gap"].mean() for key in (dense, member)]
        sentences.append(
            f"at n = {member[0]}, s = {member[1]}: samples {ratio(dense, member)}, error at the most samples "
            f"{ratio(dense, member, 'last')}, gap {gaps[0]:.2f} against {gaps[1]:.2f}"
        )
    for side in settings.patient:
        name = "members" if side else "dense networks"
        fire = [seen[n, s, side, length]["exceeds"].mean() for length in (steps, long)]
        needed = ratio((n, s, side, long), ours)
        sentences.append(
            f"{name} trained {LONGER} times as long need {needed} times the samples of members; more than "
            f"{side or 1} fire on {fire[0]:.0%} of new inputs before and {fire[1]:.0%} after"
        )
    if {DENSE, k} <= set(settings.patient):
        level = ratio((n, s, DENSE, long), (n, s, k, long))
        sentences.append(f"both trained {LONGER} times as long, dense networks need {level} times the samples")
    for more in settings.k[1:]:
        other = ratio((n, s, more, steps), ours)
        sentences.append(f"k = {more} needs {other} times the samples of k = {k}; Theorem 17 has {more / k:g}")
    for name, side, law in ((f"k = {k}", k, "s"), ("dense", DENSE, "s²")):
        least, most = min(settings.s), max(settings.s)
        logs = _log_ratio(seen, "needed", (n, most, side, steps), (n, least, side, steps))
        slope = _effects.mean("", logs / np.log(most / least), LEVEL)
        sentences.append(
            f"{name}: with targets that grow with s, samples grow like s to the power {slope.value:.2f} "
            f"({slope.low:.2f} to {slope.high:.2f}), where the theory has {law}"
        )
    return sentences


def _interval(logarithms: np.ndarray) -> str:
    found = mean_ratio("", logarithms, LEVEL)
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def plot_inside_the_class(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/inside-the-class: errors and gaps by samples, samples needed over s with the theory's."""
    rows, classes = rows_of(info, "rows", "classes")
    shown = info["parameters"]
    n, s, k, steps = shown["n"][0], shown["s"][0], shown["k"][0], shown["steps"]
    title = "Learning inside H(n, s, k) next to dense networks (means over targets, standard errors)"
    figure, (errors, gaps, needed) = canvas(3, size=(9.0, 6.4), across=2, ax=ax, title=title)
    common = grouped(rows, "n", "s")[n, s]
    for index, ((side, length), mine) in enumerate(grouped(common, "k", "steps").items()):
        label = (f"k = {side}" if side else "dense") + ("" if length == steps else ", trained longer")
        sizes = [row["samples"] for row in mine]
        test, train, bound = (np.array([row[key] for row in mine]) for key in ("test", "train", "theorem_19"))
        gap = test - train
        _spread(errors, sizes, test, index, label)
        _spread(gaps, sizes, gap, index, label)
        gaps.plot(sizes, bound * gap[0].mean() / bound[0], color=colour(index), linestyle=":", linewidth=0.9)
    errors.axhline(shown["goal"], color="black", linestyle=":", linewidth=0.9)
    label_axes(errors, "samples", title=f"test error / variance, n = {n}, s = {s}")
    gaps.set_title("gap (dots: shape of Theorem 19, classical)", fontsize=10)
    ticks = sorted({row["samples"] for row in common})
    for axis in (errors, gaps):
        axis.set(xscale="log", yscale="log", xlabel="samples")
        axis.set_xticks(ticks, [f"{m}" for m in ticks])
        axis.minorticks_off()
    for index, (side, law, theorem) in enumerate(((k, 1, "Theorem 17: s"), (DENSE, 2, "classical: s²"))):
        mine = sorted(grouped(classes, "n", "k", "steps")[n, side, steps], key=lambda row: row["s"])
        widths = np.array([row["s"] for row in mine])
        _spread(needed, widths, np.array([row["needed"] for row in mine]), index, f"k = {side}" if side else "dense")
        shape = gmean(mine[0]["needed"]) * (widths / widths[0]) ** law
        needed.plot(widths, shape, color=colour(index), linestyle="--", linewidth=0.9, label=theorem)
    needed.set_xscale("log", base=2)
    needed.set_yscale("log")
    label_axes(needed, "neurons s", title=f"samples for an error of {shown['goal']:g}, n = {n}")
    return figure


def _spread(axis: Axes, sizes: Any, table: np.ndarray, index: int, label: str) -> None:
    """Geometric means where all are above 0, else means, with standard errors of the mean."""
    mean, error = table.mean(axis=1), sem(table, axis=1)
    if (table > 0).all():
        mean = gmean(table, axis=1)
        error = mean * sem(np.log(table), axis=1)
    axis.errorbar(sizes, mean, yerr=error, **marked(index, capsize=2, linewidth=1.3), label=label)


RECIPE = Recipe(
    title="Learning inside H(n, s, k) next to dense networks of the same width: samples needed, errors, patience",
    seconds=(43, 700),
    expectation="trained alike, members need fewer samples; dense networks trained longer need no more, being sparse",
    figure=plot_inside_the_class,
    quick=MembersSettings(targets=9, multiples=(2.0, 3.0, 4.5), n=(16, 12), s=(64, 128), k=(4, 1)),
    paper=MembersSettings(
        targets=20,
        multiples=(2.0, 3.0, 4.5, 6.75),
        n=(16, 12, 24),
        s=(64, 32, 128, 256),
        k=(4, 1, 2, 8),
        patient=(DENSE, 4),
    ),
    measure=measure,
    from_paper=("trained alike, dense networks need more*", "fewer active neurons need fewer samples*"),
    busy=2,
)

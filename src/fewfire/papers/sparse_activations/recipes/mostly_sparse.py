"""Remark 11: sparse on most inputs instead of all. Pr[more than k fire] on new digits, and its price on the cube.

Networks of 64 neurons are fitted to digits so that at most k fire on every training image
(`SparseActivationClassifier`), several seeds; on test images `check_sparsity` counts how often more do, with Clopper
and Pearson's interval for each network, and the verdict is on the worst of them. On {−1, +1}¹², where everything is
exact, networks fitted to members of H(12, 8, k) are next to the bound AS ≤ (4k² + 2ps²)W² with
p = Pr[more than k fire] (`papers.sparse_activations.average_sensitivity_mostly_sparse`).

The margin of silent neurons is 0.1 unless varied. It and the slack of the bound have no verdict.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product

import numpy as np
from scipy.stats import binomtest

from fewfire.fourier import spectrum
from fewfire.learners import SparseActivationClassifier, SparseActivationRegressor
from fewfire.networks import check_sparsity, construct
from fewfire.papers import _effects
from fewfire.papers import sparse_activations as theory
from fewfire.papers._claims import Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, grouped, rows_of
from fewfire.papers._statistics import rising, rising_power, share_power
from fewfire.papers.sparse_activations.recipes._shared import falling, mean_share
from fewfire.problems import NetworkTarget
from fewfire.report._figure import SomeAxes, canvas, colour, label_axes, marked

WIDTH, TEST_SHARE, RARE, LEVEL = 64, 0.4, 0.03, 0.01
INPUTS, NEURONS, TARGET_NEURONS = 12, 32, 8
SEEN, HALF = 0.005, 0.5
FAILS, OFTEN, DENSE, FALL = 0.03, 0.05, 0.6, 0.05
"""The power is for: k = 1 failing on 3% of the images; k = 8 on 5%; dense networks on 60%; on the cube five points less
with each step in samples. Over k shares are to halve from 5%, with the spread between networks that was seen."""


@dataclass(frozen=True)
class MostlySparseSettings:
    """Seeds; values of k, and of the margin at the smallest k, on digits; samples of the fits on the cube; steps; the
    first seed: settings were chosen on splits 0 to 99."""

    seeds: int = 5
    k: tuple[int, ...] = (1, 2, 4, 8)
    margins: tuple[float, ...] = (0.0, 0.1, 0.5)
    samples: tuple[int, ...] = (100, 300, 1000)
    steps: int = 600
    first: int = 200


def measure(settings: MostlySparseSettings) -> RecipeOutcome:
    """Rows over k and over margins on digits, and fits on the cube next to the bound."""
    over_k = [_row(k, 0.1, settings) for k in (*settings.k, WIDTH)]
    over_margin = [_row(settings.k[0], margin, settings) for margin in settings.margins]
    cube = [_on_cube(*cell) for cell in product((1, 2), settings.samples, _seeds(settings))]

    def describe(row: Row) -> str:
        share, ends = sum(row["exceeding"]) / sum(row["images"]), f"{min(row['low']):.1%} to {max(row['high']):.1%}"
        return f"{share:.1%} ({ends}), accuracy {np.mean(row['accuracy']):.1%}"

    several = "; ".join(f"k = {row['k']}: {describe(row)}" for row in over_k[:-1])
    margins = "; ".join(f"margin {row['margin']:g}: {describe(row)}" for row in over_margin)
    dense = over_k[-1]
    price = [row["bound"] / row["sparse_bound"] for row in cube]
    loose = [row["bound"] / row["sensitivity"] for row in cube]
    within = sum(row["p"] <= row["allowed"] for row in cube)
    measured = [
        f"Pr[more than k fire] on new digits (widest 95% ends of all seeds), {several}",
        f"a dense network: more than 8 fire on {sum(dense['exceeding_8']) / sum(dense['images']):.1%}, "
        f"accuracy {np.mean(dense['accuracy']):.1%}",
        f"k = {over_margin[0]['k']} by margin, {margins}",
        f"on the cube the remark costs {min(price):.2f} to {max(price):.2f} times the bound of the class; "
        f"{within} of {len(cube)} fits keep to p ≤ (k/s)², where it costs at most 1.5; "
        f"the bound is {min(loose):.0f} to {max(loose):.0f} times the average sensitivity",
    ]
    return RecipeOutcome(
        parameters={**asdict(settings), "width": WIDTH, "held_out": TEST_SHARE},
        judgements=judge(over_k, cube),
        measured=measured,
        data={"over_k": over_k, "over_margin": over_margin, "cube": cube},
    )


def judge(over_k: list[Row], cube: list[Row]) -> list[Judgement]:
    """The claims on counts of images over k, dense networks last, and on shares of the cube by k, samples and seed."""
    *sparse, dense = over_k
    first, last = sparse[0], sparse[-1]
    few, many, fire = first["k"], last["k"], "share of new digits on which more than {} fire"
    networks, images = len(first["images"]), int(min(first["images"]))
    shares = np.array([np.divide(row["exceeding"], row["images"]) for row in sparse]).T
    means = shares.mean(axis=0)
    # Between networks, beyond that of counting images, the largest over k.
    spread = float(np.sqrt(np.max(np.maximum(shares.var(axis=0, ddof=1) - means * (1 - means) / images, 0.0))))
    # Shares of the cube, a row per k and seed, a column per number of samples.
    exact = np.array([[row["p"] for row in mine] for mine in grouped(cube, "k", "seed").values()])
    halving = tuple(OFTEN * 2.0**-place for place in reversed(range(len(sparse))))
    noticed = rising_power(halving, spread, networks, LEVEL, images)
    trend, change, power = falling(exact, FALL, LEVEL)
    return [
        Judgement(
            f"k = {few} on the sample is not k = {few} on the distribution",
            f"Pr[more than {few} fire] on new digits, least lower end of the 95% intervals",
            min(first["low"]),
            SEEN,
            "at least",
            refuted_by="one network that may keep to k on all but half a percent of new images",
            effect=mean_share(fire.format(few), shares[:, 0]),
            power=Power("3% of the images in every network", share_power(FAILS, SEEN, images) ** networks),
        ),
        Judgement(
            f"k = {many} nearly is",
            f"Pr[more than {many} fire] on new digits, largest upper end of the 95% intervals",
            max(last["high"]),
            RARE,
            refuted_by="one network on which more may fire on 3% of new images",
            effect=mean_share(fire.format(many), shares[:, -1]),
            # An upper end above the bound is what `share_power` would count as not passing.
            power=Power("5% of the images in one network", 1 - share_power(1 - OFTEN, 1 - RARE, images)),
        ),
        Judgement(
            "the larger k, the rarer",
            "Page's trend test over k, p",
            rising(-shares),
            LEVEL,
            refuted_by="shares that do not fall with k",
            effect=_effects.mean(f"share at k = {many} less that at k = {few}", shares[:, -1] - shares[:, 0]),
            power=Power("shares that halve from 5% with each k", noticed),
        ),
        Judgement(
            "a dense network is not sparse",
            f"Pr[more than {many} fire] of dense networks on new digits, least lower end of the 95% intervals",
            min(dense["dense_low"]),
            HALF,
            "at least",
            refuted_by="one dense network that may keep to k on half of the images",
            effect=mean_share(fire.format(many), np.divide(dense["exceeding_8"], dense["images"])),
            power=Power("60% of the images in every network", share_power(DENSE, HALF, images) ** networks),
        ),
        Judgement(
            "on the cube it grows rarer with samples",
            "Page's trend test over samples, p",
            trend,
            LEVEL,
            refuted_by="shares of the cube that do not fall with samples",
            effect=_effects.mean("share with the most samples less that with the fewest", change),
            power=Power("five points less at each step", power),
        ),
    ]


def digits_fit(k: int, margin: float, seed: int, steps: int) -> Row:
    """One network on digits: test images, those on which more than k (of a dense network 8) fire, accuracy."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), test_size=TEST_SHARE, random_state=seed)
    model = SparseActivationClassifier(WIDTH, k, weight_decay=0.1, margin=margin, steps=steps, random_state=seed)
    report = check_sparsity(model.fit(X, y).network_, k, X=X_test)
    return {
        "images": len(X_test),
        "exceeding": report.exceeding(),
        "exceeding_8": report.exceeding(8),
        "accuracy": float(model.score(X_test, y_test)),
    }


def _row(k: int, margin: float, settings: MostlySparseSettings) -> Row:
    found = [digits_fit(k, margin, seed, settings.steps) for seed in _seeds(settings)]
    row: Row = {"k": k, "margin": margin, **{key: [entry[key] for entry in found] for key in found[0]}}
    ends = [binomtest(entry["exceeding"], entry["images"]).proportion_ci(0.95, "exact") for entry in found]
    row["low"], row["high"] = ([round(float(end), 6) for end in side] for side in zip(*ends, strict=True))
    if k == WIDTH:
        over = [binomtest(entry["exceeding_8"], entry["images"]).proportion_ci(0.95, "exact") for entry in found]
        row["dense_low"] = [float(interval.low) for interval in over]
    return row


def _seeds(settings: MostlySparseSettings) -> range:
    return range(settings.first, settings.first + settings.seeds)


def _on_cube(k: int, samples: int, seed: int) -> Row:
    """A network fitted inside the class to a member of it, exactly measured on the whole cube."""
    problem = NetworkTarget(construct.random_member(INPUTS, TARGET_NEURONS, k, seed))
    model = SparseActivationRegressor(NEURONS, k, weight_decay=0.1, steps=1000, random_state=seed)
    network = model.fit(*problem.sample(samples, seed)).network_
    p, W = check_sparsity(network, k).exceeds().value, network.norms().W
    return {
        "k": k,
        "samples": samples,
        "seed": seed,
        "p": p,
        "sensitivity": spectrum(network).average_sensitivity(),
        "bound": theory.average_sensitivity_mostly_sparse(NEURONS, k, W, p),
        "sparse_bound": theory.average_sensitivity_sharp(k, W),
        "allowed": theory.exceedance_allowed(NEURONS, k),
    }


def plot_mostly_sparse(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/mostly-sparse: Pr[more than k fire] on new digits over k, and on the cube over samples."""
    over_k, cube = rows_of(info, "over_k", "cube")
    figure, (left, right) = canvas(2, size=(8.6, 3.8), ax=ax, title="Remark 11: sparse on most inputs")
    mine = over_k[:-1]
    shares = np.array([sum(row["exceeding"]) / sum(row["images"]) for row in mine])
    ends = np.array([[min(row["low"]), max(row["high"])] for row in mine]).T
    errors = np.abs(ends - shares)
    left.errorbar([row["k"] for row in mine], shares, yerr=errors, color=colour(0), marker="o", capsize=3)
    left.set_xscale("log", base=2)
    left.set_ylim(0, None)
    title = "digits, 64 neurons (widest 95% ends of all seeds)"
    label_axes(left, "k, at most so many fire on training images", "Pr[more than k fire] on new images", title)
    for place, (k, of_k) in enumerate(grouped(cube, "k").items()):
        sizes, seen = ([row[key] for row in of_k] for key in ("samples", "p"))
        right.plot(sizes, seen, **marked(place, linestyle="none"), label=f"k = {k}")
        right.axhline(of_k[0]["allowed"], color=colour(place), linestyle="--", linewidth=0.9, label=f"(k/s)², k = {k}")
    right.set(xscale="log", yscale="log")
    label_axes(right, "samples", title="members learned on {−1, +1}¹², whole cube")
    return figure


RECIPE = Recipe(
    title="Remark 11: how often more than k neurons fire on new digits, and what that costs on the cube",
    seconds=(6, 600),
    expectation="k = 1 fails on some new digits, k = 8 on at most 3%; rarer with k and with samples",
    figure=plot_mostly_sparse,
    quick=MostlySparseSettings(),
    paper=MostlySparseSettings(20, margins=(0.0, 0.1, 0.3, 1.0), samples=(50, 100, 300, 1000), steps=2000),
    measure=measure,
)

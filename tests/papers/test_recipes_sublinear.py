"""Pieces of sublinear's recipes on small sizes; the recipes themselves run with the slow tests."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from fewfire.papers.sublinear.recipes import activity, digits, robust_loss
from fewfire.problems import SphereSlice


def test_counts_at_the_start_follow_the_normal_law():
    X, _ = SphereSlice(10, 6, 0.3).sample(seed=0)
    row = activity._start(X, 20_000, "quantile", 10)
    assert row["exact"] == pytest.approx(20_000**0.75) and row["pvalue"] > 1e-3
    # 10 independent starts: the mean is within 4 standard errors of a binomial, whatever the inputs share.
    assert abs(row["mean"] - row["exact"]) <= 4 * math.sqrt(row["exact"] / 10)
    assert row["largest"] <= row["bound"] < 20_000
    for name in ("theorem", "lemma"):
        assert activity._start(X, 1000, name, 2)["bound"] > 1000  # Lemma 5.15 is trivial there


def test_a_training_row_and_the_slope():
    X, y = SphereSlice(10, 6, 0.3, "xor").sample(seed=0)
    row = activity._train(X, y, 200, 5)
    assert len(row["mean_active"]) == len(row["max_active"]) == len(row["robust_loss"]) == 5
    assert row["start"] == pytest.approx(200**0.75, rel=0.3)
    assert activity.power_of_width([10, 100, 1000], [5 * 10**0.5, 50, 5 * 10**1.5]) == pytest.approx(0.5)
    other = activity._train(X, y, 200, 5, seed=1)
    assert other["seed"] == 1 and other["mean_active"] != row["mean_active"]


def test_curves_are_thinned_with_both_ends():
    assert robust_loss._thin(np.arange(25.0)) == [0, 10, 20, 24]
    row = robust_loss._compare(0, 32, 11)
    assert len(row["robust"]["robust_loss"]) == 2 and row["gamma"] >= 0.12 - 1e-6


def failed(entries):
    assert all(entry.refuted_by and entry.effect and entry.power for entry in entries)
    return [entry.claim for entry in entries if not entry.passed]


def start(width, name, share, fired=None, bound=0.9, power=0.75):
    """A row of the start: `fired` of 100 starts' neurons, and ten starts whose counts grow as m to the `power`."""
    trials = 100 * width
    fired = round(share * trials) if fired is None else round(fired * trials)
    counts = [width**power * (1 + 0.01 * (seed - 4.5)) for seed in range(10)]
    return {
        "width": width,
        "threshold": name,
        "probability": share,
        "fired": fired,
        "trials": trials,
        "means": counts,
        "largest": counts[-1],
        "bound": bound * width,
        "pvalue": float(binomtest(fired, trials, share).pvalue),
    }


def active(half=0.49, quantile=None, power=0.75, bound=(0.95, 0.55), start_power=0.75, end_power=0.76, spread=0.0):
    """Rows of activity at two widths and of four trainings."""
    widths = (256, 4096)
    starts = [start(width, "theorem", 0.49, half, bound=2.0) for width in widths]
    starts += [
        start(width, "quantile", width**-0.25, None if quantile is None else quantile * width**-0.25, share, power)
        for width, share in zip(widths, bound, strict=True)
    ]
    trained = [
        {"width": width, "seed": seed, "start": width ** (start_power + off), "end": width ** (end_power + off)}
        for seed, off in enumerate(spread * np.array([-1, -0.5, 0.5, 1]))
        for width in widths
    ]
    return activity.judge(starts, trained)[0]


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({}, []),
        ({"half": 0.44}, ["counts are binomial", "τ = 1/m leaves half active"]),
        ({"quantile": 1.05}, ["counts are binomial"]),
        ({"bound": (0.2, 0.116)}, ["Lemma 5.15 bounds them, where it is below m"]),  # of 0.25 that fire at 256
        ({"bound": (0.95, 0.93)}, ["and its power of m is within 0.1 of the counts'"]),
        ({"start_power": 0.81}, ["the quantile is sublinear at the start"]),
        ({"end_power": 0.9}, ["and stays so in training"]),
        ({"start_power": 0.79, "spread": 0.05}, ["the quantile is sublinear at the start"]),  # in the mean only
    ],
)
def test_what_refutes_the_claims_on_activity(change, failing):
    assert failed(active(**change)) == failing


def test_the_binomial_test_has_the_stated_power():
    """Drawn counts that fire 5% too often, against the exact test at a level of 0.01."""
    rng, row = np.random.default_rng(0), start(256, "quantile", 0.25)
    drawn = rng.binomial(row["trials"], 0.25 * (1 + activity.OFF), 400)
    noticed = np.mean([binomtest(int(count), row["trials"], 0.25).pvalue < 0.01 for count in drawn])
    assert activity._notices(row, 0.01) == pytest.approx(noticed, abs=4 * math.sqrt(0.25 / 400))


def robust(ratio=0.2, accuracy=0.98, plain=0.7, average=0.9, printed=0.9, gamma=0.1, spread=0.01):
    """Rows of four seeds, and averages at two T whose last is as given."""
    offs = spread * np.array([-1, -0.5, 0.5, 1])
    rows = [
        {"gamma": gamma, "ratio": ratio + off, "robust": {"accuracy": accuracy + off}, "plain": {"accuracy": plain}}
        for off in offs
    ]
    averages = {
        rate: [[1.2, last + off] for off in offs] for rate, last in (("theorem", average), ("printed", printed))
    }
    return robust_loss.judge(rows, (25, 100), averages)


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({}, []),
        ({"gamma": -0.01}, ["points are separable"]),
        ({"ratio": 0.4}, ["the robust loss falls"]),
        ({"accuracy": 0.85}, ["and the points withstand"]),
        ({"plain": 0.98}, ["training against the adversary is why"]),
        (
            {"average": 1.02},
            ["the average loss is below the zero function's by T = 100, theorem rate"],
        ),  # though it fell
        ({"printed": 0.995}, ["the average loss is below the zero function's by T = 100, printed rate"]),
    ],
)
def test_what_refutes_the_claims_on_robust_losses(change, failing):
    found = failed(robust(**change))
    assert [claim[: len(text)] for claim, text in zip(found, failing, strict=True)] == failing


def digit_rows(clean=0.97, lead=0.1, perceptron=0.2, both=0.05, rival=0.01, broken=0, spread=0.01):
    return [
        {
            "accuracy": {
                "robust": [clean + off, 0.9, 0.7 + off],
                "plain": [0.97, 0.9, 0.7 - lead],
                "perceptron": [0.97, 0.9, 0.7 - perceptron],
                "both layers": [0.97, 0.9, 0.7 + both],
                "PGD": [0.97, 0.9, 0.7 + both - rival + off],
                "TRADES": [0.97, 0.9, 0.75 + off],
            },
            "broken_proofs": broken,
        }
        for off in spread * np.array([-1, -0.5, 0.5, 1])
    ]


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({}, []),
        ({"clean": 0.93}, ["clean accuracy is kept"]),
        ({"lead": 0.0}, ["robust beats plain at ρ = 0.5"]),
        ({"perceptron": -0.1}, ["robust beats perceptron at ρ = 0.5"]),
        ({"rival": -0.03}, ["both layers keep up with PGD at ρ = 0.5"]),
        ({"both": 0.0}, ["both layers keep up with TRADES at ρ = 0.5"]),
        ({"broken": 1}, ["proofs and attacks agree"]),
        (  # not surely
            {"lead": 0.05, "spread": 0.05, "both": 0.5, "rival": 0.5},
            ["clean accuracy is kept", "robust beats plain at ρ = 0.5"],
        ),
    ],
)
def test_what_refutes_the_claims_on_digits(change, failing):
    rows = digit_rows(**change)
    duels = [{"accuracy": {name: row["accuracy"][name][2] for name in digits.CONTENDERS}} for row in rows]
    assert failed(digits.judge(rows, duels)) == failing
    assert failed(digits.judge(rows, [])) == failing


def test_a_row_of_digits():
    settings = digits.DigitsSettings(train=60, test=4, certify=4, width=10, iterations=3)
    row = digits._compare(settings, 0)
    assert set(digits._against_rivals(settings, 1)["accuracy"]) == set(digits.CONTENDERS)
    names = {"robust", "plain", "perceptron", "both layers", "PGD", "TRADES"}
    assert set(row["accuracy"]) == names and row["broken_proofs"] == 0
    for name, values in row["certified"].items():
        assert all(proved <= found for proved, found in zip(values, row["accuracy"][name], strict=True))

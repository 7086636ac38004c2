"""Verdicts of the recipes on trained networks: activities, costs and errors that are made up refute each claim."""

import math

import numpy as np
import pytest

from fewfire.papers._statistics import mean_power
from fewfire.papers.sparse_activations.recipes import inducing, lazy_neurons, learn_back


def refuted(judgements):
    assert all(entry.refuted_by and entry.effect and entry.power for entry in judgements)
    return [place for place, entry in enumerate(judgements) if not entry.passed]


def activities(wide=0.2, later=0.1, end=0.2, layer=0.15, narrow=0.5):
    """Perceptrons that start at one half, and transformers: the arguments are activities at the end."""
    noise = 0.02 * np.linspace(-1, 1, 5)
    perceptrons = [
        {
            "width": width,
            "depth": depth,
            "initial": [0.5] * 5,
            "final": list((narrow, (narrow + wide) / 2, wide)[place] + noise),
            "first": list(0.3 + noise),
            "last": list(later + noise),
        }
        for depth in (1, 2, 3)
        for place, width in enumerate((32, 128, 512))
    ]
    transformers = [
        {"curve": [{"activity": [0.5] * 4}, {"activity": [2 * end + luck, layer + luck, end / 2, end / 2]}]}
        for luck in (-0.01, 0.0, 0.01)
    ]
    return lazy_neurons.judge(perceptrons, transformers)


@pytest.mark.parametrize(
    ("options", "places"),
    [
        ({}, []),
        ({"wide": 0.6, "narrow": 0.9}, [0]),
        ({"narrow": 0.2}, [1]),
        ({"wide": 0.3, "narrow": 0.2}, [1]),
        ({"later": 0.3}, [2]),
        ({"end": 0.45}, [3]),
        ({"layer": 0.45}, [4]),
    ],
    ids=[
        "as seen",
        "activity rises",
        "width does nothing",
        "wider is busier",
        "alike layers",
        "text stays",
        "busy layer",
    ],
)
def test_every_claim_on_lazy_neurons_can_fail(options, places):
    assert refuted(activities(**options)) == places


def test_powers_on_lazy_neurons():
    powers = [entry.power.probability for entry in activities()]
    assert powers[0] == pytest.approx(0.816, abs=0.001)  # 13 of 15 networks and more, of which nine in ten fall
    assert powers[1] > 0.99 and powers[2] > 0.99


def trained(relu=0.0, weight=-0.15, missed=1.0, cost=0.005, sparse=True):
    """Four seeds of each method: points lost by ReLUs, activity per weight, targets missed, the cost of sparsity."""
    noise = 0.002 * np.array([-1, 0, 0, 1])
    points = {("gelu", 0.0): (1.0, 0.985), ("relufied", 0.0): (0.5, 0.985 - relu)}
    points |= {("relufied", 2.0): (0.06 if sparse else 0.4, 0.985 - cost)}
    points |= {("l1", w): (0.5 + weight * place, 0.985) for place, w in enumerate((0.0, 1.0, 10.0))}
    points |= {("l1", 30.0): (0.05, 0.985 - cost)}
    points |= {("target", t): (t * missed, 0.985 - cost) for t in (0.3, 0.05)}
    points |= {("top-k", 8.0): (0.05, 0.985 - cost)}
    rows = [
        {
            "method": method,
            "setting": setting,
            "seed": seed,
            "activity": activity,
            "accuracy": accuracy + noise[seed - 1] * (method != "gelu"),
        }
        for (method, setting), (activity, accuracy) in points.items()
        for seed in range(4)
    ]
    return inducing.judge(rows)


@pytest.mark.parametrize(
    ("options", "places"),
    [
        ({}, []),
        ({"relu": 0.012}, [0]),
        ({"weight": 0.1}, [1]),
        ({"missed": 1.4}, [2]),
        ({"cost": 0.018}, [3, 4, 5, 6]),
        ({"sparse": False}, [3]),
    ],
    ids=["as seen", "ReLUs cost", "activity rises", "targets missed", "sparsity costs", "never sparse"],
)
def test_every_claim_on_inducing_can_fail(options, places):
    assert refuted(trained(**options)) == places


def test_a_setting_is_chosen_by_activity_and_not_by_its_cost():
    """Of two targets that are sparse enough the first is tested, though the second costs nothing."""
    rows = [
        {"method": method, "setting": setting, "seed": seed, "activity": activity, "accuracy": accuracy}
        for method, setting, activity, accuracy in (
            ("gelu", 0.0, 1.0, 0.98),
            ("relufied", 0.0, 0.05, 0.98),
            ("l1", 0.0, 0.5, 0.98),
            ("l1", 1.0, 0.3, 0.98),
            ("l1", 9.0, 0.05, 0.98),
            ("target", 0.1, 0.09, 0.90),
            ("target", 0.05, 0.05, 0.98),
            ("top-k", 8.0, 0.05, 0.98),
        )
        for seed in range(3)
    ]
    assert inducing.judge(rows)[5].value == pytest.approx(8.0)


def neurons(factor=1.0, ranked=True, harder=2.0, bounded=0.5, attained=1.0):
    """Eight blocks of 32 neurons whose errors are predicted up to a factor for one neuron in ten, and so on."""
    rows = []
    for kind in learn_back.KINDS:
        for seed in range(4):
            draw = np.random.default_rng(seed)
            for j in range(32):
                predicted = 0.02 * (1 + j / 8) * (harder if kind == "sparsified" else 1.0) * (1 + 0.01 * seed)
                sensitivity = 1.0 + j / 16 if ranked else float(draw.uniform())
                error = predicted * (factor if j % 10 == 0 else 1.01)
                rows.append(
                    {
                        "block": kind,
                        "seed": seed,
                        "error": error,
                        "predicted": predicted,
                        "sensitivity": sensitivity,
                        "bounded": bounded,
                    }
                )
    return learn_back.judge(rows, attained)


@pytest.mark.parametrize(
    ("options", "places"),
    [({}, []), ({"factor": 1.3}, [0]), ({"ranked": False}, [1]), ({"bounded": 1.01}, [2]), ({"harder": 0.8}, [3])],
    ids=["as seen", "one in ten off", "no ranks", "above the bound", "sparse is easier"],
)
def test_every_claim_on_learning_back_can_fail(options, places):
    assert refuted(neurons(**options)) == places


def test_powers_on_learning_back():
    ranks = math.atanh(0.8) - math.atanh(0.5), math.sqrt(1.06 / 29)
    powers = [entry.power.probability for entry in neurons()]
    assert powers[0] > 0.99 and powers[2:] == [1.0, 1.0]
    assert powers[1] == pytest.approx(2 * mean_power(*ranks, 4, 0.025) - 1, abs=1e-6)
    assert neurons(attained=0.5)[2].power.probability == 0.0  # without the neuron that attains it
    assert learn_back.attained(8) == pytest.approx(1.0) == learn_back.attained(16)

"""The recipes on members of H(n, s, k): each claim fails for some networks outside the class."""

import numpy as np
import pytest

from fewfire._random import Stream
from fewfire.experiments.recipes.sparse_activations import bounds, learning_scaling
from fewfire.experiments.recipes.sparse_activations.bounds import BoundsSettings, extremal_network
from fewfire.experiments.recipes.sparse_activations.learning_scaling import ScalingSettings
from fewfire.fourier import spectrum
from fewfire.networks import TwoLayer, check_sparsity
from fewfire.report import plot_recipe

SCALING = ScalingSettings(inputs=(8, 12), degree_inputs=(8, 12, 16), seeds=6)
FEW = BoundsSettings(inputs=(8,), seeds=1)


def verdicts(found):
    return [entry.passed for entry in found.judgements]


def parity_network(n, s, k, seed, kind):
    """s neurons for the parity of s − 1 of the n inputs, or of all: most of them fire."""
    p = min(s - 1, n)
    sums = np.arange(-p, p + 1, 2)
    steps = np.maximum(sums[:, None] - sums[None, :] + 1, 0.0)
    output = np.zeros(s)
    output[: p + 1] = np.linalg.solve(steps, (-1.0) ** ((p - sums) // 2))
    hidden = np.zeros((s, n))
    hidden[: p + 1, :p] = 1.0
    return TwoLayer(hidden, np.append(1.0 - sums, np.zeros(s - p - 1)), output)


def random_network(n, s, k, seed, kind):
    stream = Stream(seed, "outside")
    hidden = stream.child("hidden").normal((s, n)) / np.sqrt(n)
    return TwoLayer(hidden, stream.child("bias").normal(s), stream.child("output").signs(s).astype(float))


def test_the_networks_outside_are_what_they_should_be():
    net = parity_network(7, 6, 1, 0, "dense")
    assert spectrum(net).largest(1) == [((0, 1, 2, 3, 4), pytest.approx(1.0))]
    assert check_sparsity(net).max_active > 4
    assert check_sparsity(random_network(8, 16, 1, 0, "dense")).max_active > 8


def test_members_pass_and_networks_outside_are_refuted_by_every_claim_on_scaling():
    inside = learning_scaling.RECIPE.run(settings=SCALING)
    assert verdicts(inside) == [True] * 5
    assert inside.measured[0].startswith("degree that holds 90% of the variance at k = 1, 2, 4, 8, 16 of 32 neurons")
    parities, dense = (
        learning_scaling.RECIPE.run(settings=SCALING, draw=draw) for draw in (parity_network, random_network)
    )
    assert verdicts(parities) == [False, False, True, False, False]
    assert verdicts(dense)[2] is False and verdicts(dense)[4] is False
    *_, over_k = plot_recipe(inside).axes
    assert over_k.get_xlabel() == "active neurons k, s = 32"


def test_pieces_of_the_scaling_recipe():
    member = learning_scaling.varying_member
    row = learning_scaling._samples_needed(member, 8, range(2))
    assert row["monomials"] == 93 and row["samples"] % (93 // 4) < 4 and 46 <= row["samples"] <= 186
    degree = learning_scaling._degrees(member, 14, 8, 1, "junta", range(2))
    assert all(1 <= value <= 3 < degree["bound"] for value in degree["degrees"])


def test_the_extremal_network():
    net = extremal_network(5, 3, 2)
    assert check_sparsity(net).max_active == 2
    assert spectrum(net).largest(1) == [((0, 1, 2), 4.0)]


def test_sharp_bounds_hold_tightly_on_members_and_fail_where_more_neurons_fire():
    inside = bounds.RECIPE.run(settings=FEW)
    assert verdicts(inside) == [True] * 6
    assert "Lemma 9 in 1, Lemma 10 in 0, Theorem 8 in 0" in inside.measured[0]
    telling = [row for row in inside.data["rows"] if row["statement"] == bounds.DEGREE and row["bound"] < 8]
    assert len(telling) >= 6 and all(row["holds"] for row in telling)
    # Three copies claimed to be two: 9/4 of the bound on the sensitivities, and on the degree with it.
    outside = [("three for two", 2, extremal_network(8, 4, 3))]
    assert verdicts(bounds.RECIPE.run(settings=FEW, networks=outside)) == [False, True] * 3


def test_bounds_that_are_never_near_are_not_called_tight():
    random = [row for row in bounds._networks(FEW) if row[0].startswith("dense")]
    assert verdicts(bounds.RECIPE.run(settings=FEW, networks=random))[1::2] == [False] * 3

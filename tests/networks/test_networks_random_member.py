"""Random members of H(n, s, k): the size and the sparsity hold for every draw and every input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewfire._cube import cube
from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.networks import check_sparsity, construct


@given(
    st.integers(4, 8), st.integers(1, 20), st.integers(1, 5), st.integers(0, 99), st.sampled_from(["dense", "junta"])
)
def test_size_and_sparsity(n, s, k, seed, kind):
    k = min(k, s)
    if s > k * 2 ** (n - 1):
        return
    net = construct.random_member(n, s, k, seed, kind)
    assert (net.inputs, net.width) == (n, s)
    report = check_sparsity(net, k)
    assert report.exact
    assert report.holds()
    assert set(net.output) <= {-1.0, 1.0}


def test_full_junta_blocks_have_exactly_k_active():
    net = construct.random_member(7, 24, 3, 0, kind="junta")  # three full blocks of 2^3
    assert set(net.activity(cube(7)).per_input) == {3}
    assert set(net.features(cube(7)).ravel()) == {0.0, 1.0}


def test_dense_members_have_dense_weights_and_use_every_neuron():
    net = construct.random_member(8, 16, 2, 1)
    assert np.count_nonzero(net.hidden) == net.hidden.size
    activity = net.activity(cube(8))
    assert len(activity.dead) == 0
    assert activity.max_active == 2
    # Each block has one neuron whose address is met, and it fires on about half of the inputs.
    assert 0.8 < activity.mean_active < 1.2


def test_k_equal_to_s_is_a_plain_random_layer():
    net = construct.random_member(5, 4, 4, 0)
    np.testing.assert_array_equal(net.bias, 0)
    np.testing.assert_allclose(np.linalg.norm(net.hidden, axis=1), 1)
    assert check_sparsity(net).max_active > 1


def test_the_seed_fixes_the_draw():
    net = construct.random_member(8, 8, 2, 0)
    assert net.equals(construct.random_member(8, 8, 2, 0))
    assert net.equals(construct.random_member(8, 8, 2, Stream(0, "construct")))
    assert not net.equals(construct.random_member(8, 8, 2, 1))


def test_blocks_draw_their_addresses_independently():
    draws, shared = 1000, 0
    for seed in range(draws):
        hidden = construct.random_member(8, 8, 2, seed, kind="junta").hidden
        shared += np.array_equal(np.flatnonzero(hidden[0]), np.flatnonzero(hidden[4]))
    chance = 1 / math.comb(8, 2)
    assert abs(shared - draws * chance) <= 4 * math.sqrt(draws * chance * (1 - chance))  # four standard errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((4, 3, 4, 0), "k must be an integer of at least 1 and at most 3; got 4. Remedy: no more neurons can fire than there are."),
        ((3, 9, 2, 0), "s must be at most k·2**2 = 8 for 3 inputs and kind 'dense'; got 9. Remedy: raise n or k."),
        ((3, 17, 2, 0, "junta"), "s must be at most k·2**3 = 16 for 3 inputs and kind 'junta'; got 17. Remedy: raise n or k."),
        ((3, 2, 1, 0, "other"), "kind must be one of 'dense', 'junta'; got 'other'."),
        ((0, 2, 1, 0), "n must be an integer of at least 1; got 0."),
    ],
)  # fmt: skip
def test_random_member_refusals(arguments, message):
    with pytest.raises(InvalidArgument) as caught:
        construct.random_member(*arguments)
    assert str(caught.value) == message

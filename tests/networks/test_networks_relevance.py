"""Relevance: the weight mass of each input."""

from __future__ import annotations

import numpy as np
import pytest

from fewfire._errors import InvalidArgument
from fewfire.networks import TwoLayer, construct, relevance


def test_mass_by_hand():
    net = TwoLayer([[1, -2, 0], [0, 3, 1]], [0, 0], [2, -0.5])
    np.testing.assert_array_equal(relevance(net).mass, [2.0, 5.5, 0.5])
    assert relevance(net).mass.dtype == np.float64
    assert relevance(net).largest(2) == (1, 0)


def test_ties_go_to_the_smaller_id():
    assert relevance(TwoLayer([[1, 2, 2, 1]], [0], [1])).largest(3) == (1, 2, 0)


def test_reads_the_support_of_a_junta():
    parity = np.array([1, -1, -1, 1, -1, 1, 1, -1])
    net = construct.junta(12, (7, 2, 9), parity)
    assert sorted(relevance(net).largest(3)) == [2, 7, 9]
    assert np.count_nonzero(relevance(net).mass) == 3


@pytest.mark.parametrize("k", [0, 4])
def test_bad_k(k):
    with pytest.raises(InvalidArgument) as caught:
        relevance(TwoLayer(np.ones((1, 3)), [0], [1])).largest(k)
    expected = (
        "k must be an integer of at least 1 and at most 3; got {}. Remedy: choose at most as many as there are inputs."
    )
    assert str(caught.value) == expected.format(k)

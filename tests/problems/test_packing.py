"""Packing limits of the slice: attained by polygons and simplices, never passed by sets that exist."""

import math

import numpy as np
import pytest

from fewfire._sphere import DIAMETER, RADIUS
from fewfire.problems import separation
from fewfire.problems._sphere_slice import packing_limit


@pytest.mark.parametrize("sides", [2, 3, 4, 5, 6, 17, 100])
def test_polygons_attain_the_limit_on_the_circle(sides):
    assert packing_limit(3, 2 * RADIUS * math.sin(math.pi / sides)) == sides
    assert packing_limit(3, 2 * RADIUS * math.sin(math.pi / sides) + 1e-6) == sides - 1


@pytest.mark.parametrize("d", [3, 4, 7, 30])
def test_simplices_attain_the_limit(d):
    corners = np.eye(d) - 1 / d
    corners *= RADIUS / np.linalg.norm(corners[0])
    side = separation(corners)
    assert side == pytest.approx(RADIUS * math.sqrt(2 * d / (d - 1)))
    assert packing_limit(d, side - 1e-12) == d
    assert packing_limit(d, side + 1e-6) == d - 1


@pytest.mark.parametrize("d", [4, 5, 8])
def test_cross_polytopes_stay_below(d):
    flat = np.vstack([np.eye(d - 1), -np.eye(d - 1)]) * RADIUS
    assert packing_limit(d, separation(flat)) >= 2 * (d - 1)


@pytest.mark.parametrize("d", [5, 9, 40])
def test_just_past_the_cross_polytope_a_simplex_is_the_most(d):
    assert packing_limit(d, math.sqrt(1.5) + 1e-9) == d


def test_caps_by_hand_on_the_ordinary_sphere():
    # d = 4: the share of a cap of angle θ is (1 − cos θ)/2.
    for angle in (0.1, 0.3, 0.7):
        expected = math.floor(2 / (1 - math.cos(angle)))
        assert packing_limit(4, DIAMETER * math.sin(angle)) == expected


def test_extremes():
    assert packing_limit(2, 1e-9) == packing_limit(2, DIAMETER) == 2
    assert packing_limit(5, 0.0) == math.inf
    assert packing_limit(900, 1e-300) == math.inf
    assert packing_limit(6, DIAMETER) == 2
    limits = [packing_limit(5, s) for s in np.linspace(0.05, DIAMETER, 60)]
    assert limits == sorted(limits, reverse=True)

"""The slice ‖x‖ = 1, x_d = 1/2: points drawn on it and points put on it, and what is refused. Caps: robustness tests."""

import numpy as np
import pytest

from fewfire._random import Stream
from fewfire._sphere import DIAMETER, LAST, RADIUS, check_on_slice, on_slice, tangents, turn, uniform_points


def test_points_drawn_and_points_put_agree_and_lie_on_the_slice():
    drawn = uniform_points(Stream(3, "data"), 0, 500, 6)
    put = on_slice(Stream(3, "data").normal((500, 5)))
    assert drawn.dtype == np.float32 and np.allclose(drawn, put, atol=1e-7)
    check_on_slice("X", drawn, "", "")
    assert np.allclose(np.linalg.norm(put, axis=1), 1, atol=1e-15) and (put[:, -1] == LAST).all()
    assert pytest.approx(1) == RADIUS**2 + LAST**2 and DIAMETER == 2 * RADIUS
    assert np.array_equal(uniform_points(Stream(3, "data"), 300, 200, 6), drawn[300:])  # one endless sequence


def test_turning_along_a_tangent_moves_by_the_chord_of_the_angle():
    points = on_slice(Stream(0, "data").normal((50, 4)))
    directions = tangents(Stream(1, "data").normal((50, 5)), points)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    assert np.allclose(np.einsum("ij,ij->i", directions, points), 0, atol=1e-15)
    angles = np.linspace(0, np.pi, 50)
    moved = turn(points, directions, angles)
    check_on_slice("X", moved, "", "")
    assert np.allclose(np.linalg.norm(moved - points, axis=1), DIAMETER * np.sin(angles / 2))


def test_rows_off_the_slice_are_named():
    points = on_slice(np.eye(3))
    points[1, 0] += 0.01
    with pytest.raises(ValueError) as caught:
        check_on_slice("X", points, " here", "project it first")
    rule = "X must have rows with ‖x‖ = 1 and x_d = 1/2 (to 1e-05) here"
    assert (
        str(caught.value) == f"{rule}; got a row 1 with norm 1.00005 and last coordinate 0.5. Remedy: project it first."
    )

"""Log loss and expected calibration error, and that measurements carry them."""

import math

import numpy as np
import pytest

from fewfire.papers.pareto.tables import calibration, mean_calibration
from fewfire.sweeps.store._protocol import Measurement


def test_probabilities_that_are_right_have_no_calibration_error():
    rng = np.random.default_rng(0)
    upper = rng.uniform(size=100_000)
    labels = (rng.uniform(size=100_000) < upper).astype(int)
    found = calibration(np.column_stack([1 - upper, upper]), labels)
    assert found["ece"] < 0.01
    assert found["log_loss"] == pytest.approx(0.5, abs=0.01)  # the mean of −p log p − (1 − p) log(1 − p)


def test_a_model_that_is_too_sure_gets_by_how_much():
    labels = np.array([0] * 7 + [1] * 3)
    found = calibration(np.tile([0.9, 0.1], (10, 1)), labels)
    assert found["ece"] == pytest.approx(0.2)
    assert found["log_loss"] == pytest.approx(-(0.7 * math.log(0.9) + 0.3 * math.log(0.1)))
    assert calibration(np.array([[1.0, 0.0]]), np.array([1]))["log_loss"] == pytest.approx(-math.log(1e-6))


def test_means_need_every_trial():
    told = [Measurement("{}", "done", 0.1, 1.0, text, "{}") for text in ('{"log_loss": 1, "ece": 0}', "")]
    assert mean_calibration(told[:1]) == {"log_loss": 1.0, "ece": 0.0}
    assert mean_calibration(told) is None and mean_calibration([]) is None

"""Fits that go on from earlier ones: what they check, and that a failed one changes nothing."""

import numpy as np
import pytest

import fewfire as ff

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 3)), np.arange(30) % 2
QUICK = {"hidden": (8,), "members": 1, "scaling": "standard", "gains": "none", "random_state": 0}


def test_classes_of_a_failed_partial_fit_are_forgotten():
    model = ff.SparseInitClassifier(**QUICK)
    with pytest.raises(ff.InvalidArgument):
        model.partial_fit(X, Y + 5, classes=[0, 1, 2])
    assert model.fit(X, Y).classes_.tolist() == [0, 1]


def test_a_later_partial_fit_must_keep_the_classes():
    model = ff.SparseInitClassifier(**QUICK).partial_fit(X, Y, classes=[0, 1])
    model.partial_fit(X, Y, classes=[1, 0])  # the same ones
    with pytest.raises(ff.InvalidArgument) as caught:
        model.partial_fit(X, Y, classes=[0, 1, 2])
    assert str(caught.value) == (
        "classes must stay 0, 1, those of the first call; got [0, 1, 2]. "
        "Remedy: leave classes out, or start with a fresh estimator."
    )
    with pytest.raises(ff.InvalidArgument, match="must stay 0, 1"):
        model.partial_fit(X, Y, classes=["no", "yes"])

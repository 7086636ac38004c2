"""Weights of rows and classes: which are refused, which rows they leave out, and that their unit does not matter."""

import numpy as np
import pytest

import fewfire as ff
from fewfire.learners.sparse_init import AdamW

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 3)), np.arange(30) % 2
QUICK = {"hidden": (8,), "members": 1, "scaling": "standard", "gains": "none", "random_state": 0,
         "optimiser": AdamW(epochs=3)}  # fmt: skip


@pytest.mark.parametrize("class_weight", [{0: 2.0}, "balanced"])
def test_unknown_labels_are_named_before_they_are_weighed(class_weight):
    with pytest.raises(ff.InvalidArgument, match="y may hold only the classes 0, 1; got 2"):
        ff.SparseInitClassifier(**QUICK, class_weight=class_weight).fit(X, Y, validation_data=(X, Y + 1))

"""Fewer than 20 rows: nothing of them is held out, and other rows may say when to stop."""

import numpy as np
import pytest

import fewfire as ff

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)), np.arange(60) % 2  # noise, so that training soon does harm
QUICK = {"hidden": (8,), "members": 1, "scaling": "standard", "gains": "none", "random_state": 0}


def test_without_other_rows_the_default_is_thirty_epochs():
    model = ff.SparseInitClassifier(**QUICK).fit(X[:19], Y[:19])
    assert (model.n_iter_, model.validation_curve_) == (30, [])


@pytest.mark.parametrize("rows", [10, 19, 30])
def test_validation_data_stops_any_number_of_rows_by_patience(rows):
    model = ff.SparseInitClassifier(**QUICK).fit(X[:rows], Y[:rows], validation_data=(X[30:], Y[30:]))
    best = int(np.argmin(model.validation_curve_))
    assert model.n_iter_ == best + 1 + 20 < 400


def test_validation_data_lifts_the_limit_of_thirty_epochs():
    y = (X[:, 0] > 0).astype(int)  # what helps for long
    model = ff.SparseInitClassifier(**QUICK).fit(X[:19], y[:19], validation_data=(X[30:], y[30:]))
    assert model.n_iter_ > 30
    whole = ff.SparseInitClassifier(**QUICK, early_stopping=False)
    assert whole.fit(X[:19], y[:19], validation_data=(X[30:], y[30:])).n_iter_ == 400

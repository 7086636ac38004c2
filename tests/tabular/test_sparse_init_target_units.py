"""The regressor's targets in any unit that float64 holds."""

import numpy as np
import pytest

import fewfire as ff
from fewfire.tabular import AdamW

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X[:, 0] + 2.0
QUICK = {
    "hidden": (8,),
    "members": 1,
    "scaling": "standard",
    "gains": "none",
    "random_state": 0,
    "optimiser": AdamW(0.01, epochs=20),
}


@pytest.mark.parametrize("power", [-660, -200, 530, 1000])  # 2^530 is 3e159, 2^-660 is 2e-199
def test_the_unit_of_targets_does_not_matter(power):
    plain = ff.SparseInitRegressor(**QUICK).fit(X, Y).predict(X)
    scaled = ff.SparseInitRegressor(**QUICK).fit(X, np.ldexp(Y, power)).predict(X)
    assert np.array_equal(np.ldexp(scaled, -power), plain)
    assert np.corrcoef(plain, Y)[0, 1] > 0.9


def test_targets_of_very_different_units_are_learned_together():
    units = np.array([1e160, 1e-200, 1.0])
    model = ff.SparseInitRegressor(**QUICK).fit(X, Y[:, None] * units)
    found = model.predict(X) / units
    assert min(np.corrcoef(found[:, column], Y)[0, 1] for column in range(3)) > 0.9


def test_a_large_constant_target_is_predicted():
    found = ff.SparseInitRegressor(**QUICK).fit(X, np.full(40, 1e200)).predict(X)
    np.testing.assert_allclose(found, 1e200)

"""The least radius lies between what is proved and what is found; for linear models both meet the closed form."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from fewfire.learners import RobustClassifier
from fewfire.robustness import attack, certify, minimal_radius

rng = np.random.default_rng(0)
X = rng.normal(size=(25, 4))
Y = (X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * rng.normal(size=25) > 0).astype(int)


@pytest.mark.parametrize(("norm", "dual"), [("l1", np.inf), ("l2", 2), ("linf", 1)])
def test_linear_models(norm, dual):
    model = LogisticRegression().fit(X, Y)
    value, weights = model.decision_function(X), model.coef_[0]
    wrong = model.predict(X) != Y
    for fixed, moves in ((None, np.ones(4)), ([0], np.array([0, 1, 1, 1]))):
        found = minimal_radius(model, X, Y, 2.0, norm, fixed=fixed, rounds=5)
        true = np.where(wrong, 0.0, np.abs(value) / np.linalg.norm(weights * moves, ord=dual))
        inside = true < 2.0
        assert (found.lower <= true + 1e-12).all() and (found.upper >= true - 1e-12).all()
        assert np.isinf(found.upper[~inside]).all() and inside.any()
        assert (found.upper[inside] - true[inside] <= 0.07).all()
        assert (np.minimum(true, 2.0) - found.lower <= 2.0 / 2**5 + 1e-9).all()
        fell = np.isfinite(found.upper)
        assert (model.predict(found.X[fell]) != Y[fell]).all() and np.array_equal(found.X[~fell], X[~fell])
        order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
        assert np.allclose(np.linalg.norm(found.X - X, ord=order, axis=1)[fell], found.upper[fell])
        if fixed:
            assert np.array_equal(found.X[:, 0], X[:, 0])
        assert np.array_equal(found.upper == 0.0, wrong)


def test_networks_are_bracketed():
    model = RobustClassifier(60, rho=0.3, iterations=30, random_state=0).fit(X, Y)
    found = minimal_radius(model, X, Y, 1.0, bounds=(-4, 4), rounds=5)
    assert (found.lower <= found.upper).all() and (found.lower > 0).any()
    for radius in (0.25, 0.5):
        proof = certify(model, X, Y, radius, bounds=(-4, 4)).robust
        assert np.array_equal(proof, found.lower >= radius)
        assert not attack(model, X, Y, radius, bounds=(-4, 4)).success[found.lower >= radius].any()
        assert (found.upper[attack(model, X, Y, radius, bounds=(-4, 4), restarts=0).success] <= radius * 1.2).all()


def test_what_cannot_be_certified_has_no_lower_end():
    with pytest.warns(UserWarning, match="Maximum iterations"):
        model = MLPClassifier((8,), activation="tanh", max_iter=50, random_state=0).fit(X, Y)
    found = minimal_radius(model, X, Y, 1.0, rounds=3)
    assert (found.lower == 0).all() and np.isfinite(found.upper).any()


def test_refusals():
    with pytest.raises(ValueError, match="model must be a classifier to be fooled; got a Ridge. Remedy: use attack."):
        minimal_radius(Ridge().fit(X, X[:, 0]), X, X[:, 0], 1.0)
    sliced = RobustClassifier(20, iterations=2, domain="projected", random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="must be attacked in a ball to have a radius; got an adversary on the slice."):
        minimal_radius(sliced, X, Y, 0.3)
    with pytest.raises(ValueError, match="onehot and relations can be given only where .* got a SliceCap."):
        attack(sliced, X, Y, fixed=[0])
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(ValueError, match=r"rho must be a finite number in \(0, inf\); got 0."):
        minimal_radius(model, X, Y, 0)


@pytest.mark.parametrize("kind", [DecisionTreeClassifier(), GradientBoostingRegressor()])
@pytest.mark.parametrize("call", [attack, certify, minimal_radius])
def test_trees_are_refused_with_the_reason(kind, call):
    model = kind.fit(X, Y)
    name = type(kind).__name__
    for tree in (model, make_pipeline(StandardScaler(), kind).fit(X, Y)):
        with pytest.raises(ValueError) as caught:
            call(tree, X, Y, 0.1)
        assert str(caught.value) == (
            f"model must have scores with slopes to be attacked or certified; got a {name}, whose scores are constant "
            "between the thresholds of its trees. Remedy: use a search over leaves made for trees; a random search that "
            f"may miss much: register_adapter({name})(black_box) and method='square'."
        )
    assert "RandomForest" not in str(caught.value) or isinstance(kind, RandomForestClassifier)

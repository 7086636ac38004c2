"""Targeted and minimum-norm attacks: what is found is what was asked for, and no further away than elsewhere."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier

from fewfire._errors import InvalidArgument
from fewfire.robustness import attack, minimal_radius, robust_score

X, Y = load_iris(return_X_y=True)
DUAL = {"l1": np.inf, "l2": 2, "linf": 1}


@pytest.fixture(scope="module")
def networks():
    moons = make_moons(60, noise=0.1, random_state=0)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        two = MLPClassifier((12,), max_iter=300, random_state=0).fit(*moons)
        three = MLPClassifier((12,), max_iter=300, random_state=0).fit(X, Y)
    return two, *moons, three


def test_targets_are_reached_and_no_more_often_than_any_mistake(networks):
    model = networks[3]
    goal = (Y + 1) % 3
    found, any_other = attack(model, X, Y, 0.8, target=goal), attack(model, X, Y, 0.8)
    assert (model.predict(found.X[found.success]) == goal[found.success]).all()
    assert (np.linalg.norm(found.X - X, axis=1) <= 0.8).all()
    assert 0.1 < found.success.mean() <= any_other.success.mean()
    assert not (found.success & ~any_other.success).any()
    # Every mistake is a target of one class or the other.
    other = attack(model, X, Y, 0.8, target=(Y + 2) % 3)
    assert np.mean((found.success | other.success) == any_other.success) > 0.99
    assert "rows predicted as their target: " in repr(found)
    assert robust_score(model, X, Y, 0.8, target=goal) >= robust_score(model, X, Y, 0.8)
    one = attack(model, X[Y != 2], Y[Y != 2], 0.8, target=2, method="apgd_targeted")
    assert (one.prediction[one.success] == 2).all() and one.success.any()


def test_two_classes_have_one_target(networks):
    model, points, labels, _ = networks
    found = attack(model, points, labels, 0.3, target=1 - labels)
    assert np.array_equal(found.success, attack(model, points, labels, 0.3).success)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_least_move_of_a_linear_model_is_exact(norm):
    points, labels = make_moons(60, noise=0.1, random_state=0)
    model = LogisticRegression().fit(points, labels)
    found = attack(model, points, labels, 3.0, norm, method="minimum_norm")
    right = model.predict(points) == labels
    least = np.where(right, np.abs(model.decision_function(points)), 0.0)
    least /= np.linalg.norm(model.coef_[0], ord=DUAL[norm])
    assert found.success.all() and np.allclose(found.distance, least, rtol=1e-4, atol=1e-6)
    assert (found.distance >= least - 1e-12).all()
    assert (model.predict(found.X) != labels).all()


@pytest.mark.parametrize(("norm", "order"), [("l1", 1), ("l2", 2), ("linf", np.inf)])
def test_the_least_move_of_a_network_is_that_of_a_grid(networks, norm, order):
    model, points, labels, _ = networks
    points, labels = points[:20], labels[:20]
    found = attack(model, points, labels, 1.5, norm, method="minimum_norm")
    axis = np.linspace(-1.5, 1.5, 301)
    moves = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    length = np.linalg.norm(moves, ord=order, axis=1)
    for row, (point, label) in enumerate(zip(points, labels, strict=True)):
        grid = length[model.predict(point + moves) != label].min(initial=np.inf)
        assert found.distance[row] <= grid + 1e-9 or grid > 1.5
    for rho in (0.2, 0.5, 0.9):
        within = attack(model, points, labels, rho, norm).success
        assert (found.distance[within] <= rho).all()
    radius = minimal_radius(model, points, labels, 1.5, norm)
    assert (radius.lower <= found.distance + 1e-12).all()


def test_nearest_points_keep_bounds_columns_and_targets(networks):
    model, goal = networks[3], (Y + 1) % 3
    kept = {"bounds": (0, 8), "fixed": [1]}
    found = attack(model, X, Y, 3.0, target=goal, method="minimum_norm", **kept)
    assert (found.X >= 0).all() and (found.X <= 8).all() and (found.X[:, 1] == X[:, 1]).all()
    assert (found.prediction[found.success] == goal[found.success]).all() and found.success.mean() > 0.5
    whole = attack(model, X, Y, 3.0, integers=[0, 1, 2, 3], method="minimum_norm")
    assert np.allclose(np.round(whole.X - X), whole.X - X) and (whole.distance[model.predict(X) != Y] == 0).all()
    assert (whole.distance <= attack(model, X, Y, 3.0, integers=[0, 1, 2, 3]).distance + 1e-9).all()


def test_refusals():
    model = LogisticRegression(max_iter=1000).fit(X, Y)
    with pytest.raises(InvalidArgument, match="target must differ from the label of each row; got a 0 at row 0"):
        attack(model, X, Y, 0.1, target=0)
    with pytest.raises(InvalidArgument, match="target must hold classes of the model, 0, 1, 2; got 7"):
        attack(model, X, Y, 0.1, target=7)
    ridge = Ridge().fit(X, X[:, 0])
    with pytest.raises(InvalidArgument, match="target can be given for classifiers only"):
        attack(ridge, X, X[:, 0], 0.1, target=1.0)
    with pytest.raises(InvalidArgument, match="method can be 'minimum_norm' for classifiers only; got a Ridge"):
        attack(ridge, X, X[:, 0], 0.1, method="minimum_norm")

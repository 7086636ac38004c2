"""Attacks: exact on linear models, never milder with more search, honest scores."""

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier, MLPRegressor

from fewfire.learners import RobustClassifier
from fewfire.networks import TwoLayer
from fewfire.robustness import attack, certify, minimal_radius, robust_score

rng = np.random.default_rng(0)
X = rng.normal(size=(50, 3))
WEIGHT = np.array([1.0, -2.0, 0.5])
LINEAR = TwoLayer(np.array([WEIGHT, -WEIGHT]), np.zeros(2), np.array([1.0, -1.0]))  # relu(z) − relu(−z) = z
Y = np.where(X @ WEIGHT > 0, 1, -1)


@pytest.mark.parametrize(("norm", "dual"), [("l2", 2), ("linf", 1)])
@pytest.mark.parametrize("steps", [1, 20])
def test_linear_models_are_moved_by_the_dual_norm(norm, dual, steps):
    found = attack(LINEAR, X, Y, 0.2, norm, steps=steps, restarts=0)
    assert np.allclose(found.clean_margin, np.abs(X @ WEIGHT))
    assert np.allclose(found.margin, np.abs(X @ WEIGHT) - 0.2 * np.linalg.norm(WEIGHT, ord=dual), atol=1e-9)
    assert np.array_equal(found.success, found.margin <= 0)
    share = np.mean(np.abs(X @ WEIGHT) > 0.2 * np.linalg.norm(WEIGHT, ord=dual))
    assert 0 < share < 1 and robust_score(LINEAR, X, Y, 0.2, norm, steps=steps) == pytest.approx(share)


def test_progress_is_reported_in_rows_and_changes_nothing(monkeypatch, capsys):
    monkeypatch.setattr("fewfire.robustness._attack.BLOCK", 2 * 20)  # 20 rows at a time
    plain, told = attack(LINEAR, X, Y, 0.2), []
    heard = attack(LINEAR, X, Y, 0.2, progress=lambda done, total: told.append((done, total)))
    assert np.array_equal(plain.X, heard.X) and {total for _, total in told} == {50}
    done = [done for done, _ in told]
    assert done == sorted(done) and {0, 20, 40, 50} < set(done) and done[-1] == 50
    certified, radii = [], []
    certify(LINEAR, X, Y, 0.2, progress=lambda *state: certified.append(state))
    minimal_radius(LINEAR, X, Y, 2.0, rounds=3, progress=lambda *state: radii.append(state))
    assert certified[-1] == (50, 50) and radii[0] == (0, 7) and radii[-1] == (7, 7)
    attack(LINEAR, X, Y, 0.2, progress=True)
    assert "attack: row: 50 of 50" in capsys.readouterr().err
    with pytest.raises(ValueError, match="progress must be True, False or callable"):
        attack(LINEAR, X, Y, 0.2, progress=3)


def test_radius_zero_gives_the_clean_score():
    found = attack(LINEAR, X, Y, 0.0)
    assert np.array_equal(found.X, X) and np.array_equal(found.margin, found.clean_margin)
    assert robust_score(LINEAR, X, Y, 0.0) == 1.0


def test_more_restarts_never_find_less():
    model = RobustClassifier(100, 0.2, 0.3, adversary="none", iterations=40, random_state=0).fit(X, Y)
    few, many = (attack(model, X, Y, restarts=restarts) for restarts in (0, 6))
    assert (many.margin <= few.margin).all() and (many.margin < few.margin).any()
    again = attack(model, X, Y, restarts=6)
    assert np.array_equal(many.X, again.X)  # the same seed, the same points
    assert not np.array_equal(many.X, attack(model, X, Y, restarts=6, seed=1).X)


def test_blocks_of_rows_do_not_matter_without_random_starts(monkeypatch):
    model = RobustClassifier(100, 0.2, 0.3, iterations=10, random_state=0).fit(X, Y)
    whole = attack(model, X, Y, restarts=0)
    monkeypatch.setattr("fewfire.robustness._attack.BLOCK", 700)
    parts = attack(model, X, Y, restarts=0)
    assert np.allclose(whole.X, parts.X) and np.allclose(whole.margin, parts.margin)
    assert certify(model, X, Y).margin.shape == (50,)


def test_scores_are_those_of_the_models_own_predictions():
    labels = np.array(["u", "v", "w"])[np.argmax(X, axis=1)]
    with pytest.warns(UserWarning, match="Maximum iterations"):
        model = MLPClassifier((20,), max_iter=100, random_state=0).fit(X, labels)
    found = attack(model, X, labels, 0.2, "linf")
    assert np.array_equal(model.predict(found.X), found.prediction)
    assert robust_score(model, X, labels, 0.2, "linf") == np.mean(found.prediction == labels)
    assert robust_score(model, X, labels, 0.2, "linf") < model.score(X, labels)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        regressor = MLPRegressor(hidden_layer_sizes=(20,), max_iter=100, random_state=0).fit(X, X @ WEIGHT)
    found = attack(regressor, X, X @ WEIGHT, 0.1)
    assert np.allclose(regressor.predict(found.X), found.prediction)
    assert np.allclose(found.margin, -np.abs(found.prediction - X @ WEIGHT))
    assert robust_score(regressor, X, X @ WEIGHT, 0.1) < regressor.score(X, X @ WEIGHT)


def test_another_adversary_than_the_models_own():
    model = RobustClassifier(50, 0.2, 0.1, iterations=5, random_state=0).fit(X, Y)
    assert np.linalg.norm(attack(model, X, Y).X - X, axis=1).max() == pytest.approx(0.1)
    moved = attack(model, X, Y, rho=0.05, norm="linf", bounds=(-2.5, 2.6)).X
    assert np.abs(moved - X).max() == pytest.approx(0.05)
    sliced = RobustClassifier(50, 0.2, 0.1, domain="projected", iterations=5, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="norm must be 'l2' in domain='projected'; got 'linf'."):
        attack(sliced, X, Y, norm="linf")


def test_bad_tables_are_refused():
    with pytest.raises(ValueError, match=r"X must be a table of shape \(rows, 3\); got shape \(50, 2\)"):
        attack(LINEAR, X[:, :2], Y, 0.1)
    with pytest.raises(ValueError, match="X must hold finite numbers; got a nan"):
        attack(LINEAR, np.where(X > 2, np.nan, X), Y, 0.1)
    model = RobustClassifier(10, iterations=1, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"y must be a vector of 50 labels, one per row of X; got shape \(49,\)"):
        attack(model, X, Y[:-1])

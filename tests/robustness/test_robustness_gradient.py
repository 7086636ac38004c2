"""Every search on its own: exact on linear models in every norm, inside the set to the bit, and good at what it is for."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from fewfire._random import Stream
from fewfire.networks import TwoLayer
from fewfire.robustness import Layers, ModelAdapter, attack, black_box, register_adapter
from fewfire.robustness._attack import METHODS
from fewfire.robustness._gradient import checkpoints
from fewfire.robustness._problem import difference_of_logits

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 5)) * [1, 2, 1, 0.5, 1]
WEIGHT = np.array([1.0, -2.0, 0.5, 0.0, 3.0])
LINEAR = TwoLayer(np.array([WEIGHT, -WEIGHT]), np.zeros(2), np.array([1.0, -1.0]))  # relu(z) − relu(−z) = z
Y = np.where(X @ WEIGHT > 0, 1, -1)
RADII = np.array([0.1, 0.0, 0.3, 0.2, 0.05])
DUAL = {"l1": np.inf, "l2": 2, "linf": 1}
ORDER = {"l1": 1, "l2": 2, "linf": None}


def exactly_inside(found, rows, radii, norm, low=-np.inf, high=np.inf):
    """Membership of every point in rational arithmetic, for radii per feature; those of radius 0 to the bit."""
    if not ((found >= low) & (found <= high)).all():
        return False
    for point, row in zip(found.tolist(), rows.tolist(), strict=True):
        total, order = Fraction(0), ORDER[norm]
        for x, x0, radius in zip(point, row, np.broadcast_to(radii, len(row)).tolist(), strict=True):
            if radius == 0.0:
                if x != x0:
                    return False
                continue
            size = abs(Fraction(x) - Fraction(x0)) / Fraction(radius)
            total = max(total, size) if order is None else total + size**order
        if total > 1:
            return False
    return True


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("method", ["auto", "frank_wolfe"])
def test_linear_models_are_moved_by_the_dual_norm_exactly(norm, method):
    found = attack(LINEAR, X, Y, 0.2, norm, method=method)
    assert np.allclose(found.clean_margin - found.margin, 0.2 * np.linalg.norm(WEIGHT, ord=DUAL[norm]), atol=1e-12)
    assert exactly_inside(found.X, X, 0.2, norm)
    own = attack(LINEAR, X, Y, RADII, norm, method=method)
    fall = np.linalg.norm(RADII * WEIGHT, ord=DUAL[norm])
    assert np.allclose(own.clean_margin - own.margin, fall, atol=1e-12)
    assert exactly_inside(own.X, X, RADII, norm) and np.array_equal(own.X[:, 1], X[:, 1])


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("radii", [0.4, RADII * 3], ids=["one", "own"])
def test_linear_models_in_a_box_are_moved_as_far_as_by_a_linear_programme(norm, radii):
    bounds, table = (-0.3, 0.4), np.clip(X / 4, -0.3, 0.4)
    labels = np.where(table @ WEIGHT > 0, 1, -1)
    found = attack(LINEAR, table, labels, radii, norm, bounds=bounds)
    assert exactly_inside(found.X, table, radii, norm, *bounds)
    each = np.broadcast_to(radii, 5)
    for row, label, margin in zip(table, labels, found.margin, strict=True):
        # x − x₀ = up − down; in the 1-norm Σ (up + down)/radius ≤ 1 over the features that move.
        limits = [(0, min(r, 0.4 - x)) for r, x in zip(each, row, strict=True)]
        limits += [(0, min(r, x + 0.3)) for r, x in zip(each, row, strict=True)]
        share = np.divide(1.0, each, out=np.zeros(5), where=each > 0)
        total = {"A_ub": np.concatenate([share, share])[None], "b_ub": [1.0]} if norm == "l1" else {}
        best = linprog(label * np.concatenate([WEIGHT, -WEIGHT]), bounds=limits, **total)
        assert margin == pytest.approx(label * row @ WEIGHT + best.fun, abs=1e-9)


def test_linear_models_in_a_ball_and_a_box():
    """Where the gradient meets the box first: the multiplier of the ball gives how far every other feature goes."""
    table, bounds = np.clip(X / 4, -0.3, 0.4), (-0.3, 0.4)
    labels = np.where(table @ WEIGHT > 0, 1, -1)
    found = attack(LINEAR, table, labels, 0.5, bounds=bounds)
    assert exactly_inside(found.X, table, 0.5, "l2", *bounds)
    for row, label, margin in zip(table, labels, found.margin, strict=True):
        low, high = 0.0, 1e6
        for _ in range(200):
            middle = (low + high) / 2
            moved = np.clip(row - middle * label * WEIGHT, *bounds)
            low, high = (middle, high) if np.linalg.norm(moved - row) <= 0.5 else (low, middle)
        assert margin == pytest.approx(label * np.clip(row - low * label * WEIGHT, *bounds) @ WEIGHT, abs=1e-9)


@pytest.fixture(scope="module")
def perceptron():
    labels = np.argmax(X[:, :3], axis=1)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        return MLPClassifier((20,), max_iter=150, random_state=0).fit(X, labels), labels


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_every_search_stays_inside_moves_no_fixed_feature_and_keeps_whole_numbers_whole(perceptron, norm, method):
    model, labels = perceptron
    table, bounds = np.round(X * [1, 1, 1, 4, 1], 2), (-6.0, 6.0)
    table[:, 3] = np.round(table[:, 3])
    radii = np.array([0.5, 0.3, 0.8, 2.0, 1.0])
    found = attack(model, table, labels, radii, norm, bounds=bounds, fixed=[4], integers=[3], method=method, steps=8)
    assert exactly_inside(found.X, table, np.where(np.arange(5) == 4, 0.0, radii), norm, *bounds)
    assert np.array_equal(found.X[:, 4], table[:, 4]) and np.array_equal(found.X[:, 3], np.round(found.X[:, 3]))
    assert np.array_equal(model.predict(found.X), found.prediction)
    assert np.array_equal(found.success, found.prediction != labels)
    assert (found.margin <= found.clean_margin).all() and (found.margin < found.clean_margin).mean() > 0.5
    plain = attack(model, table, labels, 0.5, norm, method=method, steps=8)
    assert exactly_inside(plain.X, table, 0.5, norm)
    assert set(plain.found_by) <= {"", "clean", method}
    assert np.array_equal(plain.found_by != "", plain.success)
    assert sum(plain.found_counts.values()) == plain.success.sum()
    assert np.array_equal(plain.found_by == "clean", model.predict(table) != labels)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_whole_numbers_go_to_the_last_whole_number_within_reach(norm):
    table = np.round(X * 3)
    labels = np.where(table @ WEIGHT >= 0, 1, -1)
    found = attack(LINEAR, table, labels, 2.7, norm, integers=np.arange(5))
    fall = 2 * (np.abs(WEIGHT).sum() if norm == "linf" else np.abs(WEIGHT).max())
    assert np.allclose(found.clean_margin - found.margin, fall) and np.array_equal(found.X, np.round(found.X))
    on_the_rim = attack(LINEAR, table, labels, 3.0, norm, integers=np.arange(5))
    assert np.allclose(on_the_rim.clean_margin - on_the_rim.margin, 1.5 * fall)


def test_a_jump_is_seen_by_smoothed_gradients_only():
    """The one neuron is silent at the rows, so that its gradient is 0; firing, it outweighs the rest at once."""
    net = TwoLayer(
        np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([0.0, 1.0]), np.array([-3.0, 1.0]), activation="shifted_relu(0.5)"
    )
    rows = np.column_stack([np.linspace(0.485, 0.499, 5), np.zeros(5)])
    labels = np.ones(5)
    blind = attack(net, rows, labels, 0.2, method="pgd", restarts=0)
    assert not blind.success.any() and np.array_equal(blind.X, rows)
    found = attack(net, rows, labels, 0.2, restarts=0)
    assert found.success.all() and set(found.found_by[found.success]) <= {"frank_wolfe_smoothed", "apgd_smoothed"}
    assert np.allclose(found.margin[found.success], 1.0 - 3.0 * found.X[found.success, 0])


def test_the_square_attack_needs_no_slopes():
    """Steps of a tenth everywhere: chords see nothing, sets of features changed at random do."""

    class Steps(ClassifierMixin, BaseEstimator):
        n_features_in_, classes_ = 5, np.array([-1, 1])

        def decision_function(self, table):
            return np.floor(table @ WEIGHT / 2) + 0.5

        def predict(self, table):
            return np.where(self.decision_function(table) > 0, 1, -1)

        def fit(self, X, y):
            return self

        def __sklearn_is_fitted__(self):
            return True

    register_adapter(Steps)(black_box)
    labels = Steps().predict(X)
    found = attack(Steps(), X, labels, 0.5, "linf", method="square", restarts=0)
    reach = 0.5 * np.abs(WEIGHT).sum()
    can = np.where(labels > 0, reach > X @ WEIGHT, -reach <= X @ WEIGHT)
    assert found.success.sum() >= 0.9 * can.sum() and not found.success[~can].any()
    assert set(found.found_by[found.success]) == {"square"}
    assert np.array_equal(attack(Steps(), X, labels, 0.5, "linf", method="square").X, found.X)


def test_rows_fall_to_the_search_that_fooled_the_model_first(perceptron):
    model, labels = perceptron
    both = attack(model, X, labels, 0.5, method=("pgd", "frank_wolfe"))
    alone = attack(model, X, labels, 0.5, method="pgd")
    assert np.array_equal(both.found_by == "pgd", alone.found_by == "pgd")
    assert (both.success >= alone.success).all()
    everything = attack(model, X, labels, 0.5)
    assert (everything.success >= alone.success).all()
    assert list(everything.found_counts) == sorted(everything.found_counts)


def hole(columns):
    """+1 everywhere but for a hole at the right end; the slope at the origin leads to the left, and gains 5% there."""
    first = np.eye(columns)[0]
    return TwoLayer(np.stack([first, first]), np.array([2.0, -0.8]), np.array([0.05, -10.0]), offset=0.9)


@pytest.mark.parametrize("method", ["auto", ["frank_wolfe", "certificate"], ["frank_wolfe", "apgd_dlr"]], ids=str)
def test_rows_that_a_first_search_leaves_far_from_falling_get_the_others(method):
    rows, labels = np.zeros((20, 2)), np.ones(20)
    blind = attack(hole(2), rows, labels, 1.0, "linf", method="frank_wolfe")
    assert not blind.success.any() and np.allclose(blind.margin, 0.95)
    found = attack(hole(2), rows, labels, 1.0, "linf", method=method, restarts=4)
    assert found.success.all() and exactly_inside(found.X, rows, 1.0, "linf")
    assert (found.X[:, 0] > 0.9).all()


def test_the_points_of_a_certificate_are_tried_where_random_starts_are_lost():
    """In 200 columns no random point of the ball comes near the hole; the neuron's chord leads to it."""
    rows, labels = np.zeros((5, 200)), np.ones(5)
    assert not attack(hole(200), rows, labels, 1.0, method=["frank_wolfe", "apgd_dlr"]).success.any()
    found = attack(hole(200), rows, labels, 1.0)
    assert found.success.all() and set(found.found_by) == {"certificate"}
    deep = MLPClassifier((4, 4), max_iter=1)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        deep.fit(X, Y)
    with pytest.raises(ValueError, match="method can be 'certificate' for linear models and one hidden layer of relu"):
        attack(deep, X, Y, 0.1, method=["certificate", "apgd"])
    assert set(attack(deep, X, Y, 0.1).found_by) <= {"", "clean", "frank_wolfe", "apgd", "apgd_dlr"}


def test_rows_without_gradients_are_searched_at_random():
    """Every column is a step, flat to the last bit at the rows; in 20 columns random points alone do not flip enough."""

    class Steps:
        pass

    @register_adapter(Steps)
    def steps(model, X, y):
        weights = (1e4 * np.eye(20), np.ones((20, 1)))
        return ModelAdapter(Layers(weights, (np.zeros(20), np.array([6.5])), "tanh"), np.array([-1, 1]))

    rows, labels = np.full((10, 20), 0.1), np.ones(10)
    assert not attack(Steps(), rows, labels, 0.2, "linf", method=["frank_wolfe", "apgd", "apgd_dlr"]).success.any()
    found = attack(Steps(), rows, labels, 0.2, "linf")
    assert found.success.all() and set(found.found_by) == {"square"} and exactly_inside(found.X, rows, 0.2, "linf")


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_rows_that_stand_in_two_dimensions_stand_on_a_grid(norm):
    """At most 2 rows in 1000: all points of a fine grid are asked."""
    place = np.linspace(-1.0, 1.0, 41)
    grid = np.stack(np.meshgrid(place, place), axis=-1).reshape(-1, 2)
    grid = {"l1": grid @ [[0.5, 0.5], [-0.5, 0.5]], "l2": grid[np.linalg.norm(grid, axis=1) <= 1.0], "linf": grid}[norm]
    rng = np.random.default_rng(3)
    turn, labels = np.sqrt(rng.uniform(0.05, 1.0, 500)) * 3, rng.integers(0, 2, 500)
    angle = np.pi * (turn + labels)
    table = turn[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    standing = wrong = 0
    for layers in ((8,), (20, 20)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = MLPClassifier(layers, max_iter=100, learning_rate_init=0.02, random_state=0).fit(table, labels)
        for rho in (0.3, 0.8):
            left = ~attack(model, table, labels, rho, norm).success
            if not left.any():
                continue
            points = table[left][:, None] + rho * grid
            answers = model.predict(points.reshape(-1, 2)).reshape(len(points), -1)
            standing += int(left.sum())
            wrong += int((answers != labels[left][:, None]).any(axis=1).sum())
    assert standing > 300 and wrong <= 0.002 * standing


def test_columns_far_from_zero_are_searched_in_double_precision():
    """Float32 cannot separate points that are 1e-3 from 1e6."""
    shifted = X + 1e6
    model = ModelAdapter(Layers((WEIGHT[:, None],), (np.array([-1e6 * WEIGHT.sum()]),)), np.array([-1, 1]))

    class Far:
        pass

    register_adapter(Far)(lambda far, table, labels: model)
    found = attack(Far(), shifted, Y, 1e-3)
    assert np.allclose(found.clean_margin - found.margin, 1e-3 * np.linalg.norm(WEIGHT), rtol=1e-5, atol=1e-8)
    assert exactly_inside(found.X, shifted, 1e-3, "l2")


def test_the_difference_of_logits_has_its_slope_and_no_scale():
    scores = rng.normal(size=(30, 4))
    labels = rng.integers(0, 4, 30)
    ratio = difference_of_logits(labels, 4)
    assert np.allclose(ratio.value(scores), ratio.value(7.0 * scores))
    ranks = np.sort(scores, axis=1)
    own = scores[np.arange(30), labels]
    others = np.where(np.arange(4) == labels[:, None], -np.inf, scores).max(axis=1)
    assert np.allclose(ratio.value(scores), (others - own) / (ranks[:, -1] - ranks[:, -3]))
    for head in range(4):
        move = 1e-6 * np.eye(4)[head]
        numeric = (ratio.value(scores + move) - ratio.value(scores - move)) / 2e-6
        assert np.allclose(ratio.slope(scores)[:, head], numeric, rtol=1e-4, atol=1e-6)
    signs = np.where(labels > 1, 1.0, -1.0)
    assert np.allclose(difference_of_logits(signs, 1).value(scores[:, :1]), -signs * scores[:, 0])


def test_step_sizes_are_looked_at_as_in_the_paper():
    """p = 0.22, then 0.41, 0.57, 0.70, 0.80, 0.87, 0.93, 0.99."""
    assert sorted(checkpoints(100)) == [22, 41, 57, 70, 80, 87, 93, 99]


def test_what_is_asked_for_is_checked():
    with pytest.raises(ValueError) as caught:
        attack(LINEAR, X, Y, 0.1, method="fab")
    names = ", ".join(map(repr, METHODS))
    assert (
        str(caught.value)
        == f"method must be 'auto', 'minimum_norm', one of {names}, or a sequence of these; got 'fab'."
    )
    for bad in ((), 3, ("pgd", "cw")):
        with pytest.raises(ValueError, match="method must be 'auto', 'minimum_norm', one of"):
            attack(LINEAR, X, Y, 0.1, method=bad)
    with pytest.raises(ValueError, match="step_size can be given for method='pgd' only; got 0.1. Remedy: pass method"):
        attack(LINEAR, X, Y, 0.1, step_size=0.1)
    rule = r"rho must be a number or an array of shape \(5,\) of finite numbers >= 0, one per feature; got "
    for bad in (np.ones(4), np.full(5, np.nan), -np.ones(5), ["a"] * 5):
        with pytest.raises(ValueError, match=rule):
            attack(LINEAR, X, Y, bad)
    for name in ("fixed", "integers"):
        for bad in ([5], [-1], [0.5], np.ones(4, dtype=bool)):
            with pytest.raises(
                ValueError, match=rf"{name} must be column numbers below 5 or a mask of shape \(5,\); got"
            ):
                attack(LINEAR, X, Y, 0.1, **{name: bad})
    none = attack(LINEAR, X, Y, 0.1, fixed=np.ones(5, dtype=bool))
    assert np.array_equal(none.X, X)
    assert np.array_equal(attack(LINEAR, X, Y, 0.1, seed=Stream(0, "attack")).X, attack(LINEAR, X, Y, 0.1).X)


def test_the_adapter_is_made_once(monkeypatch):
    from fewfire.robustness import _attack, robust_score

    made, real = [], _attack.adapter_of
    monkeypatch.setattr(_attack, "adapter_of", lambda *details: made.append(1) or real(*details))
    model = LogisticRegression().fit(X, Y)
    assert robust_score(model, X, Y, 0.1, fixed=[0], restarts=0) <= model.score(X, Y)
    assert len(made) == 1

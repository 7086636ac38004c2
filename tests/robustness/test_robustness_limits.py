"""One-hot columns stay one-hot, relations and radii in deviations hold, and certificates are sound under them."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import OneHotEncoder

from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.robustness import attack, certify, robust_score
from fewfire.robustness._threats import L1Ball, L2Ball, LinfBall, restrict

GROUPS = [[2, 3, 4], [5, 6]]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 3, 120), rng.integers(0, 2, 120)
    X = np.hstack([rng.normal(size=(120, 2)), np.eye(3)[first], np.eye(2)[second]])
    y = (X[:, 0] + 0.8 * X[:, 1] ** 2 + np.array([0.0, 0.7, -0.7])[first] * (1 - 2 * second) > 0.5).astype(int)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        network = MLPClassifier((12,), max_iter=300, random_state=0).fit(X, y)
    return LogisticRegression().fit(X, y), network, X, y


def one_hot(X):
    return all(((X[:, g] == 0) | (X[:, g] == 1)).all() and (X[:, g].sum(axis=1) == 1).all() for g in GROUPS)


def enumerated(score, X, y, rho, norm):
    """The least y·score over every choice of categories, of a linear score or on a grid of the first two columns."""
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    axis = np.linspace(-1, 1, 41)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2) * rho[:2]
    best = np.full(len(X), np.inf)
    for i, j in itertools.product(range(3), range(2)):
        moved = np.repeat(X[:, None], len(grid), axis=1)
        moved[:, :, :2] += grid
        moved[:, :, 2:5], moved[:, :, 5:] = np.eye(3)[i], np.eye(2)[j]
        length = np.linalg.norm((moved - X[:, None]) / rho, ord=order, axis=2)
        values = (2 * y[:, None] - 1) * score(moved.reshape(-1, 7)).reshape(len(X), -1)
        best = np.minimum(best, np.where(length <= 1, values, np.inf).min(axis=1))
    return best


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("changes", [0.5, 1.0, 2.0, 4.0])
def test_categories_change_as_far_as_the_radius_lets_them(table, norm, changes):
    linear, network, X, y = table
    X, y = X[:30], y[:30]
    rho = np.array([0.5, 0.4] + [changes] * 5)
    for model in (linear, network):
        score = getattr(model, "decision_function", lambda Z: np.diff(np.log(network.predict_proba(Z)))[:, 0])
        found = attack(model, X, y, rho, norm, onehot=GROUPS)
        assert one_hot(found.X)
        assert (np.linalg.norm((found.X - X) / rho, ord={"l1": 1, "l2": 2, "linf": np.inf}[norm], axis=1) <= 1).all()
        least = enumerated(score, X, y, rho, norm)
        fooled = least < 0
        assert (found.success >= fooled).mean() >= (0.97 if model is linear else 0.9)
        proof = certify(model, X, y, rho, norm, onehot=GROUPS)
        assert not (proof.robust & (fooled | found.success)).any()
        assert (proof.margin <= found.margin + 1e-9).all()
    if changes < 1 or (norm != "linf" and changes == 1.0):
        assert np.array_equal(found.X[:, 2:], X[:, 2:])
    if changes == 4:
        assert (found.X[:, 2:] != X[:, 2:]).any()
        kept = attack(model, X, y, rho, norm, onehot=GROUPS, fixed=[2, 3, 4])
        assert np.array_equal(kept.X[:, 2:5], X[:, 2:5]) and one_hot(kept.X)
        nearest = attack(model, X, y, rho, norm, onehot=GROUPS, method="minimum_norm")
        assert one_hot(nearest.X) and nearest.success.sum() >= found.success.sum() - 1


def test_groups_of_an_encoder_are_attacked_in_its_columns():
    rng = np.random.default_rng(0)
    colours = rng.choice(["blue", "green", "red"], 90).astype(object)
    rows = np.column_stack([rng.normal(size=90), colours])
    y = ((colours == "red") ^ (rng.random(90) < 0.1)).astype(int)
    encoder = make_column_transformer((OneHotEncoder(sparse_output=False), [1]), remainder="passthrough").fit(rows)
    X = encoder.transform(rows).astype(float)
    named = encoder.output_indices_["onehotencoder"]
    model = LogisticRegression().fit(X, y)
    found = attack(model, X, y, 1.0, "linf", onehot=[range(named.start, named.stop)])
    assert found.success.all() and (found.X[:, :3].sum(axis=1) == 1).all()


@pytest.mark.parametrize("kind", [L1Ball, L2Ball, LinfBall])
@pytest.mark.parametrize("box", [(), (0.0, 1.0)])
def test_relations_hold_wherever_a_search_goes(kind, box):
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.ones(4), 40)
    shares[:5, 0], shares[:5, 1] = 0.0, shares[:5, 0] + shares[:5, 1]
    points = np.hstack([shares, rng.uniform(0, 1, (40, 2))])
    table = np.array([[1, 1, 1, 1, 0, 0], [0, 0, 1, 0, -1, 0]])
    scales = np.array([0.3, 0.2, 0.3, 0.3, 0.3, 0.1])
    threat = restrict(kind(0.3, *box), scales, 6, relations=table)
    stream, weights = Stream(0, "relations"), rng.normal(size=(40, 6))
    drawn = threat.draw(points, stream)
    for moved in (
        drawn,
        threat.project(points + weights, points),
        threat.extreme(weights, points),
        threat.settle(points + 1e-3 * weights, points),
        threat.settle(threat.extreme(weights.astype(np.float32), points.astype(np.float32)), points),
    ):
        assert np.abs((moved - points) @ table.T).max() < 1e-9
        assert (np.linalg.norm((moved - points) / scales, ord=kind.order, axis=1) <= 1 + 1e-9).all()
        assert not box or ((moved >= -1e-12).all() and (moved <= 1 + 1e-12).all())
        assert (np.abs(moved - points).max(axis=1) > 0).mean() > 0.9
    _low, high = threat.row_span(weights, points)
    reached = ((threat.extreme(weights, points) - points) * weights).sum(axis=1)
    assert (reached <= high + 1e-9).all() and (reached >= 0.5 * high).mean() > 0.7
    if kind is LinfBall and box:
        for row in range(10):
            ends = np.clip(np.stack([-scales, scales]), *(end - points[row] for end in box)).T
            best = linprog(-weights[row], A_eq=table, b_eq=[0, 0], bounds=ends)
            assert reached[row] - 1e-9 <= -best.fun <= high[row] + 1e-9
    elif kind is L2Ball and not box:  # exact: the ellipsoid cut by a subspace
        assert np.allclose(reached, high)


def test_attacks_and_certificates_keep_sums():
    rng = np.random.default_rng(2)
    X = rng.dirichlet(np.ones(5), 80)
    y = (X[:, 0] + X[:, 1] > 0.4).astype(int)
    model = LogisticRegression(C=1e3).fit(X, y)
    options = {"bounds": (0, 1), "relations": [np.ones(5)]}
    free, found = attack(model, X, y, 0.1, bounds=(0, 1)), attack(model, X, y, 0.1, **options)
    assert np.abs(found.X.sum(axis=1) - 1).max() < 1e-12 and (found.X >= 0).all()
    assert found.success.sum() <= free.success.sum() and found.success.any()
    proof, plain = certify(model, X, y, 0.1, **options), certify(model, X, y, 0.1, bounds=(0, 1))
    assert (proof.margin <= found.margin + 1e-9).all() and (proof.margin >= plain.margin - 1e-9).all()
    nearest = attack(model, X, y, 0.5, method="minimum_norm", **options)
    assert np.abs(nearest.X.sum(axis=1) - 1).max() < 1e-12
    assert (nearest.distance[found.success] <= found.distance[found.success] + 1e-12).all()


def test_radii_in_deviations_of_the_columns(table):
    model, _, X, y = table
    scaled = X * np.array([1, 100, 1, 1, 1, 1, 1])
    model = LogisticRegression(max_iter=5000).fit(scaled, y)
    named = attack(model, scaled, y, 0.2, units="std")
    given = attack(model, scaled, y, 0.2 * scaled.std(axis=0))
    assert np.array_equal(named.X, given.X)
    assert np.array_equal(
        certify(model, scaled, y, 0.2, units="std").margin, certify(model, scaled, y, 0.2 * scaled.std(axis=0)).margin
    )
    assert robust_score(model, scaled, y, 0.2, units="std") == 1 - named.success.mean()
    with pytest.raises(InvalidArgument, match="units must be None or 'std'"):
        attack(model, scaled, y, 0.2, units="deviations")


def test_refusals(table):
    model, _, X, y = table
    with pytest.raises(
        InvalidArgument, match="X must have one 1, and zeros, in every group of onehot; got a row 0 with"
    ):
        attack(model, X, y, 1.0, onehot=[[0, 1]])
    with pytest.raises(
        InvalidArgument, match="onehot must be groups of columns, each in one group and none in integers"
    ):
        attack(model, X, y, 1.0, onehot=[[2, 3, 4], [4, 5]])
    with pytest.raises(InvalidArgument, match="relations must be weights of shape"):
        attack(model, X, y, 1.0, relations=[[1, 1]])
    with pytest.raises(InvalidArgument, match="0 where columns are one-hot or whole numbers"):
        attack(model, X, y, 1.0, onehot=GROUPS, relations=[np.ones(7)])

"""Models from outside the package: a few lines register them, then they are attacked, certified and scored."""

import sys
import types

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from fewfire.networks import TwoLayer
from fewfire.robustness import (
    Layers,
    ModelAdapter,
    Scores,
    attack,
    black_box,
    certify,
    register_adapter,
    robust_score,
)
from fewfire.robustness import _adapter as registry

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = np.array(["a", "b", "c"])[X.argmax(axis=1)]


class Centroids:
    """A toy model: the class of the nearest mean."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.centres = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        return self

    def predict(self, X):
        return self.classes_[((X[:, None] - self.centres) ** 2).sum(axis=2).argmin(axis=1)]


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "_ADAPTERS", dict(registry._ADAPTERS))
    monkeypatch.setattr(registry, "_DESCRIPTIONS", dict(registry._DESCRIPTIONS))


def test_a_toy_model_is_attacked_and_certified():
    @register_adapter(Centroids)
    def centroids(model, X, y):
        half = (model.centres**2).sum(axis=1) / 2
        return ModelAdapter(Layers((model.centres.T,), (-half,)), model.classes_)

    model = Centroids().fit(X, Y)
    found, proof = attack(model, X, Y, 0.3), certify(model, X, Y, 0.3)
    assert np.array_equal(model.predict(found.X), found.prediction)
    assert (proof.margin <= found.margin + 1e-12).all()
    assert np.mean(np.isclose(proof.margin, found.margin)) >= 0.9  # ascent may end at the milder of two rivals
    assert proof.accuracy <= robust_score(model, X, Y, 0.3) < np.mean(model.predict(X) == Y)


def test_scores_of_ones_own_behind_a_scaler():
    """Scores need values and gradients for attacks; scalers work without more. Layers of the same are certified."""

    class Wedge(Scores):
        """|x_1| − x_2: two ReLUs and a linear function."""

        inputs, width = 3, 2

        def scores(self, points):
            return (np.abs(points[:, 0]) - points[:, 1])[:, None]

        def linearise(self, points):
            gradients = np.column_stack([np.sign(points[:, 0]), -np.ones(len(points)), np.zeros(len(points))])
            return self.scores(points), lambda weights: weights * gradients

    class Model:
        def fit(self, X, y=None):
            return self

    class Same(Model):
        pass

    # |x_1| − x_2 by a third neuron that always fires.
    hidden = np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    layers = Layers((hidden, np.array([[1.0], [1.0], [-1.0]])), (np.array([0.0, 0.0, 50.0]), np.array([50.0])), "relu")
    register_adapter(Model)(lambda model, X, y: ModelAdapter(Wedge(), None))
    register_adapter(Same)(lambda model, X, y: ModelAdapter(layers, None))
    scaler = StandardScaler().fit(X * [1, 5, 2])
    model, same = (make_pipeline(scaler, kind()).fit(X * [1, 5, 2]) for kind in (Model, Same))
    table = X * [1, 5, 2]
    standard = scaler.transform(table)
    y = np.abs(standard[:, 0]) - standard[:, 1] + rng.normal(size=60)
    found, proof = attack(model, table, y, 0.2), certify(same, table, y, 0.2)
    assert np.allclose(found.margin, attack(same, table, y, 0.2).margin, atol=1e-6)
    assert np.allclose(found.clean_margin, -np.abs(np.abs(standard[:, 0]) - standard[:, 1] - y))
    assert (proof.margin <= found.margin + 1e-12).all()
    decided = np.abs(standard[:, 0]) * scaler.scale_[0] > 0.2
    assert np.allclose(proof.margin[decided], found.margin[decided], atol=1e-6) and 0 < decided.sum() < 60
    assert ((proof.open_neurons == 0) == decided).all()


@pytest.mark.parametrize(
    "kind", [SVC(), SVR(), RandomForestClassifier(20, random_state=0)], ids=lambda m: type(m).__name__
)
def test_any_estimator_as_a_black_box(kind):
    register_adapter("sklearn.svm.SVC", "sklearn.svm.SVR", "sklearn.ensemble.RandomForestClassifier")(black_box)
    labels = X[:, 0] * 2 if isinstance(kind, SVR) else Y
    model = kind.fit(X, labels)
    found = attack(model, X, labels, 0.4, steps=5)
    assert (np.linalg.norm(found.X - X, axis=1) <= 0.4 + 1e-9).all()
    assert (found.margin < found.clean_margin).mean() > 0.5
    if not isinstance(kind, SVR):
        assert np.array_equal(model.predict(found.X), found.prediction)
        assert robust_score(model, X, labels, 0.4, steps=5) < model.score(X, labels)
    with pytest.raises(ValueError, match="to be certified; got a "):
        certify(model, X, labels, 0.4)


def test_black_boxes_follow_slopes_of_the_users_units():
    """Behind a scaler as well as alone; two classes of probabilities become one score."""
    table = X * [1, 50, 1]
    labels = (X[:, 0] > 0).astype(int)

    class Soft(Centroids, ClassifierMixin, BaseEstimator):
        n_features_in_ = 3

        def predict_proba(self, X):
            upper = 1 / (1 + np.exp(-X[:, 0] - 0.1 * X[:, 1]))
            return np.column_stack([1 - upper, upper])

    register_adapter(Soft)(black_box)
    model = Soft().fit(X, labels)
    found = attack(model, table, labels, 0.2, restarts=0)
    step = np.where(labels, -1, 1)[:, None] * 0.2 * np.array([1, 0.1, 0]) / np.hypot(1, 0.1)
    assert np.allclose(found.X - table, step, atol=1e-4)
    scaler = StandardScaler().fit(table)
    through = attack(make_pipeline(scaler, model), table, labels, 0.2, restarts=0)
    assert np.linalg.norm(through.X - table, axis=1).max() == pytest.approx(0.2)


def test_classes_are_served_by_name_without_an_import():
    """A class of that name anywhere in the package, and its subclasses; a class of another package is not."""
    adapted = []

    @register_adapter("far_away.Centroids", described="centroid")
    def centroids(model, X, y):
        adapted.append(model)
        return ModelAdapter(Layers((model.centres.T,), (np.zeros(3),)), model.classes_)

    assert "far_away" not in sys.modules
    for module, known in (
        ("far_away", True),
        ("far_away.deep._inside", True),
        ("far_awayish", False),
        ("other", False),
    ):
        kind = types.new_class("Centroids", (), {}, lambda space: space.update(Centroids.__dict__))
        kind.__module__ = module
        derived = type("Derived", (kind,), {})
        for model in (kind().fit(X, Y), derived().fit(X, Y)):
            if known:
                attack(model, X, Y, 0.1)
                assert adapted.pop() is model
            else:
                with pytest.raises(
                    ValueError, match=", centroid; got a (Centroids|Derived). Remedy: register an adapter"
                ):
                    attack(model, X, Y, 0.1)


def test_the_most_derived_class_and_the_latest_entry_count():
    class Signed(TwoLayer):
        pass

    net = Signed(np.eye(3), np.zeros(3), np.ones(3))
    y = np.where(net(X) > 1, 1, -1)
    before = attack(net, X, y, 0.1).margin
    register_adapter(Signed)(
        lambda model, X, y: ModelAdapter(Layers((np.ones((3, 1)),), (np.zeros(1),)), np.array([-1, 1]))
    )
    after = attack(net, X, y, 0.1).clean_margin
    assert np.allclose(after, y * X.sum(axis=1)) and not np.allclose(before, after)
    register_adapter(Signed)(lambda model, X, y: ModelAdapter(Layers((np.eye(3)[:, :1],), (np.zeros(1),)), None))
    assert np.allclose(attack(net, X, X[:, 0], 0.1).clean_margin, 0)


def test_kinds_are_checked():
    for bad in ("Ridge", 3):
        with pytest.raises(ValueError) as caught:
            register_adapter(bad)(black_box)
        rule = "kinds must be classes, or names of classes with their package"
        assert str(caught.value) == f"{rule}; got {bad!r}. Remedy: write 'sklearn.linear_model.Ridge'."


def test_certificates_refuse_weights_that_are_not_finite_and_activations_that_differ():
    register_adapter(Centroids)(
        lambda model, X, y: ModelAdapter(Layers((np.full((3, 1), np.nan),), (np.zeros(1),)), np.array([-1, 1]))
    )
    with pytest.raises(ValueError, match="model must have finite weights to be certified; got NaN or infinity."):
        certify(Centroids().fit(X, Y), X, np.ones(60), 0.1)
    one, other = (TwoLayer(np.eye(3), np.zeros(3), np.ones(3), activation=f"shifted_relu({tau})") for tau in (0.1, 0.5))
    with pytest.raises(ValueError, match=r"networks must have one activation; got \['shifted_relu"):
        Layers.of(one, other)

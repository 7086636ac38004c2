"""Gradients in the inputs against finite differences, for every model that can be attacked."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PolynomialFeatures, StandardScaler

from fewfire.learners import ParityNetClassifier
from fewfire.learners.robust import RobustClassifier, RobustRegressor, attack
from fewfire.learners.robust._models import recognise
from fewfire.networks import TwoLayer, init
from fewfire.problems import Parity

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3)) * [1.0, 20.0, 0.1] + [0.0, 5.0, 0.0]
TWO, THREE, REAL = (X[:, 0] > 0).astype(int), rng.integers(0, 3, 40), X[:, 0] * 3


@pytest.fixture(autouse=True)
def quiet(recwarn):
    """Perceptrons need not converge here."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    warnings.simplefilter("ignore", ConvergenceWarning)


def check_gradient(model, table, labels):
    """Central differences of Σ_k c_k score_k; away from kinks they are exact for piecewise linear scores."""
    scores = recognise(model, labels).scores
    weights = np.random.default_rng(1).normal(size=scores.scores(table).shape)
    value, pull = scores.linearise(table)
    assert np.allclose(value, scores.scores(table), rtol=1e-12)
    step, numeric = 1e-6, np.empty_like(table)
    for column in range(table.shape[1]):
        move = np.zeros(table.shape[1])
        move[column] = step
        change = scores.scores(table + move) - scores.scores(table - move)
        numeric[:, column] = (change * weights).sum(axis=1) / (2 * step)
    exact = pull(weights)
    assert np.abs(exact).max() > 0
    assert np.allclose(exact, numeric, rtol=1e-4, atol=1e-5 * np.abs(numeric).max())


@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
@pytest.mark.parametrize("layers", [(7,), (6, 5), (5, 4, 3)])
@pytest.mark.parametrize("labels", [TWO, THREE, REAL], ids=["two", "three", "real"])
def test_perceptrons(activation, layers, labels):
    kind = MLPRegressor if labels is REAL else MLPClassifier
    model = kind(hidden_layer_sizes=layers, activation=activation, max_iter=20, random_state=0).fit(X, labels)
    check_gradient(model, X, labels)
    scores = recognise(model, labels).scores.scores(X)
    if labels is REAL:
        assert np.allclose(scores[:, 0], model.predict(X))
    elif labels is TWO:
        assert np.allclose(1 / (1 + np.exp(-scores[:, 0])), model.predict_proba(X)[:, 1])
    else:
        soft = np.exp(scores - scores.max(axis=1, keepdims=True))
        assert np.allclose(soft / soft.sum(axis=1, keepdims=True), model.predict_proba(X))


@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        MinMaxScaler(),
        MaxAbsScaler(),
        "passthrough",
    ],
)
def test_pipelines_are_attacked_in_the_users_units(scaler):
    model = make_pipeline(scaler, MLPClassifier((8,), max_iter=50, random_state=0)).fit(X, TWO)
    check_gradient(model, X, TWO)
    found = attack(model, X, TWO, rho=0.5)
    assert np.array_equal(model.predict(found.X), found.prediction)
    assert (np.linalg.norm(found.X - X, axis=1) <= 0.5 + 1e-9).all()


def test_two_scalers_and_a_robust_network():
    model = make_pipeline(MinMaxScaler(), StandardScaler(), RobustClassifier(50, max_iter=5, random_state=0)).fit(
        X, THREE
    )
    check_gradient(model, X, THREE)
    assert np.allclose(recognise(model, THREE).scores.scores(X), model.decision_function(X))


@pytest.mark.parametrize("domain", ["ball", "projected"])
@pytest.mark.parametrize("labels", [TWO, THREE, REAL], ids=["two", "three", "real"])
def test_robust_networks(domain, labels):
    kind = RobustRegressor if labels is REAL else RobustClassifier
    model = kind(60, 0.3, domain=domain, max_iter=5, random_state=0).fit(X, labels)
    target = recognise(model, labels)
    check_gradient(model, target.points(X), labels)
    value = model.predict(X) if labels is REAL else model.decision_function(X)
    assert np.allclose(
        target.scores.scores(target.points(X)).squeeze(axis=1)
        if labels is not THREE
        else target.scores.scores(target.points(X)),
        value,
    )


@pytest.mark.parametrize("activation", ["relu", "relu6", "shifted_relu(0.1)"])
def test_bare_networks(activation):
    net = init.dense()(3, 30, seed=0).with_parameters(activation=activation)
    table = rng.normal(size=(20, 3)) * 3
    check_gradient(net, table, np.ones(20))
    assert recognise(net, np.ones(20)).classes.tolist() == [-1, 1] and recognise(net, np.full(20, 0.3)).classes is None


def test_parity_networks_join_the_two_values_of_a_column():
    signs, y = Parity(8, 2).sample(300, seed=0)
    table = np.where(signs > 0, 2.0, 5.0)
    table[:, 3] = signs[:, 3]
    table[:, 7] = 4.0
    model = ParityNetClassifier(width=40, max_steps=2000, random_state=0).fit(table, np.where(y > 0, "yes", "no"))
    labels = np.where(y > 0, "yes", "no")
    target = recognise(model, labels)
    assert np.allclose(target.scores.scores(table)[:, 0], model.decision_function(table))
    check_gradient(model, table[:40] + 0.1, labels[:40])
    still = attack(model, table[:40], labels[:40], rho=1.0, restarts=0).X
    assert np.array_equal(still[:, 7], table[:40, 7])  # a column that was constant in training weighs nothing


def test_what_is_not_supported_is_named():
    list_ = "TwoLayer, ParityNetClassifier, RobustClassifier, RobustRegressor, scikit-learn's MLPClassifier or MLPRegressor, or a Pipeline of StandardScaler, MinMaxScaler or MaxAbsScaler and one of these"
    with pytest.raises(ValueError) as caught:
        attack(LogisticRegression().fit(X, TWO), X, TWO, 0.1)
    assert str(caught.value) == f"model must be a fitted {list_}; got a LogisticRegression."
    with pytest.raises(ValueError, match="got a Pipeline with PolynomialFeatures."):
        attack(make_pipeline(PolynomialFeatures(1), MLPClassifier((2,), max_iter=2)).fit(X, TWO), X, TWO, 0.1)
    with pytest.raises(ValueError, match="model must have one label a row; got a MLPRegressor of 2 outputs."):
        attack(MLPRegressor(hidden_layer_sizes=(2,), max_iter=2).fit(X, X[:, :2]), X, REAL, 0.1)
    with pytest.raises(ValueError, match="model must have one label a row; got a MLPClassifier of 2 outputs."):
        attack(MLPClassifier((2,), max_iter=2).fit(X, np.column_stack([TWO, 1 - TWO])), X, TWO, 0.1)
    counts = MLPRegressor("poisson", hidden_layer_sizes=(2,), max_iter=2).fit(X, TWO)
    with pytest.raises(ValueError, match="model must end in identity, logistic or softmax; got 'exp'."):
        attack(counts, X, REAL, 0.1)
    cut = ParityNetClassifier(width=5, max_steps=5, binarize="median").fit(X, TWO)
    with pytest.raises(
        ValueError,
        match="model must take two-valued columns as they are; got a ParityNetClassifier with binarize='median'. Remedy: a cut has no gradient to follow.",
    ):
        attack(cut, X, TWO, 0.1)
    sliced = make_pipeline(StandardScaler(), RobustClassifier(5, max_iter=1, domain="projected")).fit(X, TWO)
    with pytest.raises(
        ValueError,
        match="behind scalers must have a RobustClassifier or RobustRegressor of domain 'ball'; got 'projected'",
    ):
        attack(sliced, X, TWO, 0.1)
    with pytest.raises(ValueError, match="rho must be given for this model; got None."):
        attack(TwoLayer(np.eye(3), np.zeros(3), np.ones(3)), X, TWO * 2 - 1)
    with pytest.raises(ValueError, match="y must hold classes the model knows, 0, 1; got 2."):
        attack(MLPClassifier((2,), max_iter=2).fit(X, TWO), X, THREE, 0.1)

"""RandomFeatures, ConjugateKernel and TangentKernel as estimators."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from fewfire._errors import InvalidArgument
from fewfire.learners.baselines import ConjugateKernel, RandomFeatures, TangentKernel
from fewfire.networks import init
from fewfire.problems import Parity

MODELS = [
    ConjugateKernel(), TangentKernel(loss="hinge"), RandomFeatures(width=100, random_state=0),
    RandomFeatures(width=100, loss="logistic", random_state=0), RandomFeatures(width=100, loss="hinge", random_state=0),
]  # fmt: skip


def not_to_the_last_digit(model):
    reason = "libsvm stops at its tolerance; test_a_weight_counts_as_that_many_rows holds it to that"
    return {} if model.loss != "hinge" else {"check_sample_weight_equivalence_on_dense_data": reason}


@pytest.mark.no_cover
@parametrize_with_checks(MODELS, expected_failed_checks=not_to_the_last_digit)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_learns_what_its_features_span(model):
    """Two bits among five, from 600 examples of 32 distinct ones: every kernel here has that parity in its span."""
    X, y = Parity(5, 2).sample(600, seed=0)
    X_test, y_test = Parity(5, 2).sample(500, seed=1)
    assert model.fit(X, y).score(X_test, y_test) == 1.0


@pytest.mark.parametrize("make", [ConjugateKernel, TangentKernel])
def test_ridge_solves_the_stated_system(make):
    X, y = Parity(8, 2).sample(60, seed=0)
    model = make(0.5, alpha=0.01).fit(X, y)
    K = model.kernel(X)
    assert np.allclose((K + 0.01 * 60 * np.eye(60)) @ model.dual_coef_[:, 0], y)
    assert np.allclose(model.decision_function(X), K @ model.dual_coef_[:, 0])


def test_hinge_minimises_the_stated_objective():
    """No nearby dual point does better: the gradient condition of (1/m) Σ hinge + (alpha/2) ‖f‖² holds."""
    X, y = Parity(8, 2).sample(60, seed=0)
    alpha = 0.01
    model = ConjugateKernel(loss="hinge", alpha=alpha).fit(X, y)
    dual = np.zeros(60)
    dual[model.machine_.support_] = np.abs(model.machine_.dual_coef_[0])
    assert dual.max() <= 1 / (alpha * 60) + 1e-9
    margins = y * model.decision_function(X)
    assert (margins[dual < 1e-9] >= 1 - 1e-2).all()
    assert (margins[dual > 1 / (alpha * 60) - 1e-9] <= 1 + 1e-2).all()


def test_ridge_on_wide_features_is_the_kernel_ridge():
    X, y = Parity(5, 3).sample(100, seed=0)
    wide = RandomFeatures(width=20_000, random_state=0, alpha=0.1).fit(X, y).decision_function(X)
    limit = ConjugateKernel(alpha=0.1).fit(X, y).decision_function(X)
    # scikit-learn's ridge has an intercept, the kernel only its bias; apart from that and width noise they agree.
    assert np.abs(wide - limit).max() < 0.1


def test_an_initialiser_gives_the_features_of_its_network():
    X, y = Parity(9, 3).sample(200, seed=0)
    start = init.symmetric(3)
    model = RandomFeatures(width=20, init=start, random_state=5).fit(X, y)
    network = start(9, 20, 5)
    assert model.network_.equals(network)
    assert np.allclose(model.features(X), network.features(X) * np.sqrt(2 / 20))
    assert str(RandomFeatures(width=20, init=init.dense(), activation="relu6").fit(X, y).network_.activation) == "relu6"


def test_same_seed_same_predictions():
    X, y = Parity(9, 3).sample(200, seed=0)
    one, two, other = (RandomFeatures(50, random_state=seed).fit(X, y).decision_function(X) for seed in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
    generator = RandomFeatures(50, random_state=np.random.RandomState(3)).fit(X, y)
    assert generator.network_.width == 50


def test_logistic_head_is_scikit_learns():
    X, y = Parity(6, 2).sample(150, seed=0)
    model = RandomFeatures(30, loss="logistic", alpha=0.02, random_state=0).fit(X, y)
    peer = LogisticRegression(C=1 / (0.02 * 150), max_iter=10_000).fit(model.features(X), y)
    assert np.allclose(model.decision_function(X), peer.decision_function(model.features(X)))


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (ConjugateKernel(-1.0), r"bias must be a finite number in \[0, 1e\+150\]"),
        (TangentKernel(alpha=0.0), r"alpha must be a finite number in \(0, inf\)"),
        (TangentKernel(loss="square"), "loss must be one of 'ridge', 'hinge'; got 'square'"),
        (RandomFeatures(width=0), "width must be an integer of at least 1; got 0"),
        (RandomFeatures(init="sparse"), "init must be one of 'gaussian'; got 'sparse'"),
        (RandomFeatures(loss="square"), "loss must be one of 'ridge', 'hinge', 'logistic'; got 'square'"),
        (RandomFeatures(activation="tanh"), "activation must be 'relu', 'relu6'"),
    ],
)
def test_bad_parameters_are_refused(model, match):
    X, y = Parity(4, 2).sample(30, seed=0)
    with pytest.raises(InvalidArgument, match=match):
        model.fit(X, y)


@pytest.mark.parametrize("model", [ConjugateKernel(), RandomFeatures(width=5)], ids=str)
def test_one_class_is_refused(model):
    X, _ = Parity(4, 2).sample(30, seed=0)
    with pytest.raises(InvalidArgument, match=r"y must hold at least two classes; got an array of one class \(1\.0\)"):
        model.fit(X, np.ones(30))


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_weight_counts_as_that_many_rows(model):
    X, y = Parity(6, 2).sample(80, seed=0)
    y = np.where(np.arange(80) % 7 == 0, -y, y)  # so that the weights matter
    counts = np.random.default_rng(0).integers(0, 4, 80)
    weighted = clone(model).fit(X, y, sample_weight=counts).decision_function(X)
    repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)).decision_function(X)
    # libsvm and lbfgs stop at 1e-3 and 1e-4; the others are solved.
    np.testing.assert_allclose(weighted, repeated, atol=1e-6 if model.loss == "ridge" else 5e-3)
    assert np.abs(weighted - clone(model).fit(X, y).decision_function(X)).max() > 0.05


def test_weights_are_checked():
    X, y = Parity(6, 2).sample(30, seed=0)
    with pytest.raises(InvalidArgument, match="sample_weight must have one weight for each of the 30 rows"):
        ConjugateKernel().fit(X, y, sample_weight=np.ones(29))

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


@pytest.mark.no_cover
@parametrize_with_checks(MODELS)
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
        (TangentKernel(loss="ridge"), "loss must be one of 'square', 'hinge'; got 'ridge'"),
        (RandomFeatures(width=0), "width must be an integer of at least 1; got 0"),
        (RandomFeatures(init="sparse"), "init must be one of 'gaussian'; got 'sparse'"),
        (RandomFeatures(loss="ridge"), "loss must be one of 'square', 'hinge', 'logistic'; got 'ridge'"),
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
    # lbfgs stops at 1e-4, libsvm at 1e-9; ridge is solved.
    np.testing.assert_allclose(weighted, repeated, atol=5e-3 if model.loss == "logistic" else 1e-6)
    assert np.abs(weighted - clone(model).fit(X, y).decision_function(X)).max() > 0.05


def largest_rounding(model, X):
    """By how much two orders of all sums can change the score of each row of X, to first order in ε = 2⁻⁵³.

    A sum of t products is off by at most t·ε times the sum of their sizes, and a score is a sum over features or training
    rows of sums over columns. For a kernel, the cosine of two rows is off by (n + 4)·ε. The angle is off by at most
    1/√(2·10⁻⁶) = 707 times that, for chords take over nearer to 1; the tangent kernel takes 1/π of it, below 230.
    """
    n = X.shape[1]
    if isinstance(model, RandomFeatures):
        network, head = model.network_.astype(np.float64), model.head_
        sizes = np.sqrt(2 / network.width) * (np.abs(X) @ np.abs(network.hidden.T) + np.abs(network.bias))
        terms, slopes = n + network.width + 10, np.abs(head.coef_.ravel())  # a row, or flat for ridge
        if model.loss == "hinge":
            terms, slopes = terms + len(head.support_), np.abs(head.dual_coef_[0]) @ np.abs(head.support_vectors_)
        return 2 * terms * 2.0**-53 * (sizes @ slopes + np.abs(np.ravel(head.intercept_)))
    hinge = model.loss == "hinge"
    rows = model.X_fit_[model.machine_.support_] if hinge else model.X_fit_
    slopes = np.abs(model.machine_.dual_coef_[0] if hinge else model.dual_coef_[:, 0])
    lengths = [np.sqrt((table**2).sum(axis=1) / n + model.bias**2) for table in (X, rows)]
    terms = len(rows) + 230 * (n + 10)
    return (
        2 * terms * 2.0**-53 * (2 * np.outer(*lengths) @ slopes + (abs(model.machine_.intercept_[0]) if hinge else 0))
    )


@pytest.mark.parametrize("model", [*MODELS, TangentKernel(), RandomFeatures(1000, random_state=0)], ids=str)
def test_a_row_s_score_does_not_depend_on_the_rows_it_comes_with(model):
    """The order of a matrix product's sums changes with the number of rows, so the sums are in float64.

    In float32 scores changed by 1e-7. The tangent kernel of a training row with itself, an angle of 0 that came from the
    arc cosine of 1 − ε, changed by 2e-8.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 24))
    model = clone(model).fit(X[:200], np.where(X[:200, 0] * X[:200, 1] > 0, 1, -1))
    together = model.decision_function(X)
    allowed = largest_rounding(model, X)
    assert allowed.max() < 1e-8 * np.abs(together).max()  # what is allowed is not trivial
    for size in (1, 2, 3, 7, 50):
        parts = [model.decision_function(X[start : start + size]) for start in range(0, 200 if size < 3 else 600, size)]
        apart = np.concatenate(parts)
        assert (np.abs(apart - together[: len(apart)]) <= allowed[: len(apart)]).all()
    assert (np.abs(model.decision_function(X[::-1])[::-1] - together) <= allowed).all()


def test_weights_are_checked():
    X, y = Parity(6, 2).sample(30, seed=0)
    with pytest.raises(InvalidArgument, match="sample_weight must have one weight for each of the 30 rows"):
        ConjugateKernel().fit(X, y, sample_weight=np.ones(29))

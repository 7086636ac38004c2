"""One test per adapter: its scores are the model's, its gradients those of finite differences, its refusals named."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PolynomialFeatures, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from fewfire import FewfireWarning, InvalidArgument, TabularClassifier, TabularRegressor
from fewfire.learners import ParityNetClassifier, RobustClassifier, RobustRegressor
from fewfire.networks import TwoLayer, init
from fewfire.problems import Parity
from fewfire.robustness import attack, certify, robust_score
from fewfire.robustness._adapter import adapter_of

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
    scores = adapter_of(model, table, labels).scores
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
    scores = adapter_of(model, X, labels).scores.scores(X)
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
    model = make_pipeline(MinMaxScaler(), StandardScaler(), RobustClassifier(50, iterations=5, random_state=0)).fit(
        X, THREE
    )
    check_gradient(model, X, THREE)
    assert np.allclose(adapter_of(model, X, THREE).scores.scores(X), model.decision_function(X))


@pytest.mark.parametrize("domain", ["ball", "projected"])
@pytest.mark.parametrize("labels", [TWO, THREE, REAL], ids=["two", "three", "real"])
def test_robust_networks(domain, labels):
    kind = RobustRegressor if labels is REAL else RobustClassifier
    model = kind(60, 0.3, domain=domain, iterations=5, random_state=0).fit(X, labels)
    target = adapter_of(model, X, labels)
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
    assert (
        adapter_of(net, table, np.ones(20)).classes.tolist() == [-1, 1]
        and adapter_of(net, table, np.full(20, 0.3)).classes is None
    )


def test_networks_of_several_outputs_are_classifiers():
    table = rng.normal(size=(30, 3))
    net = TwoLayer(rng.normal(size=(20, 3)), rng.normal(size=20), rng.normal(size=(20, 3)), rng.normal(size=3))
    check_gradient(net, table, np.arange(30) % 3)
    labels = net(table).argmax(axis=1)
    found, proof = attack(net, table, labels, 0.1), certify(net, table, labels, 0.1)
    assert np.array_equal(net(found.X).argmax(axis=1), found.prediction) and not found.success.all()
    assert (proof.margin <= found.margin + 1e-12).all()


def test_parity_networks_join_the_two_values_of_a_column():
    signs, y = Parity(8, 2).sample(300, seed=0)
    table = np.where(signs > 0, 2.0, 5.0)
    table[:, 3] = signs[:, 3]
    table[:, 7] = 4.0
    model = ParityNetClassifier(width=40, max_steps=2000, random_state=0).fit(table, np.where(y > 0, "yes", "no"))
    labels = np.where(y > 0, "yes", "no")
    target = adapter_of(model, X, labels)
    assert np.allclose(target.scores.scores(table)[:, 0], model.decision_function(table))
    check_gradient(model, table[:40] + 0.1, labels[:40])
    still = attack(model, table[:40], labels[:40], rho=1.0, restarts=0).X
    assert np.array_equal(still[:, 7], table[:40, 7])  # a column that was constant in training weighs nothing


LINEAR = [
    (LogisticRegression(), TWO),
    (LogisticRegression(), THREE),
    (RidgeClassifier(), TWO),
    (RidgeClassifier(), THREE),
    (LinearSVC(), TWO),
    (LinearSVC(), THREE),
    (SGDClassifier(random_state=0), TWO),
    (LinearDiscriminantAnalysis(), THREE),
    (LinearRegression(), REAL),
    (LinearRegression(fit_intercept=False), REAL),
    (Ridge(), REAL),
    (ElasticNet(0.01), REAL),
    (HuberRegressor(), REAL),
    (SGDRegressor(random_state=0), REAL),
    (LinearSVR(), REAL),
]


@pytest.mark.parametrize(("model", "labels"), LINEAR, ids=lambda part: type(part).__name__)
@pytest.mark.parametrize(("norm", "dual"), [("l2", 2), ("linf", 1)])
def test_linear_models_are_attacked_and_certified_exactly(model, labels, norm, dual):
    """f moves by ρ times the dual norm of its weights, or of the difference of two classes' weights, and no further."""
    table = (X - X.mean(axis=0)) / X.std(axis=0)
    model.fit(table, labels)
    value = model.predict(table) if labels is REAL else model.decision_function(table)
    assert np.allclose(adapter_of(model, table, labels).scores.scores(table).squeeze(), value)
    check_gradient(model, table, labels)
    found, proof = attack(model, table, labels, 0.2, norm), certify(model, table, labels, 0.2, norm)
    assert np.array_equal(model.predict(found.X), found.prediction) or labels is REAL
    assert (proof.margin <= found.margin + 1e-12).all() and (proof.open_neurons == 0).all()
    # Ascent may end at the milder of two rivals, or on the milder side of a number that is met exactly.
    assert np.mean(np.isclose(proof.margin, found.margin)) >= (1.0 if labels is TWO else 0.9)
    weights = np.atleast_2d(model.coef_)
    if labels is not THREE:
        assert np.allclose(found.clean_margin - proof.margin, 0.2 * np.linalg.norm(weights[0], ord=dual))
    else:
        scores = value - value[np.arange(40), labels][:, None]
        falls = 0.2 * np.linalg.norm(weights[labels][:, None] - weights, ord=dual, axis=2)
        margins = np.where(np.arange(3) == labels[:, None], np.inf, -scores - falls)
        assert np.allclose(proof.margin, margins.min(axis=1))


def test_linear_models_of_sparse_weights_and_behind_scalers():
    model = make_pipeline(MinMaxScaler(), LogisticRegression()).fit(X, THREE)
    check_gradient(model, X, THREE)
    assert np.allclose(adapter_of(model, X, THREE).scores.scores(X), model.decision_function(X))
    found, proof = attack(model, X, THREE, 0.1), certify(model, X, THREE, 0.1)
    assert (proof.margin <= found.margin + 1e-12).all()
    assert np.mean(np.isclose(proof.margin, found.margin)) >= 0.9
    thin = LogisticRegression().fit(X, TWO)
    dense = attack(thin, X, TWO, 0.1).margin
    assert np.array_equal(attack(thin.sparsify(), X, TWO, 0.1).margin, dense)


@pytest.fixture(scope="module")
def tabular():
    """Small ensembles: one of two classes, one of three, one of a number."""
    options = {"hidden": (16,), "members": 2, "trees": False, "gains": "none", "random_state": 0}
    kinds = {
        "two": (TabularClassifier, TWO),
        "three": (TabularClassifier, X[:, [0, 2]].round().astype(int)[:, 0]),
    }
    kinds["real"] = (TabularRegressor, REAL)
    return {name: (kind(**options).fit(X, labels), labels) for name, (kind, labels) in kinds.items()}


@pytest.mark.parametrize("name", ["two", "three", "real"])
def test_tabular_ensembles_are_attacked_by_their_predictions(tabular, name):
    model, labels = tabular[name]
    found = attack(model, X, labels, 0.3, restarts=1, steps=5)
    assert (np.linalg.norm(found.X - X, axis=1) <= 0.3 + 1e-9).all()
    assert (found.margin <= found.clean_margin).all() and (found.margin < found.clean_margin).mean() > 0.8
    if name == "real":
        assert np.allclose(model.predict(found.X), found.prediction)
        assert robust_score(model, X, labels, 0.3, restarts=0, steps=5) < model.score(X, labels)
    else:
        assert np.array_equal(model.predict(found.X), found.prediction)
        assert robust_score(model, X, labels, 0.3, restarts=0, steps=5) <= model.score(X, labels)
    drawn = X + 0.3 * np.eye(3)[0]  # the direction that decides the labels; the search does as well
    assert found.margin.mean() < attack(model, drawn, labels, 0.0).margin.mean()
    with pytest.raises(ValueError) as caught:
        certify(model, X, labels, 0.3)
    assert str(caught.value) == (
        "model must be linear or have hidden layers of relu neurons to be certified; got a "
        f"{type(model).__name__}. Remedy: use attack, whose margins are upper bounds."
    )


def test_tabular_regressors_of_several_targets_are_refused():
    both = TabularRegressor((8,), members=1, scaling="standard", gains="none").fit(X, X[:, :2])
    with pytest.raises(
        ValueError, match="model must give 1 score per row; got a table of 2 columns. Remedy: one label"
    ):
        attack(both, X, REAL, 0.1)


@pytest.mark.parametrize("labels", [TWO, 2 * TWO - 1, THREE, REAL], ids=["two", "signs", "three", "real"])
def test_torch_modules(labels):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    heads = 3 if labels is THREE else 1
    module = torch.nn.Sequential(
        torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(8, heads)
    )
    module.double()
    check_gradient(module, X, labels)
    found = attack(module, X, labels, 0.3)
    assert (np.linalg.norm(found.X - X, axis=1) <= 0.3 + 1e-9).all() and module.training and module[2].training
    assert all(parameter.grad is None for parameter in module.parameters())
    module.eval()
    outputs = module(torch.tensor(found.X)).detach().numpy()
    assert np.array_equal(attack(module, X, labels, 0.3).margin, found.margin)  # dropout was off before as well
    if labels is REAL:
        assert np.allclose(found.prediction, outputs[:, 0]) and np.allclose(found.margin, -np.abs(outputs[:, 0] - REAL))
    elif labels is THREE:
        assert np.array_equal(found.prediction, outputs.argmax(axis=1))
    else:
        assert np.array_equal(found.prediction, np.where(outputs[:, 0] > 0, labels.max(), labels.min()))
    assert 0 <= robust_score(module, X, labels, 0.3) <= 1 or labels is REAL
    with pytest.raises(ValueError, match="to be certified; got a Sequential. Remedy: use attack"):
        certify(module, X, labels, 0.3)


SIDE_BY_SIDE = [("one", StandardScaler(), [2, 0]), ("left", "drop", [1])]
BY_SLICE = [("as it is", "passthrough", slice(0, 1)), ("none", StandardScaler(), [])]
LINEAR_STEPS = {
    "RobustScaler": [RobustScaler()],
    "no centre": [RobustScaler(with_centering=False, with_scaling=False), StandardScaler(with_mean=False)],
    "PCA": [PCA(2)],
    "whitened": [StandardScaler(), PCA(2, whiten=True), MaxAbsScaler()],
    "columns": [ColumnTransformer(SIDE_BY_SIDE)],
    "the rest": [ColumnTransformer(BY_SLICE, remainder=RobustScaler()), PCA(3)],
    "weights": [
        ColumnTransformer([("a", StandardScaler(), [0]), ("b", StandardScaler(), [1])], transformer_weights={"b": 0.1})
    ],
    "a column twice": [ColumnTransformer([("a", StandardScaler(), [0, 0, 1])])],
    "the rest as it is": [ColumnTransformer([("two", MinMaxScaler(), [1])], remainder="passthrough")],
}


@pytest.mark.parametrize("name", LINEAR_STEPS)
def test_linear_steps_of_pipelines_are_seen_through_and_certified(name):
    for last in (LogisticRegression(), MLPRegressor(hidden_layer_sizes=(6,), max_iter=20, random_state=0)):
        labels = TWO if isinstance(last, LogisticRegression) else REAL
        model = make_pipeline(*LINEAR_STEPS[name], last).fit(X, labels)
        expected = model.decision_function(X) if labels is TWO else model.predict(X)
        assert np.allclose(adapter_of(model, X, labels).scores.scores(X)[:, 0], expected, rtol=1e-9, atol=1e-9)
        check_gradient(model, X, labels)
        found, proved = attack(model, X, labels, 0.05), certify(model, X, labels, 0.05)
        assert (proved.margin <= found.margin + 1e-12).all() and (proved.upper >= proved.margin).all()


@pytest.mark.parametrize("columns", [["a", "b"], slice("a", "b"), slice("a", None), "b"])
def test_a_column_transformer_of_named_columns_is_seen_through(columns):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    part = StandardScaler() if columns != "b" else "passthrough"
    if columns == "b":
        columns = ["b"]
    parts = ColumnTransformer([("one", part, columns), ("other", RobustScaler(), ["c"])])
    model = make_pipeline(parts, LogisticRegression()).fit(frame, TWO)
    assert np.allclose(adapter_of(model, X, TWO).scores.scores(X)[:, 0], model.decision_function(frame), rtol=1e-9)
    found = attack(model, frame, TWO, 0.1)
    moved = model.predict(pandas.DataFrame(found.X, columns=["a", "b", "c"]))
    assert np.array_equal(moved != TWO, found.success | (model.predict(frame) != TWO))


def test_a_black_box_behind_other_columns_is_attacked():
    model = make_pipeline(ColumnTransformer([("two", PCA(2), [0, 2])]), TabularClassifier(trees=False, random_state=0))
    model.fit(X, TWO)
    assert robust_score(model, X, TWO, 0.1) <= model.score(X, TWO)


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_a_sequential_of_linear_layers_and_a_relu_is_certified(heads):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    labels = THREE if heads == 3 else TWO
    body = [torch.nn.Flatten(), torch.nn.Linear(3, 8, bias=heads > 1), torch.nn.ReLU(), torch.nn.Dropout(0.5)]
    module = torch.nn.Sequential(torch.nn.Sequential(*body), torch.nn.Linear(8, heads))
    proved = certify(module, X, labels, 0.05)
    assert (proved.margin <= attack(module, X, labels, 0.05).margin + 1e-4).all() and proved.robust.any()
    head = torch.nn.Sigmoid() if heads == 1 else torch.nn.Softmax(dim=1)
    assert np.allclose(certify(torch.nn.Sequential(module, head), X, labels, 0.05).margin, proved.margin)
    weights = [part.detach().double().numpy() for part in module.parameters()]
    hidden, bias, output, offset = weights if heads > 1 else (weights[0], np.zeros(8), *weights[1:])
    network = TwoLayer(hidden, bias, output.T if heads > 1 else output[0], offset if heads > 1 else offset[0])
    assert np.allclose(certify(network, X, labels, 0.05).margin, proved.margin, rtol=1e-9, atol=1e-9)


def test_modules_that_compute_more_than_their_layers_are_not_certified():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    line, relu, last = torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)

    class Doubled(torch.nn.Sequential):
        def forward(self, x):
            return 2 * super().forward(x)

    hooked = torch.nn.Sequential(line, relu, last)
    hooked.register_forward_hook(lambda module, inputs, output: output + 1)
    own = torch.nn.Sequential(line, relu, last)
    own.forward = lambda x: x[:, :2]
    inside = torch.nn.Sequential(line, torch.nn.ReLU(), last)
    inside[1].forward = lambda x: x.clamp(0, 0.1)
    for module in (Doubled(line, relu, last), hooked, own, inside, torch.nn.Sequential(line, relu)):
        with pytest.raises(ValueError, match="to be certified; got a (Sequential|Doubled). Remedy: use attack"):
            certify(module, X, TWO, 0.05)


@pytest.mark.parametrize("kind", ["deep", "linear", "images"])
def test_modules_of_linear_parts_are_certified_at_any_depth(kind):
    torch = pytest.importorskip("torch")
    nn, rows = torch.nn, X
    torch.manual_seed(0)
    if kind == "deep":
        module = nn.Sequential(
            nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)
        )
    elif kind == "linear":
        module = nn.Sequential(nn.Linear(3, 8), nn.Linear(8, 2))
    else:
        rows = np.random.default_rng(0).uniform(size=(len(X), 2, 6, 6))
        parts = (
            nn.Conv2d(2, 3, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AvgPool2d(2, padding=1),
            nn.BatchNorm2d(3),
            nn.ReLU(),
        )
        module = nn.Sequential(*parts, nn.Flatten(), nn.Linear(12, 2), nn.Softmax(dim=1))
    module(torch.tensor(rows, dtype=torch.float32))  # statistics of the batch norms
    labels = module.eval()(torch.tensor(rows, dtype=torch.float32)).argmax(dim=1).numpy()
    found, proof = attack(module, rows, labels, 0.3), certify(module, rows, labels, 0.3)
    assert found.X.shape == rows.shape and not (found.success & proof.robust).any()
    assert (proof.margin <= found.margin + 1e-4).all() and (proof.upper >= proof.margin).all()
    assert np.allclose(proof.upper[found.success], found.margin[found.success], atol=0.3)
    if kind == "images":
        radii = np.zeros((2, 6, 6))
        radii[0, :3] = 0.5
        moved = attack(module, rows, labels, radii, "linf", bounds=(np.zeros((2, 6, 6)), 1.0)).X
        assert (moved[:, 1] == rows[:, 1]).all() and (moved[:, 0, 3:] == rows[:, 0, 3:]).all() and moved.min() >= 0
        nearest = attack(module, torch.tensor(rows), labels, 1.0, method="minimum_norm")
        assert nearest.X.shape == rows.shape and (nearest.distance[found.success] <= 0.3 + 1e-9).all()

        class Own(nn.Module):
            def forward(self, x):
                return module(x)

        with pytest.raises(ValueError, match="to be certified; got a Own. Remedy: use attack"):
            certify(Own(), rows, labels, 0.1)


def test_the_weights_of_linear_parts_are_products_and_not_differences(monkeypatch):
    torch = pytest.importorskip("torch")
    from fewfire.robustness.adapters import _torch

    nn = torch.nn
    torch.manual_seed(0)
    line, norm = nn.Linear(3, 4), nn.BatchNorm1d(4).eval()
    norm.bias.data += 1e12
    norm.running_mean += 1e9
    layers = _torch._layers(nn.Sequential(line, norm), (3,))
    scale = (norm.weight.double() / torch.sqrt(norm.running_var.double() + norm.eps)).detach().numpy()
    exact = line.weight.detach().double().numpy().T * scale
    assert np.allclose(layers.weights[0], exact, rtol=1e-12, atol=0)
    monkeypatch.setattr(_torch, "LARGEST", 1)  # holds for parts that become a matrix; a linear layer is one
    assert _torch._layers(nn.Sequential(line, norm), (3,)) is None
    assert (
        _torch._layers(nn.Sequential(nn.Flatten(), line), (3, 1)).weights[0] == line.weight.detach().numpy().T
    ).all()


def test_a_radius_beyond_the_spread_of_columns_is_warned_of():
    model = LogisticRegression(C=1e6, max_iter=1000).fit(X, TWO)
    with pytest.warns(FewfireWarning, match="9 is beyond the standard deviation of half of its columns, and no row"):
        assert robust_score(model, X, TWO, rho=9.0) == 0.0
    assert robust_score(model, X, TWO, rho=9.0 * X.std(axis=0)) == 0.0  # no warning: the user chose each


def test_torch_modules_of_float32_and_of_their_own_classes():
    torch = pytest.importorskip("torch")

    class Product(torch.nn.Module):
        def forward(self, x):
            return x[:, 0] * x[:, 2]

    labels = np.where(X[:, 0] * X[:, 2] > 0, 1, -1)
    found = attack(Product(), X, labels, 0.05, "linf")
    assert (
        np.allclose(found.margin, (np.abs(X[:, 0]) - 0.05) * (np.abs(X[:, 2]) - 0.05), atol=2e-3) or found.success.any()
    )
    assert (found.margin < found.clean_margin).all()
    image = torch.nn.Unflatten(1, (1, 3))
    with pytest.raises(ValueError, match=r"into one row of scores per row; got shape \(1, 1, 3\). Remedy: wrap it"):
        attack(image, X, labels, 0.1)


def test_what_is_not_supported_is_named():
    with pytest.raises(ValueError) as caught:
        attack(GaussianNB().fit(X, TWO), X, TWO, 0.1)
    message = str(caught.value)
    assert message.startswith(
        "model must be a fitted TabularClassifier, TabularRegressor, ParityNetClassifier, RobustClassifier, "
        "RobustRegressor, TwoLayer, linear model of"
    )
    for name in ("MLPClassifier, MLPRegressor", "Pipeline of scalers, PCA and one of these", "torch.nn.Module"):
        assert name in message
    assert message.count("ParityNetClassifier") == message.count("RobustRegressor") == 1
    remedy = "register an adapter for it with fewfire.robustness.register_adapter"
    assert message.endswith(f"; got a GaussianNB. Remedy: {remedy}.")
    with pytest.raises(
        ValueError, match="RobustScaler, PCA, or a ColumnTransformer of these; got a Pipeline with PolynomialFeatures."
    ):
        attack(make_pipeline(PolynomialFeatures(1), MLPClassifier((2,), max_iter=2)).fit(X, TWO), X, TWO, 0.1)
    with pytest.raises(ValueError, match=r"must have scalers that do not clip; got a MinMaxScaler\(clip=True\)"):
        attack(make_pipeline(MinMaxScaler(clip=True), LogisticRegression()).fit(X, TWO), X, TWO, 0.1)
    with pytest.raises(ValueError, match="model must have one label per row; got a LinearRegression of 2 outputs."):
        attack(LinearRegression().fit(X, X[:, :2]), X, REAL, 0.1)
    with pytest.raises(ValueError, match="model must have one label per row; got a MLPRegressor of 2 outputs."):
        attack(MLPRegressor(hidden_layer_sizes=(2,), max_iter=2).fit(X, X[:, :2]), X, REAL, 0.1)
    with pytest.raises(ValueError, match="model must have one label per row; got a MLPClassifier of 2 outputs."):
        attack(MLPClassifier((2,), max_iter=2).fit(X, np.column_stack([TWO, 1 - TWO])), X, TWO, 0.1)
    if "loss" in MLPRegressor().get_params():  # from scikit-learn 1.7 on
        counts = MLPRegressor(loss="poisson", hidden_layer_sizes=(2,), max_iter=2).fit(X, TWO)
        with pytest.raises(ValueError, match="model must end in identity, logistic or softmax; got 'exp'."):
            attack(counts, X, REAL, 0.1)
    dependent = make_pipeline(PCA(whiten=True), LogisticRegression()).fit(X[:, [0, 1, 0]], TWO)
    with pytest.raises(ValueError, match="components that vary; got a PCA that whitens linearly dependent columns."):
        attack(dependent, X[:, [0, 1, 0]], TWO, 0.1)
    cut = ParityNetClassifier(width=5, max_steps=5, binarize="median").fit(X, TWO)
    with pytest.raises(
        ValueError,
        match="model must take two-valued columns as they are; got a ParityNetClassifier with binarize='median'. Remedy: a cut has no gradient to follow.",
    ):
        attack(cut, X, TWO, 0.1)
    sliced = make_pipeline(StandardScaler(), RobustClassifier(5, iterations=1, domain="projected")).fit(X, TWO)
    with pytest.raises(
        ValueError,
        match="model behind scalers must be attacked in the columns that it is given; got a RobustClassifier with a space of its own. Remedy: scale the table before the pipeline; of a robust estimator, use domain='ball'.",
    ):
        attack(sliced, X, TWO, 0.1)
    with pytest.raises(ValueError, match="rho must be given for this model; got None."):
        attack(TwoLayer(np.eye(3), np.zeros(3), np.ones(3)), X, TWO * 2 - 1)
    with pytest.raises(ValueError, match="y must hold classes of the model, 0, 1; got 2."):
        attack(MLPClassifier((2,), max_iter=2).fit(X, TWO), X, THREE, 0.1)


def test_a_sparsified_module_is_attacked_and_certified_once_it_is_dense():
    torch = pytest.importorskip("torch")
    from fewfire.torch import densify, sparsify

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).eval()
    signs = np.where(module(torch.tensor(X[:4], dtype=torch.float32)).detach().numpy()[:, 0] > 0, 1, -1)
    signs[0] = -signs[1]
    proved = certify(module, X[:4], signs, 0.01).margin
    sparsify(module, [torch.randn(2, 3)], dense_above=16)
    assert np.isfinite(attack(module, X[:4], signs, 0.01).margin).all()
    with pytest.raises(InvalidArgument, match=r"a sparsified model. Remedy: call fewfire.torch.densify\(model\) first"):
        certify(module, X[:4], signs, 0.01)
    densify(module)
    assert np.array_equal(certify(module, X[:4], signs, 0.01).margin, proved)

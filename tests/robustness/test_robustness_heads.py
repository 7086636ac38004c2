"""What a model's outputs mean: a sigmoid or softmax at the end, two outputs for two classes, layers without a name."""

import numpy as np
import pytest

from fewfire._errors import FewfireWarning, InvalidArgument
from fewfire.networks import TwoLayer
from fewfire.robustness import Layers, ModelAdapter, attack, certify, register_adapter, robust_score

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
TWO, REAL = (X[:, 0] + 0.2 * rng.normal(size=60) > 0).astype(int), X[:, 0] * 3


def trained_score():
    """A torch module of one score, about the sign of the first column."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    body = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    with torch.no_grad():
        body[0].weight[:, 0] += 2.0
        body[2].weight.abs_()
    return torch, body


def ending(torch, body, function):
    """A module that ends in a function of the outputs of another."""

    class Ended(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = body

        def forward(self, x):
            return function(self.body(x))

    return Ended()


@pytest.mark.parametrize("labels", [TWO, 2 * TWO - 1, TWO.astype(np.float64)], ids=["classes", "signs", "floats"])
@pytest.mark.parametrize(
    "head", ["Sigmoid", "LogSigmoid", "torch.sigmoid", "method", "functional", "flat", "functional log"]
)
def test_a_sigmoid_at_the_end_is_seen_through(head, labels):
    torch, body = trained_score()
    signs = 2 * (labels == labels.max()) - 1
    heads = {
        "torch.sigmoid": torch.sigmoid,
        "method": lambda score: score.sigmoid(),
        "functional": torch.nn.functional.sigmoid,
        "flat": lambda score: torch.sigmoid(score).squeeze(1),
        "functional log": torch.nn.functional.logsigmoid,
    }
    ended = ending(torch, body, heads.get(head, torch.sigmoid))
    module = ended if head in heads else torch.nn.Sequential(body, getattr(torch.nn, head)())
    bare, found = attack(body, X, signs, 0.3), attack(module, X, labels, 0.3)
    assert np.array_equal(found.success, bare.success) and np.allclose(found.margin, bare.margin)
    with torch.no_grad():
        probability = module(torch.tensor(found.X)).numpy().ravel()
    probability = np.exp(probability) if "log" in head.lower() else probability
    assert np.array_equal(found.prediction, np.where(probability > 0.5, labels.max(), labels.min()))
    assert robust_score(module, X, labels, 0.0) == robust_score(body, X, signs, 0.0)


def test_labels_that_no_sigmoid_gives_are_refused():
    """Classes 1 and 2 made it a regressor, of R² about −3; numbers within [0, 1] are one's."""
    torch, body = trained_score()
    module = torch.nn.Sequential(body, torch.nn.Sigmoid())
    with pytest.raises(
        InvalidArgument, match="y must be ±1, 0 and 1, or numbers within .* encode the classes as 0 and 1"
    ):
        robust_score(module, X, TWO + 1, 0.3)
    assert robust_score(module, X, 0.25 + 0.5 * TWO, 1e-6) <= 1.0


def test_a_sigmoid_that_saturates_does_not_hide_a_row():
    """Its slope is 0 in float32; the score before it has one."""
    torch, body = trained_score()
    module = torch.nn.Sequential(body.float(), torch.nn.Linear(1, 1), torch.nn.Sigmoid())
    with torch.no_grad():
        module[1].weight.fill_(1e3)
        module[1].bias.zero_()
    found, bare = attack(module, X, TWO, 0.5, method="frank_wolfe"), attack(body, X, TWO, 0.5, method="frank_wolfe")
    assert np.array_equal(found.success, bare.success) and found.success.mean() > 0.1


@pytest.mark.parametrize("head", ["none", "Softmax", "LogSoftmax", "functional"])
def test_two_outputs_are_two_classes(head):
    torch, body = trained_score()
    pair = ending(torch, body, lambda score: torch.cat([-score, score], dim=1))
    ends = {"Softmax": torch.nn.Softmax(dim=1), "LogSoftmax": torch.nn.LogSoftmax(dim=-1)}
    module = torch.nn.Sequential(pair, ends[head]) if head in ends else pair
    if head == "functional":
        module = ending(torch, pair, lambda scores: torch.nn.functional.softmax(scores, dim=1))
    found, bare = attack(module, X, TWO, 0.3), attack(body, X, TWO, 0.3)
    assert np.array_equal(found.success, bare.success) and np.allclose(found.margin, 2 * bare.margin)
    with torch.no_grad():
        assert np.array_equal(found.prediction, module(torch.tensor(found.X)).argmax(dim=1).numpy())


def test_probabilities_that_are_made_otherwise_are_refused():
    torch, body = trained_score()
    remedy = r"Remedy: return the score before the sigmoid, or end in torch.nn.Sigmoid\(\) with nothing after it"
    for function in (
        lambda score: 1 / (1 + torch.exp(-score)),
        lambda score: 1 - torch.sigmoid(-score),
        torch.nn.functional.hardsigmoid,
        lambda score: score.softmax(dim=1),
        lambda score: torch.sigmoid(score).mul_(0.5),
    ):
        module = ending(torch, body, function)
        with pytest.raises(ValueError, match=f"model must give one score whose sign is the class.*{remedy}"):
            robust_score(module, X, TWO, 0.1)
    module = ending(torch, body, torch.nn.functional.hardsigmoid)
    with pytest.warns(FewfireWarning, match=f"so that every row is of class 1. {remedy}"):
        attack(module, X[TWO == 1], TWO[TWO == 1], 0.1)
    sure = ending(torch, body, torch.sigmoid)
    moved = attack(sure, X, REAL, 0.1)  # a regressor of numbers in [0, 1] stays one
    assert ((moved.prediction > 0.0) & (moved.prediction < 1.0)).all()
    assert np.allclose(moved.margin, -np.abs(moved.prediction - REAL))


@pytest.mark.parametrize("kind", ["float64", "float32", "int8", "bool", "object"])
@pytest.mark.parametrize("network", [False, True])
def test_labels_0_and_1_are_classes_whatever_their_type(network, kind):
    """As torch's losses of logits ask for floats."""
    if network:
        model = TwoLayer(np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]), np.zeros(2), np.array([5.0, -5.0]))
    else:
        _, model = trained_score()
    labels = TWO.astype(kind)
    for score in (robust_score, lambda *told: attack(*told).success.tolist()):
        assert score(model, X, labels, 0.2) == score(model, X, 2 * TWO - 1, 0.2)
    ones = TWO == 1
    assert robust_score(model, X[ones], labels[ones], 0.2) == robust_score(model, X[ones], TWO[ones], 0.2)
    if network:
        assert np.array_equal(certify(model, X, labels, 0.2).robust, certify(model, X, 2 * TWO - 1, 0.2).robust)


def test_numbers_near_the_labels_0_and_1_are_no_score():
    """What least squares on 0 and 1 predicts: its class is beyond ½, not beyond 0."""
    torch, body = trained_score()
    fit = np.linalg.lstsq(np.column_stack([X, np.ones(60)]), TWO, rcond=None)[0]
    line = torch.nn.Linear(3, 1).double()
    with torch.no_grad():
        line.weight.copy_(torch.tensor(fit[None, :3]))
        line.bias.fill_(fit[3])
    both = np.array([[*fit[:3]], [*-fit[:3]]])
    layer = TwoLayer(both, np.zeros(2), np.array([1.0, -1.0]), offset=fit[3])
    for model, kinds in ((line, (TWO, TWO.astype(np.float64), 2 * TWO - 1)), (layer, (TWO, TWO.astype(np.float64)))):
        for labels in kinds:
            with pytest.raises(ValueError, match="got a number near 0 or 1, for the class itself. Remedy: return"):
                robust_score(model, X, labels, 0.1)
    less = ending(torch, line, lambda value: value - 0.5)
    assert robust_score(less, X, TWO, 0.0) == ((X @ fit[:3] + fit[3] > 0.5) == TWO).mean()
    with pytest.warns(
        FewfireWarning, match="got 0.0 alone. It is read as what a regressor should predict. Remedy: pass"
    ):
        attack(body, X[TWO == 0], np.zeros((TWO == 0).sum()), 0.1)


@pytest.mark.parametrize("labels", [TWO + 1, TWO + 1.0, 3 * TWO, 2.0 * TWO + 1])
def test_two_numbers_that_repeat_look_like_classes(labels):
    """Classes 1 and 2 of a raw score made it a regressor, of a great negative R²."""
    _, body = trained_score()
    with pytest.warns(FewfireWarning, match="got .* alone. They are read as .* if they are classes, pass them as 0"):
        robust_score(body, X, labels, 0.1)
    robust_score(body, X[:3], np.array([3.5, 3.5, 4.0]), 0.1)  # 4.0 does not repeat


@pytest.mark.parametrize(("sign", "read"), [(1, "always positive.*class 1"), (-1, "never positive.*class -1")])
def test_a_score_of_one_sign_is_warned_of(sign, read):
    """Odds, percentages and logarithms made by hand are no probabilities that could be distinguished from scores."""
    torch, body = trained_score()
    module = ending(torch, body, lambda score: 100 * sign * torch.sigmoid(score))
    with pytest.warns(FewfireWarning, match=f"must give one score whose sign is the class; got a score that is {read}"):
        found = attack(module, X, 2 * TWO - 1, 0.1)
    assert (found.prediction == sign).all()
    rectified = ending(torch, body, torch.relu)  # 0 is the first class
    assert np.array_equal(attack(rectified, X, TWO, 0.0).prediction, attack(body, X, TWO, 0.0).prediction)


def test_modules_without_gradients_are_attacked_by_their_values():
    torch, body = trained_score()
    steps = ending(torch, body, lambda score: (score > 0).double() - 0.5)
    found = attack(steps, X, TWO, 0.5)
    assert found.success.sum() > (found.found_by == "clean").sum()
    assert np.array_equal(found.success, found.prediction != TWO)


def test_two_scores_of_two_classes_count_by_their_difference():
    """Of bare networks, and of adapters of one's own; attacked and certified as the one score is."""
    one = TwoLayer(rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=6))
    labels = (one(X) > 0).astype(np.int64)
    two = one.with_parameters(output=np.column_stack([-one.output, one.output]), offset=np.zeros(2))
    found, bare = attack(two, X, labels, 0.2), attack(one, X, 2 * labels - 1, 0.2)
    assert np.allclose(found.margin, 2 * bare.margin) and np.array_equal(found.success, bare.success)
    proved = certify(two, X, labels, 0.2)
    assert np.array_equal(proved.robust, certify(one, X, 2 * labels - 1, 0.2).robust)
    assert (proved.margin <= found.margin + 1e-9).all()

    class Centroids:
        classes_ = np.array(["left", "right"])
        centres = np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])

    @register_adapter(Centroids)
    def centroids(model, X, y):
        scores = Layers((model.centres.T,), (-(model.centres**2).sum(axis=1) / 2,))
        return ModelAdapter(scores, model.classes_ if len(np.unique(y)) == 2 else np.arange(4))

    names = np.where(X[:, 0] > 0, "right", "left")
    assert np.array_equal(attack(Centroids(), X, names, 0.2).success, np.abs(X[:, 0]) < 0.2)
    with pytest.raises(ValueError, match="model must have 4 scores per row for 4 classes; got a table of 2. Remedy: "):
        attack(Centroids(), X, np.arange(len(X)) % 4, 0.2)


def test_layers_ask_for_their_activation():
    weights, biases = (np.ones((3, 4)), np.ones((4, 1))), (np.zeros(4), np.zeros(1))
    with pytest.raises(
        ValueError, match="activation must be one of 'identity', 'logistic', 'tanh', 'relu' where there"
    ):
        Layers(weights, biases)
    with pytest.raises(ValueError, match="got 'gelu'. Remedy: write Layers"):
        Layers(weights, biases, "gelu")
    assert Layers(weights[:1], biases[:1]).scores(X).shape == (len(X), 4)

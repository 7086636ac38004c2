"""The robust estimators' training of both layers by minibatches: what it learns, keeps, continues and refuses."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from fewfire import DivergenceError, FewfireWarning
from fewfire._dense.optimisers import AdamW
from fewfire._extension import without_extension
from fewfire._random import Stream
from fewfire.learners import RobustClassifier, RobustRegressor
from fewfire.learners._robust._adversary import BallMoves, ThreatMoves, moves_of
from fewfire.learners._robust._losses import ClassificationLoss
from fewfire.learners._robust._minibatches import Perceptron, Standardisation
from fewfire.robustness import PGD, Layers, attack, certify, robust_score
from fewfire.robustness._threats import L2Ball, LinfBall, SliceCap

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
SIGNS = np.where(X[:, 0] + X[:, 1] > 0, 1, -1)
TEMPERATURES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5)
THREE = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]


def small(**options):
    return RobustClassifier(**({"width": 60, "rho": 0.2, "epochs": 40, "random_state": 0} | options))


def test_one_network_serves_all_classes():
    model = small().fit(X, THREE)
    assert model.setting_ == "practical" and model.method_ == "dense" and len(model.networks_) == 1
    assert model.networks_[0].output.shape == (60, 3) and model.decision_function(X).shape == (120, 3)
    assert model.score(X, THREE) >= 0.9 and robust_score(model, X, THREE) >= 0.7
    assert np.allclose(model.networks_[0](X), model.decision_function(X))
    assert len(model.history_) == model.n_iter_ == model.history_.best_epoch == 40
    assert model.history_.robust_loss[-1] < 0.7 * model.history_.robust_loss[0]
    assert "60 neurons and 3 outputs, both layers trained" in str(model.explain())
    two = small().fit(X, SIGNS)
    assert two.networks_[0].output.shape == (60,) and two.decision_function(X).shape == (120,)


def test_training_against_the_adversary_pays():
    table, labels = load_digits(return_X_y=True)
    table, labels = table[:900] / 16, labels[:900]
    seen, new = slice(0, 600), slice(600, 900)
    options = {"width": 200, "rho": 0.5, "bounds": (0, 1), "epochs": 20, "random_state": 0}
    model = RobustClassifier(**options).fit(table[seen], labels[seen])
    plain = RobustClassifier(**options, adversary="none").fit(table[seen], labels[seen])
    assert model.score(table[new], labels[new]) >= 0.93
    gained = robust_score(model, table[new], labels[new]) - robust_score(plain, table[new], labels[new])
    assert gained >= 0.05
    proof = certify(model, table[new][:40], labels[new][:40])
    assert (proof.margin <= attack(model, table[new][:40], labels[new][:40]).margin + 1e-9).all()


def test_carried_points_do_as_well_as_ten_steps_from_the_rows():
    losses = [small(adversary=search).fit(X, SIGNS).history_.robust_loss[-1] for search in ("pgd", PGD(10))]
    assert losses[0] >= 0.85 * losses[1]  # the adversary of training is about as strong
    weaker = small(adversary=PGD(1, step_size=0.01)).fit(X, SIGNS).history_.robust_loss[-1]
    assert weaker < 0.8 * losses[0]


@pytest.mark.parametrize("threat", [L2Ball(0.3), L2Ball(0.3, -1.0, 1.0), LinfBall(0.2), LinfBall(0.2, -1.0, 1.0)])
def test_moves_stay_in_the_set_and_go_up(threat):
    points = np.clip(X, -1.0, 1.0)
    standard = Standardisation.learn(points, np.ones(120))
    moves, centres = moves_of(threat, standard), standard(points)
    assert isinstance(moves, BallMoves)
    slope = rng.normal(size=X.shape).astype(np.float32)
    at, own = centres, ThreatMoves(threat, standard)
    theirs = centres
    for _ in range(30):
        at, theirs = moves(at, centres, slope.copy(), 0.5), own(theirs, centres, slope.copy(), 0.5)
    apart = standard.points(at) - points
    length = np.linalg.norm(apart, axis=1) if isinstance(threat, L2Ball) else np.abs(apart).max(axis=1)
    assert length.max() <= threat.rho * (1 + 1e-5)
    if np.isfinite(threat.low):
        assert np.abs(standard.points(at)).max() <= 1 + 1e-6
    # Steps up a linear function reach nearly what exact projections reach.
    gained, most = (((moved - centres) * slope).sum(axis=1) for moved in (at, theirs))
    assert gained.mean() >= 0.97 * most.mean() and np.mean(gained >= 0.9 * most - 1e-6) >= 0.95


def test_other_threats_have_their_own_moves():
    assert isinstance(moves_of(SliceCap(0.1), Standardisation(np.zeros(4), 1.0)), ThreatMoves)
    model = small(setting="practical", domain="projected", rho=0.3).fit(X, SIGNS)
    assert model.score(X, SIGNS) >= 0.9
    assert robust_score(model, X, SIGNS) <= model.score(X, SIGNS)


@pytest.mark.parametrize("heads", [1, 3])
def test_gradients_are_those_of_the_formula(heads):
    standard = Standardisation.learn(X, np.ones(120))
    net, z = Perceptron(4, 20, heads, Stream(0, "init")), standard(X)
    scores, pull = Layers.of(net.network(standard)).linearise(X)
    assert np.allclose(net.values(z), scores, atol=1e-5)
    slopes = rng.normal(size=(120, heads)).astype(np.float32)
    assert np.allclose(net.pull(slopes), pull(slopes.astype(np.float64)) * standard.scale, atol=1e-4)
    # In the parameters: AdamW's first step goes by the rate against the gradient's sign.
    before, step = net.flat.copy(), 1e-3
    numeric = np.zeros_like(before)
    for k in range(len(before)):
        for sign in (1, -1):
            net.flat[:] = before
            net.flat[k] += sign * step
            numeric[k] += sign * float(np.sum(net.values(z).astype(np.float64) * slopes)) / (2 * step)
    net.flat[:] = before
    net.values(z)
    AdamW(0.01, 0.0).start(len(net.flat), 0).step(net.flat, net.differentiate(z, slopes))
    # A difference that crosses the kink of a ReLU is another matter.
    assert np.isclose(net.gradient, numeric, rtol=0.02, atol=0.02).mean() >= 0.9
    assert np.allclose(net.flat - before, -0.01 * np.sign(net.gradient) * (net.gradient != 0), atol=1e-4)
    again = Perceptron(4, 20, heads, Stream(1, "init"))
    again.set_network(net.network(standard), standard)
    assert again.values(z) == pytest.approx(net.values(z), abs=1e-5)


@pytest.mark.parametrize(("name", "heads"), [("logistic", 1), ("logistic", 3), ("hinge", 3), ("absolute", 1)])
def test_losses_of_chosen_rows(name, heads):
    labels = np.where(SIGNS > 0, 1.0, -1.0) if heads == 1 else np.argmax(X[:, :3], axis=1)
    rows = np.array([3, 50, 7, 7])
    scores = rng.normal(size=(4, heads)).astype(np.float32)
    lowered, raised = ClassificationLoss(name, labels[rows], heads).criteria()
    chosen = ClassificationLoss(name, labels, heads)
    values, slopes = chosen.descent(scores, rows)
    assert values == pytest.approx(lowered.value(scores), rel=1e-4) and slopes.dtype == np.float32
    assert np.allclose(slopes, lowered.slope(scores), atol=1e-5)
    assert np.allclose(chosen.ascent(scores, rows), raised.slope(scores), atol=1e-5)
    wrong = np.sign(scores[:, 0]) != labels[rows] if heads == 1 else scores.argmax(axis=1) != labels[rows]
    assert np.array_equal(chosen.error(scores, rows), wrong)


def test_a_row_of_weight_two_is_two_rows():
    """In one minibatch of all rows, up to float32."""
    weight = np.tile([0, 1, 2], 40)
    options = {"batch_size": 10**6, "epochs": 10, "width": 30}
    for model, y in ((small(**options), THREE), (RobustRegressor(rho=0.2, random_state=0, **options), X[:, 0])):
        weighted = clone(model).fit(X, y, sample_weight=weight)
        repeated = clone(model).fit(X.repeat(weight, axis=0), y.repeat(weight))
        plain = clone(model).fit(X, y)
        values = [fitted._heads().scores(X) for fitted in (weighted, repeated, plain)]
        assert np.allclose(values[0], values[1], atol=2e-3) and not np.allclose(values[0], values[2], atol=2e-2)
    first = small(iterations=5, activity=0.2).fit(X, SIGNS, sample_weight=weight)
    left_out = small(iterations=5, activity=0.2).fit(X, SIGNS, sample_weight=np.ones(120))
    assert not np.allclose(first.decision_function(X), left_out.decision_function(X))


def test_class_weights_shift_the_decision():
    noisy = np.where(rng.random(120) < 0.25, -SIGNS, SIGNS)
    shares = [
        np.mean(small(class_weight=weight).fit(X, noisy).predict(X) == 1)
        for weight in ({-1: 5.0, 1: 1.0}, None, {-1: 1.0, 1: 5.0})
    ]
    assert shares[0] < shares[1] < shares[2]
    rare = np.flatnonzero(SIGNS > 0)[:8]
    rows = np.concatenate([np.flatnonzero(SIGNS < 0), rare])
    balanced = small(class_weight="balanced", rho=0.5).fit(X[rows], SIGNS[rows])
    plain = small(rho=0.5).fit(X[rows], SIGNS[rows])
    assert balanced.decision_function(X).mean() > plain.decision_function(X).mean()
    with pytest.raises(ValueError, match="class_weight must be a dict, 'balanced' or None; got 'even'."):
        small(class_weight="even").fit(X, SIGNS)
    with pytest.raises(ValueError, match="class_weight must be a dict, 'balanced' or None; got .*array"):
        small(class_weight=np.array([1.0, 2.0])).fit(X, SIGNS)
    with pytest.raises(ValueError, match="class_weight must leave some row a weight above 0"):
        small(class_weight={-1: 0.0, 1: 0.0}).fit(X, SIGNS)


def test_early_stopping_keeps_the_best_epoch(capsys, monkeypatch):
    monkeypatch.setattr("fewfire._progress.LINES", 0.0)
    noisy = np.where(rng.random(120) < 0.3, -SIGNS, SIGNS)
    model = small(early_stopping=5, epochs=60, verbose=True, weight_decay=0.0).fit(X, noisy)
    history = model.history_
    assert model.n_iter_ == len(history) == history.best_epoch + 5 < 60
    assert history.validation_error[history.best_epoch - 1] == history.validation_error.min()
    assert "robust validation error" in capsys.readouterr().err
    assert f"at epoch {history.best_epoch}, which was kept" in str(model.explain())
    assert np.isnan(small(epochs=2).fit(X, noisy).history_.validation_error).all()


def test_probabilities_are_calibrated():
    """On labels flipped at random: better than scores as they are, and near the best that a temperature does."""
    draw = np.random.default_rng(1)
    table = draw.normal(size=(1200, 4))
    labels = np.where((table[:, 0] > 0) != (draw.random(1200) < 0.2), 1, 0)
    seen, new = slice(0, 400), slice(400, 1200)
    model = small(rho=0.5, epochs=30).fit(table[seen], labels[seen])
    probability = model.predict_proba(table[new])
    assert probability.shape == (800, 2) and np.allclose(probability.sum(axis=1), 1.0)
    raw = 1 / (1 + np.exp(-model.decision_function(table[new])))
    assert log_loss(labels[new], probability) <= log_loss(labels[new], raw) + 1e-3
    best = min(log_loss(labels[new], 1 / (1 + np.exp(-model.decision_function(table[new]) / t))) for t in TEMPERATURES)
    assert log_loss(labels[new], probability) <= best + 0.02
    assert np.array_equal(model.predict(table[new]), (probability[:, 1] > 0.5).astype(int))
    three = small().fit(X, THREE).predict_proba(X)
    assert three.shape == (120, 3) and np.allclose(three.sum(axis=1), 1.0)


def test_a_temperature_without_errors_stays_away_from_the_ends():
    labels = np.where(np.arange(50) % 2, 1.0, -1.0)
    found = ClassificationLoss("logistic", labels, 1).temperature(labels[:, None], np.arange(50), np.ones(50))
    assert found == pytest.approx(1 / np.log(51), rel=1e-2)  # where σ(1/T) = 51/52


def test_partial_fit_goes_on_epoch_by_epoch():
    model = small()
    with pytest.raises(ValueError, match="classes must be passed on the first call of partial_fit"):
        model.partial_fit(X, THREE)
    model.partial_fit(X[:60], THREE[:60], classes=["a", "b", "c"])
    first = model.score(X, THREE)
    for _ in range(30):
        model.partial_fit(X, THREE)
    assert model.score(X, THREE) >= max(0.85, first) and model.n_iter_ == 1
    with pytest.raises(ValueError, match="classes must stay a, b, c, those of the first call"):
        model.partial_fit(X, THREE, classes=["a", "b"])
    with pytest.raises(ValueError, match="y may hold only the classes a, b, c; got 'd'"):
        model.partial_fit(X, np.where(THREE == "a", "d", THREE))
    with pytest.raises(ValueError, match="class_weight must not be 'balanced' with partial_fit"):
        small(class_weight="balanced").partial_fit(X, THREE, classes=["a", "b", "c"])
    assert not hasattr(small(iterations=5), "partial_fit")
    changed = small(iterations=5).fit(X, THREE).set_params(iterations=None).partial_fit(X, THREE)
    assert changed.setting_ == "practical" and changed.networks_[0].output.shape == (60, 3)
    number = RobustRegressor(60, rho=0.05, random_state=0)
    for _ in range(60):
        number.partial_fit(X, 100 + 9 * X[:, 0])
    assert number.score(X, 100 + 9 * X[:, 0]) >= 0.8


def test_a_warm_start_goes_on_from_the_last_network():
    model = small(warm_start=True, epochs=20).fit(X, THREE)
    before = model.history_.robust_loss
    again = model.fit(X, THREE).history_.robust_loss
    assert again[0] < 0.8 * before[0]
    cold = small(epochs=20).fit(X, THREE)
    assert cold.fit(X, THREE).history_.robust_loss[0] == pytest.approx(before[0])
    with pytest.raises(ValueError, match="width must stay 60, that of the fitted network; got 70"):
        model.set_params(width=70).fit(X, THREE)
    with pytest.raises(ValueError, match="y must hold the classes a, b, c with warm_start"):
        model.set_params(width=60).fit(X, SIGNS)
    assert model.predict(X).shape == (120,)  # as it was
    with pytest.raises(ValueError, match="warm_start must be False in setting='sublinear'"):
        small(iterations=2, warm_start=True).fit(X, SIGNS)


def test_which_setting_is_meant():
    assert small(epochs=1).fit(X, SIGNS).setting_ == "practical"
    for own in ({"activity": 0.2}, {"iterations": 2}, {"method": "dense"}, {"domain": "projected"}):
        assert small(**({"iterations": 2} | own)).fit(X, SIGNS).setting_ == "sublinear"
    assert small(setting="theorem", iterations=2).fit(X, SIGNS).setting_ == "theorem"
    for own in ({"activity": 0.2}, {"iterations": 2}, {"method": "lists"}, {"learning_rate": "printed"}):
        (name,) = own
        message = f"{name} can be given in settings 'sublinear' and 'theorem' only; got .*leave it out, or use setting="
        with pytest.raises(ValueError, match=message):
            small(setting="practical", **own).fit(X, SIGNS)


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_other_losses(loss):
    assert small(loss=loss).fit(X, THREE).score(X, THREE) >= 0.85
    assert small(loss=loss).fit(X, SIGNS).score(X, SIGNS) >= 0.85


def test_regression_in_the_units_of_the_labels():
    y = 1000 + 50 * X[:, 0]
    model = RobustRegressor(100, rho=0.05, early_stopping=True, random_state=0).fit(X, y)
    assert model.setting_ == "practical" and model.score(X, y) >= 0.95
    assert robust_score(model, X, y, rho=0.5) < robust_score(model, X, y) <= model.score(X, y)


def test_repeatable_small_and_the_same_without_the_extension():
    model = small().fit(X, THREE)
    assert np.array_equal(clone(model).fit(X, THREE).decision_function(X), model.decision_function(X))
    data = pickle.dumps(model)
    assert len(data) < 8 * 60 * (4 + 1 + 3) + 16 * 40 + 4000  # the weights, the history, little else
    assert np.array_equal(pickle.loads(data).predict_proba(X), model.predict_proba(X))
    with without_extension():
        twin = small(epochs=3).fit(X, THREE).decision_function(X)
    assert np.allclose(twin, small(epochs=3).fit(X, THREE).decision_function(X), atol=1e-4)


def test_an_interrupt_keeps_the_model(monkeypatch):
    original, calls = Perceptron.differentiate, []

    def interrupting(self, *arguments):
        calls.append(0)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(Perceptron, "differentiate", interrupting)
    with pytest.warns(FewfireWarning, match="training was interrupted after 2 of 40 epochs; the model is usable"):
        model = small(batch_size=60).fit(X, SIGNS)
    assert model.n_iter_ == 2 and model.predict(X).shape == (120,)
    calls[:] = [0] * 4
    with pytest.raises(KeyboardInterrupt):
        small(batch_size=60).fit(X, SIGNS)


def test_divergence_is_reported():
    message = (
        r"training diverged at epoch \d+: the robust loss went from .* \(rate 1e\+30\). Remedy: lower learning_rate"
    )
    with pytest.raises(DivergenceError, match=message), np.errstate(all="ignore"):
        small(learning_rate=1e30).fit(X, SIGNS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width must be an integer of at least 1; got 0."),
        ({"epochs": 0}, "epochs must be an integer of at least 1; got 0."),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1; got 0."),
        ({"weight_decay": -1.0}, "weight_decay must be a finite number in [0, inf); got -1.0."),
        ({"learning_rate": 0}, "learning_rate must be a finite number in (0, inf); got 0."),
        ({"early_stopping": 0.5}, "early_stopping must be an integer of at least 1; got 0.5."),
        (
            {"adversary": PGD(3, restarts=2)},
            "adversary must have restarts=0 where minibatches are trained; got PGD(steps=3, step_size=None, restarts=2). "
            "Remedy: raise steps, or use setting='sublinear'.",
        ),
    ],
)
def test_refusals(options, message):
    model = small(**options)
    with pytest.raises(ValueError) as caught:
        model.fit(X, SIGNS)
    assert str(caught.value) == message
    assert not hasattr(model, "networks_")

"""RobustClassifier and RobustRegressor: training against the adversary, its record, its refusals."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from fewfire import DivergenceError, FewfireWarning
from fewfire.engines.robust._trainer import DenseTrainer
from fewfire.learners import RobustClassifier, RobustRegressor
from fewfire.learners._robust._algorithm_one import RATES, tangent_steepness
from fewfire.networks import init
from fewfire.problems import SphereSlice, gamma
from fewfire.robustness import PGD, attack, robust_score

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
SIGNS = np.where(X[:, 0] + X[:, 1] > 0, 1, -1)


def small(**options):
    return RobustClassifier(**({"width": 80, "activity": 0.2, "iterations": 30, "random_state": 0} | options))


@pytest.fixture(scope="module")
def separable():
    """γ-separable points of the slice: within ρ of each other no two classes meet."""
    points, labels = SphereSlice(40, 8, 0.7, "xor").sample(seed=0)
    assert gamma(points, 0.2) > 0.2
    return points, labels


def test_the_robust_loss_goes_down_on_separable_points(separable):
    points, labels = separable
    model = RobustClassifier(1000, 0.1, 0.2, domain="slice", iterations=200, random_state=0).fit(points, labels)
    history = model.history_
    assert history.robust_loss[-1] < 0.25 < 0.6 < history.robust_loss[0]
    assert (history.clean_loss <= history.robust_loss + 1e-6).all()
    plain = clone(model).set_params(adversary="none").fit(points, labels)
    assert model.score(points, labels) == plain.score(points, labels) == 1.0
    # Of 40 points, 37 to 39 over seeds, and 30 to 32 without an adversary. The jump of σ_τ magnifies roundings within
    # 200 iterations, so that another instruction set is like another seed.
    assert robust_score(model, points, labels) >= 0.9 > robust_score(plain, points, labels) + 0.05
    # Attack both alike: training against the adversary pays.
    assert attack(model, points, labels).margin.min() > attack(plain, points, labels).margin.min()


def test_one_iteration_by_hand():
    """Algorithm 1 with the fast gradient method, in float64, against one iteration of the estimator."""
    rho, rate = 0.3, 0.7
    model = small(rho=rho, adversary="fgm", learning_rate=rate, iterations=1, loss="hinge").fit(X, SIGNS)
    center = X.mean(axis=0)
    scale = np.sqrt(((X - center) ** 2).sum(axis=1).mean()) / np.sqrt(0.75)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    from fewfire._random import Stream

    net = init.ntk(activity=0.2)(5, 80, Stream(seed, "init").child("head 0")).astype(np.float64)
    inputs = np.column_stack([(X - center) / scale, np.full(60, 0.5)])
    fires = net.preactivations(inputs) > net.activation.threshold
    gradient = -SIGNS[:, None] * ((fires * net.output) @ net.hidden)[:, :4]
    moved = X + rho * gradient / np.linalg.norm(gradient, axis=1, keepdims=True)
    moved = np.where(
        (-SIGNS * net(np.column_stack([(moved - center) / scale, np.full(60, 0.5)])) > -SIGNS * net(inputs))[:, None],
        moved,
        X,
    )
    inputs = np.column_stack([(moved - center) / scale, np.full(60, 0.5)])
    z = net.preactivations(inputs)
    slopes = np.where(SIGNS * net(inputs) < 1, -SIGNS, 0) / 60
    hidden = net.hidden - rate * ((z > net.activation.threshold) * slopes[:, None] * net.output).T @ inputs
    assert np.allclose(model.networks_[0].hidden, hidden, atol=2e-6)
    assert model.drift_ == pytest.approx(np.linalg.norm(hidden - net.hidden, axis=1).max(), rel=1e-4)
    assert model.history_.robust_loss == pytest.approx([np.maximum(1 - SIGNS * net(inputs), 0).mean()], rel=1e-5)
    assert model.history_.mean_active == pytest.approx([(z > net.activation.threshold).sum(axis=1).mean()], abs=1.0)


def test_the_record_counts_work_and_activity():
    model = small(adversary=PGD(steps=3), method="dense").fit(X, SIGNS)
    history = model.history_
    assert len(history) == model.n_iter_ == 30 and model.method_ == "dense"
    assert (history.max_active >= history.mean_active).all() and (history.max_active <= 80).all()
    assert (history.neurons_updated <= 80).all() and (history.neurons_updated > 0).all()
    assert (history.neurons_touched <= 5 * 80).all() and (history.neurons_touched >= 4 * 80).all()
    # Three evaluations with gradients, one without, one step: at least an m·n·d each.
    assert (history.dense_multiply_adds >= 5 * 80 * 60 * 5).all()
    assert (history.multiply_adds == history.dense_multiply_adds).all()
    text = str(model.explain())
    assert "one network of 80 neurons" in text and "method dense" in text and "100.0% of the dense" in text


def test_an_adversary_too_strong_is_named():
    assert "hardly better than a constant: lower rho" in str(small(rho=50.0).fit(X, SIGNS).explain())
    assert "hardly" not in str(small(rho=0.05).fit(X, SIGNS).explain())


@pytest.mark.parametrize("domain", ["ball", "projected"])
def test_every_method_trains_the_same_network(domain, core):
    """Up to rounding, which may decide whether a neuron at its threshold fires: most weights agree to float32."""
    fitted = [
        small(domain=domain, method=method, iterations=10, adversary=PGD(3)).fit(X, SIGNS)
        for method in ("dense", "lists", "index")
    ]
    assert [model.method_ for model in fitted] == ["dense", "lists", "index"]
    for other in fitted[1:]:
        gap = np.abs(other.networks_[0].hidden - fitted[0].networks_[0].hidden).max(axis=1)
        assert np.mean(gap < 1e-4) >= 0.95
        assert other.history_.robust_loss == pytest.approx(fitted[0].history_.robust_loss, rel=1e-3)
    auto = small(domain=domain, iterations=2).fit(X, SIGNS)
    assert auto.method_ == "lists" and auto.history_.multiply_adds.sum() < auto.history_.dense_multiply_adds.sum()


def test_settings_by_name():
    practical = small(rho=0.0).fit(X, SIGNS)
    net = init.ntk(activity=0.2)(5, 80, seed=0)
    assert practical.networks_[0].activation == net.activation
    center = X - X.mean(axis=0)
    inputs = np.column_stack([center / np.sqrt((center**2).sum(axis=1).mean() / 0.75), np.full(60, 0.5)])
    assert practical.learning_rate_ == pytest.approx(
        RATES["logistic"] / tangent_steepness(net, inputs, np.ones(60)), rel=0.5
    )
    theorem = RobustClassifier(80, setting="theorem", iterations=25, random_state=0).fit(X, SIGNS)
    assert theorem.learning_rate_ == pytest.approx(80**-0.6 / 5)
    assert theorem.networks_[0].activation.threshold == 1 / 80
    assert small(setting="theorem", activity=0.3).fit(X, SIGNS).networks_[0].activation.threshold > 1 / 80
    assert small(learning_rate="theorem").fit(X, SIGNS).learning_rate_ == pytest.approx(80**-0.6 / np.sqrt(30))
    assert small(learning_rate="printed").fit(X, SIGNS).learning_rate_ == pytest.approx(80**-0.2 / np.sqrt(30))
    # The theorem's loss is the absolute one: at the start f is near 0 and |f − y| near 1.
    assert theorem.history_.clean_loss[0] == pytest.approx(1.0, abs=0.2)


def test_the_tangent_steepness_is_that_of_the_kernel():
    net = init.ntk(activity=0.3)(4, 30, seed=0).astype(np.float64)
    inputs = X[:20]
    jacobian = ((net.preactivations(inputs) > net.activation.threshold) * net.output)[:, :, None] * inputs[:, None, :]
    flat = jacobian.reshape(20, -1)
    assert tangent_steepness(net, inputs, np.ones(20)) == pytest.approx(np.linalg.norm(flat, 2) ** 2 / 20)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "absolute"])
def test_more_classes_and_every_loss(loss):
    labels = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    model = small(loss=loss, width=200, iterations=100, rho=0.05).fit(X, labels)
    assert len(model.networks_) == 3 and model.decision_function(X).shape == (60, 3)
    assert model.score(X, labels) >= 0.9 and model.history_.robust_loss[-1] < 0.6 * model.history_.robust_loss[0]
    assert "3 networks" in str(model.explain())
    two = small(loss=loss, width=200, iterations=100, rho=0.05).fit(X, SIGNS)
    assert two.decision_function(X).shape == (60,) and two.score(X, SIGNS) >= 0.95


@pytest.mark.parametrize("loss", ["huber", "absolute"])
def test_regression_in_the_units_of_the_labels(loss):
    y = 1000 + 50 * X[:, 0]
    model = RobustRegressor(300, 0.2, 0.01, loss=loss, iterations=200, random_state=0).fit(X, y)
    assert model.score(X, y) >= 0.95
    assert robust_score(model, X, y) <= model.score(X, y)
    assert robust_score(model, X, y, rho=0.5) < robust_score(model, X, y)


def test_bounds_hold_in_training_and_attack():
    table = rng.uniform(0, 1, size=(50, 3))
    labels = (table[:, 0] > 0.5).astype(int)
    for norm in ("l2", "linf"):
        model = small(rho=0.3, norm=norm, bounds=(0, 1)).fit(table, labels)
        found = attack(model, table, labels)
        assert found.X.min() >= 0 and found.X.max() <= 1 and not np.array_equal(found.X, table)
    with pytest.raises(ValueError, match="X must lie within bounds"):
        small(bounds=(0, 1)).fit(X, SIGNS)


def test_projected_attacks_turn_the_row():
    model = small(domain="projected", rho=0.3).fit(X, SIGNS)
    found = attack(model, X, SIGNS)
    standard, moved = ((t - X.mean(axis=0)) / X.std(axis=0) for t in (X, found.X))
    assert np.allclose(np.linalg.norm(standard, axis=1), np.linalg.norm(moved, axis=1))
    assert np.array_equal(model.predict(found.X), found.prediction)
    turned = np.sqrt(0.75) * (moved - standard) / np.linalg.norm(standard, axis=1, keepdims=True)
    assert np.linalg.norm(turned, axis=1).max() == pytest.approx(0.3, abs=1e-6)


def test_repeatable_small_and_cloneable():
    model = small().fit(X, SIGNS)
    again = clone(model).fit(X, SIGNS)
    assert np.array_equal(model.networks_[0].hidden, again.networks_[0].hidden)
    data = pickle.dumps(model)
    assert len(data) < 4 * 80 * 5 * 4 + 8 * 8 * 30 + 4000  # the weights, the history, little else
    assert np.array_equal(pickle.loads(data).decision_function(X), model.decision_function(X))


def test_verbose_reports_the_progress(capsys, monkeypatch):
    monkeypatch.setattr("fewfire._progress.LINES", 0.0)
    small(verbose=True, iterations=4).fit(X, SIGNS)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4 and lines[-1].startswith("training: iteration: 4 of 4, robust loss ")


@pytest.mark.parametrize("steps_before", [0, 3])
def test_an_interrupt_keeps_the_model(monkeypatch, steps_before):
    steps = []

    def interrupting(self, *arguments):
        steps.append(arguments)
        if len(steps) == steps_before + 1:
            raise KeyboardInterrupt
        return original(self, *arguments)

    original = DenseTrainer.step
    monkeypatch.setattr(DenseTrainer, "step", interrupting)
    model = small(method="dense")
    if not steps_before:  # nothing was learned: there is no model to keep
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, SIGNS)
        assert not hasattr(model, "networks_")
        return
    with pytest.warns(FewfireWarning, match="training was interrupted after 3 of 30 iterations; the model is usable"):
        model.fit(X, SIGNS)
    assert model.n_iter_ == 3 and model.predict(X).shape == (60,)


@pytest.mark.parametrize("iterations", [1, 30])
def test_divergence_is_reported(iterations):
    """Weights beyond float32 at once, or a loss that only explodes."""
    for rate, iteration in ((1e42, 1), (1e9, 1)) if iterations > 1 else ((1e42, 1),):
        model = small(learning_rate=rate, iterations=iterations)
        message = rf"training diverged at iteration {iteration}: the robust loss went from 0.\d+ to .* \(rate 1e\+\d+\). Remedy: lower"
        with pytest.raises(DivergenceError, match=message), np.errstate(all="ignore"):
            model.fit(X, SIGNS)
    assert not hasattr(model, "networks_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width must be an integer of at least 1; got 0."),
        ({"activity": 0.7}, "activity must be a finite number in (0, 0.5]; got 0.7."),
        ({"activity": "few"}, "activity must be one of 'auto'; got 'few'."),
        ({"rho": -1}, "rho must be a finite number in [0, inf); got -1."),
        ({"norm": "l3"}, "norm must be one of 'l1', 'l2', 'linf'; got 'l3'."),
        ({"domain": "cube"}, "domain must be one of 'ball', 'slice', 'projected'; got 'cube'."),
        ({"domain": "projected", "norm": "linf"}, "norm must be 'l2' in domain='projected'; got 'linf'."),
        ({"domain": "slice", "bounds": (0, 1)}, 'bounds can be given in domain="ball" only; got (0, 1). Remedy: leave it out.'),
        ({"domain": "slice"}, None),
        ({"adversary": "cw"}, "adversary must be 'pgd', 'fgm', 'none' or a PGD; got 'cw'. Remedy: write adversary=PGD(steps=20)."),
        ({"setting": "paper"}, "setting must be one of 'auto', 'practical', 'sublinear', 'theorem'; got 'paper'."),
        ({"method": "magic"}, "method must be one of 'auto', 'dense', 'lists', 'index'; got 'magic'."),
        ({"loss": "square"}, "loss must be one of 'auto', 'logistic', 'hinge', 'absolute'; got 'square'."),
        ({"learning_rate": 0}, "learning_rate must be a finite number in (0, inf); got 0."),
        ({"iterations": 0}, "iterations must be an integer of at least 1; got 0."),
    ],
)  # fmt: skip
def test_refusals(options, message):
    model = small(**options)
    with pytest.raises(ValueError) as caught:
        model.fit(X, SIGNS)
    if message is None:
        assert str(caught.value).startswith(
            'X must have rows with ‖x‖ = 1 and x_d = 1/2 (to 1e-05) in domain="slice"; got a row '
        )
    else:
        assert str(caught.value) == message
    assert not hasattr(model, "networks_")


def test_searches_are_checked():
    for bad in ({"steps": -1}, {"restarts": 1.5}, {"step_size": 0.0}):
        (name,) = bad
        with pytest.raises(ValueError, match=f"{name} must be"):
            PGD(**bad)
    assert PGD(steps=5).size(1.0) == 0.5 and PGD(steps=5, step_size=0.1).size(1.0) == 0.1

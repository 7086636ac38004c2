"""Relaxations are sound for any multipliers, better than fixed lines, and hold in a million random tries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from fewfire._random import Stream
from fewfire._sphere import on_slice
from fewfire.networks import TwoLayer
from fewfire.robustness import Layers, attack, certify
from fewfire.robustness._bounds import lower_bounds, neuron_ranges
from fewfire.robustness._branch import BranchSearch, branch
from fewfire.robustness._certify import Pairs, RowBlock, least_linear
from fewfire.robustness._relaxation import Multipliers, first_multipliers, improve, neuron_minima, proved_bound
from fewfire.robustness._threats import L1Ball, L2Ball, LinfBall, SliceCap

SLACK = 1e-9
BALLS = {"l1": L1Ball, "l2": L2Ball, "linf": LinfBall}
KINDS = ["l1 box", "l2", "linf", "l2 box", "linf box", "slice"]


def random_network(rng, inputs, width, tau):
    activation = "relu" if tau == 0 else f"shifted_relu({tau})"
    bias, output = rng.normal(size=width) * 0.5, rng.normal(size=width)
    return TwoLayer(rng.normal(size=(width, inputs)), bias, output, rng.normal(), activation)


def threat_and_points(kind, rng, d, rho, rows=6):
    if kind == "slice":
        return SliceCap(rho), on_slice(rng.normal(size=(rows, d - 1)))
    points = rng.uniform(-1, 1, size=(rows, d))
    box = (-1.0, 1.0) if kind.endswith("box") else ()
    return BALLS[kind.split()[0]](rho, *box), points


def make(net, points, threat):
    """All rows' cells of one function."""
    table, undecided = lower_bounds(net, points, threat)
    rows = np.arange(len(points))
    zero = np.zeros(len(points))
    pairs = Pairs(rows, 0 * rows, zero, table.max(axis=0), np.array(["floor"] * len(rows), object), undecided, 0 * rows)
    block = RowBlock((net,), points, neuron_ranges(net, points, threat), threat)
    return block, block.cells(pairs, rows)


def tried(net, points, threat, seed, trials):
    """The least value at random points and on the rim."""
    least = net.scores(points)[:, 0]
    for trial in range(trials):
        inside = threat.draw(points, Stream(seed, str(trial)))
        rim = threat.project(points + 10 * (inside - points), points)
        least = np.minimum(least, np.minimum(net.scores(inside), net.scores(rim))[:, 0])
    return least


@settings(max_examples=30)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10**6),
    d=st.integers(2, 4),
    rho=st.sampled_from([1e-3, 0.05, 0.3, 1.0]),
    tau=st.sampled_from([0.0, 0.1, 0.8]),
    width=st.sampled_from([1, 3, 20]),
)
def test_any_multipliers_prove_a_bound(kind, seed, d, rho, tau, width):
    rng = np.random.default_rng(seed)
    net = Layers.of(random_network(rng, d, width, tau))
    threat, points = threat_and_points(kind, rng, d, rho, rows=3)
    _block, cells = make(net, points, threat)
    least = tried(net, points, threat, seed, 20)
    start = first_multipliers(cells)
    wild = Multipliers(
        start.slope + rng.normal(size=start.slope.shape),
        start.curvature + rng.normal(size=start.curvature.shape),
        start.box + rng.normal(size=start.box.shape),
        start.ball * np.exp(rng.normal(size=start.ball.shape)),
    )
    for multipliers in (start, wild):
        for inner in (None, least_linear(threat, points)):
            assert (proved_bound(cells, multipliers, inner) <= least + SLACK).all()
            assert (improve(cells, multipliers, 15, 0.1, np.inf, inner).bound <= least + SLACK).all()
    relaxed = improve(cells, start, 10, 0.1)
    lower, upper, _ = branch(
        cells, relaxed, least, points, threat, BranchSearch(5, 1e-3, False), least_linear(threat, points)
    )
    assert (lower <= least + SLACK).all() and (upper <= least).all()


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), tau=st.sampled_from([0.0, 0.3]))
def test_a_neurons_minimum_is_that_of_a_fine_grid(seed, tau):
    rng = np.random.default_rng(seed)
    net = Layers.of(random_network(rng, 2, 6, tau))
    points = rng.uniform(-1, 1, size=(1, 2))
    _, cells = make(net, points, L2Ball(0.7))
    slope, curvature = rng.normal(size=cells.output.shape), np.abs(rng.normal(size=cells.output.shape))
    for kappa in (curvature, 0.0 * curvature):
        least, where = neuron_minima(cells, slope, kappa)
        for r in range(cells.output.shape[1]):
            delta = np.linspace(cells.low[0, r], cells.high[0, r], 20_001)
            z = cells.centre[0, r] + delta
            value = cells.output[0, r] * np.where(z > tau, z, 0.0) - slope[0, r] * delta + kappa[0, r] * delta**2
            assert least[0, r] <= value.min() + SLACK
            assert least[0, r] >= value.min() - 2e-3
            assert cells.low[0, r] - SLACK <= where[0, r] <= cells.high[0, r] + SLACK


def test_a_matrix_that_is_not_positive_proves_nothing():
    rng = np.random.default_rng(0)
    net = Layers.of(random_network(rng, 3, 20, 0.0))
    _, cells = make(net, rng.uniform(-1, 1, size=(2, 3)), L2Ball(0.5))
    start = first_multipliers(cells)
    steep = Multipliers(start.slope, start.curvature + 20.0, start.box, start.ball)
    assert (proved_bound(cells, steep, None) == -np.inf).all()


def test_scores_share_their_neurons():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 3))
    hidden, bias = rng.normal(size=(5, 3)), rng.normal(size=5)
    apart = [random_network(rng, 3, 4, 0.2) for _ in range(3)]
    side_by_side = Layers.of(*apart)
    assert len(side_by_side.bias) == 12
    assert np.allclose(side_by_side.scores(X), np.column_stack([net(X) for net in apart]))
    # A neuron that raises both scores by the same hardly moves their difference.
    shared = Layers.of(TwoLayer(hidden, bias, np.ones((5, 2)), np.array([1.0, 0.0])))
    lead = shared.combination(np.array([1.0, -1.0]))
    assert len(lead.bias) == 5
    assert lower_bounds(lead, X, L2Ball(2.0))[0].max(axis=0) == pytest.approx(1.0)


def test_parabolas_prove_what_lines_cannot_on_digits():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    with pytest.warns(UserWarning, match="Maximum iterations"):
        model = MLPClassifier((30,), max_iter=40, random_state=0).fit(X[:1000], y[:1000])
    X, y = X[1000:1040], y[1000:1040]
    proofs = {way: certify(model, X, y, 0.5, bounds=(0, 1), method=way) for way in ("linear", "alpha", "sdp")}
    found = attack(model, X, y, 0.5, bounds=(0, 1))
    withstood = found.margin > 0
    for proof in proofs.values():
        assert (proof.margin <= found.margin + SLACK).all() and (proof.margin <= proof.upper).all()
        assert not (proof.robust & ~withstood).any()
    lines, chosen, curves = (int(proof.robust.sum()) for proof in proofs.values())
    assert lines <= chosen < curves
    assert curves >= withstood.sum() - 1
    assert proofs["sdp"].decided.mean() >= 0.95
    auto = certify(model, X, y, 0.5, bounds=(0, 1))
    assert (auto.margin == proofs["sdp"].margin).all()


def test_tight_margins_come_near_to_attacks(capsys):
    rng = np.random.default_rng(0)
    net = random_network(rng, 8, 30, 0.0)
    X = rng.normal(size=(10, 8))
    y = np.where(net(X) > 0, 1, -1)
    decided, tight = certify(net, X, y, 0.3), certify(net, X, y, 0.3, tight=True, progress=True)
    found = attack(net, X, y, 0.3)
    assert (tight.margin >= decided.margin - 1e-6).all()
    assert (tight.margin <= found.margin + SLACK).all() and np.median(found.margin - tight.margin) < 0.05
    assert capsys.readouterr().out == ""


def test_arguments_are_checked():
    net, X = random_network(np.random.default_rng(0), 2, 3, 0.0), np.zeros((1, 2))
    with pytest.raises(ValueError, match=r"method must be one of 'auto', 'linear', 'alpha', 'sdp', 'branch'; got 'lp'"):
        certify(net, X, [1], 0.1, method="lp")
    with pytest.raises(ValueError, match=r"nodes must be"):
        certify(net, X, [1], 0.1, nodes=0)
    with pytest.raises(ValueError, match=r"gap must be"):
        certify(net, X, [1], 0.1, gap=-1.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_never_broken_in_a_million_tries(kind):
    """2 · 10⁵ points for each kind of set, random ones and steps down from there: 1.2 · 10⁶ tries in all."""
    tries = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        d, tau, rho = int(rng.integers(2, 7)), float(rng.choice([0.0, 0.1, 0.5])), float(rng.choice([0.05, 0.3, 1.0]))
        network = random_network(rng, d, int(rng.integers(1, 40)), tau)
        net = Layers.of(network)
        threat, points = threat_and_points(kind, rng, d, rho, rows=4)
        _block, cells = make(net, points, threat)
        relaxed = improve(cells, first_multipliers(cells), 80, 0.2)
        bound, _, _ = branch(
            cells,
            relaxed,
            net.scores(points)[:, 0],
            points,
            threat,
            BranchSearch(20, 1e-3, False),
            least_linear(threat, points),
        )
        centres = np.repeat(points, 250, axis=0)
        for trial in range(4):
            # Random points, the rim beyond them, and steps down the slope from there: half of all tries are attacks.
            moved = threat.draw(centres, Stream(seed, str(trial)))
            if trial % 2:
                moved = threat.project(centres + 10 * (moved - centres), centres)
            for _ in range(2):
                least = net.scores(moved).reshape(4, 250).min(axis=1)
                assert (least >= bound - SLACK).all(), (kind, seed)
                tries += len(moved)
                fires = moved @ net.hidden.T + net.bias > tau
                moved = threat.project(threat.ascend(moved, -(fires * net.output) @ net.hidden, rho / 4), centres)
    assert tries >= 2 * 10**5

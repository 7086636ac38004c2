"""pareto: Lemmas 10 to 14, 18 and 19 against brute force on small cubes and against drawn samples."""

import itertools
import math

import numpy as np
import pytest

from fewfire._errors import InvalidArgument
from fewfire._random import Stream
from fewfire.networks.init._sparse import over_sparse_biases
from fewfire.papers import pareto


def cube(n):
    return np.array(list(itertools.product([1, -1], repeat=n)), dtype=np.float64)


# ── Lemmas 18 and 19 ──


@pytest.mark.parametrize(("n", "k", "s"), [(9, 4, 2), (8, 4, 2), (7, 2, 0), (10, 6, 4), (9, 6, 2)])
def test_gradients_of_one_neuron_by_brute_force(n, k, s):
    """Every overlap and every coordinate, on the whole cube; n − s even as well, where ties of Maj count as −1."""
    X = cube(n)
    parity = X[:, :k].prod(axis=1)
    for overlap in range(max(0, s + k - n), s + 1):
        ones = [*range(overlap), *range(k, k + s - overlap)]
        weights = np.full(n, 0.5 / (n - s))
        weights[ones] = 1.0
        fires = X @ weights > 1e-9  # a tie of all coordinates does not fire
        gradients = (fires * parity) @ X / len(X)
        for i in range(n):
            lemma = pareto.lemma_18 if i < k else pareto.lemma_19
            assert lemma(n, k, s, overlap, selected=i in ones) == pytest.approx(gradients[i], abs=1e-12)


def test_good_neurons_have_the_gap_of_lemma_20():
    gap = pareto.under_sparse_gap(15, 6, 2)
    assert pareto.lemma_18(15, 6, 2, 2, selected=False) == gap.relevant
    assert pareto.lemma_19(15, 6, 2, 2, selected=False) == gap.irrelevant
    assert pareto.lemma_18(15, 6, 2, 2, selected=True) == 0.0


# ── Lemmas 10 and 11 ──


def test_lemma_10_on_drawn_samples():
    """Gradients at a symmetric start, where the hinge has slope −y: 200 samples, at most δ + 4 errors are off by τ."""
    n, width, tau, delta = 6, 4, 0.25, 0.2
    samples = pareto.lemma_10(n, width, tau, delta)
    assert samples == math.ceil(4 * math.log(4 * 6 * 4 / 0.2) / 0.25**2)
    X = cube(n)
    weights = Stream(0, "w").signs((width, n)).astype(float)
    terms = (X[:, None, :] * (X @ weights.T > 0)[:, :, None] * X[:, :2].prod(axis=1)[:, None, None]).reshape(len(X), -1)
    exact = terms.mean(axis=0)
    draw = np.random.default_rng(1)
    off = sum(np.abs(terms[draw.integers(len(X), size=samples)].mean(axis=0) - exact).max() > tau for _ in range(200))
    assert off <= 200 * delta + 4 * math.sqrt(200 * delta)


def test_lemma_11_on_the_whole_cube():
    """k = 2, s = 9: features ψ of good neurons with both signs, a bias each, and the separator spread over them."""
    n, k, s, good = 11, 2, 9, 6
    bound = pareto.lemma_11(n, k, s, good)
    gap = pareto.over_sparse_gap(k, s)
    assert bound.rate == pytest.approx(1 / (2 * k * abs(gap.relevant)))
    assert bound.drift == pytest.approx(4 * k * good * n * bound.rate * bound.precision)
    X = cube(n)
    parity, inside = X[:, :k].prod(axis=1), X[:, :k].sum(axis=1)
    columns, weights = [np.ones(len(X))], [pareto.separator_coefficients(k)[0]]
    (bias,), (_, plus, minus) = over_sparse_biases(k), pareto.separator_coefficients(k)
    rest = list(itertools.combinations(range(k, n), s - k))[:good]
    for others in rest:  # good neurons: S, and s − k other coordinates
        far = bound.rate * gap.irrelevant * X[:, others].sum(axis=1)
        near = bound.rate * abs(gap.relevant) * inside
        columns += [np.maximum(near + far + bias, 0), np.maximum(-near + far + bias, 0)]
        weights += [plus / good, minus / good]
    features = np.column_stack(columns)
    assert np.linalg.norm(features, axis=1).max() <= bound.features
    assert np.linalg.norm(weights) <= bound.norm + 1e-9
    assert np.maximum(1 - parity * (features @ weights), 0).mean() <= bound.loss
    # Weights off by ητ in every entry move a feature by nητ at most, and the 2·r′ of this bias by √(2r′)·nητ.
    assert math.sqrt(2 * good) * n * bound.rate * bound.precision <= bound.drift


# ── Lemmas 12 to 14 ──


def test_lemmas_12_and_13_on_drawn_features():
    draw = np.random.default_rng(0)
    table, labels = draw.normal(size=(400, 5)), draw.choice([-1.0, 1.0], size=400)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    moved = table + 0.05 * draw.normal(size=table.shape) / 5
    distance = float(np.linalg.norm(moved - table, axis=1).max())
    weights = draw.normal(size=(300, 5))
    weights *= 3 / np.linalg.norm(weights, axis=1, keepdims=True)

    def loss(features, chosen=slice(None)):
        return np.maximum(1 - labels[chosen, None] * (features[chosen] @ weights.T), 0).mean(axis=0)

    assert np.abs(loss(table) - loss(moved)).max() <= 3.0 * distance  # Lemma 12: ‖w‖·‖ψ − ψ′‖
    bound, off = pareto.lemma_13(3.0, 1.0, 100, 0.1, distance), 0
    for _ in range(200):
        chosen = draw.integers(400, size=100)
        off += (loss(moved) - loss(moved, chosen)).max() > bound
    assert off <= 20 + 4 * math.sqrt(18)


def test_lemma_13_is_below_what_is_printed_up_to_its_delta():
    def printed(delta):
        return (2 * 3.0 * 2.0 + 1) * math.sqrt(2 * math.log(2 / delta) / 50)

    assert pareto.lemma_13(3.0, 2.0, 50, 0.27) <= printed(0.27)
    assert pareto.lemma_13(3.0, 2.0, 50, 0.4) > printed(0.4)


def test_lemma_14_adds_up_to_eleven_epsilon():
    """Term by term at the m and T that are asked for; printed are 7ε, and the printed terms are 7.41 ε."""
    B, features, epsilon, delta = 5.0, 4.0, 0.1, 0.01
    need = pareto.lemma_14(B, features, epsilon, delta)
    size, root = B * features, math.sqrt(2 * math.log(2 / delta) / need.samples)
    descent = 100 * B**2 * (features + epsilon / B) ** 2 * (1 + math.log(need.steps)) / (epsilon * need.steps)
    objective = 2 * epsilon + size * root + need.weight_decay * B**2 / 2 + descent
    assert objective <= 4 * epsilon
    norm = math.sqrt(2 * objective / need.weight_decay)
    assert B < norm <= math.sqrt(8) * B  # so Lemma 13 has to be used with this norm
    spread = (4 * math.sqrt(2) * size + 1) * root
    assert objective + spread + 2 * norm * need.drift <= need.loss <= 11.1 * epsilon
    assert 4 * epsilon + spread + 2 * B * need.drift > 7 * epsilon  # as printed
    assert objective + spread + 2 * norm * need.drift > 10 * epsilon


def test_lemma_14_claim_1_the_hinge_loss_is_above_the_output():
    """|ℓ(h, y)| ≤ |h| is printed: at h = 0 the loss is 1. With 1 + B‖ψ‖ Claim 2 holds where B‖ψ‖ ≥ 1."""
    h = np.linspace(-3, 3, 61)
    hinge = np.maximum(1 - h, 0)
    assert (hinge > np.abs(h)).any() and (hinge <= 1 + np.abs(h)).all()
    for size, holds in (
        (0.5, False),
        (1.0, True),
        (20.0, True),
    ):  # Hoeffding on [0, 1 + size], t = size·√(2 log(2/δ)/m)
        assert (math.exp(-4 * math.log(2 / 0.01) * (size / (1 + size)) ** 2) <= 0.01 / 2 * (1 + 1e-9)) == holds


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: pareto.lemma_10(5, 5, 0.0), "precision must be a finite number in (0, inf); got 0.0"),
        (lambda: pareto.lemma_11(20, 2, 7, 3.0), "s must be an integer of at least 9; got 7. Remedy: pareto, Lemma 8"),
        (
            lambda: pareto.lemma_14(0.5, 1.0, 0.1),
            "norm·features must be at least 1 (pareto, Lemma 14, Claim 2); got 0.5",
        ),
        (lambda: pareto.lemma_14(5.0, 1.0, 0.1, 0.3), "delta must be a finite number in (0, 0.27]; got 0.3"),
        (
            lambda: pareto.lemma_18(9, 4, 3, 1, selected=True),
            "k and s must be even (pareto, Lemmas 18 and 19); got (4, 3)",
        ),
        (
            lambda: pareto.lemma_18(9, 4, 2, 3, selected=True),
            "overlap must be an integer of at least 0 and at most 2; got 3",
        ),
        (
            lambda: pareto.lemma_18(9, 4, 2, 0, selected=True),
            "selected must be False where no coordinate of the parity",
        ),
        (lambda: pareto.lemma_19(9, 4, 2, 2, selected=True), "selected must be False where every one of the neuron"),
        (lambda: pareto.lemma_19(5, 4, 2, 1, selected=False), "selected must be True where every other coordinate"),
    ],
)
def test_bad_arguments_are_refused(call, text):
    with pytest.raises(InvalidArgument) as raised:
        call()
    assert text in str(raised.value)

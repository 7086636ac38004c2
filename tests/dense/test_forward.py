"""A network in one flat vector: outputs, gradients, and the C++ kernels against the NumPy code."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire._dense import kernels as reference
from fewfire._dense.losses import TABLE_LOSSES
from fewfire._dense.network import Backprop, Layout, PeriodicEmbedding, evaluate
from fewfire._extension import load

LAYOUTS = [
    Layout(3, (5,), 1, True),
    Layout(4, (6, 5), 3, True),
    Layout(3, (4, 3, 5), 2, False),
    Layout(1, (1,), 1, True),
    Layout(3, (5, 4), 1, True, PeriodicEmbedding(6)),
    Layout(2, (5,), 3, False, PeriodicEmbedding(9)),
]


def random_case(layout, loss, rows=7, seed=0):
    rng = np.random.default_rng(seed)
    X, flat = rng.normal(size=(rows, layout.inputs)), rng.normal(size=layout.size)
    target = rng.normal(size=(rows, layout.outputs)) if loss == "squared" else rng.random((rows, layout.outputs))
    if loss == "cross_entropy":
        target /= target.sum(axis=1, keepdims=True)
    return X, flat, target, rng.random(rows)


def plain_outputs(layout, flat, X):
    """The network written out, with nothing shared with the code under test but the order of the parameters."""
    n, frequencies = layout.inputs, layout.embedding.frequencies if layout.embedding else 0
    sizes, start, parts = [2 * n if frequencies else n, *layout.hidden, layout.outputs], 0, []
    shapes = [(sizes[i + 1], sizes[i]) for i in range(len(sizes) - 1)]
    shapes += [(layout.outputs, sizes[0])] if layout.skip else []
    shapes += [(n, frequencies)] if frequencies else []
    others = [*[(width,) for width in layout.hidden], (layout.outputs,)]
    for shape in [*shapes, *others, *([(n, frequencies), (n, frequencies), (n,)] if frequencies else [])]:
        count = int(np.prod(shape))
        parts.append(flat[start : start + count].reshape(shape))
        start += count
    assert start == len(flat)
    if frequencies:
        frequency, phase, bias = parts[-3:]
        angles = 2 * np.pi * frequency * X[:, :, None] + phase
        X = np.hstack([X, (parts[len(shapes) - 1] * np.cos(angles)).sum(axis=2) + bias])
    depth, hidden = len(layout.hidden), X
    biases = parts[len(shapes) :]
    for layer in range(depth):
        hidden = np.maximum(hidden @ parts[layer].T + biases[layer], 0)
    return hidden @ parts[depth].T + biases[depth] + (X @ parts[depth + 1].T if layout.skip else 0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_outputs_are_those_of_the_network_written_out(layout):
    X, flat, _, _ = random_case(layout, "squared")
    np.testing.assert_allclose(Backprop(layout, flat, 7).values(X), plain_outputs(layout, flat, X), rtol=1e-12)
    np.testing.assert_allclose(evaluate(layout, flat, X), plain_outputs(layout, flat, X), rtol=1e-12)


@pytest.mark.parametrize(
    ("layout", "loss"),
    [(layout, loss) for layout in LAYOUTS for loss in TABLE_LOSSES if (loss == "logistic") <= (layout.outputs == 1)],
)
def test_gradients_are_finite_differences(layout, loss):
    X, flat, target, weight = random_case(layout, loss)

    def mean_loss(parameters):
        return float(weight @ TABLE_LOSSES[loss](plain_outputs(layout, parameters, X), target)[0]) / len(X)

    backprop = Backprop(layout, flat, 10)
    _, errors = TABLE_LOSSES[loss](backprop.values(X), target)
    gradient = backprop.differentiate(X, errors * (weight / len(X))[:, None])
    step = 1e-6
    differences = [
        (mean_loss(flat + step * unit) - mean_loss(flat - step * unit)) / (2 * step) for unit in np.eye(layout.size)
    ]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=5e-8)


@pytest.mark.parametrize("frequencies", [0, 16])
def test_float32_gradients_are_those_of_float64(frequencies):
    layout = Layout(9, (40, 20), 1, True, PeriodicEmbedding(frequencies) if frequencies else None)
    X, flat, target, _ = random_case(layout, "logistic", rows=50)
    gradients = []
    for dtype in (np.float64, np.float32):
        backprop = Backprop(layout, flat.astype(dtype), 50)
        _, errors = TABLE_LOSSES["logistic"](backprop.values(X.astype(dtype)), target.astype(dtype))
        gradients.append(backprop.differentiate(X.astype(dtype), errors))
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-3, atol=1e-3 * np.abs(gradients[0]).max())


@settings(max_examples=25)
@given(inputs=st.integers(1, 12), few=st.integers(1, 12), seed=st.integers(0, 2**32))
def test_an_embedding_at_few_places_is_what_forward_gives_there(inputs, few, seed):
    rng = np.random.default_rng(seed)
    X, places = rng.normal(size=(7, inputs)), rng.integers(0, 2 * inputs, (7, few))
    embedding = PeriodicEmbedding(3)
    shapes = [*embedding.matrices(inputs), *embedding.vectors(inputs)]
    parameters = [rng.normal(size=shape) for shape in shapes]
    whole = embedding.layer(parameters, 7, gradient=False, by=reference).forward(X)
    expected = np.take_along_axis(whole, places, axis=1)
    np.testing.assert_allclose(embedding.values_at(parameters, X, places), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(load() is None, reason="needs the C++ part")
@settings(max_examples=25)
@given(rows=st.integers(1, 9), width=st.integers(1, 70), seed=st.integers(0, 2**32))
def test_kernels_in_cpp_are_those_of_numpy(rows, width, seed):
    rng = np.random.default_rng(seed)

    def draw32(*shape):
        return rng.normal(size=shape).astype(np.float32)

    results = []
    hidden, bias, errors, output, back = (
        draw32(rows, width),
        draw32(width),
        draw32(rows),
        draw32(width),
        draw32(rows, width),
    )
    gradient, square = draw32(width), draw32(width) ** 2
    for kernels in (load(), reference):
        active, mean = hidden.copy(), bias.copy()
        kernels.bias_relu(active, bias)
        masked, sums = back.copy(), np.empty(width, np.float32)
        kernels.relu_backward(masked, active, sums)
        outer, outer_sums = np.empty_like(back), np.empty_like(sums)
        kernels.outer_relu_backward(errors, output, active, outer, outer_sums)
        parameters, squares = output.copy(), square.copy()
        kernels.adamw_step(parameters, gradient, mean, squares, 0.1, 0.01, 0.9, 0.99, 1e-8)
        results.append((active, masked, sums, outer, outer_sums, parameters, mean, squares))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(load() is None, reason="needs the C++ part")
@settings(max_examples=25)
@given(rows=st.integers(1, 9), inputs=st.integers(1, 7), frequencies=st.integers(1, 20), seed=st.integers(0, 2**32))
def test_periodic_kernels_are_those_of_numpy(rows, inputs, frequencies, seed):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(rows, inputs)) * rng.choice([1.0, 100.0])).astype(np.float32)
    mix, frequency, phase = (rng.normal(size=(inputs, frequencies)).astype(np.float32) for _ in range(3))
    bias, back = rng.normal(size=inputs).astype(np.float32), rng.normal(size=(rows, inputs)).astype(np.float32)
    results = []
    for kernels, dtype in ((load(), np.float32), (reference, np.float64)):
        given_, slopes = [part.astype(dtype) for part in (x, mix, frequency, phase, bias)], back.astype(dtype)
        fed = np.empty((rows, 2 * inputs), dtype)
        cosines, sines = (np.empty((rows, inputs * frequencies), dtype) for _ in range(2))
        kernels.periodic_values(*given_, fed, cosines, sines)
        gradients = [np.empty(part.shape, dtype) for part in given_[1:]]
        kernels.periodic_gradients(given_[0], slopes, cosines, sines, given_[1], *gradients)
        results.append((fed, cosines, sines, *gradients))
    # An angle of u turns is known to u · 2⁻²⁴ in float32, and a frequency's gradient carries another factor x.
    turns = 1 + np.abs(x).max() * np.abs(frequency).max()
    scale = turns * (1 + np.abs(x).max()) * rows * (1 + np.abs(mix).max()) * (1 + np.abs(back).max())
    for ours, theirs in zip(*results, strict=True):
        assert np.abs(ours - theirs).max() <= 1e-6 * frequencies * scale
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-6 * turns)


@pytest.mark.parametrize("isa", load().available_isas() if load() else [])
def test_predictions_in_cpp_are_those_of_numpy(isa):
    load().set_isa(isa)
    rng = np.random.default_rng(0)
    for inputs, frequencies in ((1, 1), (3, 7), (5, 16), (2, 19)):
        x, fed = rng.normal(size=(9, inputs)), [np.empty((9, 2 * inputs)) for _ in range(2)]
        parameters = [*rng.normal(size=(3, inputs, frequencies)), rng.normal(size=inputs)]
        for kernels, out in zip((load(), reference), fed, strict=True):
            kernels.periodic_outputs(x, *parameters, out)
        np.testing.assert_allclose(*fed, rtol=0, atol=1e-13)
        hidden = [x.copy(), x.copy()]
        for kernels, out in zip((load(), reference), hidden, strict=True):
            kernels.bias_relu(out, parameters[-1])
        assert np.array_equal(*hidden)


@pytest.mark.skipif(load() is None, reason="needs the C++ part")
def test_cosines_of_huge_inputs_stay_finite():
    cosines, sines, fed = (np.empty((3, 1), np.float32), np.empty((3, 1), np.float32), np.empty((3, 2), np.float32))
    one = np.ones((1, 1), np.float32)
    load().periodic_values(np.float32([[1e9], [-3e37], [3e38]]), one, one, one, one[0], fed, cosines, sines)
    assert np.abs(cosines).max() <= 1.001 and np.isfinite(fed).all()
    one, fed = np.ones((1, 1)), np.empty((3, 2))
    load().periodic_outputs(np.array([[1e16], [-3e37], [1e300]]), one, one, one, one[0], fed)
    assert np.abs(fed[:, 1]).max() <= 2.001


@pytest.mark.skipif(load() is None, reason="needs the C++ part")
def test_kernels_refuse_arrays_that_do_not_fit():
    with pytest.raises(ValueError, match="bias must have one entry per neuron"):
        load().bias_relu(np.zeros((2, 3), np.float32), np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="must have one length"):
        load().adamw_step(*(np.zeros(n, np.float32) for n in (3, 3, 2, 3)), 0.1, 0.0, 0.9, 0.9, 1e-8)
    x, mix = np.zeros((2, 3), np.float32), np.zeros((3, 4), np.float32)
    with pytest.raises(ValueError, match="one row per input and one column per frequency"):
        load().periodic_values(x, mix, mix, mix[:2], mix[:, 0].copy(), x, x, x)
    with pytest.raises(ValueError, match="fed must have two columns per input"):
        load().periodic_values(x, mix, mix, mix, mix[:, 0].copy(), x, np.zeros((2, 12), np.float32), x)

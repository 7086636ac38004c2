"""Where networks on tables start: sparse rows, and kinks through training rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire._dense.network import Layout, PeriodicEmbedding, Rows, evaluate
from fewfire._random import Stream
from fewfire.tabular._training import draw_start, first_layer


@settings(max_examples=30)
@given(inputs=st.integers(1, 30), width=st.integers(1, 50), sparsity=st.integers(1, 40), seed=st.integers(0, 2**32))
def test_every_neuron_starts_with_exactly_s_inputs(inputs, width, sparsity, seed):
    weights = first_layer(width, inputs, sparsity, Stream(seed, "t"))
    few = min(sparsity, inputs)
    assert (np.count_nonzero(weights, axis=1) == few).all()
    np.testing.assert_allclose((weights**2).sum(axis=1), 1.0)


def test_a_dense_start_has_no_zeros():
    assert np.count_nonzero(first_layer(50, 20, None, Stream(0, "t"))) == 1000


def test_kinks_pass_through_training_rows_and_outputs_start_at_the_offset():
    rng = np.random.default_rng(0)
    layout, X = Layout(4, (30, 5), 2, True), rng.normal(size=(6, 4)).astype(np.float32)
    weight = np.array([0, 1, 1, 2, 0, 1], np.float32)
    rows = Rows(X, np.zeros((6, 2), np.float32), weight)
    flat = draw_start(layout, 2, rows, np.array([0.5, -1.0]), Stream(3, "t"))
    parts = layout.unpack(flat)
    scores = X @ parts.hidden[0].T + parts.biases[0]
    nearest = np.abs(scores).argmin(axis=0)
    assert np.abs(scores).min(axis=0).max() < 1e-6
    assert set(nearest) <= {1, 2, 3, 5}  # rows of weight 0 are never drawn
    assert np.array_equal(evaluate(layout, flat, X), np.tile(np.float32([0.5, -1.0]), (6, 1)))


@pytest.mark.parametrize("sparsity", [1, 2, None])
def test_kinks_of_embedded_inputs_pass_through_training_rows(sparsity):
    rng = np.random.default_rng(1)
    layout, X = Layout(40, (30,), 1, False, PeriodicEmbedding(5)), rng.normal(size=(6, 40)).astype(np.float32)
    rows = Rows(X, np.zeros((6, 1), np.float32), np.ones(6, np.float32))
    parts = layout.unpack(draw_start(layout, sparsity, rows, np.zeros(1), Stream(3, "t")))
    fed = PeriodicEmbedding(5).layer(parts.embedding, 6).forward(X)
    assert np.abs(fed @ parts.hidden[0].T + parts.biases[0]).min(axis=0).max() < 1e-5

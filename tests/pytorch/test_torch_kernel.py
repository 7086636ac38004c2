"""The sparse block on arrays is the dense block, within its stated bound of a float64 oracle and to the bit of itself."""

import threading
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewfire import _extension
from fewfire.torch import _kernel
from fewfire.torch._kernel import ACTIVATIONS, SparseBlock, SparseDown, SparseUp

UNIT = 2.0**-24
EVERYTHING = -3e38  # a threshold that every score is above
CORE = _extension.load()
ISAS = CORE.available_isas() if CORE is not None else []


def residual_codes(used):
    """Blocks built inside have them, or not, whatever their inputs."""
    return patch.object(_kernel, "_RESIDUAL_FROM", 0 if used else 1 << 62)


def roundings(count: int) -> float:
    return count * UNIT / (1 - count * UNIT)


def score_error(x, weight, bias):
    """z in float64 and how far the float32 sum may lie from it (docs/sparse-inference-kernel.md)."""
    wide, rows, b = weight.astype(float), x.astype(float), 0.0 if bias is None else bias.astype(float)
    size = np.abs(rows) @ np.abs(wide).T + np.abs(b)
    inputs = x.shape[1]
    # The reference implementation sums in the order of BLAS, which is only known to have a rounding per coordinate at most.
    depth = inputs + 2 if CORE is None else inputs // 64 + 8
    return rows @ wide.T + b, roundings(depth) * size + (inputs + 2) * 2.0**-149


def activated(z, error, activation, threshold):
    """h in float64 and its error; a score within its error of the threshold may count or not."""
    given = z * z if activation == "relu2" else z - threshold if activation == "shifted" else z
    h = np.where(z > threshold, given, 0.0)
    spread = (2 * np.abs(z) + error) * error if activation == "relu2" else error
    unsure = np.abs(z - threshold) <= error
    return h, np.where(unsure, np.abs(given) + spread, np.where(h != 0, spread, 0)) + 2 * UNIT * np.abs(h) + 2.0**-148


def expected(block, x):
    """The block's output in float64, and the stated bound; infinite for rows in which float32 may overflow."""
    kind, threshold = block.activation, block.threshold
    z, z_error = score_error(x, block.up, block.up_bias)
    largest = np.abs(z).max(axis=1, keepdims=True)
    if block.gated is None:
        h, error = activated(z, z_error, kind, threshold)
    else:
        gate, gate_error = activated(*score_error(x, block.gate, block.gate_bias), kind, threshold)
        value, value_error = (z, z_error) if block.gated == "reglu" else activated(z, z_error, kind, threshold)
        h = gate * value
        largest = np.maximum(largest, gate.max(axis=1, keepdims=True))
        error = (
            (np.abs(gate) + gate_error) * value_error + gate_error * np.abs(value) + 2 * UNIT * np.abs(h) + 2.0**-148
        )
    down = block.down_t.astype(float)
    bias = 0.0 if block.down_bias is None else block.down_bias.astype(float)
    size = (np.abs(h) + error) @ np.abs(down) + np.abs(bias)
    bound = error @ np.abs(down) + roundings(block.width + 40) * size + block.width * 2.0**-149
    largest = np.maximum(largest, np.abs(h).max(axis=1, keepdims=True))
    return h @ down + bias, np.where((largest < 1e37) & (size < 1e37), bound, np.inf)


@st.composite
def layers(draw):
    """Weights, biases and inputs of all kinds: ordinary, tied, dead, alive, tiny, huge, uneven."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    inputs, width = (
        draw(st.sampled_from([1, 3, 16, 64, 65, 127, 200, 300])),
        draw(st.sampled_from([1, 5, 64, 130, 700])),
    )
    batch, outputs = draw(st.integers(1, 64)), draw(st.sampled_from([1, 7, 128, 150]))
    kind = draw(st.sampled_from(["normal", "ties", "dead", "alive", "tiny", "huge", "uneven", "outlier"]))

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    up, gate, down, x = normal(width, inputs), normal(width, inputs), normal(width, outputs), normal(batch, inputs)
    bias = normal(width) - np.float32(np.sqrt(inputs))
    if kind == "ties":
        up, gate, bias, x = np.rint(up), np.rint(gate), np.rint(bias), np.rint(x)
    elif kind in ("dead", "alive"):
        bias = np.full(width, -1e3 if kind == "dead" else 1e3, dtype=np.float32) * np.float32(np.sqrt(inputs))
    elif kind == "tiny":
        up, gate, bias = (array * np.float32(1e-39) for array in (up, gate, bias))
    elif kind == "huge":
        up, gate, bias = (array * np.float32(1e12) for array in (up, gate, bias))
        x *= np.float32(10.0) ** rng.integers(-20, 5, (batch, 1)).astype(np.float32)
    elif kind == "uneven":
        up *= np.float32(10.0) ** rng.integers(-30, 5, (width, 1)).astype(np.float32)
        gate[rng.random(gate.shape) < 0.9] = 0
    elif kind == "outlier":
        x[:, 0] *= 1000
        up[:, -1] *= 300
    return up, gate, bias, down, x


def block_of(layer, activation, threshold, gated, residual, biased=True):
    up, gate, bias, down, x = layer
    screened = {} if gated is None else {"gate": gate, "gate_bias": bias if biased else None, "gated": gated}
    up_bias = bias if biased and gated is None else None
    threshold = threshold if activation in ("shifted", "threshold") else 0.0
    offset = np.linspace(-1, 1, down.shape[1], dtype=np.float32) if biased else None
    options = {"activation": activation, "threshold": threshold}
    with residual_codes(residual):
        return SparseBlock(up, up_bias, down, offset, **screened, **options), x


blocks = st.builds(
    block_of,
    layers(),
    st.sampled_from(ACTIVATIONS),
    st.sampled_from([0.0, 0.5, -0.25, 3.0, 1e-40]),
    st.sampled_from([None, "reglu", "drelu"]),
    st.booleans(),
    st.booleans(),
)


@given(blocks)
@settings(max_examples=150)
def test_output_is_within_the_stated_bound_of_float64(drawn):
    block, x = drawn
    y, bound = expected(block, x)
    with np.errstate(invalid="ignore"):
        assert ((np.abs(block(x) - y) <= bound) | np.isinf(bound)).all()


@given(blocks)
@settings(max_examples=40)
def test_the_reference_without_cpp_gives_the_same_block(drawn):
    block, x = drawn
    with _extension.without_extension():
        same = SparseBlock(
            *(block.up, block.up_bias, block.down_t, block.down_bias),
            gate=block.gate,
            gate_bias=block.gate_bias,
            activation=block.activation,
            threshold=block.threshold,
            gated=block.gated,
        )
        theirs, work = same.counted(x)
    assert same.extra_bytes == 0 and work.screened == x.shape[0] * block.width
    y, bound = expected(block, x)
    inputs = block.inputs
    looser = bound * (inputs + 2) / (inputs // 64 + 8) + bound  # BLAS may round once per coordinate
    with np.errstate(invalid="ignore"):
        assert ((np.abs(theirs - y) <= looser) | np.isinf(bound)).all()


@given(layers(), st.sampled_from([0.0, 0.5, -0.25]), st.booleans())
@settings(max_examples=80)
def test_exactly_the_neurons_whose_score_is_above_are_found(layer, threshold, residual):
    up, _, bias, _, x = layer
    with residual_codes(residual):
        every = SparseUp(up, bias, activation="threshold", threshold=EVERYTHING)(x)
        layer = SparseUp(up, bias, activation="threshold", threshold=threshold)
    where, which = np.nonzero(every > np.float32(threshold))
    for isa in ISAS or [None]:
        if CORE is not None:
            CORE.set_isa(isa)
        indptr, indices, values = layer.firing(x)
        if CORE is None:
            continue
        np.testing.assert_array_equal(indices, which)
        np.testing.assert_array_equal(values, every[where, which])
        np.testing.assert_array_equal(np.repeat(np.arange(len(x)), np.diff(indptr)), where)
    z, error = score_error(x, up, bias)
    found = np.zeros(z.shape, dtype=bool)
    found[np.repeat(np.arange(len(x)), np.diff(indptr)), indices] = True
    assert found[z > threshold + error].all() and not found[z < threshold - error].any()


def coded(weight, levels):
    """What so many integer levels either way keep of each row."""
    scale = (np.abs(weight).max(axis=1, keepdims=True) / levels).astype(np.float32).astype(float)
    return scale * np.trunc(weight / scale + np.copysign(0.5, weight))


@pytest.mark.parametrize("residual", [False, True])
def test_inputs_along_what_the_codes_lose_hide_no_neuron(core, residual):
    """The worst case of the bound, met with equality: a score just above 0 whose codes see ‖w − ŵ‖·‖x‖ less."""
    rng = np.random.default_rng(7)
    for inputs in (3, 130, 1024):
        weight = rng.standard_normal((64, inputs)).astype(np.float32)
        lost = weight - coded(weight.astype(float), 127)
        lost = lost - coded(lost, 7) if residual else lost
        x = (lost / np.linalg.norm(lost, axis=1, keepdims=True)).astype(np.float32)
        z = np.einsum("ij,ij->i", weight.astype(float), x.astype(float))
        bias = (3e-6 * np.linalg.norm(weight, axis=1) - z).astype(np.float32)
        with residual_codes(residual):
            layer = SparseUp(weight, bias)
        for isa in ISAS:
            core.set_isa(isa)
            assert (np.diagonal(layer(x)) > 0).all()
            assert all(i in layer.firing(row[None])[1] for i, row in enumerate(x))


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("gated", [None, "reglu", "drelu"])
def test_every_instruction_set_thread_count_and_batch_gives_the_same_bits(core, gated, residual):
    rng = np.random.default_rng(3)
    for inputs, width, outputs in ((256, 1100, 130), (77, 640, 200)):
        up, gate = (rng.standard_normal((width, inputs)).astype(np.float32) for _ in range(2))
        down, x = rng.standard_normal((width, outputs)).astype(np.float32), rng.standard_normal((9, inputs))
        bias, x = np.full(width, -1.5 * np.sqrt(inputs), dtype=np.float32), x.astype(np.float32)
        screened = {} if gated is None else {"gate": gate, "gate_bias": bias, "gated": gated}
        with residual_codes(residual):
            block = SparseBlock(up, bias, down, None, **screened)
        results = []
        for isa in ISAS:
            core.set_isa(isa)
            results += [block(x), block(x, threads=3), np.concatenate([block(row[None]) for row in x])]
            counted = [block.counted(x, threads=threads)[1] for threads in (1, 4)]
            assert counted[0] == counted[1]
        for result in results[1:]:
            np.testing.assert_array_equal(result, results[0])


def test_few_neurons_are_scored_by_the_counters(core):
    rng = np.random.default_rng(0)
    inputs, width = 1024, 1024
    up = (rng.standard_normal((width, inputs)) / 32).astype(np.float32)
    bias, down = np.full(width, -1.88, dtype=np.float32), rng.standard_normal((width, 256)).astype(np.float32)
    x = rng.standard_normal((1, inputs)).astype(np.float32)
    with residual_codes(False):
        one = SparseBlock(up, bias, down, None)
    with residual_codes(True):
        two = SparseBlock(up, bias, down, None)
    (y, first), (again, second) = one.counted(x), two.counted(x)
    np.testing.assert_array_equal(y, again)
    assert first.screened == second.screened == width
    assert first.firing == second.firing == np.count_nonzero(one.up @ x[0] + bias > 0)
    assert first.open == first.scored == second.open < 0.09 * width
    assert second.firing <= second.scored < first.scored and second.scored < 1.2 * second.firing
    assert first.multiply_adds == first.scored * inputs + first.firing * 256
    assert first.bytes == width * inputs + 4 * first.multiply_adds
    assert second.bytes == width * inputs + second.open * inputs // 2 + 4 * second.multiply_adds
    assert width * inputs <= one.extra_bytes < 1.03 * width * inputs
    assert 1.5 * width * inputs <= two.extra_bytes < 1.54 * width * inputs


def test_layers_by_themselves_make_the_block():
    rng = np.random.default_rng(1)
    up, down = (rng.standard_normal((300, 48)).astype(np.float32) for _ in range(2))
    bias, offset = (rng.standard_normal(size).astype(np.float32) - 2 for size in (300, 48))
    x = rng.standard_normal((5, 96)).astype(np.float32)[:, ::2]
    z = SparseUp(up, bias)(x)
    assert z.shape == (5, 300) and (z >= 0).all()
    np.testing.assert_array_equal(SparseDown(down, offset)(np.maximum(z, 0)), SparseBlock(up, bias, down, offset)(x))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("threshold", [0.0, 0.7, -0.7])
def test_what_does_not_fire_gets_a_score_that_the_activation_maps_to_zero(activation, threshold):
    if threshold and activation in ("relu", "relu2"):
        return
    rng = np.random.default_rng(2)
    up, x = (rng.standard_normal((count, 20)).astype(np.float32) for count in (90, 4))
    z = SparseUp(up, None, activation=activation, threshold=threshold)(x)
    resting = ~(x @ up.T > threshold)
    tau = np.float32(threshold)
    given = np.maximum(z, 0) ** 2 if activation == "relu2" else np.maximum(z - tau, 0)
    given = np.where(z > tau, z, 0) if activation in ("relu", "threshold") else given
    assert resting.any() and (given[resting] == 0).all() and (given[~resting] != 0).all()


def test_numbers_that_are_not_finite_go_through_as_in_a_dense_block():
    rng = np.random.default_rng(4)
    up, down = (rng.standard_normal((200, 32)).astype(np.float32) for _ in range(2))
    bias, x = np.full(200, -5.0, dtype=np.float32), rng.standard_normal((6, 32)).astype(np.float32)
    plain = SparseBlock(up, bias, down, None)(x)

    def dense(up, down, x):
        with np.errstate(all="ignore"):
            return np.maximum(x @ up.T + bias, 0) @ down

    x[1, 3], x[2, 5], x[4, 0] = np.nan, np.inf, -np.inf
    ours, theirs = SparseBlock(up, bias, down, None)(x), dense(up, down, x)
    np.testing.assert_array_equal(np.isfinite(ours), np.isfinite(theirs))
    np.testing.assert_array_equal(ours[[0, 3, 5]], plain[[0, 3, 5]])
    x = np.nan_to_num(x, nan=0.0, posinf=1.0, neginf=-1.0)
    for where, value in (((7, 2), np.nan), ((7, 2), np.inf), ((7, 2), -np.inf)):
        for broken in (up, down):
            before, broken[where] = broken[where], value
            ours, theirs = SparseBlock(up, bias, down, None)(x), dense(up, down, x)
            np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
            if broken is down:
                h = np.maximum(x @ up.T + bias, 0)
                np.testing.assert_array_equal(np.isnan(SparseDown(down, None)(h)), np.isnan(theirs))
            broken[where] = before


def test_sums_that_overflow_are_left_to_float32():
    up, x = np.full((70, 40), 3e37, dtype=np.float32), np.full((2, 40), 1.0, dtype=np.float32)
    x[1] = 1e-3
    y = SparseBlock(up, None, np.ones((70, 3), dtype=np.float32), None)(x)
    assert np.isinf(y[0]).all()
    np.testing.assert_allclose(y[1], 70 * 40 * 3e34, rtol=1e-5)


def test_no_rows_give_no_rows():
    block = SparseBlock(*(np.ones((5, 4), dtype=np.float32), None) * 2)
    assert block(np.empty((0, 4), dtype=np.float32)).shape == (0, 4)
    indptr, indices, values = SparseUp(np.ones((5, 4), dtype=np.float32), None).firing(
        np.empty((0, 4), dtype=np.float32)
    )
    assert indptr.tolist() == [0] and len(indices) == len(values) == 0


def test_more_inputs_than_codes_can_sum_are_scored_outright():
    rng = np.random.default_rng(5)
    up, x = (rng.standard_normal((3, 40_000)).astype(np.float32) for _ in range(2))
    block = SparseBlock(up, None, np.eye(3, dtype=np.float32), None)
    y, bound = expected(block, x)
    assert (np.abs(block(x) - y) <= bound).all()


def test_weights_are_kept_by_reference():
    up, down = np.ones((2, 3), dtype=np.float32), np.ones((2, 4), dtype=np.float32)
    block, layer = SparseBlock(up, np.zeros(2, dtype=np.float32), down, None), SparseUp(up, None)
    assert block.up is up and block.down_t is down and layer.weight is up
    assert block(np.ones((1, 3), dtype=np.float32))[0, 0] == 6


def test_calls_from_many_threads_do_not_meet():
    rng = np.random.default_rng(6)
    up, down = (rng.standard_normal((512, 64)).astype(np.float32) for _ in range(2))
    block = SparseBlock(up, np.full(512, -8, dtype=np.float32), down, None)
    inputs = [rng.standard_normal((3, 64)).astype(np.float32) for _ in range(8)]
    alone, together = [block(x) for x in inputs], [None] * 8

    def work(i):
        for _ in range(20):
            together[i] = block(inputs[i], threads=2)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


TABLE = np.ones((2, 3), dtype=np.float32)


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize(
    ("error", "call"),
    [
        (TypeError, lambda: SparseUp(TABLE.astype(np.float64), None)),
        (TypeError, lambda: SparseDown(TABLE.T, None)(np.ones((1, 3), dtype=np.float32))),
        (ValueError, lambda: SparseUp(TABLE, TABLE[0])),
        (ValueError, lambda: SparseBlock(TABLE, None, TABLE.T.copy(), None)),
        (ValueError, lambda: SparseBlock(TABLE, None, TABLE, None, gate=TABLE[:, :2].copy(), gated="reglu")),
        (ValueError, lambda: SparseBlock(TABLE, None, TABLE, None, gate=TABLE)),
        (ValueError, lambda: SparseUp(TABLE, None)(TABLE[:, :2])),
        (ValueError, lambda: SparseDown(TABLE, None)(TABLE)),
        (TypeError, lambda: SparseBlock(TABLE, None, TABLE, None)(np.ones((2, 3), dtype=np.int64))),
    ],
)
def test_arrays_of_other_types_and_shapes_are_refused(error, call):
    with pytest.raises(error):
        call()

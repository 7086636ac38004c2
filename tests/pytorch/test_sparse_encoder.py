"""The sparse encoder against float64 by brute force: sets outside the stated band, values, and the same bits always."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import fewfire.torch as ft  # noqa: E402
from fewfire import InvalidArgument, _extension  # noqa: E402

CORE = _extension.load()
KINDS = ("relu", "jumprelu", "topk", "gated")
TYPES = (torch.float32, torch.bfloat16, torch.float16)
UNIT = 2.0**-24


def parts(kind, width, inputs, *, seed=0, dtype=torch.float32, outputs=None, k=5, centre=False, shift=-1.0):
    """Arguments of an encoder with Gaussian weights: W_enc, b_enc, W_dec, b_dec first."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=draw).to(dtype)

    weights = [normal(width, inputs) / inputs**0.5, normal(width) * 0.3 + shift]
    weights += [normal(width, outputs or inputs), normal(outputs or inputs)]
    options = {"activation": kind, "centre": centre}
    if kind == "jumprelu":
        options["threshold"] = normal(width).abs() * 0.5
    if kind == "topk":
        options["k"] = k
    if kind == "gated":
        options |= {"b_gate": normal(width) + shift, "r_mag": normal(width) * 0.2}
    return weights, options


def wide(value):
    return value.detach().double().numpy()


def brute_force(weights, options, x):
    """z − θ and the values in float64, densely, and the band of each; of topk z and what the k-th has."""
    W, b, _, b_dec = (None if part is None else wide(part) for part in weights)
    rows = wide(x).reshape(-1, W.shape[1])
    rows = rows - b_dec if options["centre"] else rows
    product, b = rows @ W.T, np.zeros(len(W)) if b is None else b
    epsilon = (-(-W.shape[1] // 64) + 9) * UNIT * 1.0001
    band = epsilon * np.linalg.norm(rows, axis=1)[:, None] * np.linalg.norm(W, axis=1) + 1e-35
    kind = options["activation"]
    if kind == "gated":
        scale = np.exp(wide(options["r_mag"]))
        m, gate = product * scale + b, product + wide(options["b_gate"])
        return np.minimum(gate, m / scale), np.where((gate > 0) & (m > 0), m, 0), band, scale * band + UNIT * np.abs(m)
    z = product + b
    if kind == "jumprelu":
        limit = np.maximum(wide(options["threshold"]), 0)
        return z - limit, np.where(z > limit, z, 0), band + UNIT * limit, band + UNIT * np.abs(z)
    if kind == "relu":
        return z, np.maximum(z, 0), band, band + UNIT * np.abs(z)
    band = band + UNIT * np.abs(z)
    k = min(options["k"], z.shape[1])
    order = np.argsort(-z, axis=1, kind="stable")[:, :k]
    kept = np.zeros(z.shape, bool)
    np.put_along_axis(kept, order, True, axis=1)
    least = np.where(kept, z - band, np.inf).min(axis=1, keepdims=True).clip(0)
    return z - least, np.where(kept & (z > 0), z, 0), 2 * band + band.max(axis=1, keepdims=True), band


def check(encoder, weights, options, x):
    """Sets outside the band, values, order, and the reconstruction; gives the features."""
    margin, exact, band, error = brute_force(weights, options, x)
    features = encoder.encode(x)
    assert features.rows == len(exact)
    dense = np.asarray(features.to_scipy().todense())
    assert (features.values > 0).all()
    for i in range(features.rows):
        assert (np.diff(features.row(i)) > 0).all()
    wrong = ((dense > 0) != (exact > 0)) & (np.abs(margin) > band)
    assert not wrong.any()
    both = (dense > 0) & (exact > 0)
    assert (np.abs(dense - exact)[both] <= error[both]).all()
    if options.get("k"):
        assert (features.counts <= options["k"]).all()
    if weights[2] is not None:
        out = encoder.decode(features)
        down, b_dec = wide(weights[2]), 0.0 if weights[3] is None else wide(weights[3])
        size = np.abs(dense) @ np.abs(down) + np.abs(b_dec)
        counts = features.counts[:, None] + 2
        away = np.abs(wide(out).reshape(len(dense), down.shape[1]) - (dense.astype(float) @ down + b_dec))
        assert (away <= counts * UNIT * 1.001 * size + 1e-35).all()
        assert out.shape == (*x.shape[:-1], down.shape[1])
        assert out.dtype == torch.float32
        assert torch.equal(encoder(x), out)
    return features


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("centre", [False, True])
def test_agrees_with_float64_on_odd_shapes(kind, dtype, centre):
    for seed, (width, inputs, rows) in enumerate([(1, 1, 1), (5, 3, 2), (65, 127, 3), (700, 200, 67), (129, 300, 1)]):
        weights, options = parts(kind, width, inputs, seed=seed, dtype=dtype, centre=centre)
        encoder = ft.SparseEncoder(*weights, **options)
        draw = torch.Generator().manual_seed(seed)
        check(encoder, weights, options, torch.randn((rows, inputs), generator=draw).to(dtype))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_agrees_with_float64_on_drawn_cases(data):
    """Ties, small integers, zero rows, dead and live features, sizes far apart."""
    kind, seed = data.draw(st.sampled_from(KINDS)), data.draw(st.integers(0, 2**31))
    width, inputs = data.draw(st.sampled_from([1, 6, 64, 130])), data.draw(st.sampled_from([1, 5, 64, 200]))
    weights, options = parts(kind, width, inputs, seed=seed, k=data.draw(st.integers(1, 200)), shift=0.0)
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn((data.draw(st.integers(0, 70)), inputs), generator=draw)
    if data.draw(st.booleans()):  # ties at the threshold and among scores
        weights[0], weights[1] = weights[0].mul(8).round() / 4, weights[1].mul(2).round()
        x = x.round()
    scale = 10.0 ** data.draw(st.sampled_from([-12, 0, 9]))
    x, weights[0] = x * scale, weights[0] / data.draw(st.sampled_from([1.0, scale]))
    if data.draw(st.booleans()):
        x[::2] = 0
        weights[0][::3] = 0
    if data.draw(st.booleans()) and kind != "gated":
        weights[1] = None
    check(ft.SparseEncoder(*weights, **options), weights, options, x)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits_for_every_batch_and_thread_count(kind):
    weights, options = parts(kind, 1000, 96, k=20)
    x = torch.randn((150, 96), generator=torch.Generator().manual_seed(1))
    encoder = ft.SparseEncoder(*weights, **options, threads=1)
    whole, back = encoder.encode(x), encoder(x)
    assert whole.counts.sum() > 150
    other = ft.SparseEncoder(*weights, **options, threads=3)
    for size in (1, 7, 149):
        pieces = [other.encode(piece) for piece in x.split(size)]
        for part in ("indices", "values"):
            assert np.array_equal(np.concatenate([getattr(piece, part) for piece in pieces]), getattr(whole, part))
        assert torch.equal(torch.cat([other(piece) for piece in x.split(size)]), back)


def test_scores_at_the_threshold_do_not_fire():
    W = torch.tensor([[1.0, 2.0], [2.0, 1.0], [-1.0, 0.0]])
    x = torch.tensor([[1.0, 1.0]])
    fired = ft.SparseEncoder(W, None, activation="jumprelu", threshold=torch.tensor([3.0, 2.9999998, -5.0])).encode(x)
    assert fired.indices.tolist() == [1]
    assert ft.SparseEncoder(W, torch.tensor([-3.0, 0.0, 1.0])).encode(x).indices.tolist() == [1]


def test_topk_breaks_ties_by_number_and_leaves_out_what_is_not_positive():
    W = torch.ones((300, 4))
    W[200] = 2
    W[100] = -1
    x = torch.tensor([[1.0, 0, 0, 0], [-1.0, 0, 0, 0], [0.0, 0, 0, 0]])
    features = ft.SparseEncoder(W, None, activation="topk", k=3).encode(x)
    assert [features.row(i).tolist() for i in range(3)] == [[0, 1, 200], [100], []]
    alike = ft.SparseEncoder(torch.ones((20_000, 4)), None, activation="topk", k=5, threads=4)
    assert alike.encode(torch.ones((3, 4))).indices.tolist() == [0, 1, 2, 3, 4] * 3
    everything = ft.SparseEncoder(W, None, activation="topk", k=10**6).encode(x)
    assert everything.counts.tolist() == [299, 1, 0]


def test_the_reference_in_numpy_agrees(monkeypatch):
    for kind in KINDS:
        weights, options = parts(kind, 130, 70, seed=3, dtype=torch.bfloat16)
        x = torch.randn((5, 70), generator=torch.Generator().manual_seed(2))
        with monkeypatch.context() as without:
            without.setattr("fewfire.torch._encoder.core", lambda: None)
            encoder = ft.SparseEncoder(*weights, **options)
            alone = check(encoder, weights, options, x)
            single = [encoder.encode(row) for row in x]
            assert encoder.extra_bytes == 0
        assert np.array_equal(np.concatenate([row.values for row in single]), alone.values)
        if CORE is not None:
            assert np.array_equal(ft.SparseEncoder(*weights, **options).encode(x).indices, alone.indices)


def test_shapes_layouts_and_types_of_rows():
    weights, options = parts("relu", 64, 12, outputs=7)
    encoder = ft.SparseEncoder(*weights, **options)
    x = torch.randn((12, 3, 4), generator=torch.Generator().manual_seed(0)).permute(1, 2, 0)
    features = encoder.encode(x)
    assert features.shape == (3, 4)
    assert encoder(x).shape == (3, 4, 7)
    assert encoder(x[0, 0]).shape == (7,)
    assert np.array_equal(encoder.encode(x.contiguous()).values, features.values)
    assert encoder.encode(x.bfloat16()).rows == 12
    assert encoder(x[:0]).shape == (0, 4, 7)
    turned = ft.SparseEncoder(weights[0].t().contiguous().t(), *weights[1:])
    assert np.array_equal(turned.encode(x).values, features.values)
    assert turned.extra_bytes == encoder.extra_bytes + weights[0].nbytes
    with torch.inference_mode():
        assert ft.SparseEncoder(weights[0] * 1, *weights[1:]).extra_bytes == encoder.extra_bytes


def test_features_in_other_formats():
    weights, options = parts("topk", 50, 8, k=3)
    features = ft.SparseEncoder(*weights, **options).encode(torch.eye(8))
    indptr, indices, values = features
    assert torch.equal(features.to_torch().to_dense(), torch.from_numpy(features.to_scipy().toarray()))
    assert np.array_equal(features.row_values(2), values[indptr[2] : indptr[3]])
    assert indices.dtype == np.int64


def test_edited_features_are_decoded():
    weights, options = parts("relu", 40, 6)
    encoder = ft.SparseEncoder(*weights, **options)
    edited = type(encoder.encode(torch.ones(1, 6)))(
        np.array([0, 2]), np.array([3, 39]), np.float32([2, -1]), encoder.width
    )
    torch.testing.assert_close(encoder.decode(edited)[0], 2 * weights[2][3] - weights[2][39] + weights[3])
    for change in ({"indices": np.array([3, 40])}, {"indptr": np.array([0, 3])}, {"width": 41}):
        with pytest.raises(InvalidArgument, match="features must"):
            encoder.decode(type(edited)(**{**vars(edited), **change}))


def test_large_scores_are_refused_and_nothing_else_is_wrong():
    encoder = ft.SparseEncoder(torch.ones((3, 2)), None)
    for value in (torch.nan, torch.inf, 3e37):
        with pytest.raises(InvalidArgument, match="x must be finite, and small enough"):
            encoder.encode(torch.tensor([[1.0, value]]))
    assert encoder.encode(torch.tensor([[1e36, 1e36]])).values.tolist() == pytest.approx([2e36] * 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation": "gelu"}, "activation must be one of"),
        ({"activation": "jumprelu"}, "threshold must be given with activation='jumprelu'"),
        ({"k": 3}, "k may be given with activation='topk' only"),
        ({"activation": "topk", "k": 0}, "k must be an integer of at least 1"),
        ({"centre": True, "b_dec": None}, "b_dec must be given"),
        ({"W_enc": torch.zeros(0, 4)}, "W_enc must have a row"),
        ({"W_enc": torch.zeros(9, 4).double()}, r"W_enc must be a dense tensor of float32.*Remedy: call \.float"),
        ({"W_enc": np.zeros((9, 4))}, "W_enc must be a torch.Tensor; got a ndarray"),
        ({"W_enc": torch.zeros((9, 4), device="meta")}, r"W_enc must be on the CPU.*call \.cpu"),
        ({"W_dec": torch.zeros(4, 9)}, "W_dec must have a row for each of the 9 features"),
        ({"b_enc": torch.zeros(8)}, r"b_enc must have the shape \(9,\)"),
        ({"b_enc": torch.full((9,), torch.nan)}, "b_enc must be finite"),
        ({"activation": "jumprelu", "threshold": torch.full((9,), torch.inf)}, "threshold must be finite"),
        ({"threads": 0}, "threads must be"),
    ],
)
def test_arguments_that_are_refused(change, message):
    weights, _ = parts("relu", 9, 4)
    given = dict(zip(("W_enc", "b_enc", "W_dec", "b_dec"), weights, strict=True))
    with pytest.raises(InvalidArgument, match=message):
        ft.SparseEncoder(**{**given, **change})


def test_rows_that_are_refused():
    encoder = ft.SparseEncoder(*parts("relu", 9, 4)[0][:2])
    with pytest.raises(InvalidArgument, match="x must have a last axis of the 4 inputs"):
        encoder.encode(torch.zeros(3))
    with pytest.raises(InvalidArgument, match="x must not require gradients"):
        encoder.encode(torch.zeros(4, requires_grad=True))
    with torch.no_grad():
        encoder.encode(torch.zeros(4, requires_grad=True))
    with pytest.raises(InvalidArgument, match="W_dec must be given for decoding"):
        encoder(torch.zeros(4))


def test_changed_weights_are_noticed():
    weights, options = parts("jumprelu", 9, 4)
    encoder = ft.SparseEncoder(*weights, **options)
    options["threshold"].add_(1)
    with pytest.raises(InvalidArgument, match="threshold must not change.*build the encoder anew"):
        encoder.encode(torch.zeros(4))


def test_copies_give_the_same():
    weights, options = parts("gated", 90, 10)
    encoder, x = ft.SparseEncoder(*weights, **options), torch.randn(3, 10)
    for other in (pickle.loads(pickle.dumps(encoder)), copy.deepcopy(encoder)):
        assert torch.equal(other(x), encoder(x))


class SaeLens(torch.nn.Module):
    """The attributes and formulas of SAELens' autoencoders."""

    def __init__(self, kind, centre, dtype, *, power=1.0, scaled=1.0):
        super().__init__()
        weights, options = parts(kind, 200, 24, k=9, dtype=dtype)
        self.kind, self.power, self.scaled = kind, power, scaled
        self.cfg = type("Config", (), {"apply_b_dec_to_input": centre})
        names = ("W_enc", "b_mag" if kind == "gated" else "b_enc", "W_dec", "b_dec")
        vectors = {name: options[name] for name in ("threshold", "b_gate", "r_mag") if name in options}
        for name, value in (*zip(names, weights, strict=True), *vectors.items()):
            own = value.t().contiguous() if name == "W_enc" else value
            self.register_parameter(name, torch.nn.Parameter(own))
        if kind == "topk":
            self.activation_fn = type("TopK", (torch.nn.Module,), {"k": 9})()

    def encode(self, x):
        inner = self.power * (x - self.b_dec * self.cfg.apply_b_dec_to_input)
        if self.kind == "gated":
            open_ = inner @ self.W_enc + self.b_gate > 0
            return open_ * torch.relu(inner @ (self.W_enc * self.r_mag.exp()) + self.b_mag)
        z = inner @ self.W_enc + self.b_enc
        if self.kind == "topk":
            top = z.topk(9, dim=-1)
            return torch.zeros_like(z).scatter_(-1, top.indices, top.values.relu())
        return torch.relu(z) * (z > self.threshold) if self.kind == "jumprelu" else torch.relu(z)

    def forward(self, x):
        return self.scaled * (self.encode(x) @ self.W_dec + self.b_dec)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_known_modules_are_read(kind, centre, dtype):
    module = SaeLens(kind, centre, dtype)
    encoder = ft.SparseEncoder.of(module)
    assert (encoder.activation, encoder.centre, encoder.k) == (kind, centre, 9 if kind == "topk" else None)
    module, x = module.float(), torch.randn((20, 24), generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        expected = module(x)
        if dtype == torch.float32:
            assert torch.allclose(torch.from_numpy(encoder.encode(x).to_scipy().toarray()), module.encode(x), atol=1e-5)
        torch.testing.assert_close(encoder(x) if dtype == torch.float32 else expected, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("change", [{"power": 1.5}, {"scaled": 2.0}])
def test_modules_that_compute_something_else_are_refused(change):
    with pytest.raises(InvalidArgument, match="module must compute what its attributes stand for"):
        ft.SparseEncoder.of(SaeLens("relu", True, torch.float32, **change))
    with pytest.raises(InvalidArgument, match="module must be laid out as an autoencoder of SAELens"):
        ft.SparseEncoder.of(torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.GELU(), torch.nn.Linear(8, 3)))


class TwoLinear(torch.nn.Module):
    """The attributes of an autoencoder of `dictionary_learning`."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = torch.nn.Linear(6, 40), torch.nn.Linear(40, 6, bias=False)
        self.bias = torch.nn.Parameter(torch.randn(6))

    def encode(self, x):
        return torch.relu(self.encoder(x - self.bias))

    def forward(self, x):
        return self.decoder(self.encode(x)) + self.bias


def test_linear_layers_are_read():
    x = torch.randn((9, 6), generator=torch.Generator().manual_seed(0))
    plain = torch.nn.Sequential(torch.nn.Linear(6, 40), torch.nn.ReLU(), torch.nn.Linear(40, 6))
    for module in (TwoLinear(), plain):
        torch.testing.assert_close(ft.SparseEncoder.of(module)(x), module(x).detach(), atol=1e-5, rtol=1e-5)
    for module in (plain[:2], torch.nn.Sequential(torch.nn.Linear(6, 40, bias=False), torch.nn.ReLU())):
        features = ft.SparseEncoder.of(module).encode(x)
        torch.testing.assert_close(features.to_torch().to_dense(), module(x).detach(), atol=1e-5, rtol=1e-5)


def test_sparsify_names_the_encoder():
    with pytest.raises(InvalidArgument, match=r"fewfire\.torch\.SparseEncoder\.of\(module\)"):
        ft.sparsify(SaeLens("topk", True, torch.float32), [torch.randn(2, 24)])

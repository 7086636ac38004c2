"""`relufy` and `ActivityPenalty`: what they replace, what they add to a loss, and that they leave the rest alone."""

import sys

import numpy as np
import pytest

import fewfire as ff
import fewfire.torch as ft


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def block(torch, activation, inputs=6, width=20):
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(nn.Linear(inputs, width), activation, nn.Linear(width, 2))


def test_relufy_replaces_smooth_activations_of_blocks_and_nothing_else(torch):
    nn = torch.nn
    kinds = [nn.GELU(), nn.ReLU(), nn.LeakyReLU(), nn.ELU(), nn.Tanh(), nn.SELU(), nn.SiLU(), nn.CELU(), nn.Mish()]
    kinds += [nn.GELU("tanh"), nn.Softplus(), nn.Sigmoid()]
    inner = nn.Sequential(nn.Linear(6, 6), *(part for kind in kinds for part in (kind, nn.Linear(6, 6))), nn.GELU())
    convolution = nn.Sequential(nn.Conv1d(3, 3, 1), nn.SiLU(), nn.Conv1d(3, 3, 1))
    model = nn.Sequential(convolution, inner)
    assert ft.relufy(model, batches=[torch.randn(5, 3, 6)]) == [
        f"1.{place}" for place in (1, 5, 7, 11, 13, 15, 17, 19, 21)
    ]
    assert type(inner[9]) is nn.Tanh and type(inner[23]) is nn.Sigmoid
    assert type(inner[-1]) is nn.GELU and type(convolution[1]) is nn.SiLU  # of no block


class Layer:
    """A transformer layer whose attention and router have smooth activations too; a class once torch is there."""

    def __new__(cls, torch, gated=False, shared=False, function=False):
        nn = torch.nn

        class Made(nn.Module):
            def __init__(self):
                super().__init__()
                self.query, self.gate_of_heads, self.project = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6)
                self.act_of_heads, self.router = nn.SiLU(), nn.Linear(6, 2)
                self.act_of_router = nn.GELU()
                self.up, self.gate, self.down = nn.Linear(6, 20), nn.Linear(6, 20), nn.Linear(20, 6)
                self.act = self.act_of_heads if shared else None if function else nn.SiLU()

            def forward(self, x):
                heads = torch.softmax(self.query(x) @ x.transpose(-1, -2), -1) @ x
                x = x + self.project(self.act_of_heads(self.gate_of_heads(x)) * heads)
                share = self.act_of_router(self.router(x)).softmax(-1)[..., :1]
                act = torch.nn.functional.gelu if function else self.act
                h = act(self.gate(x)) * self.up(x) if gated else act(self.up(x))
                return x + share * self.down(h)

        torch.manual_seed(0)
        return Made().eval()


@pytest.mark.parametrize("gated", [False, True])
def test_relufy_leaves_attention_and_routers_alone(torch, gated):
    model, x = torch.nn.Sequential(Layer(torch, gated), Layer(torch, gated)), torch.randn(2, 5, 6)
    assert ft.relufy(model, batches=[x]) == ["0.act", "1.act"]
    assert type(model[0].act) is torch.nn.ReLU and type(model[0].act_of_heads) is torch.nn.SiLU
    assert type(model[1].act_of_router) is torch.nn.GELU
    alone = Layer(torch, gated)
    assert ft.relufy(alone) == ["act"]  # on made-up rows


def test_memory_that_is_used_again_is_not_taken_for_a_layer_s_output(torch):
    """Another module's input may lie where an earlier layer's output was freed."""
    from fewfire.torch._trace import Tracer

    model = torch.nn.Sequential(torch.nn.Linear(6, 20), torch.nn.SiLU(), torch.nn.Linear(20, 6))
    tracer, memory = Tracer(model), torch.randn(5, 20)
    tracer._called("0")(model[0], (torch.randn(5, 6),), {}, memory)
    tracer._activates(model[1], (memory,))
    memory.normal_()  # the same address, other numbers
    for given in (memory, memory.view(-1)[:30].view(5, 6)):
        tracer._activates(torch.nn.GELU(), (given,))
        tracer._weighs(torch.nn.PReLU(), (given,))
    assert tracer.recent[0].activation is model[1] and not tracer.recent[0].weighed


def test_relufy_names_what_it_cannot_reach(torch):
    x = torch.randn(2, 5, 6)
    model = torch.nn.Sequential(Layer(torch), Layer(torch, function=True), Layer(torch, shared=True))
    with pytest.warns(UserWarning) as caught:
        assert ft.relufy(model, batches=[x]) == ["0.act"]
    assert [str(warning.message) for warning in caught] == [
        "relufy left smooth activations as they are: 1[up, down] (a gelu that forward calls as a function), "
        "2.act_of_heads (it is called outside MLP blocks too)"
    ]
    assert type(model[2].act) is torch.nn.SiLU
    lone = Layer(torch, function=True)
    with pytest.raises(
        ff.InvalidArgument, match=r"without one; left are \[up, down\] \(a gelu that forward calls as a fun"
    ):
        ft.relufy(lone, batches=[x])

    class Asks(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.first = block(torch, torch.nn.GELU()), block(torch, torch.nn.GELU())

        def forward(self, x, *, asked):
            return self.inner(x) if asked else x

    model = Asks()
    with pytest.warns(UserWarning, match=r"first\.1 \(it did not run; pass batches\)"):
        assert ft.relufy(model, batches=[{"x": torch.randn(3, 6), "asked": True}]) == ["inner.1"]


def packed(torch, activation, halves):
    """A gated block whose first layer gives gate and values."""
    nn = torch.nn

    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.both, self.down, self.activation = nn.Linear(2, 32), nn.Linear(16, 6), activation

        def forward(self, x):
            gate, values = halves(self.both(x))
            return self.down(self.activation(gate) * values)

    return nn.Sequential(block(torch, nn.GELU()), Packed())


HALVES = [lambda z: z.chunk(2, -1), lambda z: z.chunk(2, -1)[::-1], lambda z: (z[..., ::2], z[..., 1::2])]


@pytest.mark.parametrize("halves", HALVES)
@pytest.mark.parametrize("given", [True, False])
def test_relufy_names_packed_gates(torch, halves, given):
    batches = [torch.randn(5, 6)] if given else None
    for activation in (torch.nn.SiLU(), torch.nn.functional.silu):
        with pytest.warns(
            UserWarning, match=r"left smooth.*: 1.both, 1.down \(a silu gate, of which 1.both gives both"
        ):
            assert ft.relufy(packed(torch, activation, halves), batches=batches) == ["0.1"]
    ft.relufy(packed(torch, torch.sigmoid, halves), batches=batches)  # a gate that stays


def test_activations_of_hugging_face_are_known_by_name(torch):
    class NewGELUActivation(torch.nn.Module):
        def forward(self, x):
            return 0.5 * x * (1 + torch.tanh(0.8 * (x + 0.044715 * x**3)))  # not quite torch's

    for kind in (NewGELUActivation(), type("SiLUActivation", (torch.nn.SiLU,), {})()):
        assert ft.relufy(block(torch, kind)) == ["1"]


def test_a_shifted_relu_is_the_networks_own(torch):
    model = block(torch, torch.nn.GELU())
    ft.relufy(model, 0.3)
    network = ft.from_sequential(model)
    assert network.activation == ff.networks.shifted_relu(0.3)
    X = np.random.default_rng(0).normal(size=(10, 6)).astype(np.float32)
    np.testing.assert_allclose(model(torch.tensor(X)).detach().numpy(), network(X), rtol=1e-5, atol=1e-6)


def test_the_term_is_the_mean_activation_times_its_weight(torch):
    model = block(torch, torch.nn.ReLU())
    x = torch.randn(5, 6)
    with ft.ActivityPenalty(model, 0.5) as penalty:
        model(x)
        term = penalty()
        features = torch.relu(model[0](x))
        assert torch.allclose(term, 0.5 * features.mean())
        assert penalty.activity == {"1": pytest.approx(float((features > 0).float().mean()))}
        term.backward()
        assert model[0].weight.grad.abs().sum() > 0
        assert model[2].weight.grad is None


def test_passes_since_the_last_call_are_averaged(torch):
    model = block(torch, torch.nn.ReLU())
    x, y = torch.randn(5, 6), torch.randn(5, 6)
    with ft.ActivityPenalty(model, 1.0) as penalty:
        model(x)
        model(y)
        both = penalty().item()
        model(x)
        one = penalty().item()
        model(y)
        assert both == pytest.approx((one + penalty().item()) / 2)


def test_a_top_k_teacher_leaves_the_largest_free(torch):
    model = block(torch, torch.nn.ReLU())
    x = torch.randn(5, 6)
    features = torch.relu(model[0](x)).detach()
    rest = features.sort(dim=1).values[:, :-3]
    with ft.ActivityPenalty(model, 1.0, keep=3) as penalty:
        model(x)
        assert penalty().item() == pytest.approx(float(rest.sum() / features.numel()))
    with ft.ActivityPenalty(model, 1.0, keep=99) as penalty:
        model(x)
        assert penalty().item() == 0


def test_weights_follow_their_target(torch):
    model = block(torch, torch.nn.ReLU())
    with ft.ActivityPenalty(model, 0.1, target=0.1, rate=0.5) as penalty:
        model(torch.randn(50, 6))
        penalty()
        assert penalty.weights["1"] == pytest.approx(0.1 * (penalty.activity["1"] / 0.1) ** 0.5)


def test_training_reaches_the_target(torch):
    model = block(torch, torch.nn.ReLU(), width=100)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    x = torch.randn(200, 6, generator=torch.Generator().manual_seed(1))
    y = x[:, :2]
    with ft.ActivityPenalty(model, target=0.2) as penalty:
        for _ in range(400):
            loss = (model(x) - y).square().mean() + penalty()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        assert 0.1 < penalty.activity["1"] < 0.22


def test_evaluation_is_not_watched_and_hooks_go_away(torch):
    model = block(torch, torch.nn.ReLU())
    with ft.ActivityPenalty(model) as penalty:
        model.eval()(torch.randn(2, 6))
        with torch.no_grad():
            model.train()(torch.randn(2, 6))
        with pytest.raises(ff.InvalidArgument, match="model must have run in training mode since the last call"):
            penalty()
    assert not model[1]._forward_hooks


def test_errors_name_the_remedy_and_change_nothing(torch):
    relu = block(torch, torch.nn.ReLU())
    with pytest.raises(ff.InvalidArgument) as caught:
        ft.relufy(relu)
    assert str(caught.value) == (
        "model must hold an MLP block with a smooth activation that is a module, such as torch.nn.GELU; "
        "got a Sequential without one. Remedy: write self.act = torch.nn.GELU() in __init__ and self.act(…) in forward."
    )
    gelu = block(torch, torch.nn.GELU())
    with pytest.raises(ff.InvalidArgument, match="threshold must be"):
        ft.relufy(gelu, -1.0)
    assert type(gelu[1]) is torch.nn.GELU
    with pytest.raises(
        ff.InvalidArgument, match=r"model must hold a torch\.nn\.ReLU or torch\.nn\.Threshold; got a Seq"
    ):
        ft.ActivityPenalty(gelu)
    with pytest.raises(ff.InvalidArgument, match=r"model must be a torch\.nn\.Module; got a list"):
        ft.relufy([])
    with pytest.raises(ff.InvalidArgument, match="target must be"):
        ft.ActivityPenalty(relu, target=2.0)


def test_without_torch_the_error_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ff.MissingDependency, match=r"pip install 'fewfire\[torch\]'"):
        ft.ActivityPenalty(object())

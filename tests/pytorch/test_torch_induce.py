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


def test_relufy_replaces_smooth_activations_and_nothing_else(torch):
    nn = torch.nn
    shared = nn.SiLU()
    inner = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.ReLU(), nn.LeakyReLU(), nn.ELU(), nn.Tanh())
    model = nn.ModuleDict({"first": inner, "second": shared, "third": shared})
    assert ft.relufy(model) == ["second", "third", "first.1", "first.3", "first.4"]
    assert [type(part).__name__ for part in inner] == ["Linear", "ReLU", "ReLU", "ReLU", "ReLU", "Tanh"]
    assert type(model["third"]) is nn.ReLU


def test_activations_of_hugging_face_are_known_by_name(torch):
    nn = torch.nn
    kinds = [type(name, (nn.Module,), {}) for name in ("NewGELUActivation", "SiLUActivation", "ReLUSquaredActivation")]
    model = nn.Sequential(*(kind() for kind in kinds))
    assert ft.relufy(model) == ["0", "1"]


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


def test_errors_say_what_is_wanted_and_change_nothing(torch):
    relu = block(torch, torch.nn.ReLU())
    with pytest.raises(ff.InvalidArgument) as caught:
        ft.relufy(relu)
    assert str(caught.value) == (
        "model must hold a smooth activation as a module, such as torch.nn.GELU; got a Sequential without one. "
        "Remedy: give it one where forward calls a function."
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


def test_torch_missing_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for call in (ft.relufy, ft.ActivityPenalty):
        with pytest.raises(ff.MissingDependency, match=r"pip install 'fewfire\[torch\]'"):
            call(object())

"""Models that are changed after `sparsify`: each stays what the same change makes of the model that never was sparse."""

import contextlib
import copy
import functools
import pickle
import sys
import types

import pytest

import fewfire as ff
import fewfire.torch as ft

torch = pytest.importorskip("torch")
import lookalikes as like  # noqa: E402
from torch.nn.utils import parametrizations, parametrize, prune  # noqa: E402

from fewfire.torch import _sparsify  # noqa: E402

nn, F = torch.nn, torch.nn.functional
ALWAYS = sys.maxsize
INPUTS, WIDTH = 8, 24
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*weight_norm.*:FutureWarning",
    "ignore:.*(deprecat|quantiz).*:DeprecationWarning",
    "ignore:.*quantiz.*:UserWarning",
)


class Masked(like.T5Dense):
    """A block with a buffer that is all ones, as pruning libraries have them."""

    def __init__(self, inputs, width):
        super().__init__(inputs, width)
        self.register_buffer("mask", torch.ones(width))

    def forward(self, x):
        return self.wo(self.act(self.wi(x)) * self.mask)


def longer(inputs, width):
    return nn.Sequential(nn.LayerNorm(inputs), *like.sequential(inputs, width), nn.Tanh())


# name: model, its first layer, its second layer, its activation (None where it is a function)
FORMS = {
    "sequential": (like.sequential, "0", "2", "1"),
    "threshold": (lambda n, w: like.sequential(n, w, nn.Threshold(0.1, 0.0)), "0", "2", "1"),
    "members": (longer, "1", "3", "2"),
    "t5": (like.T5Dense, "wi", "wo", "act"),
    "llama": (like.LlamaMlp, "gate_proj", "down_proj", None),
    "conv1d": (like.GptMlp, "c_fc", "c_proj", "act"),
    "opt": (like.OptLayer, "fc1", "fc2", "activation_fn"),
    "bert": (like.BertLayer, "intermediate.dense", "output.dense", None),
    "relu6": (lambda n, w: like.sequential(n, w, nn.ReLU6()), "0", "2", "1"),
    "masked": (Masked, "wi", "wo", "act"),
}


USUAL = [form for form in FORMS if form not in ("masked", "threshold")]


class Lora(nn.Module):
    """A wrapper that adds a product of two small matrices, as peft's does."""

    def __init__(self, base, rank=3):
        super().__init__()
        inputs, outputs = (base.nx, base.nf) if isinstance(base, like.Conv1D) else (base.in_features, base.out_features)
        self.base_layer, self.a = base, nn.Linear(inputs, rank, bias=False)
        self.b = nn.Linear(rank, outputs, bias=False)

    @property
    def weight(self):
        return self.base_layer.weight

    def forward(self, x):
        return self.base_layer(x) + self.b(self.a(x))


class Gelu(nn.Module):
    def forward(self, x):
        return F.gelu(x)


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight.abs()


def put(model, name, module):
    owner, _, last = name.rpartition(".")
    setattr(model.get_submodule(owner), last, module)


def at(place, change):
    """A change of one module of a model: what it returns, if anything, takes its place."""

    def changed(model, form):
        name = FORMS[form][place]
        new = change(model.get_submodule(name))
        if new is not None:
            put(model, name, new)
        return model

    return changed, [form for form in USUAL if FORMS[form][place] is not None]


def adapted_by_hand(layer):
    lora, own = Lora(layer), layer.forward
    layer.forward = lambda x: own(x) + lora.b(lora.a(x))


def hooked(layer):
    layer.register_forward_hook(lambda _module, _args, z: -1.5 * z)


def hooked_before(layer):
    layer.register_forward_pre_hook(lambda _module, args: (args[0] - 0.5,))


def another(layer):
    new = copy.deepcopy(layer)
    vars(new).pop("forward", None)
    with torch.no_grad():
        new.weight.mul_(-1)
    return new


def another_class(act):
    act.__class__ = Gelu


def another_forward(act):
    act.forward = F.gelu


def another_method(act):
    act.forward = types.MethodType(Gelu.forward, act)


def weight_norm(layer):
    nn.utils.weight_norm(layer).weight_g.data.mul_(-1.5)


def weight_norm_parametrization(layer):
    parametrizations.weight_norm(layer).parametrizations.weight.original0.data.mul_(-1.5)


def symmetric(layer):
    parametrize.register_parametrization(layer, "weight", Symmetric())


def pruned(layer):
    prune.l1_unstructured(layer, "weight", 0.5)


def scaled(layer):
    with torch.no_grad():
        layer.weight.mul_(-1.5)


def scaled_by_data(layer):
    layer.weight.data *= -1.5


def another_parameter(layer):
    layer.weight = nn.Parameter(-layer.weight.detach().clone())


def no_bias(layer):
    if layer.bias is not None and not isinstance(layer, like.Conv1D):
        layer.bias = None


def some_bias(layer):
    layer.bias = nn.Parameter(torch.linspace(-1, 1, layer.out_features))


class Tripled(torch.Tensor):
    """A weight that counts three times in products, whatever its memory holds, as those of quantisation libraries may."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            found = function(*args, **(kwargs or {}))
        if getattr(function, "__name__", "") == "detach":
            return torch.Tensor._make_subclass(Tripled, found)
        return 3 * found if getattr(function, "__name__", "") in ("linear", "addmm") else found


def another_kind_of_weight(layer):
    held = torch.Tensor._make_subclass(Tripled, layer.weight.detach().clone(memory_format=torch.contiguous_format))
    layer.weight = nn.Parameter(held, requires_grad=False)


def wider(model, form):
    """More neurons, as in pruning and growing."""
    _, up, down, _ = FORMS[form]
    up, down = model.get_submodule(up), model.get_submodule(down)
    up.weight = nn.Parameter(torch.cat([up.weight.detach(), -up.weight.detach()]))
    up.bias = nn.Parameter(torch.cat([up.bias.detach(), up.bias.detach()]))
    down.weight = nn.Parameter(torch.cat([down.weight.detach(), down.weight.detach()], dim=1))
    return model


def more_outputs(model, form):
    model[2].weight = nn.Parameter(torch.cat([model[2].weight.detach()] * 2))
    model[2].bias = nn.Parameter(torch.cat([model[2].bias.detach()] * 2))
    return model


def quantized(model, form):
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear})


def gelu_attribute(model, form):
    model.act_fn = F.gelu
    return model


def another_threshold(model, form):
    model[1].threshold = -0.5
    return model


def masked(model, form):
    model.mask[::2] = 0.0
    return model


def own_forward(model, form):
    """Another forward on the instance that holds the layers of an inlined block."""
    model.forward = types.MethodType(lambda self, x: x + self.fc2(F.gelu(self.fc1(self.norm(x)))), model)
    return model


def another_member(model, form):
    model.insert(1 if form == "sequential" else 2, nn.Tanh())
    return model


def one_member_less(model, form):
    del model[int(FORMS[form][3])]
    return model


def between_names(model, form):
    """A member put between two of a block, whose names stay."""
    items = list(model._modules.items())
    model._modules = dict([*items[:3], ("new", nn.Tanh()), *items[3:]])
    return model


def appended(model, form):
    return model.append(nn.Linear(INPUTS, 3).eval())


def loaded(model, form):
    model.load_state_dict({name: -value for name, value in model.state_dict().items()})
    return model


def written_to_state(model, form):
    model.state_dict()[f"{FORMS[form][2]}.weight"].mul_(-2)
    return model


def train_dropout(model, form):
    """Only dropout in training mode, as in Monte Carlo dropout."""
    model.dropout.train()
    return model


UP, DOWN, ACT = 1, 2, 3
SEQUENCES = ["sequential", "members", "relu6"]
OF_LAYERS = {
    "lora": Lora,
    "lora-by-hand": adapted_by_hand,
    "hook": hooked,
    "pre-hook": hooked_before,
    "another": another,
    "weight-norm": weight_norm,
    "weight-norm-parametrization": weight_norm_parametrization,
    "parametrization": symmetric,
    "scaled": scaled,
    "scaled-by-data": scaled_by_data,
    "another-parameter": another_parameter,
    "another-kind-of-weight": another_kind_of_weight,
    "no-bias": no_bias,
}
OF_ACTIVATIONS = {
    "gelu": lambda _act: nn.GELU(),
    "own-gelu": lambda _act: Gelu(),
    "class": another_class,
    "forward": another_forward,
    "method": another_method,
    "hook": hooked,
    "pre-hook": hooked_before,
}
CHANGES = {
    **{f"{name}-up": at(UP, change) for name, change in OF_LAYERS.items()},
    **{f"{name}-down": at(DOWN, change) for name, change in OF_LAYERS.items()},
    **{f"{name}-activation": at(ACT, change) for name, change in OF_ACTIVATIONS.items()},
    "some-bias-up": (at(UP, some_bias)[0], ["llama", "t5"]),
    "some-bias-down": (at(DOWN, some_bias)[0], ["llama", "t5"]),
    "prune": (at(UP, pruned)[0], ["sequential", "opt"]),
    "spectral-norm": at(DOWN, lambda layer: nn.utils.spectral_norm(layer) and None),
    "spectral-norm-parametrization": at(DOWN, lambda layer: parametrizations.spectral_norm(layer) and None),
    "wider": (wider, ["sequential", "members", "opt"]),
    "more-outputs": (more_outputs, ["sequential"]),
    "quantized": (quantized, [form for form in USUAL if form not in ("conv1d", "t5")]),  # T5 reads a weight's dtype
    "gelu-attribute": (gelu_attribute, ["llama"]),
    "threshold": (another_threshold, ["threshold"]),
    "mask": (masked, ["masked"]),
    "own-forward": (own_forward, ["opt"]),
    "insert": (another_member, SEQUENCES),
    "delete": (one_member_less, SEQUENCES),
    "between": (between_names, ["members"]),
    "append": (appended, SEQUENCES),
    "loaded": (loaded, USUAL),
    "state-written": (written_to_state, USUAL),
    "dropout": (train_dropout, ["t5"]),
}
CASES = [(change, form) for change, (_, forms) in CHANGES.items() for form in forms]


NO_EFFECT = {(f"no-bias-{place}", form) for place in ("up", "down") for form in ("llama", "t5", "masked", "conv1d")}
NO_COPY = {f"{change}-{place}" for place in ("up", "down") for change in ("weight-norm", "another-kind-of-weight")} | {
    "prune",
    "spectral-norm",
}  # torch cannot, dense either


def made(form):
    """A model, and the same that is sparse."""
    torch.manual_seed(3)
    plain = FORMS[form][0](INPUTS, WIDTH).eval().requires_grad_(False)
    sparse = copy.deepcopy(plain)
    x = torch.randn(5, INPUTS)
    assert len(ft.sparsify(sparse, [torch.randn(40, INPUTS)], dense_above=ALWAYS).replaced) == 1
    return plain, sparse, x


def changed(change, model, form):
    torch.manual_seed(4)
    return CHANGES[change][0](model, form)


def value(model, x):
    torch.manual_seed(5)
    with torch.no_grad():
        return model(x)


@pytest.mark.parametrize(("change", "form"), CASES)
def test_a_later_change_is_that_of_the_dense_model(change, form):
    plain, sparse, x = made(form)
    before = value(plain, x)
    torch.testing.assert_close(value(sparse, x), before)  # kernels are built
    plain, sparse = changed(change, plain, form), changed(change, sparse, form)
    after = value(plain, x)
    assert after.shape != before.shape or not torch.allclose(before, after) or (change, form) in NO_EFFECT
    torch.testing.assert_close(value(sparse, x), after)
    if change not in NO_COPY:
        torch.testing.assert_close(value(copy.deepcopy(sparse), x), after)
    ft.refresh(sparse)
    torch.testing.assert_close(value(sparse, x), after)
    ft.densify(sparse)
    torch.testing.assert_close(value(sparse, x), after)


def closure(module):
    own = module.forward
    module.forward = lambda *args: 2 * own(*args)


def wraps(module):
    own = module.forward
    module.forward = functools.wraps(own)(lambda *args: 2 * own(*args))


def partial(module):
    """As accelerate's hooks do."""
    module._old_forward = module.forward
    module.forward = functools.update_wrapper(
        functools.partial(lambda self, *args: 2 * self._old_forward(*args), module), module._old_forward
    )


@pytest.mark.parametrize("form", USUAL)
@pytest.mark.parametrize("wrap", [closure, wraps, partial])
@pytest.mark.parametrize("place", ["whole", "up", "down"])
def test_a_wrapped_forward_is_found_again(form, wrap, place, counted):
    """`refresh` and `densify` reach what others have wrapped; their wrapper stays."""
    plain, sparse, x = made(form)
    name = {"whole": "", "up": FORMS[form][UP], "down": FORMS[form][DOWN]}[place]
    value(sparse, x)
    for model in (plain, sparse):
        wrap(model.get_submodule(name))
    torch.testing.assert_close(value(sparse, x), value(plain, x))
    with pytest.raises(ff.InvalidArgument, match="must not be sparse already"):
        ft.sparsify(sparse, [x], dense_above=ALWAYS)

    def change():
        """Of one weight through `.data`, which a sparse path does not see."""
        for model in (plain, sparse):
            model.get_submodule(FORMS[form][UP]).weight.data[1, 1] += 100.0

    change()
    assert ft.refresh(sparse) >= 1
    torch.testing.assert_close(value(sparse, x), value(plain, x))
    assert ft.densify(sparse) >= 1
    change()
    counted.clear()
    torch.testing.assert_close(value(sparse, x), value(plain, x))
    assert not counted and all(parameter.is_contiguous() for parameter in sparse.parameters())
    assert ft.densify(sparse) == 0


def test_a_sequence_of_another_class_or_forward_is_not_run_member_by_member():
    plain, sparse, x = made("members")

    class Doubled(nn.Sequential):
        def forward(self, x, times=2.0):
            return times * super().forward(x)

    for model in (plain, sparse):
        model.__class__ = Doubled
    torch.testing.assert_close(value(sparse, x), value(plain, x))
    with torch.no_grad():
        torch.testing.assert_close(sparse(x, times=3.0), plain(x, times=3.0))
    wrapped = longer(INPUTS, WIDTH).eval().requires_grad_(False)
    closure(wrapped)
    before = value(wrapped, x)
    with contextlib.suppress(ff.InvalidArgument):  # nothing to make sparse is an answer as well
        ft.sparsify(wrapped, [torch.randn(40, INPUTS)], dense_above=ALWAYS)
    torch.testing.assert_close(value(wrapped, x), before)


@pytest.mark.parametrize("form", USUAL)
def test_a_change_that_is_undone_is_sparse_again(form, counted):
    plain, sparse, x = made(form)
    name = FORMS[form][UP]
    layer = sparse.get_submodule(name)
    value(sparse, x)
    calls = len(counted)
    put(sparse, name, Lora(layer))
    value(sparse, x)
    assert all(type(forward).__name__ == "DownForward" for forward in counted[calls:])  # which is right for any input
    put(sparse, name, layer)
    counted.clear()
    torch.testing.assert_close(value(sparse, x), value(plain, x))
    assert len(counted) == calls
    sparse.note = "an attribute of somebody's"
    sparse.get_submodule(FORMS[form][DOWN]).note = "another"
    torch.testing.assert_close(value(sparse, x), value(plain, x))


@pytest.mark.parametrize("form", ["sequential", "members", "llama", "opt"])
def test_copies_and_files_keep_what_was_there_at_first(form):
    """A copy that is changed before its first call, and one that was made of a changed model."""
    plain, sparse, x = made(form)
    put(plain, FORMS[form][UP], Lora(plain.get_submodule(FORMS[form][UP])))
    lora = plain.get_submodule(FORMS[form][UP])
    for copied in (copy.deepcopy(sparse), pickle.loads(pickle.dumps(sparse))):
        wrapped = Lora(copied.get_submodule(FORMS[form][UP]))
        put(copied, FORMS[form][UP], wrapped)
        wrapped.a, wrapped.b = lora.a, lora.b
        torch.testing.assert_close(value(copied, x), value(plain, x))
        for again in (copy.deepcopy(copied), pickle.loads(pickle.dumps(copied))):
            torch.testing.assert_close(value(again, x), value(plain, x))


def test_a_patched_class_is_seen(monkeypatch):
    plain, sparse, x = made("t5")
    value(sparse, x)
    monkeypatch.setattr(like.T5Dense, "forward", lambda self, x: self.wo(F.gelu(self.wi(x))))
    torch.testing.assert_close(value(sparse, x), value(plain, x))
    torch.testing.assert_close(value(copy.deepcopy(sparse), x), value(plain, x))


@pytest.mark.parametrize("form", ["sequential", "opt", "bert"])
def test_hooks_on_all_modules_are_called(form):
    plain, sparse, x = made(form)
    value(sparse, x)

    def double(module, _args, output):
        return 2 * output if isinstance(module, nn.Linear) else None

    handle = nn.modules.module.register_module_forward_hook(double)
    try:
        torch.testing.assert_close(value(sparse, x), value(plain, x))
    finally:
        handle.remove()


@pytest.mark.parametrize("form", ["sequential", "opt"])
def test_an_adapter_gets_its_gradients(form):
    """Where the model is frozen and the adapter alone is trained, eager and compiled."""
    torch._dynamo.reset()
    plain, sparse, x = made(form)
    for run in (lambda net: net, lambda net: torch.compile(net, backend="eager")):
        grads = []
        for net in (plain, sparse):
            net = copy.deepcopy(net)
            torch.manual_seed(4)
            lora = Lora(net.get_submodule(FORMS[form][UP]))
            put(net, FORMS[form][UP], lora)
            run(net)(x).square().sum().backward()
            grads.append(lora.b.weight.grad)
        torch.testing.assert_close(*grads)
    torch._dynamo.reset()


@pytest.mark.parametrize("form", ["sequential", "llama", "opt"])
def test_a_change_after_compiling_is_seen(form):
    torch._dynamo.reset()
    plain, sparse, x = made(form)
    compiled = torch.compile(sparse, backend="eager")
    torch.testing.assert_close(value(compiled, x), value(plain, x))
    for net in (plain, sparse):
        changed("lora-up", net, form)
    torch.testing.assert_close(value(compiled, x), value(plain, x))
    torch._dynamo.reset()


@pytest.mark.parametrize("form", USUAL)
def test_a_state_dict_can_be_written_to_a_file_and_into(form, counted):
    """Its tensors lie row by row, share memory with the model, and the model is sparse again when they are gone."""
    plain, sparse, x = made(form)
    value(sparse, x)
    calls = len(counted)
    state = sparse.state_dict()
    assert all(tensor.is_contiguous() for tensor in state.values())
    torch.testing.assert_close(value(sparse, x), value(plain, x))
    for tensor in (*state.values(), *plain.state_dict().values()):
        tensor.mul_(-1.5)
    torch.testing.assert_close(value(sparse, x), value(plain, x))
    del state, tensor
    counted.clear()
    torch.testing.assert_close(value(sparse, x), value(plain, x))
    assert len(counted) == calls and not all(parameter.is_contiguous() for parameter in sparse.parameters())
    kept = sparse.state_dict(keep_vars=True)
    assert all(kept[name] is parameter for name, parameter in sparse.named_parameters())
    torch.testing.assert_close(value(sparse, x), value(plain, x))
    assert len(counted) == 2 * calls
    assert all(tensor.is_meta for tensor in copy.deepcopy(sparse).to("meta").state_dict().values())
    ft.densify(sparse)
    assert not any(module._state_dict_hooks for module in sparse.modules())


def test_safetensors_takes_the_state():
    safetensors = pytest.importorskip("safetensors.torch")
    plain, sparse, _ = made("opt")
    read = safetensors.load(safetensors.save(sparse.state_dict()))
    assert all(torch.equal(read[name], tensor) for name, tensor in plain.state_dict().items())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("form", ["sequential", "members", "t5", "opt"])
def test_what_leaves_the_process_has_to_be_dense(form):
    plain, sparse, x = made(form)
    outer = nn.Sequential(sparse, nn.Identity()).eval()
    text = r"got a sparsified model\. Remedy: call fewfire\.torch\.densify\(model\) first"
    with torch.no_grad():
        for model in (sparse, outer):
            with pytest.raises(ff.InvalidArgument, match=text):
                torch.export.export(model, (x,))
            with pytest.raises(ff.InvalidArgument, match=text):
                torch.jit.script(model)
            torch.testing.assert_close(torch.jit.trace(model, (x,))(2 * x), plain(2 * x))
        torch.testing.assert_close(sparse(x), plain(x))
        ft.densify(sparse)
        torch.testing.assert_close(torch.export.export(sparse, (x,)).module()(x), plain(x))
        if form != "t5":  # whose forward TorchScript does not take
            torch.testing.assert_close(torch.jit.script(sparse)(x), plain(x))


class Between(nn.Module):
    """An inlined block with something between scores and activation that begins as if it were not there."""

    def __init__(self, between):
        super().__init__()
        self.up, self.down, self.between = nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, INPUTS), between

    def forward(self, x):
        h = F.relu(self.up(x) + self.between(x))
        return self.down(h) + x


class Learned(nn.Module):
    def __init__(self):
        super().__init__()
        self.threshold = nn.Parameter(torch.tensor(0.2))

    def forward(self, x):
        return torch.where(x > self.threshold, x, 0.0)


def test_what_may_change_with_other_weights_is_left_dense():
    zeros = nn.Linear(INPUTS, WIDTH, bias=False)
    nn.init.zeros_(zeros.weight)
    fresh = like.OptLayer(INPUTS, WIDTH)
    fresh.fc1 = Lora(fresh.fc1)
    nn.init.constant_(fresh.fc1.b.weight, 0.0)
    learned = like.OptLayer(INPUTS, WIDTH)
    learned.activation_fn = Learned()
    for model, reason in (
        (Between(zeros), "between.weight is all zeros, so it cannot be seen whether it adds to the scores"),
        (fresh, "its layer fc1.base_layer is inside a Lora that has weights of its own"),
        (learned, "its activation has weights of its own, which may change"),
    ):
        model.eval()
        batch = [torch.randn(40, INPUTS)]
        try:
            (entry,) = ft.sparsify(model, batch, dense_above=ALWAYS).blocks
        except ff.InvalidArgument as error:
            assert reason in str(error)
        else:
            assert entry.block.reason == reason and not list(_sparsify.sparse_forwards(model))

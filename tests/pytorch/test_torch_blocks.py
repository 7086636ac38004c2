"""Finding the MLP blocks of PyTorch models: by watching them at work, and part by part without batches."""

import pytest

import fewfire as ff
import fewfire.torch as ft

torch = pytest.importorskip("torch")
import lookalikes as like  # noqa: E402

nn, F = torch.nn, torch.nn.functional


@pytest.fixture(autouse=True)
def same_weights():
    torch.manual_seed(0)


def stacked(layer, *options):
    return nn.Sequential(*(layer(8, 24, *options) for _ in range(2)))


CASES = {
    "opt": (lambda: stacked(like.OptLayer), "relu", None, False, ("0.fc1", "0.fc2")),
    "llama": (lambda: stacked(like.LlamaMlp), "relu", "reglu", True, ("0.up_proj", "0.gate_proj", "0.down_proj")),
    "drelu": (lambda: stacked(like.LlamaMlp, F.relu, True), "relu", "drelu", True, None),
    "relu2-gate": (lambda: stacked(like.LlamaMlp, like.Squared()), "relu2", "reglu", True, None),
    "t5": (lambda: stacked(like.T5Dense), "relu", None, True, ("0.wi", "0.wo")),
    "bert": (lambda: stacked(like.BertLayer), "relu", None, False, ("0.intermediate.dense", "0.output.dense")),
    "gpt2": (lambda: stacked(like.GptMlp), "relu", None, True, ("0.c_fc", "0.c_proj")),
    "shifted": (lambda: stacked(like.sequential, like.Shifted()), "shifted", None, True, ("0.0", "0.2")),
    "fatrelu": (lambda: stacked(like.sequential, like.FatRelu(0.125)), "threshold", None, True, None),
    "nn.Threshold": (lambda: stacked(like.sequential, nn.Threshold(0.5, 0.0)), "threshold", None, True, None),
    "relu2": (lambda: stacked(like.sequential, like.Squared()), "relu2", None, True, None),
    "relu6": (lambda: stacked(like.sequential, nn.ReLU6()), "zeros", None, False, None),
}


@pytest.mark.parametrize("watched", [False, True], ids=["parts", "batches"])
@pytest.mark.parametrize("name", CASES)
def test_blocks_of_known_models(name, watched):
    build, activation, gated, whole, layers = CASES[name]
    model = build()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    blocks = ft.find_blocks(model, [torch.randn(3, 5, 8)] if watched else None)
    assert len(blocks) == 2
    for block in blocks:
        assert (block.activation, block.gated, block.whole, block.reason) == (activation, gated, whole, None)
        assert (block.inputs, block.width, block.outputs) == (8, 24, 8)
    if layers is not None:
        assert blocks[0].layers == layers
    assert model.training and all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_thresholds_are_exact_where_a_module_can_be_asked():
    for activation, threshold in (
        (like.FatRelu(0.125), 0.125),
        (nn.Threshold(-0.5, 0.0), -0.5),
        (like.Shifted(), 0.25),
    ):
        (block,) = ft.find_blocks(like.sequential(8, 24, activation))
        assert block.threshold == threshold


def test_a_jump_inside_somebodys_forward_is_known_from_below():
    class Inlined(like.Leaky):
        def forward(self, x):
            return x + self.fc2(F.threshold(self.fc1(x), 0.25, 0.0))

    (block,) = ft.find_blocks(Inlined(8, 24), [torch.randn(500, 8)])
    assert block.activation == "zeros" and not block.whole and 0 < block.threshold <= 0.25

    class Shift(like.Leaky):
        def forward(self, x):
            return x + self.fc2(F.relu(self.fc1(x) - 0.3))

    (block,) = ft.find_blocks(Shift(8, 24), [torch.randn(500, 8)])
    assert (block.activation, block.threshold) == ("shifted", torch.tensor(0.3).item())


class Largest(nn.Module):
    """Lets the largest scores of each row through: on one row this looks like a threshold."""

    def forward(self, z):
        return torch.where(z >= z.topk(min(5, z.shape[-1])).values[..., -1:], z, torch.zeros_like(z))


class AboveMean(nn.Module):
    def forward(self, z):
        return F.relu(z - z.mean(-1, keepdim=True))


@pytest.mark.parametrize("kind", [Largest, AboveMean])
def test_thresholds_that_depend_on_the_row_are_not_taken_for_fixed_ones(kind):
    class Inlined(like.Leaky):
        def forward(self, x):
            return x + self.fc2(kind().forward(self.fc1(x)))

    for rows in (torch.randn(1, 8), torch.randn(1, 8).repeat(20, 1), torch.randn(20, 8)):
        assert ft.find_blocks(Inlined(8, 24), [rows]) == []
        assert ft.find_blocks(like.sequential(8, 24, kind()), [rows]) == []


def test_encoder_layers_of_torch_itself():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 24, batch_first=True), 2, enable_nested_tensor=False)
    for batches in (None, [torch.randn(2, 5, 8)]):
        blocks = ft.find_blocks(model, batches)
        assert [block.layers for block in blocks] == [(f"layers.{i}.linear1", f"layers.{i}.linear2") for i in range(2)]
        assert all(block.reason is None and not block.whole for block in blocks)


def test_smooth_activations_are_named_and_left_alone():
    for activation, name in (
        (nn.GELU(), "gelu"),
        (nn.GELU("tanh"), "gelu_tanh"),
        (nn.SiLU(), "silu"),
        (nn.Tanh(), "tanh"),
    ):
        (block,) = ft.find_blocks(like.sequential(8, 24, activation))
        assert (block.activation, block.threshold, block.reason) == (name, None, f"{name} has no exact zeros")
    (block,) = ft.find_blocks(like.LlamaMlp(8, 24, F.silu), [torch.randn(9, 8)])
    assert (block.activation, block.gate) == ("silu", "gate_proj")


def test_scores_that_are_used_twice_are_noticed():
    (block,) = ft.find_blocks(like.Leaky(8, 24), [torch.randn(9, 8)])
    assert not block.whole and "used elsewhere" in block.reason


def test_a_model_that_is_different_each_time_is_not_trusted():
    class Noisy(like.OptLayer):
        def forward(self, hidden):
            return super().forward(hidden) + torch.rand(1)

    class Silent(like.OptLayer):
        def forward(self, hidden):
            return float(super().forward(hidden).sum())

    for kind in (Noisy, Silent):
        (block,) = ft.find_blocks(kind(8, 24), [torch.randn(9, 8)])
        assert block.reason == "its scores are used elsewhere too, or the model gives no tensors, or others each time"


def test_layers_without_an_activation_between_are_no_block():
    assert ft.find_blocks(nn.Sequential(nn.Linear(8, 24), nn.Linear(24, 8))) == []
    positive = nn.Sequential(nn.Linear(8, 24), nn.Linear(24, 8))
    with torch.no_grad():
        positive[0].bias += 1e6  # all scores positive: as if a ReLU had let them through
    assert ft.find_blocks(positive, [torch.randn(9, 8)]) == []


def test_a_layer_that_is_also_used_in_another_way_makes_no_block():
    class Shared(like.Leaky):
        def forward(self, x):
            return self.fc2(F.relu(self.fc1(x))) + self.fc2(torch.ones(len(x), 24))

    assert ft.find_blocks(Shared(8, 24), [torch.randn(9, 8)]) == []


def test_subclasses_of_linear_count_if_they_compute_the_same():
    class Same(nn.Linear):
        def forward(self, x):
            return x @ self.weight.T + self.bias

    class Other(nn.Linear):
        def forward(self, x):
            return super().forward(x) + 1

    for kind, count in ((Same, 1), (Other, 0)):
        assert len(ft.find_blocks(nn.Sequential(kind(8, 24), nn.ReLU(), kind(24, 8)))) == count


def test_a_flattening_module_is_not_the_block_itself():
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 3))
    (block,) = ft.find_blocks(model, [torch.randn(5, 3, 4)])
    assert block.whole and block.members == ("1", "2", "3") and block.label == "[1, 3]"

    class Flat(nn.Sequential):
        def forward(self, x):
            return super().forward(x.flatten(1)) + 1

    (block,) = ft.find_blocks(Flat(*model[1:]), [torch.randn(5, 3, 4)])
    assert not block.whole and block.reason is None


def test_errors_name_model_and_batches():
    with pytest.raises(ff.InvalidArgument) as caught:
        ft.find_blocks("model")
    assert str(caught.value) == "model must be a torch.nn.Module; got a str. Remedy: pass the model itself."
    model = like.sequential(8, 24)
    for batches, got in ((torch.randn(3, 8), "a Tensor"), ({"x": 1}, "a dict"), (3, "a int")):
        with pytest.raises(ff.InvalidArgument) as caught:
            ft.find_blocks(model, batches)
        rule = "batches must be an iterable of what the model is called with"
        assert str(caught.value) == f"{rule}; got {got}. Remedy: pass [batch]."
    with pytest.raises(ff.InvalidArgument, match="batches must hold at least one batch; got none"):
        ft.find_blocks(model, [])
    with pytest.raises(
        ff.InvalidArgument, match="must be on the CPU or a CUDA device; got a parameter 0.weight on meta"
    ):
        ft.find_blocks(like.sequential(8, 24).to("meta"))
    with pytest.raises(ff.InvalidArgument) as caught:
        ft.find_blocks(torch.compile(model, backend="eager"))
    assert str(caught.value) == (
        "model must not be compiled or scripted; got a OptimizedModule. Remedy: pass the model it was made from."
    )
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        ft.find_blocks(model, [torch.randn(3, 9)])
    assert not any(module._forward_hooks for module in model.modules()) and model.training


def test_a_module_is_tried_on_rows_larger_than_those_of_the_batch():
    class Capped(like.T5Dense):
        def forward(self, x):
            return self.wo(torch.relu(self.wi(x)).clamp(max=50.0))

    (block,) = ft.find_blocks(Capped(8, 24), [torch.randn(200, 8)])
    assert not block.whole and block.activation == "relu" and block.reason is None


def test_a_gate_with_a_jump_inside_somebodys_forward():
    model = like.LlamaMlp(8, 24, lambda z: F.threshold(z, 0.125, 0.0))
    (block,) = ft.find_blocks(model, [torch.randn(500, 8)])
    assert (block.activation, block.gated, block.gate, block.whole) == ("zeros", "reglu", "gate_proj", False)
    assert 0 < block.threshold <= 0.125


def test_a_block_that_is_called_twice_and_keywords():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(8, 24), nn.Linear(24, 8)

        def forward(self, *, left, right):
            return sum(self.fc2(F.threshold(self.fc1(x), 0.125, 0.0)) for x in (left, right)), {"none": None}

    batch = {"left": torch.randn(500, 8), "right": 0.01 * torch.randn(500, 8)}
    (block,) = ft.find_blocks(Twice(), [batch])
    assert block.activation == "zeros" and 0 < block.threshold <= 0.125 and block.reason is None

    class Apart(Twice):
        def forward(self, *, left, right):
            return self.fc2(F.relu(self.fc1(left))) + self.fc2(F.gelu(self.fc1(right)))

    assert ft.find_blocks(Apart(), [batch]) == []


def test_weights_that_are_parts_of_others_are_left_alone():
    model = like.sequential(8, 24)
    model[2].weight = nn.Parameter(torch.randn(16, 24)[:8])
    report = ft.sparsify(nn.ModuleList([model, like.sequential(8, 24)]), dense_above=3)
    assert report.blocks[0].block.reason == (
        "of 0.2: its weight is a part of a larger storage, which cannot be laid out anew"
    )

"""Lazy neurons: the decoder and its cache, training on text and digits, weights in files, and the recipes on top."""

import dataclasses
import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from fewfire._errors import InvalidArgument
from fewfire.papers import recipes
from fewfire.papers.sparse_activations.recipes import _shared, inducing, lazy_neurons, learn_back

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NAMES = ("sparse-activations/inducing", "sparse-activations/lazy-neurons", "sparse-activations/learn-back")


@pytest.fixture
def language():
    """The modules that need PyTorch."""
    pytest.importorskip("torch")
    from fewfire.papers.sparse_activations.lazy_neurons import language

    return language


@pytest.fixture
def shape(language):
    return language.DecoderShape(model=16, width=48, layers=2, heads=2, context=24)


@pytest.fixture
def script(language, monkeypatch):
    """The benchmark that decodes, saves and loads."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("sparse_transformer")


def test_the_cache_decodes_as_the_whole_window_does(language, shape, script):
    import torch

    torch.manual_seed(0)
    model = language.Decoder(shape)
    with torch.no_grad():
        model.embedding.weight.mul_(20)  # so that the choices are clear
    made, margins = script.decode(model, b"def f(", 12)
    assert len(made) == len(margins) == 12 and min(margins) > 1e-4
    with torch.inference_mode():
        logits = model(torch.tensor([list(b"def f(" + made)]))[0]
    assert bytes(logits[5:-1].argmax(dim=1).tolist()) == made
    assert model.count() == 16 * (256 + 24 + 2) + 2 * (2 * 16 * (16 + 8 + 1) + 2 * 8 + 2 * 16 * 48 + 48 + 5 * 16)


def test_a_prompt_and_its_answer_must_fit(language, shape, script):
    with pytest.raises(ValueError, match="prompt must have 1 to 14 bytes, so that all fits into the context; got 20"):
        script.decode(language.Decoder(shape), b"x" * 20, 10)


def test_a_token_sees_none_after_it(language, shape):
    import torch

    model = language.Decoder(shape)
    tokens = torch.randint(256, (1, 10), generator=torch.Generator().manual_seed(0))
    other = tokens.clone()
    other[0, 7:] = 0
    with torch.inference_mode():
        assert torch.allclose(model(tokens)[0, :7], model(other)[0, :7], atol=1e-5)


def test_training_is_a_function_of_its_seed_and_lowers_the_loss(language, shape):
    import torch

    text = (b"the cat sat on the mat. " * 200, b"the cat sat on the mat. " * 10)
    training = language.LanguageTraining(steps=40, batch_size=4, learning_rate=1e-2, checkpoints=3, windows=4)
    state = torch.get_rng_state()
    first, again = (language.train_decoder(shape, training, text, seed=3, device="cpu") for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    assert first.curve == again.curve
    assert [row["step"] for row in first.curve] == training.measured_steps() == [0, 1, 6, 40]
    assert first.curve[-1]["loss"] < 0.5 * first.curve[0]["loss"]
    assert all(len(row["activity"]) == len(row["half_width"]) == 2 for row in first.curve)
    assert 0.3 < np.mean(first.curve[0]["activity"]) < 0.7


def test_a_penalty_joins_the_loss(language, shape):
    import fewfire.torch as ft

    text = (b"the cat sat on the mat. " * 200, b"the cat sat on the mat. " * 10)
    training = language.LanguageTraining(steps=60, batch_size=4, learning_rate=1e-2, checkpoints=2, windows=4)
    plain = language.train_decoder(shape, training, text, device="cpu")
    penalised = language.train_decoder(
        shape, training, text, device="cpu", penalty=lambda model: ft.ActivityPenalty(model, 3.0)
    )
    assert np.mean(penalised.curve[-1]["activity"]) < np.mean(plain.curve[-1]["activity"])
    assert not any(module._forward_hooks for module in penalised.model.modules())


def test_learning_rates_rise_and_fall(language):
    rates = [language.LanguageTraining(steps=100, batch_size=1).rate(step) for step in range(101)]
    assert rates[0] == pytest.approx(2e-4) and max(rates) == pytest.approx(1e-3)
    assert rates[-1] == pytest.approx(1e-4) and rates[5:] == sorted(rates[5:], reverse=True)


def test_the_standard_library_is_long_and_validation_files_are_apart(language, tmp_path, monkeypatch):
    train, validation = language.standard_library()
    assert len(train) > 10 * len(validation) > 1_000_000
    assert b"def " in validation and validation[:200] not in train
    monkeypatch.setattr(language.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    with pytest.raises(InvalidArgument, match="the standard library must have a megabyte of source files; got"):
        language.standard_library()


def test_weights_come_back_rounded_to_bfloat16(language, shape, script, tmp_path, monkeypatch):
    import torch

    monkeypatch.setattr(script, "SHARD_BYTES", 4000)
    trained = language.TrainedDecoder(language.Decoder(shape), [{"step": 0, "activity": [0.5, 0.5]}], 1.5)
    files = script.save_decoder(trained, tmp_path / "decoder")
    assert len(files) > 3 and all(path.exists() for path in files)
    model, facts = script.load_decoder(tmp_path / "decoder")
    assert facts["curve"] == trained.curve and model.shape == shape
    for name, weight in trained.model.state_dict().items():
        assert torch.equal(model.state_dict()[name], weight.to(torch.bfloat16).float())
    with pytest.raises(FileNotFoundError):
        script.load_decoder(tmp_path)


def test_a_network_does_not_depend_on_its_company():
    pytest.importorskip("torch")
    from fewfire.papers.sparse_activations.lazy_neurons._digits import train_digits

    alone, together = (train_digits(16, 2, seeds, 2) for seeds in (1, 3))
    assert alone["epochs"] == together["epochs"] == [0, 1, 2]
    shares = np.array(together["activity"])
    assert shares.shape == (3, 2, 3)
    np.testing.assert_allclose(np.array(alone["activity"])[:, :, 0], shares[:, :, 0], atol=2e-3)
    assert alone["accuracy"][0] == pytest.approx(together["accuracy"][0], abs=0.01)
    assert min(together["accuracy"]) > 0.6


TINY = {
    "sparse-activations/lazy-neurons": dataclasses.replace(
        lazy_neurons.RECIPE.scales["quick"],
        widths=(8, 16, 24),
        depths=(1, 2),
        seeds=3,
        epochs=2,
        model=16,
        decoders=((32, 0), (32, 1)),
        layers=2,
        heads=2,
        context=16,
        steps=3,
        batch_size=2,
    ),
    "sparse-activations/inducing": inducing.InducingSettings(seeds=2, epochs=1, tuning=1),
    "sparse-activations/learn-back": learn_back.LearnBackSettings(seeds=1, width=6, epochs=2, target=0.2, samples=2000),
}


@pytest.mark.parametrize("name", NAMES)
def test_recipes_give_plain_data_and_a_figure(name):
    pytest.importorskip("torch")
    result = recipes.find(name).run(settings=TINY[name])
    assert len(result.judgements) >= 4 and result.measured
    table = json.loads(json.dumps(result.to_dict()))
    assert table == result.to_dict()
    pytest.importorskip("matplotlib")
    assert recipes.plot(table).axes


def test_errors_of_neurons_are_those_that_the_degree_predicts():
    pytest.importorskip("torch")
    result = recipes.find("sparse-activations/learn-back").run(settings=TINY["sparse-activations/learn-back"])
    for row in result.data["rows"]:
        assert row["error"] == pytest.approx(row["predicted"], rel=0.3, abs=0.02)
        assert 0 < row["bounded"] <= 1
    assert all(row["sensitivity"] <= row["sensitivity_bound"] for row in result.data["blocks"])


@pytest.mark.parametrize("name", NAMES)
def test_without_pytorch_recipes_name_what_is_missing(name, monkeypatch):
    monkeypatch.setattr(_shared, "is_installed", lambda package: False)
    result = recipes.run(name)
    assert result.data == {"rows": [], "skipped": "PyTorch is not installed: pip install 'fewfire[torch]'"}
    assert not result.judgements

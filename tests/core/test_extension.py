"""The one switch that hides the C++ part, and the names the extension gives to its choices."""

from __future__ import annotations

import numpy as np
import pytest

from fewfire import _extension
from fewfire._bits import pack
from fewfire.engines import CpuEngine
from fewfire.engines._gradients import LOSSES
from fewfire.halfspace import Index


def test_everything_runs_without_it_inside_the_switch(core, recwarn):
    signs = np.where(np.arange(130).reshape(2, 65) % 3 == 0, -1, 1).astype(np.int8)
    expected = pack(signs)
    with _extension.without_extension():
        assert _extension.core() is None
        assert _extension.load() is None
        np.testing.assert_array_equal(pack(signs), expected)
        assert "Remedy: install a C++20 compiler" in CpuEngine().unusable()
        assert type(Index(np.eye(3))._kept["scan"]).__name__ == "ReferenceReporter"
    assert _extension.core() is core
    assert len(recwarn) == 0


def test_switches_nest_and_survive_an_error(core):
    with pytest.raises(KeyError), _extension.without_extension():
        with _extension.without_extension():
            pass
        assert _extension.core() is None
        raise KeyError
    assert _extension.core() is core


def trainer(core, **changes):
    arrays = np.ones((2, 3), np.float32), np.ones(2, np.float32), np.ones(2, np.float32)
    options = {"loss": "hinge", "activation": "relu", "sampling": "epochs", "threshold": 0.0, "boolean_labels": True}
    counts = {"key": 1, "batch_stream": 2, "epoch_stream": 3, "stop_error": -1.0, "checkpoints": [0], "support": []}
    return core.Trainer(*arrays, 0.0, **{**options, **counts, **changes})


def test_the_extension_has_every_loss_by_name(core):
    assert set(core.LOSSES) == set(LOSSES)
    assert core.ACTIVATIONS == ("relu", "relu6", "shifted_relu")
    assert core.SAMPLINGS == ("replacement", "epochs", "online")
    assert trainer(core).stopped is None


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"loss": "huber"}, "loss must be one of 'hinge', 'logistic', 'square', 'absolute'; got 'huber'"),
        ({"activation": "gelu"}, "activation must be one of 'relu', 'relu6', 'shifted_relu'; got 'gelu'"),
        ({"sampling": ""}, "sampling must be one of 'replacement', 'epochs', 'online'; got ''"),
    ],
)
def test_unknown_names_list_the_known_ones(core, changes, text):
    with pytest.raises(ValueError, match=text):
        trainer(core, **changes)

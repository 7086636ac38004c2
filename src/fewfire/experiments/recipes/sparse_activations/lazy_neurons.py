"""Lazy neurons: ReLU networks trained from scratch, with nothing to make them sparse, end with few neurons that fire.

The opening of sparse-activations (networks of which a few percent of the neurons fire), seen happening: perceptrons of
several widths and depths on scikit-learn's digits, one per seed, and small ReLU transformers on the source of Python's
standard library. All start at one half.

Expect the transformer's activity to fall below a third of its start within a hundred steps, in all layers but the
first. On digits it takes width: at 512 neurons the later layers fall to a fifth, at 32 they rise. The claims are about
wide networks and layers after the first, and would be refuted by activities that stay or rise there. Two transformers
at quick scale are too few to judge what width does to them; their activities are told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from fewfire._optional import is_installed
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement
from fewfire.experiments.recipes._statistics import in_most, rising

if TYPE_CHECKING:
    from fewfire._types import FloatArray


@dataclass(frozen=True)
class LazySettings:
    """On digits widths, depths, networks per shape and epochs; on text the decoder, its widths, and its training."""

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    seeds: int
    epochs: int
    model: int
    decoder_widths: tuple[int, ...]
    layers: int
    heads: int
    context: int
    steps: int
    batch_size: int
    learning_rate: float


def measure(settings: LazySettings) -> RecipeOutcome:
    """Activity by epoch, layer, width and depth on digits ("perceptrons"), by step, layer and width on text."""
    parameters = {"seeds": settings.seeds, "epochs": settings.epochs, "steps": settings.steps}
    if not is_installed("torch"):
        reason = "PyTorch is not installed: pip install 'fewfire[torch]'"
        return RecipeOutcome(
            parameters=parameters, judgements=[], measured=[reason], data={"rows": [], "skipped": reason}
        )
    perceptrons, decoders = _digits(settings), _text(settings)
    wide = [row for row in perceptrons if row["width"] == settings.widths[-1]]
    ends = np.array([row["final"] for row in perceptrons]).reshape(len(settings.depths), len(settings.widths), -1)
    falls = [end < start for row in wide for start, end in zip(row["initial"], row["final"], strict=True)]
    deep = [row for row in wide if row["depth"] > 1]
    later = [last < first for row in deep for first, last in zip(row["first"], row["last"], strict=True)]
    shares = [np.mean(row["curve"][-1]["activity"]) for row in decoders]
    high = [share + np.mean(row["curve"][-1]["half_width"]) for share, row in zip(shares, decoders, strict=True)]
    starts = [np.mean(row["curve"][0]["activity"]) for row in decoders]
    broad = settings.widths[-1]
    judgements = [
        Judgement(
            f"digits, width {broad}: activity falls", "p of the sign test", in_most(sum(falls), len(falls)), 0.01
        ),
        Judgement(
            "digits: wider networks are lazier at the end",
            "p of Page's trend test over widths",
            rising(-ends.transpose(0, 2, 1).reshape(-1, len(settings.widths))),
            0.001,
        ),
        Judgement(
            f"digits, width {broad}: the last layer is lazier than the first",
            "p of the sign test",
            in_most(sum(later), len(later)),
            0.01,
        ),
        Judgement(
            "text: activity falls",
            "largest end of the 95% interval at the last step, over the start",
            max(end / start for end, start in zip(high, starts, strict=True)),
            0.75,
        ),
        Judgement(
            "text: later layers are lazier than the first",
            "largest end of a later layer's 95% interval, over the lower end of the first's",
            max(_depth_ratio(row["curve"][-1]) for row in decoders),
            1.0,
        ),
    ]
    return RecipeOutcome(
        parameters=parameters,
        judgements=judgements,
        measured=[_narrow(perceptrons, settings), *(_sentence(row) for row in decoders)],
        data={"perceptrons": perceptrons, "transformers": decoders},
    )


def _digits(settings: LazySettings) -> list[dict[str, Any]]:
    """One row per shape: activity by epoch and layer, and mean activities at both ends per network."""
    from fewfire.experiments.lazy_neurons._digits import DigitsTraining, train_digits

    rows = []
    for depth in settings.depths:
        for width in settings.widths:
            found = train_digits(width, depth, settings.seeds, DigitsTraining(settings.epochs))
            activity = np.array(found["activity"])
            rows.append(
                {
                    "depth": depth,
                    "width": width,
                    "epochs": found["epochs"],
                    "activity": activity.mean(axis=2).round(4).tolist(),
                    "half_width": _half_width(activity).round(4).tolist(),
                    "initial": activity[0].mean(axis=0).tolist(),
                    "final": activity[-1].mean(axis=0).tolist(),
                    "first": activity[-1, 0].tolist(),
                    "last": activity[-1, -1].tolist(),
                    "accuracy": float(np.mean(found["accuracy"])),
                }
            )
    return rows


def _text(settings: LazySettings) -> list[dict[str, Any]]:
    """One row per decoder, narrow to wide."""
    from fewfire.experiments.lazy_neurons._decoder import DecoderShape
    from fewfire.experiments.lazy_neurons._language import LanguageTraining, standard_library, train_decoder

    rows, text = [], standard_library()
    training = LanguageTraining(settings.steps, settings.batch_size, settings.learning_rate)
    for width in settings.decoder_widths:
        shape = DecoderShape(settings.model, width, settings.layers, settings.heads, settings.context)
        trained = train_decoder(shape, training, text)
        rows.append({"width": width, "parameters": shape.parameters, "curve": trained.curve})
    return rows


def _half_width(activity: FloatArray) -> FloatArray:
    """Half the 95% interval of the mean over the last axis, the networks, by Student's distribution."""
    count = activity.shape[-1]
    error = activity.std(axis=-1, ddof=1) / np.sqrt(count)
    return np.asarray(stats.t.ppf(0.975, count - 1) * error)


def _depth_ratio(last: dict[str, Any]) -> float:
    """The highest end of a later layer's interval over the low end of the first layer's."""
    activity, half = np.array(last["activity"]), np.array(last["half_width"])
    return float((activity + half)[1:].max() / (activity - half)[0])


def _narrow(rows: list[dict[str, Any]], settings: LazySettings) -> str:
    """What the narrowest perceptrons do."""
    narrow = [row for row in rows if row["width"] == settings.widths[0]]
    parts = ", ".join(f"{np.mean(row['final']):.0%} at depth {row['depth']}" for row in narrow)
    return f"digits at width {settings.widths[0]}: {parts}"


def _sentence(row: dict[str, Any]) -> str:
    last = row["curve"][-1]
    layers = ", ".join(f"{a:.1%} ± {h:.1%}" for a, h in zip(last["activity"], last["half_width"], strict=True))
    return f"transformer of {row['parameters']:,} parameters, width {row['width']}: {layers} fire by layer"


RECIPE = Recipe(
    name="sparse-activations/lazy-neurons",
    title="Activity falling in training, by depth and width: perceptrons on digits, a ReLU transformer on source code",
    seconds=60,
    expectation="from one half to a third of that in the transformer's later layers; on digits the wider, the lazier",
    figure="lazy_neurons",
    scales={
        "quick": LazySettings(
            widths=(32, 128, 512),
            depths=(1, 2, 3),
            seeds=5,
            epochs=16,
            model=128,
            decoder_widths=(256, 1024),
            layers=4,
            heads=4,
            context=128,
            steps=100,
            batch_size=16,
            learning_rate=2e-3,
        ),
        "paper": LazySettings(
            widths=(32, 128, 512, 2048),
            depths=(1, 2, 4),
            seeds=10,
            epochs=64,
            model=512,
            decoder_widths=(1024, 4096),
            layers=5,
            heads=8,
            context=512,
            steps=2500,
            batch_size=64,
            learning_rate=1e-3,
        ),
    },
    measure=measure,
    paper_seconds=170_000,
)

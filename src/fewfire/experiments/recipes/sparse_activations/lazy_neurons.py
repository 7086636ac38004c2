"""Lazy neurons: ReLU networks trained from scratch, with nothing to make them sparse, end with few neurons that fire.

The opening of sparse-activations (networks of which a few percent of the neurons fire), seen happening: perceptrons of
several widths and depths on scikit-learn's digits, one per seed, and small ReLU transformers on the source of Python's
standard library. All start at one half.

Expect the transformer's activity to fall below a third of its start within a hundred steps, in all layers but the
first. On digits it takes width: at 512 neurons the later layers fall to a fifth, at 32 they rise. The claims are about
wide networks and layers after the first, and would be refuted by activities that stay or rise there. The trial is the
network: intervals are over networks, those of the figure for transformers over held-out windows. Three transformers at
quick scale are too few to judge what width does to them; their activities are told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from fewfire._optional import is_installed
from fewfire.experiments.recipes import _effects
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement, Power
from fewfire.experiments.recipes._power import in_most_power, mean_power, rising_power
from fewfire.experiments.recipes._statistics import in_most, rising

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import FloatArray

LEVEL, TREND, END, LAZIER = 0.01, 0.001, 0.025, 0.01
FALLS, WIDER, LATER = 0.9, 0.05, 0.1
"""The power is for: nine networks in ten whose activity falls; five points less at each width; ten in a later layer."""
KEPT, HALVED, LAYERS = 0.75, 0.5, 0.75
"""On text: the share of the start's activity that is too much, the share the power is for, and a later layer's share
of the first's that the power is for."""


@dataclass(frozen=True)
class LazySettings:
    """On digits widths, depths, networks per shape and epochs; on text pairs of width and seed, and the training."""

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    seeds: int
    epochs: int
    model: int
    decoders: tuple[tuple[int, int], ...]
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
    from fewfire.experiments.lazy_neurons import one_torch_thread

    with one_torch_thread():
        perceptrons, decoders = _digits(settings), _text(settings)
    return RecipeOutcome(
        parameters=parameters,
        judgements=judge(perceptrons, decoders),
        measured=[_narrow(perceptrons, settings), *(_sentence(row) for row in decoders)],
        data={"perceptrons": perceptrons, "transformers": decoders},
    )


def judge(perceptrons: Sequence[dict[str, Any]], decoders: Sequence[dict[str, Any]]) -> list[Judgement]:
    """The claims on activities of perceptrons by width and depth, and of transformers, at both ends of training."""
    widths, depths = (sorted({row[key] for row in perceptrons}) for key in ("width", "depth"))
    wide = [row for row in perceptrons if row["width"] == widths[-1]]
    falls = np.concatenate([np.subtract(row["initial"], row["final"]) for row in wide])
    # One row per network, one column per width: a seed and a depth are a block.
    ends = np.concatenate(
        [np.array([row["final"] for row in perceptrons if row["depth"] == depth]).T for depth in depths]
    )
    noise = float(np.sqrt(np.mean([np.var(row["final"], ddof=1) for row in perceptrons])))  # what depth does is none
    later = np.concatenate([np.subtract(row["first"], row["last"]) for row in wide if row["depth"] > 1])
    lazier = _effects.mean("activity of the first layer less that of the last", later)
    starts, last = ([np.array(row["curve"][place]["activity"]) for row in decoders] for place in (0, -1))
    kept = [float(end.mean() / start.mean()) for start, end in zip(starts, last, strict=True)]
    shares = [float(end[1:].max() / end[0]) for end in last]
    text = _effects.mean("activity at the end over that at the start", kept)
    layers = _effects.mean("activity of the busiest later layer over that of the first", shares)
    of_wide = f"digits, width {widths[-1]}"
    return [
        Judgement(
            f"{of_wide}: activity falls",
            "p of the sign test",
            in_most(int(np.count_nonzero(falls > 0)), len(falls)),
            LEVEL,
            refuted_by="activities that stay or rise in several networks",
            effect=_effects.mean("fall of the activity in training", falls),
            power=Power("a fall in nine networks of ten", in_most_power(FALLS, len(falls), LEVEL)),
        ),
        Judgement(
            "digits: wider networks are lazier at the end",
            "p of Page's trend test over widths",
            rising(-ends),
            TREND,
            refuted_by="activities that do not fall from width to width",
            effect=_effects.mean(
                f"activity at width {widths[-1]} less that at width {widths[0]}", ends[:, -1] - ends[:, 0]
            ),
            power=Power(
                "five points less at each width",
                rising_power([-WIDER * place for place in range(len(widths))][::-1], noise, len(ends), TREND),
            ),
        ),
        Judgement(
            f"{of_wide}: the last layer is lazier than the first, by a point at least",
            "mean activity of the first layer less that of the last, lower end",
            lazier.low,
            LAZIER,
            "at least",
            refuted_by="a last layer that may be within a point of the first",
            effect=lazier,
            power=Power(
                "ten points less in the last layer",
                mean_power(LATER - LAZIER, float(np.std(later, ddof=1)), len(later), END),
            ),
        ),
        Judgement(
            "text: activity falls",
            "mean activity at the last step over that at the start, upper end over networks",
            text.high,
            KEPT,
            refuted_by="transformers that may keep three quarters of their activity",
            effect=text,
            power=Power("activity that halves", mean_power(KEPT - HALVED, float(np.std(kept, ddof=1)), len(kept), END)),
        ),
        Judgement(
            "text: later layers are lazier than the first",
            "largest activity of a later layer over that of the first, upper end over networks",
            layers.high,
            1.0,
            refuted_by="transformers of which a later layer may be as active as the first",
            effect=layers,
            power=Power(
                "later layers a quarter less active",
                mean_power(1 - LAYERS, float(np.std(shares, ddof=1)), len(shares), END),
            ),
        ),
    ]


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
    """One row per decoder, in the order of the settings."""
    from fewfire.experiments.lazy_neurons._decoder import DecoderShape
    from fewfire.experiments.lazy_neurons._language import LanguageTraining, standard_library, train_decoder

    rows, text = [], standard_library()
    training = LanguageTraining(settings.steps, settings.batch_size, settings.learning_rate)
    for width, seed in settings.decoders:
        shape = DecoderShape(settings.model, width, settings.layers, settings.heads, settings.context)
        trained = train_decoder(shape, training, text, seed=seed)
        rows.append({"width": width, "seed": seed, "parameters": shape.parameters, "curve": trained.curve})
    return rows


def _half_width(activity: FloatArray) -> FloatArray:
    """Half the 95% interval of the mean over the last axis, the networks, by Student's distribution."""
    count = activity.shape[-1]
    error = activity.std(axis=-1, ddof=1) / np.sqrt(count)
    return np.asarray(stats.t.ppf(0.975, count - 1) * error)


def _narrow(rows: list[dict[str, Any]], settings: LazySettings) -> str:
    """What the narrowest perceptrons do."""
    narrow = [row for row in rows if row["width"] == settings.widths[0]]
    parts = ", ".join(f"{np.mean(row['final']):.0%} at depth {row['depth']}" for row in narrow)
    return f"digits at width {settings.widths[0]}: {parts}"


def _sentence(row: dict[str, Any]) -> str:
    last = row["curve"][-1]
    layers = ", ".join(f"{a:.1%} ± {h:.1%}" for a, h in zip(last["activity"], last["half_width"], strict=True))
    return (
        f"transformer of {row['parameters']:,} parameters, width {row['width']}, seed {row['seed']}: "
        f"{layers} fire by layer"
    )


RECIPE = Recipe(
    name="sparse-activations/lazy-neurons",
    title="Activity falling in training, by depth and width: perceptrons on digits, a ReLU transformer on source code",
    seconds=75,
    expectation="from one half to a third of that in the transformer's later layers; on digits the wider, the lazier",
    figure="lazy_neurons",
    scales={
        "quick": LazySettings(
            widths=(32, 128, 512),
            depths=(1, 2, 3),
            seeds=5,
            epochs=16,
            model=128,
            decoders=((256, 0), (256, 1), (1024, 0)),
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
            decoders=((1024, 0), (1024, 1), (4096, 0), (4096, 1)),
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

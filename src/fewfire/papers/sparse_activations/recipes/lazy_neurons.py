"""Lazy neurons: ReLU networks trained from scratch, with nothing to make them sparse, end with few neurons that fire.

Perceptrons of several widths and depths on scikit-learn's digits, one per seed, and small ReLU transformers on the
source of Python's standard library; all start at one half. On digits it takes width: at 512 neurons the later layers
fall to a fifth, at 32 they rise, so the claims are about wide networks and layers after the first. The trial is the
network: intervals are over networks, those of the figure for transformers over validation windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

from fewfire.papers import _effects
from fewfire.papers._claims import Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, grouped, rows_of
from fewfire.papers._statistics import in_most, in_most_power, spread_power
from fewfire.papers.sparse_activations.recipes import _shared
from fewfire.report._figure import SomeAxes, canvas, colour

LEVEL, TREND, END, LAZIER = 0.01, 0.001, 0.025, 0.01
FALLS, WIDER, LATER = 0.9, 0.05, 0.1
"""The power is for: nine networks in ten whose activity falls; five points less at each width; ten in a later layer."""
KEPT, HALVED, LAYERS = 0.75, 0.5, 0.75
"""On text: the share of the start's activity that is too much, the share the power is for, and a later layer's share
of the first's that the power is for."""


@dataclass(frozen=True)
class LazySettings:
    """On digits widths, depths, networks per shape and epochs; on text pairs of width and seed, and the training."""

    widths: tuple[int, ...] = (32, 128, 512)
    depths: tuple[int, ...] = (1, 2, 3)
    seeds: int = 5
    epochs: int = 16
    model: int = 128
    decoders: tuple[tuple[int, int], ...] = ((256, 0), (256, 1), (1024, 0))
    layers: int = 4
    heads: int = 4
    context: int = 128
    steps: int = 100
    batch_size: int = 16
    learning_rate: float = 2e-3


@_shared.needs_torch
def measure(settings: LazySettings) -> RecipeOutcome:
    """Activity by epoch, layer, width and depth on digits ("perceptrons"), by step, layer and width on text."""
    from fewfire.papers.sparse_activations.lazy_neurons import language

    perceptrons = _digits(settings)
    width, narrow = next(iter(grouped(perceptrons, "width").items()))
    parts = ", ".join(f"{np.mean(row['final']):.0%} at depth {row['depth']}" for row in narrow)
    sentences, decoders = [f"digits at width {width}: {parts}"], []
    text = language.standard_library()
    training = language.LanguageTraining(settings.steps, settings.batch_size, settings.learning_rate)
    for width, seed in settings.decoders:
        shape = language.DecoderShape(settings.model, width, settings.layers, settings.heads, settings.context)
        trained = language.train_decoder(shape, training, text, seed=seed)
        count, last = trained.model.count(), trained.curve[-1]
        decoders.append({"width": width, "seed": seed, "parameters": count, "curve": trained.curve})
        layers = ", ".join(f"{a:.1%} ± {h:.1%}" for a, h in zip(last["activity"], last["half_width"], strict=True))
        kind = f"transformer of {count:,} parameters, width {width}, seed {seed}"
        sentences.append(f"{kind}: {layers} fire by layer")
    return RecipeOutcome(
        parameters={"seeds": settings.seeds, "epochs": settings.epochs, "steps": settings.steps},
        judgements=judge(perceptrons, decoders),
        measured=sentences,
        data={"perceptrons": perceptrons, "transformers": decoders},
    )


def judge(perceptrons: list[Row], decoders: list[Row]) -> list[Judgement]:
    """The claims on activities of perceptrons by width and depth, and of transformers, at both ends of training."""
    widths = sorted({row["width"] for row in perceptrons})
    wide = grouped(perceptrons, "width")[widths[-1]]
    falls = np.concatenate([np.subtract(row["initial"], row["final"]) for row in wide])
    # One row per network, one column per width: a seed and a depth are a block.
    of_depth = grouped(perceptrons, "depth").values()
    ends = np.concatenate([np.array([row["final"] for row in mine]).T for mine in of_depth])
    noise = float(np.sqrt(np.mean([np.var(row["final"], ddof=1) for row in perceptrons])))  # what depth does is none
    later = np.concatenate([np.subtract(row["first"], row["last"]) for row in wide if row["depth"] > 1])
    starts, last = ([np.array(row["curve"][place]["activity"]) for row in decoders] for place in (0, -1))
    kept = [float(end.mean() / start.mean()) for start, end in zip(starts, last, strict=True)]
    shares = [float(end[1:].max() / end[0]) for end in last]
    trend, change, noticed = _shared.falling(ends, WIDER, TREND, noise)
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
            trend,
            TREND,
            refuted_by="activities that do not fall from width to width",
            effect=_effects.mean(f"activity at width {widths[-1]} less that at width {widths[0]}", change),
            power=Power("five points less at each width", noticed),
        ),
        _effects.mean("activity of the first layer less that of the last", later).at_least(
            f"{of_wide}: the last layer is lazier than the first, by a point at least",
            "mean activity of the first layer less that of the last, lower end",
            LAZIER,
            "a last layer that may be within a point of the first",
            Power("ten points less in the last layer", spread_power(later, LATER - LAZIER, END)),
        ),
        _effects.mean("activity at the end over that at the start", kept).at_most(
            "text: activity falls",
            "mean activity at the last step over that at the start, upper end over networks",
            KEPT,
            "transformers that may keep three quarters of their activity",
            Power("activity that halves", spread_power(kept, KEPT - HALVED, END)),
        ),
        _effects.mean("activity of the busiest later layer over that of the first", shares).at_most(
            "text: later layers are lazier than the first",
            "largest activity of a later layer over that of the first, upper end over networks",
            1.0,
            "transformers of which a later layer may be as active as the first",
            Power("later layers a quarter less active", spread_power(shares, 1 - LAYERS, END)),
        ),
    ]


def _digits(settings: LazySettings) -> list[Row]:
    """One row per shape: activity by epoch and layer, and mean activities at both ends per network."""
    from fewfire.papers.sparse_activations.lazy_neurons._digits import train_digits

    rows = []
    for depth, width in product(settings.depths, settings.widths):
        found = train_digits(width, depth, settings.seeds, settings.epochs)
        activity = np.array(found["activity"])
        half_width = stats.t.ppf(0.975, settings.seeds - 1) * stats.sem(activity, axis=2)  # over networks
        means = {"activity": activity.mean(axis=2).round(4), "half_width": half_width.round(4)}
        ends = {"initial": activity[0].mean(axis=0), "final": activity[-1].mean(axis=0)}
        layers = {"first": activity[-1, 0], "last": activity[-1, -1]}
        numbers = {key: array.tolist() for key, array in (means | ends | layers).items()}
        accuracy = float(np.mean(found["accuracy"]))
        rows.append({"depth": depth, "width": width, "epochs": found["epochs"], **numbers, "accuracy": accuracy})
    return rows


def plot_lazy_neurons(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/lazy-neurons: activity in training, on digits by width and depth, in transformers by layer."""
    digits, transformers = rows_of(info, "perceptrons", "transformers")
    text = [first for first, *_ in grouped(transformers, "width").values()]  # the first of each width
    title = "Neurons grow lazy in training (95% intervals)"
    figure, axes = canvas(1 + len(text), size=(9.0, 7.0), across=2, ax=ax, title=title, sharey=True)
    widths, depths = (sorted(grouped(digits, key)) for key in ("width", "depth"))
    for row in digits:
        values, errors = (np.array(row[key])[:, -1] for key in ("activity", "half_width"))
        ink, dashes = colour(widths.index(row["width"])), ("-", "--", ":", "-.")[depths.index(row["depth"]) % 4]
        style: dict[str, Any] = {"color": ink, "linestyle": dashes, "linewidth": 1.2, "capsize": 2}
        label = f"width {row['width']}, depth {row['depth']}"
        axes[0].errorbar(np.array(row["epochs"]) + 1, values, yerr=errors, **style, label=label)
    axes[0].set_title("digits: last hidden layer", fontsize=10)
    axes[0].set_xlabel("epoch + 1")
    for axis, row in zip(axes[1:], text, strict=True):
        columns = ("step", "activity", "half_width")
        steps, activity, halves = (np.array([entry[key] for entry in row["curve"]]) for key in columns)
        for layer in range(activity.shape[1]):
            label = f"layer {layer + 1}"
            style = {"color": colour(layer), "capsize": 2}
            axis.errorbar(steps + 1, activity[:, layer], yerr=halves[:, layer], **style, label=label)
        axis.set_title(f"transformer, {row['parameters'] / 1e6:.1f} M, mlp of {row['width']}", fontsize=10)
        axis.set_xlabel("step + 1")
    for axis in axes:
        axis.set(xscale="log", ylim=(0, 1.05))
        axis.legend(fontsize=7, loc="upper left", ncols=2)
    for axis in axes[::2]:
        axis.set_ylabel("share of neurons that fire")
    return figure


RECIPE = Recipe(
    title="Activity falling in training, by depth and width: perceptrons on digits, a ReLU transformer on source code",
    seconds=(75, 170_000),
    expectation="from one half to a third of that in the transformer's later layers; on digits the wider, the lazier",
    figure=plot_lazy_neurons,
    quick=LazySettings(),
    paper=LazySettings(
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
    measure=measure,
    from_paper=("*: activity falls",),
)

"""Learn it back: the neurons of a trained, sparsified block as targets of the low-degree algorithm.

A ReLU block is trained on ±1 images (scikit-learn's digits, 4×4 signs), plainly and with a target activity
(`fewfire.torch.ActivityPenalty`). Each of its neurons is then a function on the cube {−1, +1}¹⁶, learned from uniform
examples by regression of degree 3, and all of its spectrum is known. What predicts how well it goes?

- the degree: tail(3)·m/(m − D) over the variance, exact in expectation;
- the sensitivity: tail(d) ≤ AS/(d + 1), and AS ≤ 2p‖w‖² for a neuron that fires with probability p, since a flip of
  x_i changes it by at most 2|w_i|, and only where it fires before or after (the proof of
  `theory.sparse_activations.average_sensitivity_sharp`, for one neuron). Only bounds: judged by rank.

Expect errors within a few hundredths of what the degree says, and sensitivity over variance to rank neurons nearly as
well. The sparser a neuron, the larger its error relative to its variance, and the smaller the error itself: the bounds
speak of the latter. Refuted if the rank correlation's 95% interval reaches below one half: with 100 neurons a predictor
whose true correlation is 0.9 passes nearly always, one that knows nothing never (p < 10⁻⁶).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import spearmanr

from fewfire._cube import cube_blocks
from fewfire._optional import is_installed
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Judgement
from fewfire.experiments.recipes._statistics import larger
from fewfire.experiments.recipes.sparse_activations._learning import relative_error
from fewfire.fourier import monomial_count, spectrum
from fewfire.networks import TwoLayer, check_sparsity
from fewfire.theory import sparse_activations as theory

if TYPE_CHECKING:
    from collections.abc import Iterator

INPUTS, DEGREE = 16, 3
SELDOM = 1e-3
"""Neurons that fire on a smaller share of the cube give a test set too few examples to judge by."""


@dataclass(frozen=True)
class LearnBackSettings:
    """Blocks per kind, their neurons, epochs of training, the target activity, and examples to learn from."""

    seeds: int
    width: int
    epochs: int
    target: float
    samples: int


def measure(settings: LearnBackSettings) -> RecipeOutcome:
    """One row per neuron, and one per block."""
    parameters = {
        "inputs": INPUTS,
        "degree": DEGREE,
        "samples": settings.samples,
        "width": settings.width,
        "seeds": settings.seeds,
        "target": settings.target,
    }
    if not is_installed("torch"):
        reason = "PyTorch is not installed: pip install 'fewfire[torch]'"
        return RecipeOutcome(
            parameters=parameters, judgements=[], measured=[reason], data={"rows": [], "skipped": reason}
        )
    from fewfire.experiments.lazy_neurons._induced import sign_block

    rows, blocks = [], []
    for kind, target in (("plain", None), ("sparsified", settings.target)):
        for seed in range(settings.seeds):
            block, accuracy = sign_block(settings.width, settings.epochs, target, seed)
            rows += [{"block": kind, "seed": seed, **row} for row in _neurons(block, settings.samples, seed)]
            blocks.append({"block": kind, "seed": seed, "accuracy": accuracy, **_whole(block)})
    column = {key: np.array([row[key] for row in rows]) for key in ("error", "predicted", "sensitivity", "bounded")}
    low = _lower_end(column["sensitivity"], column["error"])
    parts = {kind: [row["error"] for row in rows if row["block"] == kind] for kind in ("plain", "sparsified")}
    judgements = [
        Judgement(
            "the degree predicts the error",
            "95th percentile of |error − predicted|, over the variance",
            float(np.quantile(np.abs(column["error"] - column["predicted"]), 0.95)),
            0.05,
        ),
        Judgement(
            "sensitivity ranks what is learnable",
            "lower end of the 95% interval of the rank correlation with the error",
            low,
            0.5,
            "at least",
        ),
        Judgement(
            "sensitivity is bounded by how often a neuron fires", "largest AS/(2p‖w‖²)", column["bounded"].max(), 1.0
        ),
        Judgement(
            "sparser neurons are harder, relative to their variance",
            "p of Mann and Whitney's test",
            larger(parts["sparsified"], parts["plain"]),
            0.01,
        ),
    ]
    return RecipeOutcome(
        parameters=parameters,
        judgements=judgements,
        measured=_told(rows, blocks),
        data={"rows": [_rounded(row) for row in rows], "blocks": [_rounded(row) for row in blocks]},
    )


def _neurons(block: TwoLayer, samples: int, seed: int) -> Iterator[dict[str, Any]]:
    """Every neuron that fires on some of the cube and not always: how it was learned, and what was predicted."""
    count = monomial_count(INPUTS, DEGREE)
    for j in range(block.width):
        neuron = TwoLayer(block.hidden[j : j + 1], block.bias[j : j + 1], [1.0])
        picture = spectrum(neuron)
        variance = picture.tail(0)
        fires = _firing_share(neuron)
        if not SELDOM < fires < 1:
            continue
        sensitivity = picture.average_sensitivity()
        yield {
            "neuron": j,
            "fires": fires,
            "variance": variance,
            "error": relative_error(neuron, DEGREE, samples, 1000 * seed + j),
            "predicted": picture.tail(DEGREE) / variance * samples / (samples - count),
            "sensitivity": sensitivity / variance,
            "bounded": sensitivity / (2 * fires * float(np.sum(np.square(neuron.hidden, dtype=np.float64)))),
        }


def _firing_share(neuron: TwoLayer) -> float:
    """The share of the cube on which a single neuron fires."""
    counts = [int(neuron.activity(part).per_input.sum()) for part in cube_blocks(INPUTS, 1 << 14)]
    return sum(counts) / (1 << INPUTS)


def _whole(block: TwoLayer) -> dict[str, Any]:
    """The first output of a block as a member of H(n, s, k): its degree beside the bound."""
    network = block.with_parameters(output=block.output[:, 0], offset=float(np.asarray(block.offset)[0]))
    picture, k = spectrum(network), check_sparsity(network).max_active
    allowed = 0.1 * picture.tail(0)
    return {
        "k": k,
        "W": network.norms().W,
        "degree": picture.degree_for(allowed),
        "degree_bound": theory.degree_sharp(k, network.norms().W, allowed),
        "sensitivity": picture.average_sensitivity(),
        "sensitivity_bound": theory.average_sensitivity_sharp(k, network.norms().W),
    }


def _lower_end(values: Any, errors: Any) -> float:
    """The lower end of the 95% interval of Spearman's correlation, by Fisher's transform (Fieller's variance)."""
    correlation = float(spearmanr(values, errors).statistic)
    return math.tanh(math.atanh(min(correlation, 1 - 1e-12)) - 1.96 * math.sqrt(1.06 / (len(values) - 3)))


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Floats to five digits: files are for reading."""
    return {key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in row.items()}


def _told(rows: list[dict[str, Any]], blocks: list[dict[str, Any]]) -> list[str]:
    sentences = []
    for kind in ("plain", "sparsified"):
        mine, own = [row for row in rows if row["block"] == kind], [row for row in blocks if row["block"] == kind]
        mean = {key: np.mean([row[key] for row in mine]) for key in ("fires", "error", "variance")}
        absolute = np.mean([row["error"] * row["variance"] for row in mine])
        sentences.append(
            f"{kind}: {len(mine)} neurons that fire on {mean['fires']:.1%} of the cube, error {mean['error']:.2f} of "
            f"the variance, {absolute:.2g} itself; accuracy {np.mean([row['accuracy'] for row in own]):.1%}, "
            f"k = {max(row['k'] for row in own)}, degree {np.mean([row['degree'] for row in own]):.1f} where the bound "
            f"has {np.mean([row['degree_bound'] for row in own]):.0f}"
        )
    return sentences


RECIPE = Recipe(
    name="sparse-activations/learn-back",
    title="Neurons of a trained, sparsified block learned back by low degree: what sensitivity and degree predict",
    seconds=30,
    expectation="errors as the degree says; sensitivity ranks them; sparser neurons harder relative to their variance",
    figure="learn_back",
    scales={
        "quick": LearnBackSettings(seeds=2, width=48, epochs=60, target=0.1, samples=4000),
        "paper": LearnBackSettings(seeds=8, width=128, epochs=200, target=0.05, samples=16_000),
    },
    measure=measure,
    paper_seconds=1300,
)

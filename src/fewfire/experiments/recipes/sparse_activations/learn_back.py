"""Learn it back: the neurons of a trained, sparsified block as targets of the low-degree algorithm.

A ReLU block is trained on ±1 images (scikit-learn's digits, 4×4 signs), plainly and with a target activity
(`fewfire.torch.ActivityPenalty`). Each of its neurons is then a function on the cube {−1, +1}¹⁶, learned from uniform
examples by regression of degree 3, and all of its spectrum is known. What predicts how well it goes?

- the degree: tail(3)·m/(m − D) over the variance, exact in expectation;
- the sensitivity: tail(d) ≤ AS/(d + 1), and AS ≤ 2p‖w‖² for a neuron that fires with probability p, since a flip of
  x_i changes it by at most 2|w_i|, and only where it fires before or after (the proof of
  `theory.sparse_activations.average_sensitivity_sharp`, for one neuron). Only bounds: judged by rank.

Expect errors within a few percent of what the degree says, and sensitivity over variance to rank neurons nearly as
well. The sparser a neuron, the larger its error relative to its variance, and the smaller the error itself: the bounds
speak of the latter. Neurons of one block were trained together, so where blocks are compared the block is the trial:
rank correlations are taken within each and averaged by Fisher's transform, errors are compared between the two blocks
of a seed. The bound on AS is attained by a neuron that fires at one point of the cube and falls silent with any flip;
it is checked beside the others, so that a smaller constant would be refuted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom, spearmanr

from fewfire._cube import cube_blocks
from fewfire._optional import is_installed
from fewfire.experiments.recipes import _effects
from fewfire.experiments.recipes._base import Recipe, RecipeOutcome
from fewfire.experiments.recipes._judgement import Effect, Judgement, Power
from fewfire.experiments.recipes._power import mean_power
from fewfire.experiments.recipes.sparse_activations._learning import relative_error
from fewfire.fourier import monomial_count, spectrum
from fewfire.networks import TwoLayer, check_sparsity
from fewfire.theory import sparse_activations as theory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

INPUTS, DEGREE = 16, 3
KINDS = ("plain", "sparsified")
WITHIN, CORRELATION, END = 1.2, 0.5, 0.025
"""The factor within which errors are predicted, the rank correlation asked for, the level of an interval's end."""
OFF, TRUE_CORRELATION, HARDER = 0.1, 0.8, 1.5
"""The power is for: a neuron in ten that is off by more; this correlation; errors larger by this factor."""
ROUNDING = 1e-9
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
    from fewfire.experiments.lazy_neurons import one_torch_thread
    from fewfire.experiments.lazy_neurons._induced import sign_block

    rows, blocks = [], []
    for kind, target in zip(KINDS, (None, settings.target), strict=True):
        for seed in range(settings.seeds):
            with one_torch_thread():
                block, accuracy = sign_block(settings.width, settings.epochs, target, seed)
            found = _neurons(block, settings.samples, seed)
            rows += [_rounded({"block": kind, "seed": seed, **row}) for row in found]
            blocks.append(_rounded({"block": kind, "seed": seed, "accuracy": accuracy, **_whole(block)}))
    return RecipeOutcome(
        parameters=parameters,
        judgements=judge(rows, attained(INPUTS)),
        measured=_told(rows, blocks),
        data={"rows": rows, "blocks": blocks},
    )


def judge(rows: Sequence[dict[str, Any]], at_one_point: float) -> list[Judgement]:
    """The claims on rows of neurons; `at_one_point` is AS/(2p‖w‖²) of the neuron that fires there only."""
    off = np.sort([abs(math.log(row["error"] / row["predicted"])) for row in rows])
    place = math.ceil(0.95 * len(off)) - 1
    ends = [min(int(binom.ppf(q, len(off), 0.95)), len(off) - 1) for q in (END, 1 - END)]
    factors = Effect("factor that 95% of the errors are within", *(math.exp(off[at]) for at in (place, *ends)))
    correlations = {kind: _correlations([row for row in rows if row["block"] == kind]) for kind in KINDS}
    ranks = min((_averaged(values) for values in correlations.values()), key=lambda found: found.low)
    seen = [_correlation_power(rows, kind, values) for kind, values in correlations.items()]
    ratios = _log_ratios(rows)
    harder = _effects.mean("", ratios)
    most = max([at_one_point, *(row["bounded"] for row in rows)])
    return [
        Judgement(
            "the degree predicts the error, within a fifth for 19 neurons of 20",
            "95th percentile of the factor between error and prediction, upper end",
            factors.high,
            WITHIN,
            refuted_by="a neuron in twenty, or more, that may be off by more than a fifth",
            effect=factors,
            power=Power("one neuron in ten off by more", float(binom.sf(len(off) - ends[1] - 1, len(off), OFF))),
        ),
        Judgement(
            "sensitivity ranks what is learnable",
            "rank correlation with the error within a block, lower end, the smaller of both kinds",
            ranks.low,
            CORRELATION,
            "at least",
            refuted_by="a mean correlation that may be below one half",
            effect=ranks,
            power=Power(f"a correlation of {TRUE_CORRELATION:g}", max(0.0, sum(seen) - 1)),
        ),
        Judgement(
            "sensitivity is bounded by how often a neuron fires",
            f"largest AS/(2p‖w‖²) of {len(rows)} neurons and the one that fires at one point",
            most,
            1 + ROUNDING,
            refuted_by="one neuron above its bound",
            effect=_effects.exact("largest AS/(2p‖w‖²)", most),
            power=Power("a constant smaller by 1%", float(most / 0.99 > 1 + ROUNDING)),
        ),
        Judgement(
            "sparser neurons are harder, relative to their variance",
            "mean error of sparsified over plain neurons, lower end over pairs of blocks",
            math.exp(harder.low),
            1.0,
            "at least",
            refuted_by="blocks of which the sparsified may be no harder",
            effect=Effect(
                "mean error of sparsified neurons over plain ones, both over their variance",
                *(math.exp(end) for end in (harder.value, harder.low, harder.high)),
            ),
            power=Power(
                f"errors larger by a factor of {HARDER:g}",
                mean_power(math.log(HARDER), float(np.std(ratios, ddof=1)), len(ratios), END)
                if len(ratios) > 1
                else 0.0,
            ),
        ),
    ]


def attained(inputs: int) -> float:
    """AS/(2p‖w‖²) of Σ x_i − inputs + 2, which fires at one point of the cube only: 1."""
    neuron = TwoLayer(np.ones((1, inputs)), [2.0 - inputs], [1.0])
    return float(spectrum(neuron).average_sensitivity() / (2 * inputs / 2**inputs))


def _correlations(rows: Sequence[dict[str, Any]]) -> np.ndarray:
    """Fisher's transform of the rank correlation between sensitivity and error, one number per block."""
    found = []
    for seed in dict.fromkeys(row["seed"] for row in rows):
        mine = [row for row in rows if row["seed"] == seed]
        sensitivity, error = ([float(row[key]) for row in mine] for key in ("sensitivity", "error"))
        value = float(spearmanr(sensitivity, error).statistic)
        found.append(math.atanh(min(max(value, -1 + 1e-12), 1 - 1e-12)))
    return np.array(found)


def _averaged(transforms: np.ndarray) -> Effect:
    found = _effects.mean("mean rank correlation within a block", transforms)
    return Effect(found.name, *(math.tanh(end) for end in (found.value, found.low, found.high)))


def _correlation_power(rows: Sequence[dict[str, Any]], kind: str, transforms: np.ndarray) -> float:
    """The deviation is that seen between blocks, and no less than ranks of so many neurons have (Fieller)."""
    blocks = len(transforms)
    if blocks < 2:
        return 0.0
    neurons = sum(row["block"] == kind for row in rows) / blocks
    deviation = max(float(transforms.std(ddof=1)), math.sqrt(1.06 / max(neurons - 3, 1)))
    return mean_power(math.atanh(TRUE_CORRELATION) - math.atanh(CORRELATION), deviation, blocks, END)


def _log_ratios(rows: Sequence[dict[str, Any]]) -> list[float]:
    """Logarithms of mean errors of sparsified over plain neurons, one number per seed."""
    means: dict[tuple[str, int], float] = {}
    for key in dict.fromkeys((row["block"], row["seed"]) for row in rows):
        means[key] = float(np.mean([row["error"] for row in rows if (row["block"], row["seed"]) == key]))
    seeds = dict.fromkeys(row["seed"] for row in rows)
    pairs = [[means.get((kind, seed)) for kind in KINDS] for seed in seeds]
    return [math.log(sparse / plain) for plain, sparse in pairs if plain and sparse]


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


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Floats to five digits: files are for reading."""
    return {key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in row.items()}


def _told(rows: list[dict[str, Any]], blocks: list[dict[str, Any]]) -> list[str]:
    sentences = []
    for kind in KINDS:
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
    seconds=10,
    expectation="errors as the degree says; sensitivity ranks them; sparser neurons harder relative to their variance",
    figure="learn_back",
    scales={
        "quick": LearnBackSettings(seeds=4, width=32, epochs=60, target=0.1, samples=4000),
        "paper": LearnBackSettings(seeds=8, width=128, epochs=200, target=0.05, samples=16_000),
    },
    measure=measure,
    paper_seconds=1300,
)

"""Learn it back: the neurons of a trained, sparsified block as targets of the low-degree algorithm.

A ReLU block is trained on 4×4 signs of digits, plainly and with a target activity (`fewfire.torch.ActivityPenalty`).
Each neuron is then a function on {−1, +1}¹⁶, learned from uniform examples by regression of degree 3. What predicts
the error over the variance?

- the degree: tail(3)·m/(m − D) over the variance, exact in expectation;
- the sensitivity: tail(d) ≤ AS/(d + 1), and AS ≤ 2p‖w‖² for a neuron that fires with probability p (the proof of
  `papers.sparse_activations.average_sensitivity_sharp`, for one neuron). Only bounds: their verdict is by rank. The
  bound on AS is attained by a neuron that fires at one point of the cube, which is checked with the others.

Neurons of one block were trained together, so where blocks are compared the block is the trial: rank correlations are
taken within each and averaged by Fisher's transform, errors are compared between the two blocks of a seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.stats import binom, spearmanr

from fewfire.fourier import monomial_count, spectrum
from fewfire.networks import TwoLayer, check_sparsity
from fewfire.papers import _effects
from fewfire.papers import sparse_activations as theory
from fewfire.papers._claims import Effect, Figure, Info, Judgement, Power, Recipe, RecipeOutcome, Row, grouped, rows_of
from fewfire.papers._statistics import mean_power, spread_power
from fewfire.papers.sparse_activations.recipes._shared import needs_torch, relative_error
from fewfire.report._figure import SomeAxes, canvas, label_axes, log_axis, marked

INPUTS, DEGREE = 16, 3
KINDS = ("plain", "sparsified")
WITHIN, CORRELATION, END = 1.2, 0.5, 0.025
"""The factor within which errors are predicted, the rank correlation required, the level of an interval's end."""
OFF, TRUE_CORRELATION, HARDER = 0.1, 0.8, 1.5
"""The power is for: a neuron in ten that is off by more; this correlation; errors larger by this factor."""
ROUNDING = 1e-9
SELDOM = 1e-3  # neurons that fire on a smaller share of the cube leave too few examples in a test set


@dataclass(frozen=True)
class LearnBackSettings:
    """Blocks per kind, their neurons, epochs of training, the target activity, and examples to learn from."""

    seeds: int
    width: int
    epochs: int
    target: float
    samples: int


@needs_torch
def measure(settings: LearnBackSettings) -> RecipeOutcome:
    """One row per neuron, and one per block."""
    from fewfire.papers.sparse_activations.lazy_neurons._digits import sign_block

    rows, blocks = [], []
    targets = zip(KINDS, (None, settings.target), strict=True)
    for (kind, target), seed in product(targets, range(settings.seeds)):
        block, accuracy = sign_block(settings.width, settings.epochs, target, seed)
        found = _neurons(block, settings.samples, seed)
        rows += [_rounded({"block": kind, "seed": seed, **row}) for row in found]
        # The first output of the block as a member of H(n, s, k): its degree and the bound.
        network = block.with_parameters(output=block.output[:, 0], offset=float(np.asarray(block.offset)[0]))
        picture, k, W = spectrum(network), check_sparsity(network).max_active, network.norms().W
        allowed = 0.1 * picture.tail(0)
        whole = {
            "k": k,
            "W": W,
            "degree": picture.degree_for(allowed),
            "degree_bound": theory.degree_sharp(k, W, allowed),
            "sensitivity": picture.average_sensitivity(),
            "sensitivity_bound": theory.average_sensitivity_sharp(k, W),
        }
        blocks.append(_rounded({"block": kind, "seed": seed, "accuracy": accuracy, **whole}))
    shown = {key: getattr(settings, key) for key in ("samples", "width", "seeds", "target")}
    sentences = []
    for (kind, mine), own in zip(grouped(rows, "block").items(), grouped(blocks, "block").values(), strict=True):
        mean = {key: np.mean([row[key] for row in mine]) for key in ("fires", "error", "variance")}
        absolute = np.mean([row["error"] * row["variance"] for row in mine])
        sentences.append(
            f"{kind}: {len(mine)} neurons that fire on {mean['fires']:.1%} of the cube, error {mean['error']:.2f} of "
            f"the variance, {absolute:.2g} itself; accuracy {np.mean([row['accuracy'] for row in own]):.1%}, "
            f"k = {max(row['k'] for row in own)}, degree {np.mean([row['degree'] for row in own]):.1f} where the bound "
            f"has {np.mean([row['degree_bound'] for row in own]):.0f}"
        )
    return RecipeOutcome(
        parameters={"inputs": INPUTS, "degree": DEGREE, **shown},
        judgements=judge(rows, attained(INPUTS)),
        measured=sentences,
        data={"rows": rows, "blocks": blocks},
    )


def judge(rows: list[Row], at_one_point: float) -> list[Judgement]:
    """The claims on rows of neurons; `at_one_point` is AS/(2p‖w‖²) of the neuron that fires there only."""
    off = np.sort([abs(math.log(row["error"] / row["predicted"])) for row in rows])
    place = math.ceil(0.95 * len(off)) - 1
    ends = [min(int(binom.ppf(q, len(off), 0.95)), len(off) - 1) for q in (END, 1 - END)]
    factors = Effect("factor that 95% of the errors are within", *(math.exp(off[at]) for at in (place, *ends)))
    of_kind = [_rank_correlation(mine) for mine in grouped(rows, "block").values()]
    ranks = min((found for found, _ in of_kind), key=lambda found: found.low).map(math.tanh)
    errors = {key: np.mean([row["error"] for row in mine]) for key, mine in grouped(rows, "block", "seed").items()}
    pairs = [[errors.get((kind, seed)) for kind in KINDS] for seed in grouped(rows, "seed")]
    ratios = [math.log(sparse / plain) for plain, sparse in pairs if plain and sparse]  # one per seed
    harder = _effects.mean("mean error of sparsified neurons over plain ones, both over their variance", ratios)
    most = max([at_one_point, *(row["bounded"] for row in rows)])
    return [
        factors.at_most(
            "the degree predicts the error, within a fifth for 19 neurons of 20",
            "95th percentile of the factor between error and prediction, upper end",
            WITHIN,
            "a neuron in twenty, or more, that may be off by more than a fifth",
            Power("one neuron in ten off by more", float(binom.sf(len(off) - ends[1] - 1, len(off), OFF))),
        ),
        ranks.at_least(
            "sensitivity ranks what is learnable",
            "rank correlation with the error within a block, lower end, the smaller of both kinds",
            CORRELATION,
            "a mean correlation that may be below one half",
            Power(f"a correlation of {TRUE_CORRELATION:g}", max(0.0, sum(power for _, power in of_kind) - 1)),
        ),
        _effects.exact("largest AS/(2p‖w‖²)", most).at_most(
            "sensitivity is bounded by how often a neuron fires",
            f"largest AS/(2p‖w‖²) of {len(rows)} neurons and the one that fires at one point",
            1 + ROUNDING,
            "one neuron above its bound",
            Power("a constant smaller by 1%", float(most / 0.99 > 1 + ROUNDING)),
        ),
        harder.map(math.exp).at_least(
            "sparser neurons are harder, relative to their variance",
            "mean error of sparsified over plain neurons, lower end over pairs of blocks",
            1.0,
            "blocks of which the sparsified may be no harder",
            Power(f"errors larger by a factor of {HARDER:g}", spread_power(ratios, math.log(HARDER), END)),
        ),
    ]


def attained(inputs: int) -> float:
    """AS/(2p‖w‖²) of Σ x_i − inputs + 2, which fires at one point of the cube only: 1."""
    neuron = TwoLayer(np.ones((1, inputs)), [2.0 - inputs], [1.0])
    return float(spectrum(neuron).average_sensitivity() / (2 * inputs / 2**inputs))


def _rank_correlation(rows: list[Row]) -> tuple[Effect, float]:
    """Fisher's transform of the rank correlation between sensitivity and error within a block, and the test's power."""
    blocks = ([(row["sensitivity"], row["error"]) for row in mine] for mine in grouped(rows, "seed").values())
    found = [float(spearmanr(np.array(block)).statistic) for block in blocks]
    transforms, count = np.arctanh(np.clip(found, -1 + 1e-12, 1 - 1e-12)), len(found)
    seen = float(transforms.std(ddof=1)) if count > 1 else 0.0
    # No less than ranks of so many neurons have (Fieller).
    deviation = max(seen, math.sqrt(1.06 / max(len(rows) / count - 3, 1)))
    power = mean_power(math.atanh(TRUE_CORRELATION) - math.atanh(CORRELATION), deviation, count, END)
    return _effects.mean("mean rank correlation within a block", transforms), power


def _neurons(block: TwoLayer, samples: int, seed: int) -> Iterator[Row]:
    """Every neuron that fires on some of the cube and not always: how it was learned, and what was predicted."""
    count = monomial_count(INPUTS, DEGREE)
    for j in range(block.width):
        neuron = TwoLayer(block.hidden[j : j + 1], block.bias[j : j + 1], [1.0])
        picture = spectrum(neuron)
        fires = int(check_sparsity(neuron).counts[1]) / 2**INPUTS
        if not SELDOM < fires < 1:
            continue
        variance, sensitivity = picture.tail(0), picture.average_sensitivity()
        yield {
            "neuron": j,
            "fires": fires,
            "variance": variance,
            "error": relative_error(neuron, DEGREE, samples, 1000 * seed + j),
            "predicted": picture.tail(DEGREE) / variance * samples / (samples - count),
            "sensitivity": sensitivity / variance,
            "bounded": sensitivity / (2 * fires * float(np.sum(np.square(neuron.hidden, dtype=np.float64)))),
        }


def _rounded(row: Row) -> Row:
    """Floats to five digits: files are for reading."""
    return {key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in row.items()}


def plot_learn_back(info: Info, *, ax: SomeAxes | None = None) -> Figure:
    """sparse-activations/learn-back: error of learning each neuron by what degree and sensitivity predict."""
    (rows,) = rows_of(info, "rows")
    title = "Neurons of a trained block, learned back from uniform examples"
    figure, (left, right) = canvas(2, size=(9.0, 3.9), ax=ax, title=title, sharey=True)
    for place, (kind, mine) in enumerate(grouped(rows, "block").items()):
        errors = [row["error"] for row in mine]
        for axis, key in ((left, "predicted"), (right, "sensitivity")):
            axis.plot([row[key] for row in mine], errors, **marked(place, linestyle="none"), label=kind)
    ends = [min(row["predicted"] for row in rows), max(row["predicted"] for row in rows)]
    left.plot(ends, ends, color="black", linestyle=":", zorder=0, label="as predicted")
    label_axes(left, "tail above degree 3, times m/(m − D)", "test error / variance")
    label_axes(right, "average sensitivity / variance")
    log_axis(left, "y")  # of both panels: they share it
    log_axis(left, "x")
    return figure


RECIPE = Recipe(
    title="Neurons of a trained, sparsified block learned back by low degree: what sensitivity and degree predict",
    seconds=(10, 1300),
    expectation="errors as the degree says; sensitivity ranks them; sparser neurons harder relative to their variance",
    figure=plot_learn_back,
    quick=LearnBackSettings(seeds=4, width=32, epochs=60, target=0.1, samples=4000),
    paper=LearnBackSettings(seeds=8, width=128, epochs=200, target=0.05, samples=16_000),
    measure=measure,
)

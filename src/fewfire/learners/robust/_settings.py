"""Which training a setting's name stands for, and the numbers of Algorithm 1: the theorem's, and ones that serve.

"practical" trains both layers by minibatches (_both_layers.py). The other two are sublinear's Algorithm 1:

=============  =====================================  =========================================================
               setting="theorem"                      setting="sublinear"
=============  =====================================  =========================================================
start          Definition 3.1                         Definition 3.1
threshold      1/m: half of the neurons fire          from `activity`, by the exact normal quantile
loss           absolute (Definition 3.2)              logistic; huber for regression
learning rate  m^(−3/5)/√T (Theorem 5.12, K = 1)      RATES[loss]/κ
=============  =====================================  =========================================================

κ = λ_max(K)/n, with K the tangent kernel of the n examples at the start, is how far one unit of gradient moves the
outputs at most; in units of 1/κ the useful rates do not depend on width, activity or scale. The logistic loss has
curvature at most 1/4, so plain descent starts to oscillate at 8/κ; half of that is used. The theorem's K bounds
‖W* − W₀‖_{2,∞}·m^(4/5) for a good W*, which nobody knows beforehand. Its rate is the corrected one; the paper prints
m^(−1/5)/√T, which `learning_rate="printed"` gives: too fast for its proof, and in practice the faster of the two.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np

from fewfire._errors import invalid
from fewfire._validate import check_choice, check_number
from fewfire.networks import init

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import Float64Array
    from fewfire.networks import TwoLayer
    from fewfire.networks.init import Initialiser

SettingName: TypeAlias = Literal["auto", "practical", "sublinear", "theorem"]
SETTINGS: Final = get_args(SettingName)
ACTIVITY: Final = 0.1
"""Share of the neurons that fires on average at the start, in the setting "sublinear"."""

RATES: Final = {"logistic": 4.0, "huber": 1.0, "hinge": 1.0, "absolute": 0.5}
"""Learning rate of each loss in the setting "sublinear", in units of 1/κ."""

SAMPLE: Final = 256
"""Rows that κ is measured on."""


def resolve(model: Any) -> str:
    """The setting of an estimator; "auto" is "sublinear" where something is given that only Algorithm 1 has."""
    setting = check_choice("setting", model.setting, SETTINGS)
    own = {
        "activity": model.activity != "auto",
        "iterations": model.iterations is not None,
        "method": model.method != "auto",
        "learning_rate": model.learning_rate in ("theorem", "printed"),
    }
    if setting == "auto":
        return "sublinear" if any(own.values()) or model.domain != "ball" else "practical"
    for name, given in own.items():
        if given and setting == "practical":
            rule = "can be given in settings 'sublinear' and 'theorem' only"
            raise invalid(name, rule, getattr(model, name), "leave it out, or use setting='sublinear'")
    return setting


def trains_minibatches(model: Any) -> bool:
    """Whether an estimator's setting is "practical", which partial_fit needs."""
    if resolve(model) == "practical":
        return True
    raise AttributeError("partial_fit needs setting='practical'; Algorithm 1 takes all rows at once. Remedy: call fit.")


def start(setting: str, activity: object) -> Initialiser:
    """How networks are drawn."""
    if isinstance(activity, str):
        check_choice("activity", activity, ("auto",))
        return init.ntk(threshold="1/m") if setting == "theorem" else init.ntk(activity=ACTIVITY)
    return init.ntk(activity=check_number("activity", activity, 0.0, 0.5, open_low=True))


def learning_rate(
    choice: object,
    setting: str,
    loss: str,
    networks: Sequence[TwoLayer],
    inputs: Float64Array,
    weight: Float64Array,
    iterations: int,
) -> float:
    """The rate as a number; `inputs` (rows, d) are the network inputs of the examples, with weights (rows,)."""
    if not isinstance(choice, str):
        return check_number("learning_rate", choice, 0.0, open_low=True)
    check_choice("learning_rate", choice, ("auto", "theorem", "printed"))
    if choice != "auto" or setting == "theorem":
        return float(networks[0].width ** (-0.2 if choice == "printed" else -0.6) / math.sqrt(iterations))
    steepness = max(tangent_steepness(net, inputs, weight) for net in networks)
    return RATES[loss] / steepness if steepness > 0.0 else RATES[loss]


def tangent_steepness(net: TwoLayer, inputs: Float64Array, weight: Float64Array | None = None) -> float:
    """λ_max(K)/n of the tangent kernel K_ij = ⟨∂f(x_i)/∂W, ∂f(x_j)/∂W⟩, on at most SAMPLE rows of inputs (rows, d).

    With weights (rows,) it is that of the table in which each row stands as often as its weight says.
    """
    step = -(-len(inputs) // SAMPLE)
    chosen = inputs[::step]
    fires = net.activation.slope(net.preactivations(chosen)).astype(np.float64) * net.output
    kernel = (fires @ fires.T) * (chosen @ chosen.T)
    weight = np.ones(len(chosen)) if weight is None else weight[::step]
    roots = np.sqrt(weight)
    return float(np.linalg.eigvalsh(roots[:, None] * kernel * roots)[-1]) / float(weight.sum())

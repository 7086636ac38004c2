"""The wide Gaussian start of sublinear, Definition 3.1, with a threshold that fixes how many neurons fire.

W and b are N(0, 1/m), the output ±m^(−1/5), the activation z·1[z > τ]. On an input of norm 1 a
preactivation is N(0, 2/m), so m·(1 − Φ(τ·√(m/2))) neurons fire on average.

Two settings. The *theorem's* is τ = O(1/m) (Theorem 5.1), `ntk(threshold="1/m")`: it leaves half of the
neurons active (49.9% at m = 10⁵), and τ = m^(−3/5) of Lemma 5.15 leaves 41%. The *practical* one takes τ from
the activity wanted, by the exact normal quantile, `ntk(activity=0.03)` or `ntk(exponent=0.75)`: a τ taken
from the paper's tail bound exp(−τ²m/4) instead overshoots, leaving about 8 times too few active.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from fewfire._errors import invalid
from fewfire._random import Stream
from fewfire._validate import check_integer, check_number
from fewfire.networks._activations import shifted_relu
from fewfire.networks._two_layer import TwoLayer
from fewfire.networks.init._base import Initialiser, named


@dataclass(frozen=True, repr=False)
class _Ntk(Initialiser):
    name = "ntk"
    activity: float | None
    exponent: float | None
    threshold: float | str | None
    input_norm: float

    def _draw(self, inputs: int, width: int, stream: Stream) -> TwoLayer:
        deviation = 1 / math.sqrt(width)
        return TwoLayer(
            (deviation * stream.child("hidden").normal((width, inputs))).astype("float32"),
            deviation * stream.child("bias").normal(width),
            width**-0.2 * stream.child("output").signs(width),
            0.0,
            shifted_relu(self._threshold(width)),
        )

    def _threshold(self, width: int) -> float:
        if self.activity is not None:
            return activity_threshold(width, self.activity * width, self.input_norm)
        if self.exponent is not None:
            return activity_threshold(width, width**self.exponent, self.input_norm)
        return 1 / width if isinstance(self.threshold, str) else float(self.threshold or 0.0)


def activity_threshold(width: int, active: float, input_norm: float = 1.0) -> float:
    """The threshold τ at which `active` of `width` neurons fire on average in the start of `ntk`.

    τ = √((‖x‖² + 1)/m)·Φ⁻¹(1 − active/m), the exact normal quantile, for inputs of norm ‖x‖.

    Parameters
    ----------
    width : int
        m.
    active : float
        In (0, width/2]; more would need a negative threshold.
    input_norm : float
        ‖x‖: 1 in the paper, √n for ±1 inputs.

    Examples
    --------
    >>> import fewfire as ff
    >>> round(ff.networks.init.activity_threshold(width=10_000, active=100), 5)
    0.0329
    """
    width = check_integer("width", width, 1)
    remedy = "a threshold of 0 leaves half of the neurons active"
    active = check_number("active", active, 0.0, width / 2, open_low=True, remedy=remedy)
    norm = check_number("input_norm", input_norm, 0.0)
    # The lower quantile keeps all digits of a small share; abs turns the −0.0 of the median into 0.0.
    return abs(math.sqrt((norm**2 + 1) / width) * NormalDist().inv_cdf(active / width))


@named
def ntk(
    activity: float | None = None,
    exponent: float | None = None,
    threshold: float | str | None = None,
    input_norm: float = 1.0,
) -> Initialiser:
    """Gaussian weights N(0, 1/m), outputs ±m^(−1/5) and a shifted ReLU (sublinear, Definition 3.1).

    Give exactly one of the first three.

    Parameters
    ----------
    activity : float in (0, 1/2]
        Share of the neurons that fires on average: the practical setting.
    exponent : float below 1
        c, for m^c firing neurons on average: the practical setting, sublinear in the width m.
    threshold : float of at least 0, or "1/m"
        τ itself; "1/m" is the theorem's setting, which leaves half of the neurons active.
    input_norm : float
        Norm of the inputs that `activity` and `exponent` speak of: 1 in the paper, √n for ±1 inputs.

    Examples
    --------
    >>> import fewfire as ff
    >>> network = ff.networks.init.ntk(activity=0.02)(64, width=5000, seed=0)
    >>> X, _ = ff.problems.Parity(64, 2).sample(50, seed=0)
    >>> round(network.activity(X / 8.0).fraction, 2)  # of inputs of norm 1
    0.02
    """
    choices = {"activity": activity, "exponent": exponent, "threshold": threshold}
    given = [name for name, value in choices.items() if value is not None]
    if len(given) != 1:
        rule = "takes exactly one of activity, exponent and threshold"
        raise invalid("ntk", rule, "a call with " + (" and ".join(given) or "none"), "write ntk(activity=0.03)")
    if activity is not None:
        activity = check_number("activity", activity, 0.0, 0.5, open_low=True)
    if exponent is not None:
        exponent = check_number("exponent", exponent, high=1.0, open_high=True)
    if isinstance(threshold, str):
        if threshold != "1/m":
            raise invalid("threshold", "must be a number of at least 0 or '1/m'", threshold)
    elif threshold is not None:
        threshold = check_number("threshold", threshold, 0.0)
    return _Ntk(activity, exponent, threshold, check_number("input_norm", input_norm, 0.0))

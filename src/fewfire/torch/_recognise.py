"""Which activation a block has, from what goes in and comes out: class names are not used.

An activation has exact zeros when it gives 0 at every score up to some threshold τ. Four kinds are known in full (the
formulas of `_kernel.py`), so a whole block can be computed at once; of any other with exact zeros, such as
ReLU6, τ is enough: the user's own code is then applied to the scores. Values must agree bit for bit. Smooth
activations are recognised only to report what is in the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fewfire._optional import require

if TYPE_CHECKING:
    from collections.abc import Callable

    from fewfire.torch._kernel import Gated

torch: Any = require("torch", "torch", "fewfire.torch")

SMOOTH: dict[str, Callable[[Any], Any]] = {
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda z: torch.nn.functional.gelu(z, approximate="tanh"),
    "silu": torch.nn.functional.silu,
    "quick_gelu": lambda z: z * torch.sigmoid(1.702 * z),
    "mish": torch.nn.functional.mish,
    "leaky_relu": torch.nn.functional.leaky_relu,
    "elu": torch.nn.functional.elu,
    "softplus": torch.nn.functional.softplus,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}
SMOOTH_CLASSES = ("gelu", "silu", "swish", "mish", "celu", "selu", "softplus", "leakyrelu")
"""What names of classes of smooth activations contain, Hugging Face's included; no other package has to be imported."""
DIFFERENT_ROWS = 8
"""On which a threshold must be seen to be the same."""


@dataclass(frozen=True)
class ActivationKind:
    """What an activation does."""

    name: str  # one of ACTIVATIONS; "zeros" for any other that is 0 up to its threshold; else that of a smooth one
    threshold: float  # the largest score known to give 0, and all below it; NaN without exact zeros

    @property
    def exact(self) -> bool:
        """Whether its zeros are exact."""
        return self.threshold == self.threshold

    def value(self, z: Any) -> Any:
        """The activation of a tensor of scores; only for those in ACTIVATIONS."""
        given = z - self.threshold if self.name == "shifted" else z * z if self.name == "relu2" else z
        return torch.where(z <= self.threshold, torch.zeros_like(z), given)


RELU, RELU2 = ActivationKind("relu", 0.0), ActivationKind("relu2", 0.0)


def from_values(z: Any, a: Any) -> ActivationKind | None:
    """The activation that maps the scores z to a, or None; at least one score must have been cut off.

    Where a jump's threshold had to be read from the values, it is the largest score that gave 0: at most the true one,
    so every neuron that fires is above it, but the formula is not known in full. Any threshold but 0 must hold for
    several different rows: on one row alone the k largest scores, or those above the mean, would look the same.
    """
    off = a == 0
    if not bool(off.any()):
        return _smooth(z, a)
    for kind in (RELU, RELU2):
        if bool((z < 0).any()) and torch.equal(a, kind.value(z)):
            return kind
    if bool(off.all()):
        return None
    below, above = z[off].max().item(), z[~off].min().item()
    if below < above and _enough(z):
        if torch.equal(a[~off], z[~off]):
            return ActivationKind("zeros", below)
        for index in torch.where(a > 0, a, torch.inf).flatten().topk(min(8, a.numel()), largest=False).indices:
            shifted = ActivationKind("shifted", (z.flatten()[index] - a.flatten()[index]).item())
            if torch.equal(a, shifted.value(z)):  # exact near the threshold, where z − τ is not rounded
                return shifted
    return _smooth(z, a)


def from_gate(g: Any, u: Any, a: Any) -> tuple[ActivationKind, Gated | None] | None:
    """The activation of the gate g, from a = activation(g)·u, where it is none of those known in full."""
    off = a == 0
    if bool(off.any()) and not bool(off.all()):
        below, above = g[off].max().item(), g[~off].min().item()
        if below < above and _enough(g) and torch.equal(a[~off], (g * u)[~off]):
            return ActivationKind("zeros", below), "reglu"
    smooth = _smooth(g, a, u)
    return None if smooth is None else (smooth, None)


def is_smooth(module: Any) -> bool:
    """Whether a module is a smooth activation that a ReLU may stand for, by the name of its class."""
    name = type(module).__name__.lower()
    return not module._modules and (name == "elu" or any(part in name for part in SMOOTH_CLASSES))


def _enough(z: Any) -> bool:
    return len(torch.unique(z, dim=0)) >= DIFFERENT_ROWS


def _smooth(z: Any, a: Any, factor: Any = 1.0) -> ActivationKind | None:
    z, a, close = z.double(), a.double(), {"rtol": 2e-3, "atol": 2e-5}
    if torch.allclose(a, z * factor, **close):
        return None  # nothing in between, or scores so large that most activations let them through
    for name, function in SMOOTH.items():
        if torch.allclose(a, function(z) * factor, **close):
            return ActivationKind(name, float("nan"))
    return None


def from_module(module: Any) -> ActivationKind | None:
    """The activation that a module without parameters computes, tried on scores of every size; None if unknown."""
    scores = _scores()
    count = len(scores)
    parts = (torch.arange(count).flip(0), torch.arange(count // 2), torch.arange(0, count, 7), torch.arange(9, 10))
    try:
        with torch.no_grad():
            a = module(scores.clone())
            if not all(torch.equal(module(scores[part].clone()), a[part]) for part in parts):
                return None  # what it gives for one score depends on the others
            usual = scores.abs() < 20
            smooth = _smooth(scores[usual], a[usual])  # first: far below 0 they are rounded to 0
            tau = None if smooth else _last_zero(module, scores, a)
    except Exception:  # it is the user's: whatever it cannot do makes it no activation
        return None
    if tau is None:
        return smooth
    for kind in (RELU, RELU2, ActivationKind("threshold", tau), ActivationKind("shifted", tau)):
        if torch.equal(kind.value(scores), a):
            return kind
    return ActivationKind("zeros", tau)


def _scores() -> Any:
    """Scores of every size: fine steps near 0, and both signs of powers up to 1e30."""
    powers = torch.logspace(-30, 30, 241, dtype=torch.float64)
    return torch.cat([torch.linspace(-20, 20, 4001, dtype=torch.float64), powers, -powers]).sort().values.float()


def _last_zero(module: Any, scores: Any, a: Any) -> float | None:
    """The largest score up to which the module gives 0; None where it does not begin with zeros, or never ends."""
    fires = (a != 0).nonzero().flatten()
    if len(fires) == 0 or int(fires[0]) == 0:
        return None
    low, high = scores[fires[0] - 1], scores[fires[0]]
    for _ in range(200):  # halving an interval of float32 ends at neighbours
        middle = (low.double() + high.double()).mul(0.5).float()
        if bool(middle <= low) or bool(middle >= high):
            break
        low, high = (low, middle) if bool(module(middle.reshape(1)) != 0) else (middle, high)
    return float(low)

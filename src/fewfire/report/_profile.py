"""The activity of a PyTorch model's MLP blocks, as `fewfire.torch.profile` counted it: on the page and as a figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fewfire._errors import invalid
from fewfire.report.recipes._canvas import canvas, colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fewfire.report._figure import SomeAxes


class SeenModel(Protocol):
    """What can say in plain data what was seen of a model: a `fewfire.torch.ModelProfile`."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""


@dataclass(frozen=True)
class BlockActivity:
    """One block. Shares are of its neurons.

    Parameters
    ----------
    label, shape, activation : str
    fire, low, high : float
        Mean share that fires on a token, and the 5th and 95th percentile over tokens.
    union, few : float
        Share that fires on some token of a call; smallest share that makes 90% of all firing.
    dead, k, width : int
        Neurons that never fired, the most that fired on one token, and how many there are.
    W, B : float or None
        The norms of sparse-activations, Definition 2.
    gains : list of float or None
        How many times faster a sparse path was measured to be, at 1 and at 16 rows.
    reason : str or None
        Why it cannot be made sparse.
    """

    label: str
    shape: str
    activation: str
    fire: float
    low: float
    high: float
    union: float
    few: float
    dead: int
    k: int
    width: int
    W: float | None
    B: float | None
    gains: list[float | None]
    reason: str | None


@dataclass(frozen=True)
class ProfileInfo:
    """The blocks of one model, in its order.

    Parameters
    ----------
    model : str
    tokens : int
        Counted per block, at most.
    threads : int
        Of torch, when gains were measured.
    blocks : list of BlockActivity
    """

    model: str
    tokens: int
    threads: int
    blocks: list[BlockActivity]

    @property
    def fire(self) -> float:
        """The share of all neurons that fires on a token."""
        return sum(one.fire * one.width for one in self.blocks) / sum(one.width for one in self.blocks)


def profile_info(profile: SeenModel | Mapping[str, Any]) -> ProfileInfo:
    """A profile as the page shows it.

    Parameters
    ----------
    profile : fewfire.torch.ModelProfile, or what its `to_dict` or `fewfire profile --json` gave

    Examples
    --------
    >>> import torch
    >>> import fewfire.torch as ft
    >>> from fewfire import report
    >>> model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3))
    >>> seen = ft.profile(model, [torch.randn(100, 20)], gains=False)
    >>> report.profile_info(seen).blocks[0].shape
    '20 → 64 → 3'
    """
    data = profile if isinstance(profile, Mapping) else profile.to_dict()
    try:
        blocks = [_block(entry) for entry in data["blocks"]]
        tokens = max(int(entry["tokens"]) for entry in data["blocks"])
        return ProfileInfo(str(data["model"]), tokens, int(data["threads"]), blocks)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        rule = "must be a profile of a model"
        remedy = "pass what fewfire.torch.profile or fewfire profile --json gave"
        raise invalid("profile", rule, f"a mapping that is not one ({error!r})", remedy) from None


def _block(entry: Mapping[str, Any]) -> BlockActivity:
    block, percentiles = entry["block"], entry["percentiles"]
    gains = entry["gains"]
    gate = f" {block['gated']}" if block["gated"] else " gated" if block["gate"] else ""
    return BlockActivity(
        label=str(block["label"]),
        shape=f"{block['inputs']} → {block['width']} → {block['outputs']}",
        activation=f"{block['activation']}{gate}",
        fire=float(entry["mean"]),
        low=float(percentiles["5"]),
        high=float(percentiles["95"]),
        union=float(entry["union"]),
        few=float(entry["concentration"]),
        dead=int(entry["dead"]),
        k=int(entry["k"]),
        width=int(block["width"]),
        W=entry["W"],
        B=entry["B"],
        gains=[gains.get("1"), gains.get("16")],
        reason=block["reason"],
    )


def plot_profile(profile: SeenModel | Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """Share of neurons that fires by block, with its spread over tokens, beside what a sparse path gains.

    `ax` draws into two axes of yours instead.

    Examples
    --------
    >>> import torch
    >>> import fewfire.torch as ft
    >>> from fewfire import report
    >>> model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3))
    >>> seen = ft.profile(model, [torch.randn(100, 20)], gains=False)
    >>> figure = report.plot_profile(seen)  # a notebook shows it
    """
    info = profile_info(profile)
    figure, (left, right) = canvas(2, size=(8.4, 1.4 + 0.34 * len(info.blocks)), ax=ax, sharey=True)
    places = range(len(info.blocks))
    left.barh(places, [100 * one.fire for one in info.blocks], color=colour(0), height=0.6)
    ends = [(100 * one.low, 100 * one.high) for one in info.blocks]
    left.hlines(places, *zip(*ends, strict=True), color="black", linewidth=1)
    left.set_yticks(places, [one.label for one in info.blocks])
    left.invert_yaxis()
    left.set_xlabel("neurons firing on a token, % (line: 5% to 95%)")
    for number, rows in enumerate((1, 16)):
        shown = [(gain, place) for place, one in enumerate(info.blocks) if (gain := one.gains[number]) is not None]
        right.scatter(*np.reshape(shown, (-1, 2)).T, color=colour(number + 1), label=f"{rows}")
    right.axvline(1, color="grey", linewidth=1)
    right.set_xlabel("dense time / sparse time")
    right.legend(title="rows")
    return figure

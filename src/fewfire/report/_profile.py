"""The activity of a PyTorch model's MLP blocks, as `fewfire.torch.profile` counted it: on the page and as a figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fewfire._errors import invalid
from fewfire.report._figure import canvas, colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fewfire.report._figure import SomeAxes
    from fewfire.torch._profile import ModelProfile


def profile_info(profile: ModelProfile | Mapping[str, Any]) -> dict[str, Any]:
    """A profile as the page shows it: `model`, `blocks` in order, the most `tokens` that any saw, torch's `threads`.

    Of a block `fire`, `low` and `high` are the mean share of neurons that fires on a token and its 5th and 95th
    percentile; `union` fires on some token of a call, `few` makes 90% of all firing, `dead` neurons never fired, `k` is
    the most on one token; `W` and `B` are the norms of sparse-activations, Definition 2; `gains` are how many times
    faster a sparse path is at 1 and at 16 rows, `reason` is why there is none.
    """
    data = profile if isinstance(profile, Mapping) else profile.to_dict()
    try:
        blocks = [_block(entry) for entry in data["blocks"]]
        tokens = max(int(entry["tokens"]) for entry in data["blocks"])
        return {"model": str(data["model"]), "tokens": tokens, "threads": int(data["threads"]), "blocks": blocks}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        rule = "must be a profile of a model"
        remedy = "pass what fewfire.torch.profile or fewfire profile --json gave"
        raise invalid("profile", rule, f"a mapping that is not one ({error!r})", remedy) from None


def _block(entry: Mapping[str, Any]) -> dict[str, Any]:
    block, percentiles = entry["block"], entry["percentiles"]
    gains = entry["gains"]
    gate = f" {block['gated']}" if block["gated"] else " gated" if block["gate"] else ""
    return {
        "label": str(block["label"]),
        "shape": f"{block['inputs']} → {block['width']} → {block['outputs']}",
        "activation": f"{block['activation']}{gate}",
        "fire": float(entry["mean"]),
        "low": float(percentiles["5"]),
        "high": float(percentiles["95"]),
        "union": float(entry["union"]),
        "few": float(entry["concentration"]),
        "dead": int(entry["dead"]),
        "k": int(entry["k"]),
        "width": int(block["width"]),
        "W": entry["W"],
        "B": entry["B"],
        "gains": [gains.get("1"), gains.get("16")],
        "reason": block["reason"],
    }


def plot_profile(profile: ModelProfile | Mapping[str, Any], *, ax: SomeAxes | None = None) -> Figure:
    """Share of neurons that fires by block, with its spread over tokens, and what a sparse path gains.

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
    blocks = profile_info(profile)["blocks"]
    figure, (left, right) = canvas(2, size=(8.4, 1.4 + 0.34 * len(blocks)), ax=ax, sharey=True)
    indices = range(len(blocks))
    left.barh(indices, [100 * one["fire"] for one in blocks], color=colour(0), height=0.6)
    ends = [(100 * one["low"], 100 * one["high"]) for one in blocks]
    left.hlines(indices, *zip(*ends, strict=True), color="black", linewidth=1)
    left.set_yticks(indices, [one["label"] for one in blocks])
    left.invert_yaxis()
    left.set_xlabel("neurons firing on a token, % (line: 5% to 95%)")
    for number, rows in enumerate((1, 16)):
        shown = [(gain, index) for index, one in enumerate(blocks) if (gain := one["gains"][number]) is not None]
        right.scatter(*np.reshape(shown, (-1, 2)).T, color=colour(number + 1), label=f"{rows}")
    right.axvline(1, color="grey", linewidth=1)
    right.set_xlabel("dense time / sparse time")
    right.legend(title="rows")
    return figure

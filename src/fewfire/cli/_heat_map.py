"""Success frontiers on a terminal: a table a start, side by side where they fit, coloured where colours are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.columns import Columns
from rich.style import Style
from rich.table import Table
from rich.text import Text

from fewfire.report import RAMP

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fewfire.report import Frontier, Group


def heat_maps(group: Group) -> RenderableType:
    """The maps of a group; widths downwards from the widest, samples to the right."""
    return Columns([_table(group, frontier) for frontier in group.frontiers], padding=(0, 4))


def _table(group: Group, frontier: Frontier) -> Table:
    title = f"{frontier.start} start"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 0), pad_edge=False,
                  min_width=len(title))  # fmt: skip
    table.add_column("width ", justify="right", style="dim", header_style="dim")
    for samples in group.samples:
        table.add_column(
            "online" if samples is None else f"{samples}", justify="right", header_style="dim", min_width=5
        )
    for width, row in reversed(list(zip(group.widths, frontier.success, strict=True))):
        table.add_row(f"{width} ", *(_cell(float(share)) for share in row))
    return table


def _cell(share: float) -> Text:
    if np.isnan(share):
        return Text("–")
    # Dark letters up to the middle of the ramp, light ones from there: at least 4.5 times as light or dark.
    place = round(share * (len(RAMP) - 1))
    ink = "#000000" if place < 3 else "#ffffff"
    return Text(f"{share:>5.0%}", style=Style(color=ink, bgcolor=RAMP[place]))

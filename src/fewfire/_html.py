"""How objects look in a notebook: a title and a small table, perhaps with lines or bars drawn as SVG.

Every text is escaped. Colours are those of the page around (`currentColor`, opacity), so light and dark notebooks both
work, and nothing needs a script, a style sheet or a network.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fewfire._types import AnyArray

LONGEST = 6
"""Values of a list that are shown; of longer ones the first and the last."""

_WIDTH, _HEIGHT = 240, 60
_CELL = "text-align:left;padding:1px 8px 1px 0;vertical-align:top"


def card(title: str, facts: Mapping[str, object], *drawings: str) -> str:
    """A title, one row per fact, and drawings that are HTML already.

    >>> card("A < B", {"rows": 3})[:30]
    '<div><strong>A &lt; B</strong>'
    """
    rows = "".join(
        f'<tr><th style="{_CELL};font-weight:normal;opacity:0.7">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    table = f'<table style="border:none;margin:0">{rows}</table>'
    return f"<div><strong>{escape(title)}</strong>{table}{''.join(drawings)}</div>"


def listed(values: Sequence[object]) -> str:
    """Values in a row, the middle of many left out.

    >>> listed([1, 2, 3]), listed(range(10))
    ('1, 2, 3', '0, 1, 2, 3, 4, …, 9 (10)')
    """
    texts = list(map(str, values))
    if len(texts) > LONGEST:
        return f"{', '.join(texts[: LONGEST - 1])}, …, {texts[-1]} ({len(texts)})"
    return ", ".join(texts)


def curves(label: str, x: AnyArray, lines: Mapping[str, AnyArray]) -> str:
    """Lines (points,) over a common x, from 0 to the largest value; NaN leaves a gap, all but the first are dashed."""
    seen = {name: values for name, values in lines.items() if np.isfinite(values).any()}
    if len(x) < 2 or not seen:
        return ""
    top = max(float(np.nanmax(values)) for values in seen.values()) or 1.0
    across = _WIDTH * (x - x[0]) / ((x[-1] - x[0]) or 1)
    drawn = []
    for number, (name, values) in enumerate(seen.items()):
        places = np.isfinite(values)
        points = " ".join(
            f"{a:.1f},{_HEIGHT * (1 - b / top):.1f}" for a, b in zip(across[places], values[places], strict=True)
        )
        dash = ' stroke-dasharray="3 3"' if number else ""
        drawn.append(f'<polyline points="{points}"{dash}><title>{escape(name)}</title></polyline>')
    return _drawing(label, f'<g fill="none" stroke="currentColor" stroke-width="1.5">{"".join(drawn)}</g>')


def bars(label: str, values: AnyArray) -> str:
    """One bar per value, from 0 to the largest; its index and value appear under the pointer."""
    top = float(np.max(values, initial=0.0)) or 1.0
    step = _WIDTH / max(1, len(values))
    drawn = "".join(
        f'<rect x="{step * i:.1f}" y="{_HEIGHT * (1 - value / top):.1f}" width="{0.8 * step:.1f}" '
        f'height="{_HEIGHT * value / top:.1f}"><title>{i}: {value:.4g}</title></rect>'
        for i, value in enumerate(values)
    )
    return _drawing(label, f'<g fill="currentColor" opacity="0.7">{drawn}</g>')


def _drawing(label: str, content: str) -> str:
    return (
        f'<svg role="img" aria-label="{escape(label)}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 -2 {_WIDTH} {_HEIGHT + 4}"><title>{escape(label)}</title>{content}</svg>'
    )

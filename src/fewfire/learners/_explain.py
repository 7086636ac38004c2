"""The leading monomials of a polynomial in the user's column names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fewfire.fourier import monomial_members
from fewfire.fourier._monomials import strongest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fewfire._types import Float64Array


def explain_terms(values: Float64Array, names: Sequence[str], degree: int, top: int) -> str:
    """A heading and one line a monomial, largest coefficient first.

    Parameters
    ----------
    values : array of shape (monomial_count(len(names), degree),)
    names : the columns the monomials are made of
    """
    shown = [index for index in strongest(values, top) if values[index]]
    total = float(np.sum(values**2))
    share = float(np.sum(values[shown] ** 2)) / total if total else 1.0
    count = int(np.count_nonzero(values))
    monomials = "monomial" if count == 1 else "monomials"
    lines = [f"degree {degree}, {count} {monomials}; the {len(shown)} largest hold {share:.1%} of the squared weight"]
    for index in shown:
        members = monomial_members(len(names), int(index)) if names else ()
        lines.append(f"{values[index]:+12.6g}  {'·'.join(names[member] for member in members) or '1'}")
    return "\n".join(lines)

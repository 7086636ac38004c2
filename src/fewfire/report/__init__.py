"""Drawings of plain data; matplotlib is loaded when the first one is drawn."""

from fewfire.report._rademacher import plot_rademacher

__all__ = ["plot_rademacher"]

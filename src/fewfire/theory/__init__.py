"""Statements of the papers as plain functions of plain numbers, one package per paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fewfire._lazy import SUBPACKAGES, lazy_names

if TYPE_CHECKING:
    from fewfire.theory import pareto, parities, sparse_activations, sublinear

__all__ = ["pareto", "parities", "sparse_activations", "sublinear"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, {SUBPACKAGES: "pareto parities sparse_activations sublinear"})

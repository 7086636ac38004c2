"""Statements of the papers as plain functions of plain numbers, one package per paper."""

from fewfire.theory import pareto, parities, sparse_activations, sublinear

__all__ = ["pareto", "parities", "sparse_activations", "sublinear"]

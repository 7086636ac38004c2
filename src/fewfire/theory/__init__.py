"""Statements of the papers as plain functions of plain numbers, one module a paper."""

from fewfire.theory import parities, sparse_activations

__all__ = ["parities", "sparse_activations"]

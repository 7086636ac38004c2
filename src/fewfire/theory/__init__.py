"""Statements of the papers as plain functions of plain numbers, one module a paper."""

from fewfire.theory import parities

__all__ = ["parities"]

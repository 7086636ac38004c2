"""Experiments: measurements set beside the bounds of the papers, and recipes that run them."""

from fewfire.experiments._member import Comparison, compare_member, scaled_member
from fewfire.experiments._rademacher import RademacherTable, rademacher_table

__all__ = ["Comparison", "RademacherTable", "compare_member", "rademacher_table", "scaled_member"]

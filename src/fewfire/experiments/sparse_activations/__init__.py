"""What sparse-activations bounds, measured: sensitivities and degrees of members of H(n, s, k), Rademacher complexity.

The bounds themselves are in `fewfire.theory.sparse_activations`.
"""

from fewfire.experiments.sparse_activations._member import Comparison, compare_member, scaled_member
from fewfire.experiments.sparse_activations._rademacher import RademacherTable, rademacher_table
from fewfire.experiments.sparse_activations._sample_members import sample_member, sample_row

__all__ = [
    "Comparison",
    "RademacherTable",
    "compare_member",
    "rademacher_table",
    "sample_member",
    "sample_row",
    "scaled_member",
]

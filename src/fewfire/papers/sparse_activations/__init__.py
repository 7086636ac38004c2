"""sparse-activations (Awasthi, Dikkala, Kamath, Meka): every bound as a plain function of plain numbers.

Symbols, as in the paper: n inputs, s hidden neurons of which at most k are active on any input; W and B the scales
of Definition 2 (`TwoLayer.norms`); R ≥ ‖x‖, √n on the cube; epsilon and delta the accuracy and the failure probability
of a PAC learner; m samples, or in Theorem 14 the number of variables of a parity. log is the natural logarithm.
A constant hidden in an O, Θ or Ω is 1. Counts past the floats are infinite; their `log10_…` forms are not.

Functions named `…_sharp` and `…_explicit` are not in the paper: they are the same quantities with every constant
known, each with its proof in the docstring; those named `…_mostly_sparse` carry Remark 11 out.
"""

from fewfire.papers.sparse_activations.statements._bounds import (
    JuntaClass,
    average_sensitivity,
    average_sensitivity_mostly_sparse,
    average_sensitivity_sharp,
    degree,
    degree_mostly_sparse,
    degree_sharp,
    exceedance_allowed,
    general_samples,
    halfspace_sensitivity,
    junta_class,
    junta_size,
    log10_junta_time,
    log10_samples,
    low_degree_samples,
    noise_sensitivity,
    noise_sensitivity_sharp,
    output_bound,
    parity_queries,
    parity_queries_explicit,
    parity_success_explicit,
    rademacher,
    rademacher_classical,
    rademacher_conjectured,
    rademacher_explicit,
    rademacher_samples,
    samples,
    tail,
)

__all__ = [
    "JuntaClass",
    "average_sensitivity",
    "average_sensitivity_mostly_sparse",
    "average_sensitivity_sharp",
    "degree",
    "degree_mostly_sparse",
    "degree_sharp",
    "exceedance_allowed",
    "general_samples",
    "halfspace_sensitivity",
    "junta_class",
    "junta_size",
    "log10_junta_time",
    "log10_samples",
    "low_degree_samples",
    "noise_sensitivity",
    "noise_sensitivity_sharp",
    "output_bound",
    "parity_queries",
    "parity_queries_explicit",
    "parity_success_explicit",
    "rademacher",
    "rademacher_classical",
    "rademacher_conjectured",
    "rademacher_explicit",
    "rademacher_samples",
    "samples",
    "tail",
]

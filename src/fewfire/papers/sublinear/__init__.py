"""sublinear (Gao, Qin, Song, Wang: A Sublinear Adversarial Training Algorithm): statements as plain functions."""

from fewfire.papers.sublinear.statements._activity import (
    active_interval,
    active_probability,
    activity_bound,
    activity_failure,
    activity_scale,
    claim_5_16,
    claim_radius,
    expected_active,
    flip_probability,
    flip_probability_bound,
    lemma_threshold,
    reachable_active,
)
from fewfire.papers.sublinear.statements._cost import cost_exponent, iteration_cost, reporting_fast, reporting_small
from fewfire.papers.sublinear.statements._features import feature_function
from fewfire.papers.sublinear.statements._good_network import good_network, small_step_polynomial
from fewfire.papers.sublinear.statements._parameters import (
    complexity,
    complexity_at,
    log10_complexity,
    log10_complexity_at,
    regret,
    theorem_parameters,
)
from fewfire.papers.sublinear.statements._pseudo_network import (
    distance_bound,
    pseudo_distance,
    pseudo_network,
    theorem_5_1,
)
from fewfire.papers.sublinear.statements._robust_target import (
    inner_product_bands,
    robust_degree,
    robust_target,
    step_degree,
    step_is_buildable,
    step_polynomial,
)
from fewfire.papers.sublinear.statements._sign_polynomial import (
    power_sign_polynomial,
    sign_polynomial,
    sign_powers,
    truncated_power,
)
from fewfire.papers.sublinear.statements._stability import (
    claim_5_19,
    coupling_bound,
    gradient_coupling,
    largest_norm,
    perturbation,
    perturbation_bound,
)

__all__ = [
    "active_interval",
    "active_probability",
    "activity_bound",
    "activity_failure",
    "activity_scale",
    "claim_5_16",
    "claim_5_19",
    "claim_radius",
    "complexity",
    "complexity_at",
    "cost_exponent",
    "coupling_bound",
    "distance_bound",
    "expected_active",
    "feature_function",
    "flip_probability",
    "flip_probability_bound",
    "good_network",
    "gradient_coupling",
    "inner_product_bands",
    "iteration_cost",
    "largest_norm",
    "lemma_threshold",
    "log10_complexity",
    "log10_complexity_at",
    "perturbation",
    "perturbation_bound",
    "power_sign_polynomial",
    "pseudo_distance",
    "pseudo_network",
    "reachable_active",
    "regret",
    "reporting_fast",
    "reporting_small",
    "robust_degree",
    "robust_target",
    "sign_polynomial",
    "sign_powers",
    "small_step_polynomial",
    "step_degree",
    "step_is_buildable",
    "step_polynomial",
    "theorem_5_1",
    "theorem_parameters",
    "truncated_power",
]

"""sublinear (Gao, Qin, Song, Wang: A Sublinear Adversarial Training Algorithm): statements as plain functions."""

from fewfire.theory.sublinear._activity import (
    active_interval,
    active_probability,
    active_quantile,
    activity_bound,
    activity_failure,
    activity_scale,
    activity_slack,
    expected_active,
    lemma_threshold,
    theorem_activity,
)
from fewfire.theory.sublinear._complexity import (
    complexity,
    complexity_at,
    log10_complexity,
    log10_complexity_at,
)
from fewfire.theory.sublinear._cost import (
    IterationCost,
    ReportingTime,
    cost_exponent,
    iteration_cost,
    reporting_fast,
    reporting_small,
)
from fewfire.theory.sublinear._distance import (
    DistanceBound,
    distance_bound,
    theorem_5_1,
    theorem_5_1_printed,
)
from fewfire.theory.sublinear._flips import (
    FlipBound,
    claim_5_16,
    claim_radius,
    expected_flips,
    flip_probability,
    flip_probability_bound,
    reachable_active,
)
from fewfire.theory.sublinear._parameters import (
    TheoremParameters,
    theorem_parameters,
)
from fewfire.theory.sublinear._practical import (
    PracticalParameters,
    practical_parameters,
    regret,
)
from fewfire.theory.sublinear._pseudo_network import (
    PseudoDistance,
    pseudo_distance,
    pseudo_network,
)
from fewfire.theory.sublinear._robust_target import (
    RobustTarget,
    robust_degree,
    robust_target,
)
from fewfire.theory.sublinear._separability import (
    inner_product_bands,
    largest_radius,
    least_separation,
)
from fewfire.theory.sublinear._sign_polynomial import (
    SignPolynomial,
    power_sign_polynomial,
    sign_polynomial,
    sign_powers,
    truncated_power,
)
from fewfire.theory.sublinear._step_polynomial import (
    StepPolynomial,
    step_degree,
    step_is_buildable,
    step_polynomial,
)

__all__ = [
    "DistanceBound",
    "FlipBound",
    "IterationCost",
    "PracticalParameters",
    "PseudoDistance",
    "ReportingTime",
    "RobustTarget",
    "SignPolynomial",
    "StepPolynomial",
    "TheoremParameters",
    "active_interval",
    "active_probability",
    "active_quantile",
    "activity_bound",
    "activity_failure",
    "activity_scale",
    "activity_slack",
    "claim_5_16",
    "claim_radius",
    "complexity",
    "complexity_at",
    "cost_exponent",
    "distance_bound",
    "expected_active",
    "expected_flips",
    "flip_probability",
    "flip_probability_bound",
    "inner_product_bands",
    "iteration_cost",
    "largest_radius",
    "least_separation",
    "lemma_threshold",
    "log10_complexity",
    "log10_complexity_at",
    "power_sign_polynomial",
    "practical_parameters",
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
    "step_degree",
    "step_is_buildable",
    "step_polynomial",
    "theorem_5_1",
    "theorem_5_1_printed",
    "theorem_activity",
    "theorem_parameters",
    "truncated_power",
]

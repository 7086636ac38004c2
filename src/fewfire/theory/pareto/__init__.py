"""pareto (Edelman, Goel, Kakade, Malach, Zhang): what sparse parities cost in data, width, time and luck."""

from fewfire.theory.pareto._diagnosis import Finding, Resources, diagnose, network_parameters
from fewfire.theory.pareto._frontier import Frontier, frontier, gradient_precision
from fewfire.theory.pareto._gradients import FourierGap, over_sparse_gap, under_sparse_gap
from fewfire.theory.pareto._limits import SearchCost, exhaustive_search, samples_needed, samples_sufficient, set_bits
from fewfire.theory.pareto._luck import (
    good_neuron_bound,
    good_neuron_probability,
    good_neurons,
    good_start_failure,
    width_for_good_start,
)
from fewfire.theory.pareto._majority import half_coefficient, limit_weight, majority_coefficient, majority_weight
from fewfire.theory.pareto._over_sparse import theorem_4, theorem_16
from fewfire.theory.pareto._requirement import Requirement
from fewfire.theory.pareto._separator import (
    over_sparse_biases,
    separator_coefficients,
    separator_features,
    separator_norm,
)
from fewfire.theory.pareto._under_sparse import theorem_5, theorem_21

__all__ = [
    "Finding",
    "FourierGap",
    "Frontier",
    "Requirement",
    "Resources",
    "SearchCost",
    "diagnose",
    "exhaustive_search",
    "frontier",
    "good_neuron_bound",
    "good_neuron_probability",
    "good_neurons",
    "good_start_failure",
    "gradient_precision",
    "half_coefficient",
    "limit_weight",
    "majority_coefficient",
    "majority_weight",
    "network_parameters",
    "over_sparse_biases",
    "over_sparse_gap",
    "samples_needed",
    "samples_sufficient",
    "separator_coefficients",
    "separator_features",
    "separator_norm",
    "set_bits",
    "theorem_4",
    "theorem_5",
    "theorem_16",
    "theorem_21",
    "under_sparse_gap",
    "width_for_good_start",
]

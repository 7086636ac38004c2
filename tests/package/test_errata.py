"""docs/errata.md: rows in order, each with a test in which the printed form fails, and with names that exist."""

import pkgutil
import re
from pathlib import Path

import pytest

from fewfire.papers.recipes import RECIPES

ROOT = Path(__file__).resolve().parents[2]
CELLS = re.compile(r"(?<!\\)\|")
ROWS = [
    [cell.strip() for cell in CELLS.split(line)[1:-1]]
    for line in (ROOT / "docs/errata.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| \d", line)
]
NETWORKS, SUBLINEAR = "networks/test_errata_networks.py", "papers/test_errata_sublinear.py"
PARETO, SPARSE = "papers/test_errata_pareto.py", "papers/test_errata_sparse_activations.py"
FIRST_STEP, DESCENT = "papers/test_parities_first_step.py", "papers/test_parities_descent.py"
GRADIENTS, RESOURCES = "papers/test_pareto_closed_forms.py", "papers/test_pareto_resources.py"
PROBLEMS, TABLES = "problems/test_errata_problems.py", "problems/test_tabular_errata.py"
TESTS = {
    1: (NETWORKS, "test_erratum_1_parity_as_a_one_sparse_network"),
    2: (NETWORKS, "test_erratum_2_symmetric_initialisation"),
    3: (DESCENT, "test_erratum_3_the_printed_coefficients_fail_and_the_corrected_hold"),
    4: (NETWORKS, "test_erratum_4_over_sparse_biases"),
    5: (NETWORKS, "test_erratum_5_parity_of_the_sum"),
    6: (NETWORKS, "test_erratum_6_shifted_relu"),
    7: (NETWORKS, "test_erratum_7_size_of_the_threshold"),
    8: (PROBLEMS, "test_robust_fit_misses_any_other_label"),
    9: ("fourier/test_errata_fourier.py", "test_pareto_theorem_21_ratio_of_gradients"),
    10: (NETWORKS, "test_erratum_learning_with_rounding_needs_a_constant"),
    11: (NETWORKS, "test_erratum_lifted_rounding_weights_are_not_signs"),
    12: ("networks/test_networks_lifted.py", "test_lifted_parity_norms_grow_as_stated"),
    13: (SPARSE, "test_lemma_6_the_sensitivity_is_half_the_correlation_not_a_quarter"),
    14: (SPARSE, "test_lemma_9_the_last_step_loses_root_n_and_root_log"),
    15: (SPARSE, "test_lemma_10_the_reduction_fails_for_negative_rho_and_is_an_inequality_between"),
    16: (SPARSE, "test_theorem_8_the_printed_rho_does_not_bring_lemma_10_to_a_third_of_eps"),
    17: (SPARSE, "test_theorem_17_loses_the_output_bound_of_lemma_18"),
    18: (SPARSE, "test_theorem_19_depends_on_the_unit_of_inputs_and_the_class_does_not"),
    19: (GRADIENTS, "test_the_limit_weight_bounds_the_weight_and_its_printed_half_does_not"),
    20: (RESOURCES, "test_theorem_16_step_condition_needs_the_norm"),
    21: (GRADIENTS, "test_lemma_15_needs_the_exact_probability"),
    22: (GRADIENTS, "test_under_sparse_precision_scales_as_the_relevant_gradient"),
    23: ("papers/test_parities_bounds.py", "test_lemma_8_fails_with_the_printed_relu6"),
    24: (SUBLINEAR, "test_theorem_5_1_the_distance_grows_at_the_printed_radius"),
    25: (SUBLINEAR, "test_claim_5_7_a_neuron_that_changes_is_near_the_threshold_not_near_zero"),
    26: (SUBLINEAR, "test_theorem_5_12_the_weights_travel_too_far"),
    27: (SUBLINEAR, "test_lemma_5_14_the_exponent"),
    28: (SUBLINEAR, "test_lemma_5_14_the_gradients_differ_before_any_neuron_changes"),
    29: (SUBLINEAR, "test_lemma_5_15_is_empty_under_theorem_5_12"),
    30: (SUBLINEAR, "test_claim_5_16_bounds_a_probability_not_an_indicator"),
    31: (SUBLINEAR, "test_lemma_6_3_every_example_has_its_own_active_neurons"),
    32: (SUBLINEAR, "test_corollary_6_2_updates_cost_what_building_costs"),
    33: (SUBLINEAR, "test_lemma_3_13_laurent_massart"),
    34: (SUBLINEAR, "test_lemma_5_18_only_the_strip_is_small"),
    35: (SUBLINEAR, "test_nets_have_many_points"),
    36: ("papers/test_recipe_proposition_3.py", "test_erratum_36_markov_at_half_of_the_noise_needs_a_quarter"),
    37: (TABLES, "test_the_catalogue_is_one_feature_below_table_1"),
    38: (TABLES, "test_the_two_large_tasks_are_3_and_9"),
    39: ("papers/test_table2_models.py", "test_the_forest_of_table_2_cannot_have_depth_minus_one"),
    40: ("papers/test_table2_models.py", "test_adam_is_what_c3_must_mean"),
    41: (FIRST_STEP, "test_erratum_signs_of_the_first_step"),
    42: (FIRST_STEP, "test_erratum_of_lemma_7_the_slope_is_half_of_the_share"),
    43: (FIRST_STEP, "test_erratum_of_lemma_6_the_strip_beyond_six"),
    44: (DESCENT, "test_erratum_of_lemma_10_margin"),
    45: (DESCENT, "test_erratum_of_lemma_13_a_plus"),
    46: (PROBLEMS, "test_mod_q_then_mod_p_rounds_nothing"),
    47: (PARETO, "test_lemma_8_the_second_case_is_the_neurons_ones_off_the_support"),
    48: (PARETO, "test_lemma_15_the_tails_are_below_a_half_and_above_three_halves"),
    49: (PARETO, "test_theorem_21_a_bias_has_the_probability_one_in_k"),
    50: ("papers/test_rademacher_estimate.py", "test_opposite_points_attain_conjecture_20"),
    51: (SUBLINEAR, "test_lemma_5_9_and_claim_5_19_the_tail_of_a_norm"),
    52: (SUBLINEAR, "test_lemma_5_14_eq_22_both_gradients_are_at_the_moved_example"),
    53: (SUBLINEAR, "test_claim_5_19_outputs_and_the_band_about_the_threshold"),
    54: ("papers/test_pareto_proof_steps.py", "test_lemma_14_adds_up_to_eleven_epsilon"),
    55: (RESOURCES, "test_theorem_5_needs_the_union_bound_over_the_weights"),
    56: (PARETO, "test_theorems_4_and_16_the_printed_samples_do_not_meet_the_drift_of_the_proof"),
    57: (PARETO, "test_theorem_16_the_precision_has_kappa_where_one_over_kappa_is_printed"),
    58: (PARETO, "test_lemma_9_bounds_by_the_absolute_value"),
    59: (SUBLINEAR, "test_lemma_6_3_leaves_out_the_adversary"),
    60: (SUBLINEAR, "test_algorithm_1_the_structure_needs_the_biases"),
    61: (DESCENT, "test_erratum_of_the_proof_of_theorem_11_the_induction"),
    62: (DESCENT, "test_erratum_of_section_2_the_biases_are_trained"),
    63: (DESCENT, "test_erratum_of_the_proof_of_theorem_2_its_two_constants"),
    64: (DESCENT, "test_erratum_of_the_proof_of_lemma_10_the_neurons_of_the_separator"),
    65: (SPARSE, "test_lemma_9_the_concavity_needs_more_neurons_than_may_fire"),
    66: (NETWORKS, "test_erratum_the_square_is_inside_the_activation"),
}


def test_rows_are_numbered_and_whole():
    assert [row[0] for row in ROWS] == [str(number + 1) for number in range(len(ROWS))]
    assert all(len(row) == 6 and all(row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_row_has_its_test_and_its_names(row):
    file, name = TESTS[int(row[0])]
    assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")
    package = ""
    for word in re.findall(r"`([^`]+)`", row[5]):
        if "/" in word:
            assert word in RECIPES
            continue
        path = package + word if word.startswith(".") else word
        package = path.rpartition(".")[0]
        pkgutil.resolve_name(f"fewfire.{path}")

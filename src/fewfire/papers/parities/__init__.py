"""parities (Daniely, Malach: Learning Parities with Neural Networks): statements as plain functions."""

from fewfire.papers.parities.statements._first_step import (
    balanced_probability,
    bias_noise,
    firing_share,
    first_step,
    good_neuron_bound,
    good_start,
    lemma_3,
    lemma_4,
    lemma_6,
    lemma_12,
)
from fewfire.papers.parities.statements._linear import embedding_dimension, forster_bound, halfspace_accuracy
from fewfire.papers.parities.statements._separator import (
    feature_probability,
    lemma_9,
    separator_coefficients,
    separator_features,
    separator_margin,
    separator_norm,
    separator_thresholds,
)
from fewfire.papers.parities.statements._theorem_2 import (
    Drift,
    learning_rates,
    lemma_13,
    lemma_14,
    theorem_2,
    theorem_11,
)

__all__ = [
    "Drift",
    "balanced_probability",
    "bias_noise",
    "embedding_dimension",
    "feature_probability",
    "firing_share",
    "first_step",
    "forster_bound",
    "good_neuron_bound",
    "good_start",
    "halfspace_accuracy",
    "learning_rates",
    "lemma_3",
    "lemma_4",
    "lemma_6",
    "lemma_9",
    "lemma_12",
    "lemma_13",
    "lemma_14",
    "separator_coefficients",
    "separator_features",
    "separator_margin",
    "separator_norm",
    "separator_thresholds",
    "theorem_2",
    "theorem_11",
]

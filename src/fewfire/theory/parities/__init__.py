"""parities (Daniely, Malach: Learning Parities with Neural Networks): statements as plain functions."""

from fewfire.theory.parities._descent import Drift, lemma_13, lemma_14, theorem_11
from fewfire.theory.parities._first_step import (
    FirstStep,
    Half,
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
from fewfire.theory.parities._linear import (
    embedding_dimension,
    forster_bound,
    halfspace_accuracy,
    parity_spectral_norm,
)
from fewfire.theory.parities._separator import (
    feature_probability,
    lemma_9,
    separator_coefficients,
    separator_features,
    separator_margin,
    separator_norm,
    separator_thresholds,
)
from fewfire.theory.parities._theorem_2 import ErrorBound, LearningRates, learning_rates, theorem_2

__all__ = [
    "Drift",
    "ErrorBound",
    "FirstStep",
    "Half",
    "LearningRates",
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
    "parity_spectral_norm",
    "separator_coefficients",
    "separator_features",
    "separator_margin",
    "separator_norm",
    "separator_thresholds",
    "theorem_2",
    "theorem_11",
]

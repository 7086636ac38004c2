"""parities (Daniely, Malach: Learning Parities with Neural Networks): statements as plain functions."""

from fewfire.theory.parities._forster import (
    embedding_dimension,
    forster_bound,
    parity_spectral_norm,
)
from fewfire.theory.parities._halfspaces import halfspace_accuracy
from fewfire.theory.parities._luck import balanced_probability, feature_probability, good_neuron_bound
from fewfire.theory.parities._separator import separator_coefficients, separator_features, separator_thresholds
from fewfire.theory.parities._theorem_2 import ErrorBound, LearningRates, learning_rates, theorem_2

__all__ = [
    "ErrorBound",
    "LearningRates",
    "balanced_probability",
    "embedding_dimension",
    "feature_probability",
    "forster_bound",
    "good_neuron_bound",
    "halfspace_accuracy",
    "learning_rates",
    "parity_spectral_norm",
    "separator_coefficients",
    "separator_features",
    "separator_thresholds",
    "theorem_2",
]

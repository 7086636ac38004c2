"""parities (Daniely, Malach: Learning Parities with Neural Networks): statements as plain functions."""

from fewfire.theory.parities._linear import (
    embedding_dimension,
    forster_bound,
    halfspace_accuracy,
    parity_spectral_norm,
)
from fewfire.theory.parities._theorem_2 import (
    ErrorBound,
    LearningRates,
    balanced_probability,
    feature_probability,
    good_neuron_bound,
    learning_rates,
    separator_coefficients,
    separator_features,
    separator_thresholds,
    theorem_2,
)

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

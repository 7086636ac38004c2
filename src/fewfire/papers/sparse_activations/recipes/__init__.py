"""Recipes for sparse-activations: Learning Neural Networks with Sparse Activations."""

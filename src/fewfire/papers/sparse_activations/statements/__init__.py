"""The numbered statements of sparse-activations as plain functions of plain numbers."""

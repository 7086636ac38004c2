"""The numbered statements of pareto as plain functions of plain numbers."""

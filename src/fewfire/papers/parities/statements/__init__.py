"""The numbered statements of parities as plain functions of plain numbers."""

"""The numbered statements of sublinear as plain functions of plain numbers."""

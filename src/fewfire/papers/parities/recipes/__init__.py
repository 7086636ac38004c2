"""Recipes for parities (Daniely, Malach)."""

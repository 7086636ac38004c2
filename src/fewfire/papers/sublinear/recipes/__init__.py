"""Recipes of sublinear: how few neurons fire, robust training that converges, and what it gives on images."""

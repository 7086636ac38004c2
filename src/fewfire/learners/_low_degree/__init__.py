"""Polynomials of low degree in binary columns: two estimators, and the search for penalty, degree and sparsity."""

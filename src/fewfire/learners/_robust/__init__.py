"""Networks trained against an adversary as scikit-learn estimators: both layers, or sublinear's Algorithm 1."""

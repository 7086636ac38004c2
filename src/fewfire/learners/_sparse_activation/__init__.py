"""Learning inside H(n, s, k): two-layer networks of which at most k neurons fire on an input, fitted as such."""

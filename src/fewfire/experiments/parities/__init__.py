"""What the proof of parities, Theorem 2, bounds, measured on a network that gradient descent trains.

The bounds themselves are in `fewfire.theory.parities`, the instruments in `fewfire.learners.parity_net`.
"""

from fewfire.experiments.parities._proof import ProofRow, compare_proof

__all__ = ["ProofRow", "compare_proof"]

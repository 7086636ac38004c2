"""Frontiers: where runs turn from failing to succeeding, estimated from counts and looked for run by run."""

from fewfire.experiments.frontiers._estimate import FrontierEstimate, estimate_frontier
from fewfire.experiments.frontiers._line import LineSearch

__all__ = ["FrontierEstimate", "LineSearch", "estimate_frontier"]

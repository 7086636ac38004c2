"""Half-space reporting (sublinear, section 6.1): which points have ⟨p, a⟩ + b > threshold, exactly and fast.

`Index` keeps points under stable ids; `load` reads one back; `scores` is the float32 sum that decides.
"""

from fewfire.halfspace._files import load
from fewfire.halfspace._index import Index
from fewfire.halfspace._plan import Plan
from fewfire.halfspace._protocol import METHODS, Counters
from fewfire.halfspace._reference import scores

__all__ = ["METHODS", "Counters", "Index", "Plan", "load", "scores"]

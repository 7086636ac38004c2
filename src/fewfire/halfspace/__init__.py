"""Half-space reporting (sublinear, section 6.1): which points have ⟨p, a⟩ + b > threshold, exactly and fast.

`Index` keeps points under stable ids; `load` reads one back; `scores` is the float32 sum that decides,
also reported on request; `register_method` adds a way of keeping points, a class that follows `Reporter`.
"""

from fewfire.halfspace._index import Index, load
from fewfire.halfspace._methods import Reporter, register_method, unregister_method
from fewfire.halfspace._reference import scores

__all__ = ["Index", "Reporter", "load", "register_method", "scores", "unregister_method"]

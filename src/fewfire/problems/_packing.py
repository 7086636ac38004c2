"""How many points can keep a distance on the slice ‖x‖ = 1, x_d = 1/2: upper bounds that name the impossible.

The slice is a sphere of radius r = √3/2 in D = d − 1 dimensions. Points s apart have disjoint caps of angle θ,
sin θ = s/(2r), so their number is at most one over the share of the sphere in a cap. When s² > 2r² all inner
products are negative and Rankin's bound 1 + r²/(s²/2 − r²), at most D + 1, is far better.
"""

from __future__ import annotations

import math

from fewfire._sphere import DIAMETER, RADIUS


def packing_limit(d: int, separation: float) -> float:
    """No more than this many points of the slice in dimension d are pairwise `separation` apart (may be infinity)."""
    if separation <= 0.0:
        return math.inf
    if d == 2:
        return 2.0
    from scipy.special import betainc  # late: the workers of a sweep need no SciPy

    sphere = d - 1
    share = 0.5 * float(betainc((sphere - 1) / 2, 0.5, min(1.0, (separation / DIAMETER) ** 2)))
    limit = 1.0 / share if share > 0.0 else math.inf
    excess = separation**2 / 2 - RADIUS**2
    if excess > 0.0:
        limit = min(limit, 1.0 + RADIUS**2 / excess, sphere + 1.0)
    # The bound is attained by simplices and polygons: rounding must not take their last point away.
    return float(math.floor(limit * (1.0 + 1e-9))) if math.isfinite(limit) else limit

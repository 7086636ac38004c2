"""Laws: what runs will need, fitted to the cells of sweeps, and what is short where they fail."""

from fewfire.sweeps.laws._cells import parity_cells
from fewfire.sweeps.laws._diagnose import diagnose
from fewfire.sweeps.laws._frontier_law import FrontierLaw, fit_law, shipped_law

__all__ = ["FrontierLaw", "diagnose", "fit_law", "parity_cells", "shipped_law"]

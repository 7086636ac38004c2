"""Laws: what runs will need, fitted to the cells of sweeps, and what is short where they fail."""

from fewfire.sweeps.laws._cells import parity_cells
from fewfire.sweeps.laws._diagnose import diagnose
from fewfire.sweeps.laws._frontier_law import FrontierLaw, fit_law, shipped_law
from fewfire.sweeps.laws._success_law import fit_success_law

__all__ = ["FrontierLaw", "diagnose", "fit_law", "fit_success_law", "parity_cells", "shipped_law"]

"""Laws: what runs will need, fitted to the cells of sweeps, and what is short where they fail."""

from fewfire.experiments.laws._cells import (
    ParityCell,
    cells_from_csv,
    cells_to_csv,
    merged_cells,
    parity_cells,
    provenance,
    shipped_cells,
)
from fewfire.experiments.laws._diagnose import Advice, Chance, FourTimes, diagnose
from fewfire.experiments.laws._frontier_law import (
    LEVEL,
    FrontierLaw,
    FrontierPoint,
    HeldOutFrontier,
    LawPrediction,
    fit_law,
    frontier_points,
    shipped_law,
)
from fewfire.experiments.laws._success_law import SuccessLaw, fit_success_law, shipped_success_laws

__all__ = [
    "LEVEL",
    "Advice",
    "Chance",
    "FourTimes",
    "FrontierLaw",
    "FrontierPoint",
    "HeldOutFrontier",
    "LawPrediction",
    "ParityCell",
    "SuccessLaw",
    "cells_from_csv",
    "cells_to_csv",
    "diagnose",
    "fit_law",
    "fit_success_law",
    "frontier_points",
    "merged_cells",
    "parity_cells",
    "provenance",
    "shipped_cells",
    "shipped_law",
    "shipped_success_laws",
]

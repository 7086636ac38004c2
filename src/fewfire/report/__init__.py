"""Reports: `*_info` functions turn a store into plain data, `render_page` and `plot_*` draw it, `LivePage` follows it.

matplotlib is loaded when the first figure is drawn.
"""

from fewfire.report._curves import CellCurves, curves_info
from fewfire.report._effects import plot_effects
from fewfire.report._findings import FrontierFinding, findings_info
from fewfire.report._frontier import Group, SuccessFrontier, frontier_info, wilson_interval
from fewfire.report._live import LivePage
from fewfire.report._page import render_page, write_page
from fewfire.report._plots import (
    RAMP,
    plot_convergence,
    plot_curves,
    plot_even_odds,
    plot_frontier,
    plot_success,
    save_figures,
)
from fewfire.report._profile import BlockActivity, ProfileInfo, plot_profile, profile_info
from fewfire.report._progress import SweepProgress
from fewfire.report._results import Results, StoreSummary, read_results, summary_info
from fewfire.report._serve import PageServer
from fewfire.report._settings import SettingsTable, settings_info
from fewfire.report._theory import TheoryOverlay, theory_info
from fewfire.report.recipes import plot_lottery, plot_rademacher, plot_recipe, plot_tabular, save_recipe

__all__ = [
    "RAMP",
    "BlockActivity",
    "CellCurves",
    "FrontierFinding",
    "Group",
    "LivePage",
    "PageServer",
    "ProfileInfo",
    "Results",
    "SettingsTable",
    "StoreSummary",
    "SuccessFrontier",
    "SweepProgress",
    "TheoryOverlay",
    "curves_info",
    "findings_info",
    "frontier_info",
    "plot_convergence",
    "plot_curves",
    "plot_effects",
    "plot_even_odds",
    "plot_frontier",
    "plot_lottery",
    "plot_profile",
    "plot_rademacher",
    "plot_recipe",
    "plot_success",
    "plot_tabular",
    "profile_info",
    "read_results",
    "render_page",
    "save_figures",
    "save_recipe",
    "settings_info",
    "summary_info",
    "theory_info",
    "wilson_interval",
    "write_page",
]

"""Reports: `*_info` functions turn a store into plain data, `write_page` and `plot_*` draw it, `LivePage` follows it.

matplotlib is loaded when the first figure is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fewfire._lazy import lazy_names

if TYPE_CHECKING:
    from fewfire.report._curves import curves_info
    from fewfire.report._effects import plot_effects
    from fewfire.report._findings import findings_info
    from fewfire.report._frontier import frontier_info
    from fewfire.report._live import LivePage
    from fewfire.report._page import write_page
    from fewfire.report._plots import (
        plot_convergence,
        plot_curves,
        plot_even_odds,
        plot_frontier,
        plot_success,
        save_figures,
    )
    from fewfire.report._profile import plot_profile
    from fewfire.report._results import summary_info
    from fewfire.report._serve import PageServer

__all__ = [
    "LivePage",
    "PageServer",
    "curves_info",
    "findings_info",
    "frontier_info",
    "plot_convergence",
    "plot_curves",
    "plot_effects",
    "plot_even_odds",
    "plot_frontier",
    "plot_profile",
    "plot_success",
    "save_figures",
    "summary_info",
    "write_page",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "_curves": "curves_info",
            "_effects": "plot_effects",
            "_findings": "findings_info",
            "_frontier": "frontier_info",
            "_live": "LivePage",
            "_page": "write_page",
            "_plots": "plot_convergence plot_curves plot_even_odds plot_frontier plot_success save_figures",
            "_profile": "plot_profile",
            "_results": "summary_info",
            "_serve": "PageServer",
        },
    )

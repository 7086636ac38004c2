"""The cells that the shipped laws were fitted to, as `tools/laws.py` writes and reads them."""

import sys
from functools import cache
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tools"))

from laws import cells_from_csv, cells_to_csv, provenance, read

__all__ = ["cells_from_csv", "cells_to_csv", "provenance", "shipped_cells"]


@cache
def shipped_cells(table="calibration"):
    return tuple(read(f"{table}.csv"))

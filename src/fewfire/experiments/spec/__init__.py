"""What a sweep is: its tables, the grid they stand for, the spec of each run, and the hashes of these."""

from fewfire.experiments.spec._grid import expand
from fewfire.experiments.spec._run_spec import Data, RunSpec, canonical, text_hash
from fewfire.experiments.spec._search import FrontierSearch
from fewfire.experiments.spec._sweep import Sweep

__all__ = ["Data", "FrontierSearch", "RunSpec", "Sweep", "canonical", "expand", "text_hash"]

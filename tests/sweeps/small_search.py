"""A search of a second or so, which several tests share."""

from fewfire.sweeps import Sweep


def search_table(**changes):
    """Two frontiers of (8, 2)-parities, to ±50%; sections may be replaced, and [search] added to."""
    table = {
        "problem": {"name": "parity", "n": 8, "k": 2},
        "network": {"start": {"name": "sparse", "s": 2}, "width": [8, 40]},
        "data": {"test_samples": 200},
        "training": {"steps": 1500, "learning_rate": 0.1, "stop_error": 0.1, "evaluate": 50},
        "search": {"axis": "data.samples", "low": 10, "high": 1000, "precision": 0.5, "budget": 40},
    }
    return table | changes | {"search": table["search"] | changes.get("search", {})}


def small_search(**changes):
    return Sweep.from_dict(search_table(**changes))

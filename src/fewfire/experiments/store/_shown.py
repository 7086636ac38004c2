"""What a store says of itself at a prompt and in a notebook: how many runs, how they ended, of which sweeps.

Whatever the file has come to, showing it raises nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fewfire._errors import FewfireError
from fewfire._html import card, listed

if TYPE_CHECKING:
    from pathlib import Path

    from fewfire.experiments.store._protocol import Store


def store_text(store: Store, path: Path | None = None) -> str:
    """One line: the class, the file if there is one, the runs by status."""
    parts = [] if path is None else [repr(str(path))]
    return f"{type(store).__name__}({', '.join([*parts, _runs(store)])})"


def store_card(store: Store, path: Path | None = None) -> str:
    """The same for a notebook, with the number of settings and the names of the sweeps."""
    facts = {} if path is None else {"file": str(path)}
    facts["runs"] = _runs(store)
    with suppress(FewfireError):  # the line above says so
        facts |= {"settings": str(len(store.settings())), "sweeps": listed([one.name for one in store.sweeps()])}
    return card(type(store).__name__, facts)


def _runs(store: Store) -> str:
    try:
        counts = store.counts()
    except FewfireError as error:
        return "closed" if "is closed" in str(error) else "cannot be read"
    ended = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    return f"{sum(counts.values())} runs" + (f": {ended}" if ended else "")

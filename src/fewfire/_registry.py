"""Registers by name that other packages may add to: engines, problems.

What comes with fewfire stays; what was added from outside can be taken back. Names are unique. Registers are changed
under a lock and read without one, since a change replaces the table.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import TypeVar

from fewfire._errors import invalid
from fewfire._validate import check_choice

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """Entries by name, in order; no entry may have the `reserved` name, such as "auto"."""

    def __init__(self, *reserved: str) -> None:
        self._reserved, self._lock = reserved, threading.Lock()
        self._entries: dict[str, T] = {}
        self._own: set[str] = set()

    def add(self, name: str, entry: T, *, before: str | None = None, own: bool = False) -> None:
        """Enter one under a new name, last or before another; `own` marks what cannot be taken back."""
        with self._lock:
            if not isinstance(name, str) or not name or name in self._reserved or name in self._entries:
                taken = ", ".join(map(repr, (*self._reserved, *self._entries)))
                raise invalid("name", f"must be a name other than {taken}", name, "choose a new one")
            if before is not None:
                check_choice("before", before, self._entries)
            entries = list(self._entries.items())
            index = len(entries) if before is None else [key for key, _ in entries].index(before)
            entries.insert(index, (name, entry))
            self._entries = dict(entries)
            self._own |= {name} if own else set()

    def remove(self, name: str) -> None:
        """Take back what was added from outside."""
        with self._lock:
            if name not in self._entries or name in self._own:
                raise invalid("name", "must be that of something registered from outside", name)
            self._entries = {key: entry for key, entry in self._entries.items() if key != name}

    def added(self) -> dict[str, T]:
        """What was added from outside."""
        return {name: entry for name, entry in self._entries.items() if name not in self._own}

    def __getitem__(self, name: str) -> T:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

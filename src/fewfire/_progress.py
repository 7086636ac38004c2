"""How far a long call is, as one bar: in a notebook, on a terminal, and elsewhere as a line now and then.

A notebook's bar is one display that is written anew, without widgets, so it stays in the saved notebook as it ended. A
terminal's is one line of standard error that is written anew; an interrupted call leaves it as it was.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from html import escape
from typing import Any, TypeAlias

from fewfire._errors import invalid

ProgressCallback: TypeAlias = Callable[[int, int], object]
"""Gets (done, total)."""

LINES = 30.0
"""Seconds between two lines of progress where there is no terminal."""

_FRAMES = 0.1
"""Seconds between two drawings of a bar."""


def progress_callback(progress: object, what: str) -> ProgressCallback | None:
    """What to call with (done, total): nothing for False and None, a bar named `what` for True, a callable itself."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return Bar(what)
    if callable(progress):
        return progress
    raise invalid("progress", "must be True, False or callable with (done, total)", progress)


class Bar:
    """One bar for a call that reports (done, total), with a note and a forecast; a new call begins a new one."""

    def __init__(self, what: str, *, forecast: bool = False) -> None:
        self.what, self.forecast = what, forecast
        self._page = NotebookBar() if in_notebook() else None
        self._drawn = self._page is None and sys.stderr.isatty()
        self._began = self._shown = time.monotonic()
        self._ended = False

    def __call__(self, done: float, total: float, note: str = "") -> None:
        """Draw this state, if the last is not too fresh."""
        now, last = time.monotonic(), done >= total
        if self._ended:
            self._began, self._page = now, NotebookBar() if self._page is not None else None
        pause = _FRAMES if self._page is not None or self._drawn else LINES
        if not last and now - self._shown < pause:
            return
        self._ended, self._shown = last, now
        spent = now - self._began
        left = f", {spent * (total / done - 1):.0f} s left" if self.forecast and 0 < done < total else ""
        line = f"{self.what}: {done:.0f} of {total:.0f}{note and f', {note}'}, {spent:.0f} s{left}"
        if self._page is not None:
            self._page.show(done, total, line)
        elif self._drawn:
            print(f"\r{drawing(done, total, line)}", end="\n" if last else "", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)


class NotebookBar:
    """One display of a notebook, made at the first state and written anew at the others."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, done: float, total: float, line: str) -> None:
        """Draw a state."""
        from IPython import display  # type: ignore[import-not-found, unused-ignore]

        bar = display.HTML(f'<progress value="{done}" max="{max(total, 1)}"></progress> {escape(line)}')
        if self._handle is None:
            self._handle = display.display(bar, display_id=True)
        else:
            self._handle.update(bar)


def drawing(done: float, total: float, line: str) -> str:
    """The line of a terminal: a bar where there is room for one, then the words, cut to the width.

    >>> drawing(1, 4, "fit: 1 of 4, 2 s").rstrip()
    '[#####---------------] fit: 1 of 4, 2 s'
    """
    columns = shutil.get_terminal_size().columns - 1
    filled = round(20 * min(max(done / max(total, 1), 0.0), 1.0))
    bar = f"[{'#' * filled}{'-' * (20 - filled)}] " if len(line) + 23 <= columns else ""
    return f"{bar}{line}"[:columns].ljust(columns)


def in_notebook() -> bool:
    """Whether a Jupyter kernel is running this; IPython on a terminal is none."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None
    return shell is not None and hasattr(shell, "kernel")

"""A part of a page that a tool writes from data: it begins and ends with a mark, and the rest is not touched."""

from __future__ import annotations

import argparse
from pathlib import Path


def options(what: str, folder: str, default: Path) -> argparse.ArgumentParser:
    """The options of such tools: whether to write, and in which folder the page lies."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if the page is not up to date")
    parser.add_argument(folder, type=Path, default=default, help="where the page lies")
    return parser


def renew(path: Path, part: str, *, check: bool, source: str, tool: str) -> int:
    """Put a part, whose first and last lines are its marks, in its place, or only compare; the exit status.

    Parameters
    ----------
    path : Path
        Of the page.
    part : str
    check : bool
        Whether nothing is written; a page that is not up to date then gives status 1.
    source, tool : str
        What the part follows and what writes it, for the message.
    """
    begin, *_, end = part.splitlines()
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(begin)
    made = before + part + rest.split(end)[1]
    if made == text:
        return 0
    if check:
        print(f"{path} does not follow {source}: run python tools/{tool}")
        return 1
    path.write_text(made, encoding="utf-8")
    print(f"written: {path}")
    return 0

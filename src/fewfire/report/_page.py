"""The HTML report: one file that needs nothing else and loads nothing, with its data inside.

The page's own files lie in `page/`; here they are put together. Texts from specs come into the page as escaped JSON and
are shown as text. A content security policy names the one script and style that may run, by hash, and forbids requests.
"""

from __future__ import annotations

import html
import json
import os
import re
from base64 import b64encode
from contextlib import suppress
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewfire import __version__
from fewfire._errors import invalid
from fewfire.report._page_data import page_data
from fewfire.report._results import Results, read_results

if TYPE_CHECKING:
    from fewfire.experiments import Store

TITLE = "Success frontier"


def render_page(source: Store | Results, success_error: float | None = None, *, title: str | None = None) -> str:
    """The report of a store as HTML; the same store gives the same text.

    Parameters
    ----------
    source : Store or Results
    success_error : float, optional
        By default that of the newest sweep in the store.
    title : str, optional
        By default the names of the sweeps.
    """
    results = read_results(source, success_error)
    data = page_data(results)
    style, script = _joined(".css"), _joined(".js")
    parts = {
        "title": html.escape(title or " · ".join(results.names) or TITLE),
        "lede": html.escape(_lede(data["summary"])),
        "version": html.escape(__version__),
        "policy": html.escape(
            f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        "style": style,
        "script": script,
        "data": embedded_json(data),
    }
    page = (files(__package__) / "page" / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], page)


def write_page(
    source: Store | Results, path: str | Path, success_error: float | None = None, *, title: str | None = None
) -> int:
    """Write the report of a store to a file, whole or not at all; gives its size in bytes. See `render_page`."""
    page = render_page(source, success_error, title=title).encode()
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(page)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise invalid("output", f"must be a file that can be written ({error.strerror})", str(path)) from None
    return len(page)


def embedded_json(data: Any) -> str:
    """JSON that stays inside its script element, whatever its texts hold."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _joined(suffix: str) -> str:
    """The page's files of one kind, one after the other in order of their names."""
    folder = sorted((files(__package__) / "page").iterdir(), key=lambda file: file.name)
    return "\n" + "\n".join(file.read_text(encoding="utf-8") for file in folder if file.name.endswith(suffix))


def _digest(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _lede(summary: dict[str, Any]) -> str:
    """What the store holds, in a sentence or two."""
    few, many = summary["trials"]
    each = f"{many:,}" if few == many else f"{few:,} to {many:,}"
    runs, cells = summary["runs"], summary["cells"]
    if not runs:
        return "No finished runs yet." + (f" {summary['failed']:,} failed." if summary["failed"] else "")
    goal = f"{summary['success_error'] * 100:.3g}%"
    share = f"{summary['successes'] / runs:.0%} of them get down to a test error of {goal}"
    trouble = [f"{summary[kind]:,} {kind}" for kind in ("diverged", "failed") if summary[kind]]
    end = f"; {' and '.join(trouble)}" if trouble else ""
    return f"{runs:,} training runs in {cells:,} cells, {each} a cell: {share}{end}."

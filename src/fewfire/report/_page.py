"""The HTML report: one file that needs nothing else and loads nothing, with its data inside.

The page's own files lie in `page/`; here they are put together. Texts from specs come into the page as escaped JSON and
are shown as text. A content security policy names the one script and style that may run, by hash, and forbids requests;
a page that follows a sweep (`live.js` is in that one only) may ask the server that it came from.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from dataclasses import asdict
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fewfire import __version__
from fewfire._atomic import write_bytes
from fewfire._errors import invalid
from fewfire.experiments import MemoryStore
from fewfire.report._page_data import PageData
from fewfire.report._profile import profile_info
from fewfire.report._results import Results, read_results

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fewfire.experiments import Store
    from fewfire.report._profile import ProfileInfo, SeenModel

TITLE = "Success frontier"
KEPT = "One file, no network: keep it, mail it, print it."
LIVE = "It follows its store for as long as fewfire report --watch runs."


def render_page(
    source: Store | Results | Mapping[str, Store] | None,
    success_error: float | None = None,
    *,
    title: str | None = None,
    profile: SeenModel | Mapping[str, Any] | None = None,
) -> str:
    """The report of a store as HTML; the same store gives the same text.

    Parameters
    ----------
    source : Store, mapping of names to stores, or Results; None for a page of the profile alone
        Several stores are shown side by side.
    success_error : float, optional
        By default that of the newest sweep in the store.
    title : str, optional
        By default the names of the sweeps, or of the profiled model.
    profile : fewfire.torch.ModelProfile or its plain data, optional
        Adds a section about the neurons of a PyTorch model that fire.

    Examples
    --------
    >>> from fewfire import report
    >>> from fewfire.experiments import SqliteStore
    >>> store = SqliteStore("grid.sqlite")  # as the README's first sweep writes it
    >>> report.render_page(store, title="My grid").count("<title>My grid</title>")
    1
    """
    if source is None and profile is None:
        raise invalid("source", "must be a store where there is no profile", source, "pass a store, a profile or both")
    seen = None if profile is None else profile_info(profile)
    results = read_results(MemoryStore() if source is None else source, success_error)
    data = PageData().of(results, title) | {"profile": seen and asdict(seen)}
    if seen and source is None:
        data |= {"title": title or seen.model, "lede": _profile_lede(seen)}
    return compose(data)


def compose(data: dict[str, Any], *, live: bool = False) -> str:
    """The page of these data; `live` for one that is served and asks for newer ones."""
    style, script = _joined(".css"), _joined(".js", live=live)
    requests = "connect-src 'self'; " if live else ""
    parts = {
        "title": html.escape(data["title"] or TITLE),
        "lede": html.escape(data["lede"]),
        "version": html.escape(__version__),
        "policy": html.escape(
            f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
            f"{requests}base-uri 'none'; form-action 'none'"
        ),
        "style": style,
        "script": script,
        "data": embedded_json(data),
        "kept": LIVE if live else KEPT,
    }
    page = (files(__package__) / "page" / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], page)


def write_page(
    source: Store | Results | Mapping[str, Store] | None,
    path: str | Path,
    success_error: float | None = None,
    *,
    title: str | None = None,
    profile: SeenModel | Mapping[str, Any] | None = None,
) -> int:
    """Write the report of a store to a file, whole or not at all; gives its size in bytes. See `render_page`.

    Examples
    --------
    >>> from fewfire import report
    >>> from fewfire.experiments import SqliteStore
    >>> store = SqliteStore("grid.sqlite")  # as the README's first sweep writes it
    >>> size = report.write_page(store, "report.html")
    """
    page = render_page(source, success_error, title=title, profile=profile).encode()
    try:
        write_bytes(path, page)
    except OSError as error:
        raise invalid("output", f"must be a file that can be written ({error.strerror})", str(path)) from None
    return len(page)


def embedded_json(data: Any) -> str:
    """JSON that stays inside its script element, whatever its texts hold."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _joined(suffix: str, *, live: bool = False) -> str:
    """The page's files of one kind, one after the other in order of their names."""
    folder = sorted((files(__package__) / "page").iterdir(), key=lambda file: file.name)
    chosen = [file for file in folder if file.name.endswith(suffix) and (live or not file.name.startswith("live"))]
    return "\n" + "\n".join(file.read_text(encoding="utf-8") for file in chosen)


def _digest(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _profile_lede(seen: ProfileInfo) -> str:
    """What was seen of a model, in a sentence."""
    blocks = f"{len(seen.blocks)} MLP block{'s' if len(seen.blocks) > 1 else ''}"
    return f"{blocks}, up to {seen.tokens:,} tokens each: {seen.fire:.1%} of the neurons fire on a token."

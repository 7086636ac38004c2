"""Build the documentation's site into build/docs/html and check it; `make docs` calls this.

Sphinx runs with warnings as errors, which covers links between pages and the examples it executes. Then every page is
read as a browser would: what it links to inside the site must be there, anchors included, and it must load nothing from
elsewhere, so that the site works offline.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "docs"

LOADED = {"script": "src", "img": "src", "source": "srcset", "iframe": "src", "link": "href"}
"""Tags whose address a browser fetches by itself; of `link`, only what is a style or a script."""


class Page(HTMLParser):
    """The title of a page, its anchors, what it links to and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.title = self.inside = ""
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what this tag names or asks for."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given and (tag != "link" or "stylesheet" in given.get("rel", "")):
            self.loads.append(given[LOADED[tag]])
        self.inside = tag

    def handle_data(self, data: str) -> None:
        """The first title is the page's; pictures inside it may have others."""
        if self.inside == "title" and not self.title:
            self.title = data.strip()


def problems(folder: Path) -> list[str]:
    """What is wrong with the pages of a folder, one line each."""
    pages = {path: Page() for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        page.feed(path.read_text(encoding="utf-8"))
    wrong = []
    titles: dict[str, Path] = {}
    for path, page in pages.items():
        first = titles.setdefault(page.title, path) if page.title else path
        if first != path:
            names = f"{first.relative_to(folder)} and {path.relative_to(folder)}"
            wrong.append(f"{names} have the title {page.title!r} both")
    for path, page in pages.items():
        here = path.relative_to(folder)
        wrong += [f"{here} loads {address}" for address in page.loads if urlsplit(address).scheme in ("http", "https")]
        for address in page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                wrong.append(f"{here} links to {address}: there is no such file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{here} links to {address}: there is no such anchor")
    return wrong


def main(arguments: list[str] | None = None) -> int:
    """Build, then check; status 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check-only", action="store_true", help="check the pages that were built before")
    chosen = parser.parse_args(arguments)
    html = BUILD / "html"
    if not chosen.check_only:
        for stale in (html, ROOT / "docs" / "gallery"):  # pages that are gone; outputs of examples as the code was
            shutil.rmtree(stale, ignore_errors=True)
        command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--fresh-env"]
        command += ["--builder", "html", "--doctree-dir", str(BUILD / "doctrees"), str(ROOT / "docs"), str(html)]
        if subprocess.run(command).returncode != 0:
            return 1
    wrong = problems(html)
    found = "1 problem" if len(wrong) == 1 else f"{len(wrong)} problems"
    print("\n".join([*wrong, f"{html / 'index.html'}: {found}"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())

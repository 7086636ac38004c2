"""Take the README's pictures of a report: its maps and training curves, by day and by night.

    make environment WITH_BROWSER=1  # once: installs what drives Chromium
    .venv/bin/fewfire demo && .venv/bin/python tools/screenshot.py frontier.html docs/images

Writes report-light.png and report-dark.png.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

WIDTH, COLOURS = 1000, 96
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def main() -> None:
    """Both pictures, from the heading to the end of the training curves."""
    page_file, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": WIDTH, "height": 1000}, color_scheme=scheme)
            page.goto(page_file.resolve().as_uri())
            page.wait_for_selector("#cell .chart[role=img]")
            height = page.evaluate("document.querySelector('#cell').getBoundingClientRect().bottom + 14")
            target = folder / f"report-{scheme}.png"
            page.screenshot(path=target, full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
            Image.open(target).convert("RGB").quantize(COLOURS).save(target, optimize=True)
        browser.close()


if __name__ == "__main__":
    main()

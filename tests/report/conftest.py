"""Chromium without a window, driven by playwright, for the tests marked `browser`."""

import os
import shutil

import pytest
from chromium import settled

from fewfire.report import write_page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


OWN = ("file:", "blob:")


@pytest.fixture(scope="module")
def browser():
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make test-browser)")
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium found (on Debian: apt install chromium, or set CHROMIUM to its path)")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def show(browser, tmp_path):
    """Open the page of a store, or of a server's address; nothing may be complained about or asked of elsewhere."""
    contexts, complaints = [], []

    def open_page(store, width=1400, scheme="light", link="", **options):
        if isinstance(store, str):
            address = store
        else:
            write_page(store, tmp_path / "page.html", **options)
            address = (tmp_path / "page.html").as_uri()
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(5000)
        page.on("console", lambda message: complaints.append(f"console {message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: complaints.append(request.url) if not request.url.startswith((*OWN, address)) else None,
        )
        page.goto(address + link)
        return settled(page)

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []

"""What the tests in a browser ask of a page."""

import time


def settled(page):
    """The page once everything that follows from the last event is drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def until(page, expression, seconds=5.0):
    """Wait for an expression to hold; playwright's own way of waiting needs an eval, which the page forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(20)

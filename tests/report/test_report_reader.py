"""What a reader can do with the page, in a real browser: axes, filters, sorting, CSV, links, points, stores."""

import csv
import io
import re

import pytest
from chromium import overflow, settled, until
from made_up_store import cell, frontier_store, row, spec, store_of
from test_report_page import NASTY

from fewfire.networks import init

pytestmark = pytest.mark.browser


def rates_store():
    """Two widths, three sizes, two rates: the larger rate succeeds always, the smaller never."""
    places = [(w, m) for w in (5, 20) for m in (100, 200, 400)]
    return store_of(
        *(run for w, m in places for run in cell([None, None], width=w, samples=m, learning_rate=0.05)),
        *(run for w, m in places for run in cell([10, 20], width=w, samples=m, learning_rate=0.5)),
        name="Rates",
    )


def squares(page, name):
    grid = page.locator("#explore").get_by_role("grid", name=name)
    return [cells.split("\t") for cells in grid.locator("tbody").inner_text().splitlines()]


def told(page):
    return page.locator("#status").inner_text()


def column(page, name):
    heads = page.locator("#settings thead th").all_inner_texts()
    place = [head.rstrip(" ↑↓") for head in heads].index(name)
    return [tr.locator("th, td").nth(place).inner_text() for tr in page.locator("#settings tbody tr").all()]


def test_any_two_settings_are_axes_with_a_map_for_each_value_of_a_third(show):
    page = show(rates_store())
    explore = page.locator("#explore")
    assert squares(page, "runs that succeed by width and samples") == [["20", *["50%"] * 3], ["5", *["50%"] * 3]]
    page.get_by_label("columns").focus()
    page.get_by_label("columns").select_option("training.learning_rate")
    assert squares(page, "runs that succeed by width and training.learning_rate") == [
        ["20", "0%", "100%"],
        ["5", "0%", "100%"],
    ]
    assert page.evaluate("document.activeElement.id") == "explore-x"  # the keyboard stays where it was
    page.get_by_label("a map for each").select_option("samples")
    assert explore.locator("h3").all_inner_texts() == ["samples 100", "samples 200", "samples 400"]
    page.get_by_label("a map for each").select_option("training.learning_rate")
    page.get_by_label("columns").select_option("samples")
    page.get_by_role("combobox", name="colour").select_option("median steps to success")
    name = "median steps to success by width and samples, training.learning_rate 0.5"
    assert squares(page, name)[0] == ["20", "15", "15", "15"]
    page.get_by_label("a map for each").select_option("")
    page.get_by_label("only training.learning_rate").select_option("0.5")
    page.get_by_role("combobox", name="colour").select_option("runs")
    assert squares(page, "runs by width and samples")[0] == ["20", "2", "2", "2"]
    assert overflow(page) <= 0


def test_squares_are_walked_by_keys_and_lead_to_their_cells(show):
    page = show(rates_store())
    grid = page.locator("#explore").get_by_role("grid")
    grid.locator("td[tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "End"):
        page.keyboard.press(key)
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label == "width 5, samples 400: 2 of 4 runs succeed; median 15 steps; 2 cells"
    assert grid.locator("td[tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    assert page.locator("#filter").input_value() == "width=5 samples=400"
    assert column(page, "training.learning_rate") == ["0.05", "0.5"] and told(page) == "2 of 12 cells"
    page.get_by_label("a map for each").select_option("training.learning_rate")
    page.locator("#explore").get_by_role("grid").last.get_by_role(
        "gridcell", name=re.compile("width 20, samples 100")
    ).click()
    assert page.locator("#cell-title").inner_text() == "Training at width 20, 100 examples"
    assert page.get_by_label("Problem and training").input_value() == "1"


def test_the_table_is_sorted_and_filtered(show):
    page = show(rates_store())
    page.get_by_role("button", name="samples", exact=True).click()
    assert column(page, "samples") == ["100"] * 4 + ["200"] * 4 + ["400"] * 4
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")  # the head still has the keyboard
    assert column(page, "samples")[0] == "400" and told(page) == "Sorted by samples, descending"
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    for text, cells in (
        ("samples>=200 width=5", 4), ("succeeded>0", 6), ("rate=0.5 n=8", 0), ("learning_rate=0.5", 6), ("0.05 width!=5", 3), ("nonsense", 0),
    ):  # fmt: skip
        page.locator("#filter").fill(text)
        until(page, f"document.querySelectorAll('#settings tbody tr').length === {cells}")
    page.locator("#filter").fill("colour=red")
    until(page, "document.getElementById('filter-note').textContent === 'No column is called colour'")
    page.locator("#filter").fill("")
    until(page, "document.querySelectorAll('#settings tbody tr').length === 12")


def test_the_table_is_saved_as_it_is_shown(show):
    page = show(rates_store())
    page.locator("#filter").fill("succeeded>0 width=20")
    until(page, "document.querySelectorAll('#settings tbody tr').length === 3")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    assert saved.value.suggested_filename == "cells.csv"
    text = saved.value.path().read_text(encoding="utf-8-sig")
    first, *rest = csv.DictReader(io.StringIO(text))
    assert (first["samples"], first["training.learning_rate"], first["succeeded"], first["median steps"]) == (
        "100", "0.5", "2", "15",
    )  # fmt: skip
    assert len(rest) == 2


def test_a_spreadsheet_sees_no_formula_in_texts(show):
    page = show({"=1+1": store_of(*cell([10])), 'a "quoted", one': store_of(*cell([10]))})
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    rows = list(csv.DictReader(io.StringIO(saved.value.path().read_text(encoding="utf-8-sig"))))
    assert [row["store"] for row in rows] == ["'=1+1", 'a "quoted", one']


def test_what_is_looked_at_is_in_the_address(show):
    page = show(rates_store())
    assert page.evaluate("location.hash") == ""
    page.get_by_label("Problem and training").select_option("parity(n=8, k=2), learning_rate=0.5")
    page.get_by_label("equal cost (Proposition 3)").check()
    page.locator("#frontier").get_by_role("gridcell", name=re.compile("^width 5, 400 examples")).click()
    page.get_by_label("a map for each").select_option("training.learning_rate")
    page.get_by_role("button", name="failed", exact=True).click()
    page.locator("#filter").fill("width=5 a&b=<c>")
    until(page, "location.hash.includes('filter')")
    link = page.evaluate("location.hash")
    other = show(rates_store(), link=link)
    assert other.get_by_label("Problem and training").input_value() == "1"
    assert other.locator("#cell-title").inner_text() == "Training at width 5, 400 examples"
    assert other.get_by_label("equal cost (Proposition 3)").is_checked()
    assert other.get_by_label("a map for each").input_value() == "training.learning_rate"
    assert other.locator("#filter").input_value() == "width=5 a&b=<c>"
    assert other.locator("th[aria-sort]").inner_text().startswith("failed")
    other.evaluate("location.hash = '#width=20&samples=100&x=nothing&measure=toString&problem=none&only=a%3Db'")
    until(other, "document.getElementById('cell-title').textContent === 'Training at width 20, 100 examples'")
    assert other.get_by_label("columns").input_value() == "samples"  # what the store does not have is left


def test_curves_are_read_by_pointer_and_by_keys(show):
    page = show(frontier_store())
    chart = settled(page).locator("#cell .chart[tabindex]").first
    chart.scroll_into_view_if_needed()
    box = chart.locator(".line.test").first.bounding_box()
    page.mouse.move(box["x"] + 2, box["y"] + 3)
    assert (
        page.locator("#tip").inner_text().startswith("Trial 1, succeeded\nstep 0\ntest error 50%\ntraining error 50%")
    )
    page.mouse.move(2, 2)
    assert not page.locator("#tip").is_visible()
    chart.focus()
    page.keyboard.press("Home")
    assert told(page) == "Trial 1, succeeded, step 0, test error 50%, training error 50%"
    page.keyboard.press("End")
    assert told(page) == "Trial 1, succeeded, step 20, test error 5%, training error 0%"
    page.keyboard.press("ArrowDown")
    assert told(page).startswith("Trial 2, did not succeed, step 20")
    assert page.locator("#cell .reading").first.get_attribute("visibility") == "visible"
    page.keyboard.press("Escape")
    assert not page.locator("#tip").is_visible()
    assert chart.evaluate("e => document.getElementById(e.getAttribute('aria-describedby')).textContent").startswith(
        "Arrow"
    )


def test_points_of_the_lines_can_be_chosen_by_keys(show):
    page = show(frontier_store())
    chart = settled(page).locator("#success .chart[tabindex]").last
    name = chart.get_attribute("aria-label")
    chart.focus()
    page.keyboard.press("Home")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert page.locator("#cell-title").inner_text() == "Training at width 20, 400 examples"
    until(page, f"document.activeElement.getAttribute('aria-label') === {name!r}")


def test_reasons_are_in_sight_and_lead_to_their_cells(show):
    rows = [*cell([10, 10]), *cell([10], width=7), row(spec(width=9), status="failed", message="no memory " * 30)]
    page = show(store_of(*rows), 360)
    reasons = page.get_by_role("region", name="Why runs diverged or failed")
    assert reasons.is_visible() and "no memory" in reasons.inner_text()
    page.get_by_role("button", name="Cells with failed runs").click()
    assert column(page, "width") == ["9"] and page.evaluate("document.activeElement.id") == "filter"
    assert overflow(page) <= 0
    assert not show(frontier_store()).locator("#trouble").is_visible()


def test_stores_stand_side_by_side(show):
    better = [
        run
        for start in (init.dense(), init.sparse(2))
        for w in (5, 20)
        for m in (100, 200, 400)
        for run in cell([10, 10], width=w, samples=m, start=start)
    ]
    page = show({"one.sqlite": frontier_store(), NASTY: store_of(*better, name="Better")})
    heads = page.locator("#frontier h3").all_inner_texts()
    assert heads[0] == "dense start · one.sqlite" and heads[1].startswith("dense start · </script>")
    first, second, third, _ = (head.bounding_box() for head in page.locator("#frontier h3").all())
    assert first["y"] == second["y"] < third["y"]
    assert page.locator("#findings p").first.inner_text().startswith("✓\nclear:\nMore runs succeed in </script>")
    assert page.locator("#explore h3").count() == 2 and page.locator("#cell .chart[tabindex]").count() == 4
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_the_smallest_phones(show, scheme):
    page = show(rates_store(), 360, scheme)
    assert overflow(page) <= 0
    page.get_by_label("a map for each").select_option("training.learning_rate")
    assert overflow(page) <= 0


def test_everything_has_a_name(show):
    """Screen readers find a name for every control, chart, map and section."""
    page = show(rates_store())
    nameless = page.evaluate("""() => [...document.querySelectorAll("button, select, input, section:not([hidden]), table[role], svg[role], [role=region], [tabindex='0']")]
      .filter((one) => !(one.getAttribute("aria-label") || one.labels?.length || one.innerText?.trim()
        || document.getElementById(one.getAttribute("aria-labelledby"))?.textContent.trim())).map((one) => one.outerHTML.slice(0, 120))""")
    assert nameless == []
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))

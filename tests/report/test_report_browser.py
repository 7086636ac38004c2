"""The page in a real browser: Chromium without a window, driven by playwright."""

import re

import numpy as np
import pytest
from chromium import overflow, settled
from made_up_store import cell, frontier_store, noted_store, row, spec, store_of
from test_report_cases import CASES, everywhere, never_successful
from test_report_page import NASTY
from test_report_profile import PROFILE

from fewfire.networks import init
from fewfire.report import frontier_info

pytestmark = pytest.mark.browser


def grid_cell(page, start, name):
    return page.get_by_role("grid", name=f"Share of successes from {start}").get_by_role("gridcell", name=name)


def maps(page):
    return page.locator("#frontier").get_by_role("grid")


def test_opens_with_maps_and_curves(show):
    page = show(frontier_store())
    assert page.get_by_role("heading", level=1).inner_text() == "Made up"
    assert maps(page).count() == 2
    assert page.locator("#frontier").get_by_role("gridcell").count() == 12
    assert maps(page).first.get_by_role("columnheader").count() == 4
    told = grid_cell(page, "dense", re.compile("^width 20, 200 examples"))
    assert told.inner_text() == "50%"
    assert (
        told.get_attribute("aria-label")
        == "width 20, 200 examples: 1 of 2 runs succeed, 50%, 95% interval 9% to 91%; median 20 steps"
    )


def test_a_click_shows_the_curves_of_the_cell(show):
    page = show(frontier_store())
    page.evaluate("window.scrollTo(0, 0)")
    grid_cell(page, "sparse", re.compile("^width 5, 400 examples")).click()
    assert page.get_by_role("heading", name="Training at width 5, 400 examples").is_visible()
    charts = settled(page).get_by_role("img", name=re.compile("^Training curves from"))
    assert [chart.get_attribute("aria-label") for chart in charts.all()] == [
        "Training curves from dense: 2 runs, 1 of them reach 10% test error",
        "Training curves from sparse(s=2): 2 runs, 2 of them reach 10% test error",
    ]
    assert (
        page.locator("#cell .figure .line.test").count() == 4 and page.locator("#cell .figure .line.train").count() == 4
    )
    assert page.locator("#cell").evaluate("e => e.getBoundingClientRect().top < innerHeight")  # brought into view
    # The curve of a run that converged at step 20 ends there: a path of three points, falling (down is a larger y).
    points = page.locator("#cell .starts > div:nth-child(2) .figure .line.test").first.get_attribute("d")
    places = [tuple(map(float, point.split())) for point in re.findall(r"[ML]([\d.]+ [\d.]+)", points)]
    assert len(places) == 3 and places[0][1] == places[1][1] < places[2][1]


def test_keyboard_walks_the_map_and_enter_goes_to_the_curves(show):
    page = show(frontier_store())
    page.evaluate("window.scrollTo(0, 0)")
    start = grid_cell(page, "dense", re.compile("^width 20, 200 examples"))
    assert start.get_attribute("aria-selected") == "true"  # even odds: the most informative cell
    start.focus()
    for key, where in (
        ("ArrowRight", "width 20, 400 examples"), ("ArrowDown", "width 5, 400 examples"), ("ArrowDown", "width 5, 400 examples"),
        ("Home", "width 5, 100 examples"), ("ArrowUp", "width 20, 100 examples"), ("End", "width 20, 400 examples"),
    ):  # fmt: skip
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith(where)
        assert page.locator("#cell-title").inner_text() == f"Training at {where}"
        assert page.locator('[role=gridcell][aria-selected="true"]').count() == 1
    ring = page.evaluate("getComputedStyle(document.activeElement).boxShadow")
    assert ring != "none"
    page.keyboard.press("Enter")
    assert page.get_by_role("status").inner_text() == "Training at width 20, 400 examples: curves shown below the maps."
    # One tab stop a map: the next one is in the other map.
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('[role=grid]')?.ariaLabel").startswith(
        "Share of successes from sparse"
    )


def test_widths_are_chosen_with_the_keyboard(show):
    page = show(frontier_store())
    chosen = page.locator("#success [role=radio][aria-checked=true]")
    chosen.focus()
    assert chosen.inner_text() == "20"
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.innerText") == "5"
    assert page.locator("#cell-title").inner_text().startswith("Training at width 5")
    assert settled(page).locator("#convergence .line.chosen").count() == 2


def test_the_theory_can_be_laid_over(show):
    page = show(frontier_store())
    assert page.locator(".map .equal").count() == 0 and page.locator(".map .measured").count() == 2
    assert not page.get_by_text("Lower bound (pareto, Proposition 3)").is_visible()
    page.get_by_label("equal cost (Proposition 3)").check()
    assert page.get_by_text("¼·C(n, k) = 7").is_visible()
    assert page.locator(".map .equal").count() == 2
    page.get_by_label("half of the runs succeed").uncheck()
    assert page.locator(".map .measured").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_fits_phones_and_screens(show, width, scheme):
    page = show(frontier_store(), width, scheme)
    assert overflow(page) <= 0
    first, second = (box.bounding_box() for box in maps(page).all())
    assert (second["y"] > first["y"] + first["height"]) if width == 400 else (second["y"] == first["y"])
    for summary in page.locator("summary").all():
        summary.click()
    assert overflow(page) <= 0
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 19, 24)"
    assert dark == (scheme == "dark")
    for chart in page.locator(".chart[role=img]").all():
        assert chart.bounding_box()["width"] <= width


def test_a_page_turned_sideways_is_drawn_again(show):
    page = show(frontier_store(), 1400)
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_function("document.querySelector('#cell .chart[role=img]').getBoundingClientRect().width < 400")
    assert overflow(page) <= 0


def test_large_maps_scroll_inside_themselves(show):
    rows = [
        run
        for width in range(1, 13)
        for samples in range(100, 130)
        for run in cell([None], width=width, samples=samples)
    ]
    page = show(store_of(*rows), 400)
    assert page.locator("#frontier").get_by_role("gridcell").count() == 360
    assert overflow(page) <= 0
    assert page.locator("#frontier .scroll").evaluate("e => e.scrollWidth > e.clientWidth")
    assert page.locator("#settings tbody tr").count() == 50
    page.get_by_role("button", name="Next").click()
    assert page.locator("#settings tbody th").first.inner_text() == "51"


def test_groups_can_be_chosen(show):
    rows = cell([10, None]) + cell([10, 10], learning_rate=0.3, samples=None)
    page = show(store_of(*rows))
    page.get_by_label("Problem and training").select_option("parity(n=8, k=2), learning_rate=0.3")
    assert page.locator("#cell-title").inner_text() == "Training at width 5, online"
    assert page.locator("#frontier").get_by_role("gridcell").inner_text() == "100%"
    assert settled(page).locator("#cell .figure .line.test").count() == 2
    assert page.locator("#cell .figure .line.train").count() == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_notes_are_shown_and_tags_lead_to_their_cells(show, width):
    page = show(noted_store(), width=width)
    notes = page.get_by_role("region", name="Notes")
    assert notes.locator("h3").all_inner_texts() == ["Wide\nwide", "Large\nbig\nfinal"]
    assert notes.get_by_text("See <b>the</b>").inner_text() == "See <b>the</b>\npaper." and overflow(page) <= 0
    notes.get_by_role("button", name="Cells tagged big").click()
    assert (
        page.locator("#filter-note").inner_text() == "4 of 12 cells"
        and page.locator("#filter").input_value() == "tags=big"
    )
    for text, count in (
        ("tags=wide", 6),
        ("tags!=wide", 6),
        ("tags=wid", 0),
        ("tags=wide samples>=400", 2),
        ("final", 4),
    ):
        page.locator("#filter").fill(text)
        page.wait_for_timeout(200)
        shown = page.locator("#filter-note").inner_text()
        assert shown == f"{count} of 12 cells"
    assert not show(frontier_store()).locator("#notes").is_visible()


def test_the_legend_names_the_line_and_its_intervals(show):
    page = show(frontier_store())
    legend = page.locator("#frontier .controls").inner_text()
    assert "half of the runs succeed" in legend and "95% interval of that" in legend
    bars = page.locator("#frontier .map .interval")
    halos = page.locator("#frontier .map .halo + .interval")  # seen on dark and on light cells alike
    assert bars.count() == halos.count() > 0


def test_trouble_is_shown_and_texts_stay_texts(show):
    rows = [
        row(spec(), 10),
        row(spec(trial=1), status="diverged", message=NASTY),
        row(spec(trial=2), status="failed", message="no memory"),
    ]
    rows += [row(spec(width=9), status="failed", message="no memory")]
    page = show(store_of(*rows, name=NASTY), title=NASTY)
    assert page.get_by_role("heading", level=1).inner_text().startswith("</script><script>alert(1)")
    assert page.locator("#frontier").get_by_role("gridcell", name=re.compile("1 diverged, 1 failed")).count() == 1
    assert page.locator("#frontier").get_by_role("gridcell", name=re.compile("width 9.*: 1 failed")).inner_text() == ""
    assert NASTY.split("\u2028")[0] in page.get_by_role("region", name="Why runs diverged or failed").inner_text()
    assert page.locator("img").count() == 0 and page.locator("script").count() == 2


def test_an_empty_store_opens(show):
    page = show(store_of())
    assert "No finished runs yet." in page.locator(".lede").inner_text()


@pytest.mark.parametrize("width", [400, 1400])
def test_the_section_of_a_models_activity(show, width):
    page = show(None, width, profile=PROFILE)
    rows = page.locator("#profile tbody tr")
    assert rows.count() == 2 and rows.first.locator("th").inner_text() == "layers.0[fc1, fc2]"
    assert [rows.first.locator("td").nth(place).inner_text() for place in (2, 4, 5)] == ["5%", "4.5×", "1.5×"]
    assert rows.nth(1).locator("th").inner_text().startswith("</script>") and page.locator("img").count() == 0
    assert not page.locator("#frontier").is_visible() and not page.locator("#settings").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page = show(frontier_store(), width, profile=PROFILE)
    assert page.locator("#profile").is_visible() and page.locator("#settings").is_visible()


def test_prints_without_controls_in_daylight(show):
    page = show(frontier_store(), 1000, "dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator("#frontier .controls input").first.is_visible()
    assert page.locator("#frontier .legend").is_visible() and page.locator("#cell .key").first.is_visible()
    drawn, left_out = page.locator("#frontier .controls label").all()  # even odds; equal cost, not asked for
    assert drawn.is_visible() and not left_out.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.get_by_role("gridcell").first.is_visible()
    assert not page.get_by_role("button", name="Save as CSV").is_visible()
    assert len(page.pdf()) > 10_000


def test_charts_name_widths_and_intervals(show):
    rows = [run for samples in (100, 200) for run in cell([10, None, None], samples=samples, start=init.sparse(2))]
    page = show(store_of(*rows))
    page.locator("#success .chart .dot").first.hover()
    assert (
        page.locator("#tip").inner_text() == "width 5, 100 examples\n1 of 3 runs succeed\n33%\n95% interval 6% to 79%"
    )
    assert page.locator("#convergence .dot.hollow").count() == 2  # fewer than half of the runs
    page.locator("#success .chart .dot").last.click()
    assert page.locator("#cell-title").inner_text() == "Training at width 5, 200 examples"


MEASURE = """() => [...document.querySelectorAll("#frontier .map")].map((map) => {
  const line = map.querySelector("path.measured");
  const box = line.getScreenCTM();
  const d = line.getAttribute("d").split(/[ML]/).filter(Boolean).map((point) => point.split(" ").map(Number));
  const centre = (td) => { const r = td.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; };
  const rows = [...map.querySelectorAll("tbody tr")].reverse();
  return {
    points: d.map(([x, y]) => [box.a * x + box.e, box.d * y + box.f]),
    cells: rows.map((tr) => [...tr.querySelectorAll("td")].map(centre)),
  };
})"""


NARROWED = f"() => {{ document.body.style.width = '718px'; return ({MEASURE})(); }}"
"""A4 without its margins. A printer lays a page out without giving its script another turn, and so does this."""


def assert_lines_follow_the_data(page, store, measure=MEASURE, tolerance=1.5):
    """The line on each map, read back as numbers of examples through the centres of the cells, is the data's."""
    (group,) = frontier_info(store)
    columns = np.log([m for m in group.samples if m is not None])
    for seen, frontier in zip(page.evaluate(measure), group.frontiers, strict=True):
        assert len(seen["points"]) == len(group.widths)
        for (x, y), cells, half in zip(seen["points"], seen["cells"], frontier.half, strict=True):
            places = [place[0] for place in cells[: len(columns)]]
            assert x == pytest.approx(np.interp(np.log(half), columns, places), abs=tolerance)
            assert y == pytest.approx(cells[0][1], abs=tolerance)


@pytest.mark.parametrize("columns", [5, 14])
def test_lines_follow_the_data_on_screen_and_on_paper(show, columns):
    sizes = [*np.unique(np.geomspace(300, 1500, columns).round().astype(int).tolist()), None]
    starts = (init.dense(), init.sparse(2))
    rows = [
        run
        for start in starts
        for place, width in enumerate((10, 30, 100, 300))
        for number, samples in enumerate(sizes)
        for run in cell([20 if number + place > columns - 2 or t == 0 else None for t in range(3)], width=width, samples=samples, start=start)
    ]  # fmt: skip
    store = store_of(*rows)
    page = show(store, 1400)
    assert_lines_follow_the_data(page, store)
    page.emulate_media(media="print")
    assert_lines_follow_the_data(page, store)
    assert_lines_follow_the_data(page, store, NARROWED)


def test_paper_has_every_setting(show):
    rows = [
        run
        for width in range(1, 13)
        for samples in range(100, 106)
        for run in cell([None], width=width, samples=samples)
    ]
    page = show(store_of(*rows, *cell([10], learning_rate=0.3)), 718)
    assert page.locator("#settings tbody tr").count() == 50
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#settings tbody tr").count() == 73
    assert overflow(page) <= 0
    assert page.locator("#pick").is_visible()  # which of the groups it is
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("#settings tbody tr").count() == 50


def test_a_map_without_a_frontier_has_no_line(show):
    page = show(store_of(*everywhere(never_successful)))
    assert page.locator("#frontier .map path").count() == 0
    assert page.locator("#frontier .absent").all_inner_texts() == ["No run succeeds."] * 2
    assert page.locator("#convergence .absent").inner_text() == "No run succeeds."
    assert page.locator("#findings p").count() == 2
    page = show(store_of(*everywhere(lambda **where: cell([20, 20], **where))))
    assert page.locator("#frontier .map path").count() == 0
    assert page.locator("#frontier .absent").first.inner_text().startswith("At least half of the runs succeed at every")


@pytest.mark.parametrize("case", CASES)
def test_every_case_opens(show, case):
    rows, groups = CASES[case]
    page = show(store_of(*rows))
    assert page.get_by_role("heading", name="Every setting").is_visible()
    assert page.locator("#frontier").is_visible() == (groups > 0)
    page.get_by_role("gridcell").first.click() if groups else None

"""The drawing script in a browser: details, keys, a zoom that is shared and outlasts an update."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect, sync_playwright

from reports.page import drawing
from reports.page.drawing import Span, bar, block, figure, row
from tests.conftest import QUIET

pytestmark = pytest.mark.browser

TEMPLATES = Path(drawing.__file__).with_name("templates")
ZERO_MS = 1_790_000_000_000.0
SPAN = Span(ZERO_MS, ZERO_MS + 100_000, (("formation", ZERO_MS), ("impact", ZERO_MS + 20_000)))
LONG = "payments-production-eu-west-consumer-of-orders"


def seconds(begin: float, end: float) -> dict[str, Any]:
    return SPAN.ends(ZERO_MS + begin * 1000, ZERO_MS + end * 1000)


def finding(number: int, at_s: float) -> dict[str, Any]:
    return bar("finding", {"from": at_s}, f"finding {number}", text=str(number), opens="read")


def drawn(*more: dict[str, Any], end_s: float = 100.0) -> dict[str, Any]:
    rows = [
        row("findings", [finding(1, 30), finding(2, 30.1), finding(3, 70)], head=True),
        row("a", [
            bar("gen-0", seconds(5, 20), "first of a"),
            bar("gen-1", seconds(40, 60), "second of a"),
        ]),
        row("b", [bar("gen-0", seconds(5, 100), "one of b"), *more]),
    ]  # fmt: skip
    of = figure(SPAN, [block("orders", rows, title="2 members"), block(LONG, [row(LONG * 2, [])])])
    return of | {"end": end_s}


@pytest.fixture(scope="module")
def page(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    names = ("colours.css", "figure.css", "figure.js")
    colours, css, js = ((TEMPLATES / name).read_text() for name in names)
    file = tmp_path_factory.mktemp("page") / "figure.html"
    file.write_text(
        f"<meta charset='utf-8'><style>{colours}{css}</style><div id='one' class='figure'></div>"
        f"<div id='other' class='figure'></div><p id='read'>read</p><script>{js}</script>"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(QUIET))
        shown = browser.new_page(viewport={"width": 1000, "height": 900})
        shown.goto(file.as_uri())
        yield shown
        browser.close()


@pytest.fixture(autouse=True)
def fresh(page: Page) -> None:
    page.set_viewport_size({"width": 1000, "height": 900})
    page.reload()
    page.mouse.move(0, 0)
    for name in ("one", "other"):
        draw(page, name, drawn())


def draw(page: Page, name: str, of: dict[str, Any]) -> None:
    page.evaluate(f"Figure.draw(document.getElementById('{name}'), {json.dumps(of)})")


def tip(page: Page) -> Locator:
    return page.locator("#one .tip:visible")


def of_row(page: Page, name: str, inside: str = "") -> Locator:
    return page.locator(f"#one .row[aria-label={name}] {inside}".rstrip())


def drag(page: Page, within: Locator) -> None:
    box = within.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 1, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 5, steps=4)
    page.mouse.up()


def ticks(page: Page, name: str) -> list[str | None]:
    return page.locator(f"#{name} .grid g text").evaluate_all(
        "all => all.map(one => one.textContent)"
    )


def test_hovering_shows_the_row_the_details_and_the_times(page: Page) -> None:
    of_row(page, "a", ".bar").nth(1).hover(force=True)
    assert tip(page).locator("> *").all_inner_texts() == [
        "a",
        "second of a",
        "from +40.000 s · 14:14:00.000 UTC",
        "to +60.000 s · 14:14:20.000 UTC",
        "for 20.000 s",
    ]
    page.keyboard.press("Escape")
    expect(tip(page)).to_have_count(0)


def test_arrow_keys_go_along_a_row_and_between_rows_and_tab_to_the_next_block(page: Page) -> None:
    page.keyboard.press("Tab")
    expect(of_row(page, "findings")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(of_row(page, "a")).to_be_focused()
    page.keyboard.press("Home")
    expect(tip(page)).to_contain_text("first of a")
    page.keyboard.press("ArrowRight")
    expect(tip(page)).to_contain_text("second of a")
    said = of_row(page, "a")
    expect(said).to_have_attribute("aria-valuenow", "2")
    assert "second of a; from +40.000 s" in (said.get_attribute("aria-valuetext") or "")
    page.keyboard.press("Tab")
    expect(page.locator(f"#one .row[aria-label={LONG * 2}]")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(of_row(page, "a")).to_be_focused()


def test_figures_share_their_zoom_until_a_double_click(page: Page) -> None:
    whole = ticks(page, "one")
    drag(page, of_row(page, "a", ".bar").nth(1))
    near = ticks(page, "one")
    assert whole[0] == "0 s"
    assert all(40 <= float((each or "").removesuffix(" s")) <= 60 for each in near)
    assert near == ticks(page, "other") != whole
    page.locator("#other svg").dblclick(position={"x": 500, "y": 50})
    assert ticks(page, "one") == ticks(page, "other") == whole


def test_an_update_keeps_zoom_focus_and_details(page: Page) -> None:
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(tip(page)).to_contain_text("goes on at the end, after 95.000 s")
    page.keyboard.press("+")
    near = ticks(page, "one")
    draw(page, "one", drawn(bar("fault", seconds(101, 101), "a fault"), end_s=110.0))
    assert ticks(page, "one") == near
    expect(of_row(page, "b")).to_be_focused()
    expect(tip(page)).to_contain_text("goes on at the end, after 105.000 s")
    page.keyboard.press("ArrowRight")  # to what lies outside of the part that is shown
    expect(tip(page)).to_contain_text("a fault")
    page.keyboard.press("0")
    assert ticks(page, "one")[0] == "0 s"
    expect(of_row(page, "b", ".bar.fault")).to_have_count(1)


def test_marks_in_one_place_are_one_and_a_click_opens_what_they_stand_for(page: Page) -> None:
    labels = of_row(page, "findings", ".label")
    assert labels.evaluate_all("all => all.map(one => one.textContent)") == ["1, 2", "3"]
    of_row(page, "findings", ".mark").first.click(force=True)
    assert page.evaluate("location.hash") == "#read"
    expect(tip(page)).to_contain_text("finding 2")


def test_a_phone_shows_it_all_without_scrolling_sideways(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    expect(page.locator("#one svg")).to_have_attribute("viewBox", "0 0 374 228")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    heading = page.locator("#one .heading").nth(1)
    assert heading.evaluate("one => one.textContent") == LONG  # a name of a group is not cut
    short = page.locator("#one .row .name").last.evaluate("one => one.textContent")
    assert "…" in short
    edges = page.locator("#one text").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(box => [box.left, box.right])"
    )
    assert all(left > -4 and right < 394 for left, right in edges)


def test_five_hundred_lanes_are_thin_and_named_where_a_name_fits(page: Page) -> None:
    lanes = [row(f"m-{number}", [bar("gen-0", seconds(5, 100))]) for number in range(500)]
    draw(page, "one", figure(SPAN, [block("orders", lanes)]))
    heights = page.locator("#one .row .ground").evaluate_all(
        "all => all.map(one => one.height.baseVal.value)"
    )
    assert {*heights} == {4}
    names = page.locator("#one .row .name").evaluate_all("all => all.map(one => one.textContent)")
    assert [name for name in names if name][:3] == ["m-0", "m-3", "m-6"]

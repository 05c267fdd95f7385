"""Pages in a browser: their policy lets them work, and nothing that a value smuggled into them."""

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from markupsafe import Markup
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from groupquake.nightly import page as nights
from groupquake.trial import page as trial
from reports.incident import page as incident
from reports.page import report
from tests.conftest import QUIET
from tests.groupquake.nightly.test_page import draw, keep, point
from tests.groupquake.nightly.test_page import run as run_of_night
from tests.groupquake.test_hostile_names import tried
from tests.reports.incident.incident_here import incident_of, recorded
from tests.reports.page_run import IMPACT_MS, made_up

pytestmark = pytest.mark.browser

SMUGGLED = Markup(
    '<b id="seen" style="color: red">x</b><script>window.ran = 1</script>'
    '<img src="missing.png" onerror="window.ran = 1"><style>#seen { color: red }</style>'
)
"""What an error of a template would let through: text that it takes for HTML."""


def of_a_run(folder: Path, smuggled: str) -> str:
    made = made_up(folder / "run")
    made.add_violation("2:777", IMPACT_MS + 9_000, "dynamic", "dynamic-dynamic-3")
    made.add_violation("2:778", IMPACT_MS + 10_500, "dynamic", "dynamic-dynamic-4")
    run, verdict, *rest = made.finish()
    return report.render(run, verdict | {"repeat_command": smuggled}, *rest)


def of_an_incident(_: Path, smuggled: str) -> str:
    packed = recorded("4.3.0-java").items()
    logs = {file.removesuffix(".gz"): gzip.decompress(content) for file, content in packed}
    found = incident_of(logs)
    return incident.render(found | {"time_zone": smuggled}, found["longest"])


def of_nights(folder: Path, smuggled: str) -> str:
    for day in (1, 2, 3):
        keep(folder / "nights", day, run_of_night("fail" if day == 2 else "pass"))
    draw(folder / "nights", *(point(day, "rebalances", day) for day in (1, 2, 3)))
    text = nights.render(folder / "nights")
    return text.replace("</body>", f"{smuggled}</body>")  # its values are JSON: none is HTML


def of_a_trial(_: Path, smuggled: str) -> str:
    return trial.html(tried("kill") | {"at": smuggled})


PAGES: dict[str, Callable[[Path, str], str]] = {
    "run": of_a_run, "incident": of_an_incident, "nights": of_nights, "trial": of_a_trial,
}  # fmt: skip


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that keeps what its policy refuses."""
    shown = browser.new_page(viewport={"width": 1400, "height": 1000})
    shown.add_init_script(
        "window.refused = []; addEventListener('securitypolicyviolation',"
        " event => refused.push(event.effectiveDirective))"
    )
    yield shown
    shown.close()


def opened(page: Page, folder: Path, text: str) -> list[str]:
    """Open a page; return the list that gets what the browser complains about."""
    troubles: list[str] = []
    page.on("console", lambda said: troubles.append(said.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda sent: troubles.append(sent.url) if sent.url[:4] == "http" else None)
    (folder / "page.html").write_text(text, encoding="utf-8")
    page.goto((folder / "page.html").as_uri())
    return troubles


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_does_all_it_did(kind: str, page: Page, tmp_path: Path) -> None:
    troubles = opened(page, tmp_path, PAGES[kind](tmp_path, "x"))
    for fold in page.locator("details > summary").all():
        fold.click()
    for chart in page.locator(".figure").all():
        work_on(page, chart)
    assert page.locator(".figure > svg").count() == {"run": 4, "incident": 1}.get(kind, 0)
    if kind == "run":
        page.locator("#timeline .mark").first.hover(force=True)
        expect(page.locator("#timeline .tip")).to_contain_text("click to read it")
        page.mouse.down()
        page.mouse.up()
        expect(page).to_have_url(re.compile("#finding-[12]$"))
    if kind == "incident":
        page.fill("#search", "removal")
        assert page.locator("#rebalances details:visible > summary").all_inner_texts() == [
            "removal 5 rebalances"
        ]
        page.set_viewport_size({"width": 390, "height": 800})
        page.wait_for_function(  # it is drawn anew for the room that there is
            "timeline.clientWidth < 390"
            " && timeline.querySelector('svg').viewBox.baseVal.width === timeline.clientWidth"
        )
        assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 900, "height": 800})
    assert (troubles, page.evaluate("refused")) == ([], [])


def work_on(page: Page, chart: Locator) -> None:
    """Hover over bars of a figure, zoom into it, and back."""
    chart.scroll_into_view_if_needed()
    for bar in chart.locator(".bar").all()[:40:9]:
        bar.hover(force=True)
        expect(chart.locator(".tip")).to_be_visible()
    box = chart.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=5)
    page.mouse.up()
    chart.get_by_role("button", name="show all").click()
    expect(chart.locator(".reset")).to_be_hidden()


@pytest.mark.parametrize("kind", PAGES)
def test_what_is_smuggled_into_a_page_does_nothing(kind: str, page: Page, tmp_path: Path) -> None:
    opened(page, tmp_path, PAGES[kind](tmp_path, SMUGGLED))
    assert (
        page.locator("#seen").evaluate("seen => getComputedStyle(seen).color") != "rgb(255, 0, 0)"
    )
    page.wait_for_function("refused.includes('img-src')")
    assert page.evaluate("window.ran") is None
    assert {"script-src-elem", "style-src-elem", "style-src-attr"} <= set(page.evaluate("refused"))

"""What Locust's page shows of a run, in a browser; answers stand in for those of a run."""

import time
import urllib.error
import urllib.request
from itertools import count

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.conftest import PATIENCE_MS, QUIET

pytestmark = pytest.mark.browser

ENTRY = dict.fromkeys(
    ("num_requests", "num_failures", "current_rps", "current_fail_per_sec", "avg_response_time",
     "min_response_time", "max_response_time", "median_response_time", "avg_content_length"), 3,
)  # fmt: skip
STATS = {
    "stats": [{**ENTRY, "name": "Aggregated", "method": ""}],
    "errors": [],
    "extended_stats": [],
    "fail_ratio": 0,
    "state": "running",
    **dict.fromkeys(("current_rps", "current_fail_per_sec", "total_rps", "total_fail_per_sec"), 3),
    "current_response_time_percentiles": dict.fromkeys(
        ("response_time_percentile_0.5", "response_time_percentile_0.95"), 3
    ),
}
LINE = "f2.2 member.restart dynamic-0: verified: no request of dynamic-0 for 1 028 ms after " * 3
RUN = {
    "number": 1,
    "name": "demo",
    "state": "comparing",
    "result": None,
    "judged": False,
    "headline": [],
    "why": [],
    "folder": "",
    "lines": [LINE],
}
MARKED = """() => [...document.querySelectorAll("canvas")].map(canvas => {
  const {data, width} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const near = (at, colour) => colour.every((part, i) => Math.abs(data[at + i] - part) < 30);
  const rows = new Set(); // a mark goes through the rows of a chart, and nothing else of its colour
  for (let at = 0; at < data.length; at += 4) {
    if (near(at, [0xd6, 0x45, 0x45])) rows.add(Math.floor(at / 4 / width));
  }
  return rows.size > 100;
})"""


@pytest.fixture
def show(chromium, locust, port):
    """Opens the page of a Locust, at a width, as if there were a run and marks."""
    url, errors = f"http://127.0.0.1:{port}/", []

    def answers():
        try:
            return urllib.request.urlopen(url).read()
        except urllib.error.URLError:
            return None

    locust("--web-port", str(port)).wait_for(answers)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(QUIET))

        def show(width, run=RUN, marks=(), **how):
            page = browser.new_page(viewport={"width": width, "height": 800}, **how)
            page.on("console", lambda said: said.type == "error" and errors.append(said.text))
            page.on("pageerror", lambda error: errors.append(str(error)))
            users, state = count(), {"runs": [run], "marks": marks}  # Locust draws what is new
            page.route(
                "**/stats/requests",
                lambda route: route.fulfill(json={**STATS, "user_count": next(users)}),
            )
            page.route("**/groupquake/state", lambda route: route.fulfill(json=state))
            page.goto(f"{url}?tab=charts")
            expect(page.locator("#groupquake")).to_contain_text(run["name"])
            return page

        yield show
        browser.close()
    assert errors == []


def test_rebalances_and_faults_are_marks_on_the_charts(show):
    marks = []
    page = show(1400, marks=marks)
    page.locator("canvas").last.wait_for()
    assert page.evaluate(MARKED) == [False] * 3
    at_ms = 1000 * (time.time() + 2)
    marks += [
        {"at_ms": at_ms, "kind": "rebalance", "text": "orders"},
        {"at_ms": at_ms, "kind": "fault", "text": "broker.kill"},
    ]
    all_marked = f"({MARKED})().join() === 'true,true,true'"
    page.wait_for_function(all_marked, polling=500, timeout=PATIENCE_MS)


def test_the_status_says_that_a_run_is_judged_and_edit_is_not_offered(show):
    page = show(1400)
    expect(page.get_by_text("judging", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(page.get_by_role("button", name="Edit")).to_be_hidden()
    over = show(1400, {**RUN, "state": "over", "result": "not judged"})
    expect(over.get_by_text("running", exact=True)).to_be_visible()
    expect(over.get_by_role("button", name="Edit")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_bar_is_a_landmark_that_covers_nothing_on_a_phone(show, scheme):
    page = show(390, color_scheme=scheme)
    bar = page.get_by_role("region", name="groupquake: state of the run")
    expect(bar.get_by_role("status")).to_have_text("demo: making the verdict.")
    expect(bar).to_contain_text(LINE.strip())
    assert bar.get_by_role("link").first.inner_text() == "Live page"
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    style = bar.evaluate("e => [getComputedStyle(e).position, getComputedStyle(e).backgroundColor]")
    assert style == ["static", "rgb(18, 18, 18)" if scheme == "dark" else "rgb(255, 255, 255)"]
    below = page.locator("#root").evaluate("e => e.getBoundingClientRect().bottom")
    assert bar.evaluate("e => e.getBoundingClientRect().top") >= below

"""The form of faults by hand, in a browser: what it has at first fits the experiment."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
from playwright.sync_api import Page, Route, expect, sync_playwright

from chaos.by_hand import steps_by_hand
from groupquake.live.by_hand import offer
from scenarios import Experiment, named
from scenarios.faults import FAULTS
from tests.conftest import QUIET

pytestmark = pytest.mark.browser

PAGE = Path("loadtest/page")
HOME = "http://127.0.0.1/groupquake/"
IMPACT = {"runs": [{"number": 1, "result": None}], "live": {"phases": [{"name": "impact"}],
                                                            "faults": []}}  # fmt: skip
OF_OTHER_MEMBERS = {
    "demo": {"member.pause"},
    "held-and-doubled": {"member.pause"},
    "frozen-and-slow": {"member.unsubscribe"},
}
"""What the form has, though no member of an experiment can have it: the forecast says why."""


@pytest.fixture
def page(chromium: str) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(QUIET))
        yield browser.new_page()
        browser.close()


def serve(page: Page, experiment: Experiment, tap: bool, asked: list[Any]) -> None:
    """Open the form alone, for an experiment; what is injected goes to `asked`."""
    templates = jinja2.Environment(loader=jinja2.FileSystemLoader(PAGE / "templates"))
    html = templates.get_template("by_hand.html").render(
        url_for=lambda _, filename: f"static/{filename}"
    )

    def answer(route: Route) -> None:
        if route.request.method == "POST":
            command = json.loads(route.request.post_data or "")
            if command["do"] == "inject":
                asked.append(command["fault"])
            route.fulfill(json=offer(experiment, tap) if command["do"] == "offer" else {})
        elif "/static/" in route.request.url:
            route.fulfill(path=PAGE / "static" / route.request.url.rpartition("/")[2])
        else:
            route.fulfill(body=html, content_type="text/html")

    page.route("**/*", answer)
    page.goto(HOME)
    page.evaluate(f"dispatchEvent(new CustomEvent('groupquake', {{detail: {json.dumps(IMPACT)}}}))")
    expect(page.locator("#by-hand-form")).to_be_visible()


@pytest.mark.parametrize("name", ["demo", "held-and-doubled", "frozen-and-slow"])
def test_the_form_has_every_fault_with_values_and_targets_that_fit(page: Page, name: str) -> None:
    experiment, asked = named(name), list[Any]()
    tap = name == "held-and-doubled"
    serve(page, experiment, tap, asked)
    for option in page.locator("#by-hand-fault option").all():
        page.locator("#by-hand-fault").select_option(option.inner_text())
        with page.expect_response(lambda reply: "inject" in (reply.request.post_data or "")):
            page.get_by_role("button", name="Inject").click()
    possible = {
        fault for fault, kind in FAULTS.items() if not kind.needs or (kind.needs == "tap" and tap)
    }
    assert {one["fault"] for one in asked} == possible - {"group.configure"}  # no input has its key
    for one in asked:
        if one["fault"] not in OF_OTHER_MEMBERS[name]:
            wider, _ = steps_by_hand(experiment, one, 1, 5_000, 3)
            assert wider.faults[-1].fault == one["fault"]


def test_a_fault_has_the_targets_of_its_kind(page: Page) -> None:
    serve(page, named("demo"), False, [])
    for fault, some in {
        "member.kill": {"all of static", "leader of dynamic", "static-0", "dynamic-dynamic-3"},
        "member.swap-instance": {"static-0 and static-1", "static-2 and static-3"},
        "members.scale": {"static", "dynamic"},
        "topic.delete": {"orders"},
        "broker.stop": {"coordinator of dynamic", "controller", "leader of orders/0", "broker 1"},
        "broker.rolling-restart": {"every broker"},
    }.items():
        page.locator("#by-hand-fault").select_option(fault)
        assert some <= {*page.locator("#by-hand-target option").all_inner_texts()}

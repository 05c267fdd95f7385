"""A whole run from Locust's page, as somebody in front of a browser has it."""

import json
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.conftest import QUIET
from tests.groupquake.conftest import arguments, running

pytestmark = [pytest.mark.cluster, pytest.mark.browser]


@pytest.fixture
def troubles() -> list[str]:
    """What the browser complains about."""
    return []


@pytest.fixture
def page(chromium: str, troubles: list[str]) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(QUIET))
        context = browser.new_context(viewport={"width": 1400, "height": 1000})
        context.on("console", lambda said: troubles.append(said.text) if said.type in
                   ("error", "warning") else None)  # fmt: skip
        context.on("weberror", lambda error: troubles.append(str(error.error)))
        context.on(
            "requestfailed",
            lambda request: (
                troubles.append(f"failed: {request.url}")
                if request.failure != "net::ERR_ABORTED"
                else None
            ),
        )  # aborted: its page was loaded anew
        context.on("response", lambda reply: troubles.append(f"{reply.status}: {reply.url}") if
                   reply.status >= 400 else None)  # fmt: skip
        yield context.new_page()
        browser.close()


@pytest.fixture
def url(small: Path, tmp_path: Path) -> Iterator[str]:
    """A page whose experiment goes on until somebody stops it; it has to end as its last run."""
    small.write_text(small.read_text().replace("impact: 7s", "impact: 10m"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    output = tmp_path / "output.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(
            arguments("run", small, "--ui", "--web-port", port, "--seed", 5),
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )
    try:
        url = f"http://127.0.0.1:{port}/"
        await_answer(url, process)
        assert f"open {url[:-1]}" in output.read_text()
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=120)
    assert code == 4, output.read_text()  # stopped before anything could be broken
    assert "Traceback" not in output.read_text()
    assert running(str(tmp_path)) == []


def await_answer(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(url).close()
        except urllib.error.URLError:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return


def test_from_the_start_form_to_the_verdict(
    url: str, page: Page, troubles: list[str], tmp_path: Path
) -> None:
    state = page.locator("#groupquake")
    page.goto(url)
    expect(state).to_contain_text("no run yet")
    expect(page.get_by_label("Seed")).to_have_value("5")

    page.get_by_label("Session Timeout").fill("9")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_contain_text("session_timeout: 9 has no unit")
    page.get_by_label("Session Timeout").fill("9s")
    page.get_by_label("Static Members").fill("3")
    # impatient: one run starts, and the others say that it does
    answers: list[str] = []
    page.on("response", lambda reply: answers.append(reply.text()) if reply.url.endswith("swarm")
            else None)  # fmt: skip
    page.get_by_role("button", name="Start").evaluate("b => { b.click(); b.click(); b.click(); }")
    expect(state).to_contain_text("small: starting")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(page.get_by_role("button", name="Edit")).to_be_hidden()
    assert sum("a run is starting already" in answer for answer in answers) == 2

    live = page.context.new_page()
    live.goto(f"{url}groupquake/")
    expect(live.locator("#faults tr").filter(has_text="yes")).to_have_count(3)
    rebalances = live.locator("#rebalances tr").filter(has_text="explicit `LeaveGroup`")
    expect(rebalances).to_have_count(2)
    expect(rebalances.first).to_contain_text("dynamic")
    check_live_page(live)

    page.get_by_role("tab", name="Statistics").click()
    names = page.locator("tbody tr td:nth-child(2)").all_inner_texts()
    assert names[0] == "commit"
    assert {"join", "rebalance"} < set(names)
    assert "poll" not in names

    page.get_by_role("button", name="Stop").click()
    expect(state).to_contain_text("small: making the verdict")
    expect(page.get_by_text("judging", exact=True)).to_be_visible()
    expect(state).to_contain_text("small: verdict pass")
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Report").click()
    expect(opened.value).to_have_title(re.compile("^PASS . small "))
    folder = (tmp_path / "runs" / "latest").resolve()
    check_evidence(folder)

    # The next start is the next run. Stopped before anything could be broken, it has no verdict.
    page.get_by_role("button", name="New").click()
    page.get_by_role("button", name="Start").click()
    expect(state).to_contain_text("small: starting")
    expect(state).to_contain_text("Kafka 4.3.0")
    page.get_by_role("button", name="Stop").click()
    expect(state).to_contain_text("small: not judged. groupquake: Stop")
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Live page").click()
    for shown in (live, opened.value):  # one was open all the time
        expect(shown.get_by_role("heading", level=1)).to_contain_text("small not judged")
        expect(shown.locator("#runs")).to_contain_text("small: pass")
    assert (tmp_path / "runs" / "latest").resolve() != folder
    assert troubles == []


def check_live_page(live: Page) -> None:
    """Check that it draws members, rebalances and faults, and the same when it is loaded anew."""
    for _ in range(2):
        lanes, bands = live.locator("#figure .row"), live.locator("#figure .band.rebalance")
        for member in ("clerk-2", "dynamic-dynamic-1"):
            expect(lanes.and_(live.get_by_label(member)).locator(".bar")).not_to_have_count(0)
        expect(bands).not_to_have_count(0)
        expect(bands).to_have_count(live.locator("#rebalances tr").count())
        expect(live.locator("#groups")).to_contain_text(re.compile(r"\d by faults"))
        expect(live.locator("#owners")).to_contain_text(re.compile(r"clerk-2orders-\d"))
        expect(live.locator("#faults")).to_contain_text("member.restart")
        expect(live.locator("#phase")).to_contain_text(re.compile(r"impact.* left", re.DOTALL))
        live.reload()
    live.set_viewport_size({"width": 390, "height": 844})
    expect(live.locator("#figure .row")).not_to_have_count(0)
    assert live.evaluate("document.documentElement.scrollWidth") == 390


def check_evidence(folder: Path) -> None:
    """Check that it was the run that the form asked for, and that Stop ended it."""
    verdict = json.loads((folder / "verdict.json").read_text())
    assert (verdict["verdict"], verdict["seed"]) == ("pass", 5)
    static = verdict["groups"]["static"]
    assert (static["members_static"], static["rebalances_observed"]["impact"]) == (3, 0)
    assert "session_timeout=9s" in verdict["repeat_command"]
    journal = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    events = [entry.get("phase", entry["event"]) for entry in journal]
    assert events[-3:] == ["stopped", "teardown", "end"]
    history = (folder / "history.jsonl").read_text().splitlines()
    closed = {json.loads(line)["member"] for line in history if '"event":"closed"' in line}
    assert len(closed) == 6

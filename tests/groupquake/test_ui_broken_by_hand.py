"""What somebody breaks on the live page, and sees there: from the start form to the verdict."""

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.groupquake import axe
from tests.groupquake.test_ui_browser import page, troubles  # noqa: F401 (fixtures)
from tests.groupquake.test_ui_session import Session, port, session  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.cluster, pytest.mark.browser]


def test_what_is_broken_on_the_live_page_shows_there_and_is_judged(
    session: Session,  # noqa: F811
    page: Page,  # noqa: F811
    troubles: list[str],  # noqa: F811
    port: int,  # noqa: F811
    tmp_path: Path,
) -> None:
    url = f"http://127.0.0.1:{port}/"
    session("--seed", 5)
    require_loopback(page.context, troubles)
    page.goto(url)
    page.get_by_label("Experiment (takes").select_option("by-hand")
    page.get_by_role("button", name="Start").click()
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Live page").click()
    live = opened.value
    for group in ("static", "dynamic"):
        expect(card(live, group)).to_contain_text("· 4 of 4 members")
    expect(live.locator("#figure .row").filter(has=live.locator(".bar"))).not_to_have_count(0)
    for member in ("static-1", "dynamic-dynamic-3"):
        expect(lane(live, member).locator(".bar")).not_to_have_count(0)

    duplicate_an_instance_id(live)
    kill_the_coordinator(live)

    page.get_by_role("button", name="Stop").click()
    expect(live.get_by_role("heading", level=1)).to_contain_text("by-hand verdict: pass")
    live.get_by_role("link", name="The report").click()
    expect(live).to_have_title(re.compile("^PASS . by-hand "))
    verdict = json.loads((tmp_path / "runs" / "latest" / "verdict.json").read_text())
    assert [(one["name"], one["verified"], one["by_hand"]) for one in verdict["faults"]] == [
        ("member.duplicate-instance", True, True),
        ("broker.kill", True, True),
    ]
    assert troubles == []


def duplicate_an_instance_id(live: Page) -> None:
    """Fence a member by a second process, as foreseen without a rebalance, and heal it."""
    said = card(live, "static").locator(".state")
    [generation] = re.findall(r"generation \d+", said.inner_text())  # a slow start takes two
    inject(live, "member.duplicate-instance", "static-1", lasts="10m")
    owners = live.get_by_role("list", name="Members of static and their partitions")
    member = owners.get_by_role("listitem").filter(has_text=re.compile("^static-1(?!.dup)"))
    expect(member).to_contain_text("fenced: another has its instance id")
    expect(owners).to_contain_text(re.compile(r"static-1\.duplicateorders-\d"))
    expect(lane(live, "static-1").locator(".bar.fault")).to_have_count(1)
    expect(lane(live, "static-1.duplicate").locator(".bar")).to_have_count(1)
    live.get_by_role("button", name="Heal h1").click()
    expect(fault(live, "h1")).to_contain_text("yes: ")
    expect(member).to_contain_text("orders-")
    expect(said).to_contain_text(f"{generation} · 4 of 4 members")


def kill_the_coordinator(live: Page) -> None:
    """Kill the broker that coordinates the dynamic group: another takes over; heal it."""
    said = card(live, "dynamic").locator(".state")
    expect(said).to_contain_text("coordinates")
    coordinator = re.findall(r"broker (\d) coordinates", said.inner_text())[0]
    inject(live, "broker.kill", "coordinator of dynamic", down_for="10m")
    expect(fault(live, "h2")).to_contain_text(f"broker-{coordinator}")
    expect(live.locator("#figure .band.broker")).not_to_have_count(0)
    expect(said).not_to_contain_text(f"broker {coordinator} coordinates")
    assert usable(live) == []
    live.get_by_role("button", name="Heal all").click()
    expect(fault(live, "h2")).to_contain_text("yes: ")
    expect(said).to_contain_text("4 of 4 members")
    owners = live.get_by_role("list", name="Members of dynamic and their partitions")
    expect(owners.get_by_role("listitem").filter(has_text="orders-")).to_have_count(4)
    expect(live.locator("#by-hand-open")).to_be_hidden()


def inject(live: Page, name: str, target: str, **fields: str) -> None:
    """Choose a fault, see that it is foreseen without a rebalance, and inject it."""
    live.get_by_role("combobox", name="Fault", exact=True).select_option(label=name)
    live.get_by_role("combobox", name="Target", exact=True).select_option(label=target)
    for field, text in fields.items():
        live.locator(f"[data-name={field}] input").fill(text)
    forecast = live.get_by_role("region", name="What it would do")
    expect(forecast).to_contain_text("Undo: ")
    expect(forecast).to_contain_text(re.compile("dynamic ?no rebalance"))
    expect(forecast).to_contain_text(re.compile("static ?no rebalance"))
    live.get_by_role("button", name="Inject").click()


def require_loopback(context: BrowserContext, troubles: list[str]) -> None:  # noqa: F811
    """Count a request to anything but this machine as a trouble."""
    context.on(
        "request",
        lambda request: (
            troubles.append(f"beyond loopback: {request.url}")
            if urlsplit(request.url).hostname not in ("127.0.0.1", None)
            else None
        ),
    )


def usable(live: Page) -> list[tuple[str, str]]:
    """List what makes the page hard to use, light and dark, at every width."""
    assert live.context.browser is not None
    found = []
    for name, view in axe.views(live.context.browser):
        view.goto(live.url)
        expect(view.locator("#figure .row .bar")).not_to_have_count(0)
        expect(view.locator("#by-hand-groups dd")).to_have_count(2)
        found += [(name, trouble) for trouble in axe.troubles(view)]
    return found


def card(live: Page, group: str) -> Locator:
    return live.get_by_role("article").filter(has=live.get_by_role("heading", name=group))


def lane(live: Page, member: str) -> Locator:
    return live.locator("#figure .row").and_(live.get_by_label(re.compile(f"^{member}\\b")))


def fault(live: Page, step: str) -> Locator:
    return live.locator("#faults tr").filter(has_text=step)

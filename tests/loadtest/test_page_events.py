"""What browsers with the live page open are sent."""

import json
from itertools import islice
from typing import Any

import pytest

from loadtest.page import events
from loadtest.page.events import KEPT, Live, stream
from loadtest.page.patches import apply


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "EVENTS_EVERY_S", 0.001)


class Browser:
    """Keeps what it is sent, as the page does."""

    def __init__(self, session: "Session") -> None:
        self._events = stream(lambda: list(session.runs), lambda: session.live)
        self.wholes = 0
        self.state: dict[str, Any] = {}

    def take(self, number: int = 1) -> dict[str, Any]:
        for event in islice(self._events, number):
            news = json.loads(event.removeprefix(b"data: "))
            if {"runs", "live"} <= news.keys():
                self.state, self.wholes = news, self.wholes + 1
            for part in news.keys() - ({"runs", "live"} if self.state is news else set()):
                self.state[part] = apply(self.state[part], news[part])
        return self.state


class Session:
    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = [{"state": "running"}]
        self.live = Live()
        self.live.take({"members": [1]})


def test_changes_follow_the_whole_in_their_order() -> None:
    session = Session()
    browser = Browser(session)
    assert browser.take() == {"runs": [{"state": "running"}], "live": {"members": 1}}
    session.live.take({"members": [2]})
    session.live.take({"owners": [{"a": []}]})
    session.runs = [{"state": "closing"}]
    whole = {"runs": [{"state": "closing"}], "live": {"members": 2, "owners": {"a": []}}}
    assert browser.take(3) == whole
    assert browser.wholes == 1
    assert Browser(session).take() == whole  # another one, or the same after a reload


def test_a_browser_that_is_too_slow_is_sent_the_whole() -> None:
    session = Session()
    browser = Browser(session)
    browser.take()
    for number in range(KEPT + 1):
        session.live.take({"members": [number]})
    assert browser.take()["live"] == {"members": KEPT}
    assert browser.wholes == 2


def test_another_run_begins_with_the_whole() -> None:
    session = Session()
    browser = Browser(session)
    browser.take()
    session.live = Live()
    assert browser.take()["live"] == {}


def test_without_news_a_comment_shows_whether_the_browser_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "EVENTS_IDLE_S", 0.002)
    session = Session()
    sent = stream(lambda: session.runs, lambda: session.live)
    assert [*islice(sent, 2)][1].startswith(b":")

"""Why clients began rebalances, and how soon a group shared out what its topic had grown by."""

from typing import Any

import pytest

from reports.judgement.costs import topic_growths
from reports.judgement.timelines.timeline import client_reason
from reports.page.report import render
from tests.reports.page_run import IMPACT_MS, ZERO_MS
from tests.reports.reading import Page

Json = dict[str, Any]
CHANGED = "cached metadata has changed"


@pytest.mark.parametrize(
    ("reason", "given"),
    [
        (f"Leader a-1 re-joining group during Stable; client reason: {CHANGED}", CHANGED),
        ("Adding new member a-1 with group instance id a; client reason: not provided", None),
        ("Adding new member a-1 with group instance id Some(a)", None),
        ("Updating metadata for member a during Stable; client reason: (odd; word).",
         "(odd; word)."),
        (None, None),
    ],
)  # fmt: skip
def test_the_reason_is_what_the_client_said(reason, given):
    assert client_reason({"reason": reason}) == given


def row(started_ms: float | None, given: str | None = CHANGED, **more: Any) -> Json:
    fields = {"group": "g", "started_ms": started_ms, "client_reason": given}
    return fields | {"reason": "leader_rejoin", "member_id": "a-1"} | more


def growth(at_ms: float | None, meant_ms: float = 90.0, topic: str = "orders") -> Json:
    name = "topic.add-partitions"
    return {"name": name, "target": topic, "meant_at_ms": meant_ms, "injected_at_ms": at_ms}


@pytest.mark.parametrize(
    ("rows", "delay_ms"),
    [
        ([row(130.0), row(150.0)], 30.0),
        ([row(95.0)], 0.0),
        ([row(80.0), row(150.0)], 50.0),
        ([row(150.0, "TOPIC_METADATA_CHANGE")], 50.0),
        ([row(150.0, None)], 50.0),
        ([row(150.0, None, reason="new_member")], None),
        ([row(150.0, "rebalance enforced by user")], None),
        ([row(150.0, group="another")], None),
        ([row(None, None)], None),
        ([], None),
    ],
)
def test_the_first_rebalance_that_a_change_of_metadata_brought(rows, delay_ms):
    (one,) = topic_growths([growth(100.0)], rows, {"g": ("orders",)})
    assert (one.group, one.topic, one.at_ms, one.delay_ms) == ("g", "orders", 100.0, delay_ms)


def test_each_growth_has_a_rebalance_of_its_own():
    faults = [growth(100.0), growth(200.0, 190.0)]
    first, second = topic_growths(faults, [row(250.0)], {"g": ("orders",)})
    assert (first.delay_ms, second.delay_ms) == (None, 50.0)


def test_topics_that_did_not_grow_or_are_not_read_are_not_listed():
    faults = [growth(None), growth(100.0, topic="other"), growth(100.0) | {"name": "broker.kill"}]
    assert topic_growths(faults, [row(150.0)], {"g": ("orders",)}) == []


def test_the_page_shows_reason_and_delay(made):
    """The first rebalance after a topic grew is given to have come of it."""
    at_ms, about = IMPACT_MS + 100, {"fault_id": "f9.1"}
    intent = {"fault": "topic.add-partitions", "cause": None, "group": None, "target": "orders",
              "args": {"topic": "orders", "to": 10}, "kind": "one-shot"}  # fmt: skip
    assert "Topics that were given more partitions" not in Page(render(*made.finish())).text
    made.journal += [
        {"at_ms": at_ms, "event": "intent", **about, **intent},
        {"at_ms": at_ms + 50, "event": "injected", **about},
        {"at_ms": at_ms + 90, "event": "verified", **about, "verified": True, "witness": "them"},
    ]
    began = (row["observed_started_ms"] for row in made.comparison)
    first_ms = min(began_ms for began_ms in began if began_ms > at_ms)
    made.client_reasons[first_ms] = CHANGED
    page = Page(render(*made.finish()))
    delay = f"{(first_ms - at_ms - 50) / 1000:.3f}"
    grew, began = (f"+{(ms - ZERO_MS) / 1000:.3f}" for ms in (at_ms + 50, first_ms))
    assert f"dynamic orders {grew} {began} {delay} dynamic-dynamic-0 {CHANGED}" in page.text
    assert f"static orders {grew} no rebalance" in page.text
    assert f"leave {CHANGED} dynamic-dynamic-0" in page.text
    bars = [b for block in page.figure["blocks"] for row in block["rows"] for b in row["bars"]]
    (hover,) = {line for bar in bars for line in bar["hover"] if CHANGED in line}
    assert f"client: {CHANGED}, {delay} s after orders had grown" in hover

"""Spans of joins, rebalances and faults: from the events of a history and of a journal."""

import json

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from loadtest.spans import FaultSpans, MemberSpans


@pytest.fixture
def spans():
    return InMemorySpanExporter()


@pytest.fixture
def tracer(spans):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    yield provider.get_tracer("test")
    provider.shutdown()


@pytest.fixture
def counters():
    meter = MeterProvider([InMemoryMetricReader()]).get_meter("test")
    return {name: meter.create_counter(name) for name in ("join", "rebalance", "fault")}


@pytest.fixture
def members(tracer, counters):
    return MemberSpans(tracer, counters, {}, lambda: ("broker.kill",))


def see(members, *events, member="m", kind="static"):
    for event, at_ms in events:
        partitions = ["t-0", "t-1"] if event == "assigned" else []
        fields = {"member": member, "group": "g", "kind": kind, "partitions": partitions}
        members.see({"event": event, "at_ms": at_ms, **fields})


def ended(spans):
    """Return name, begin, end and whether it failed, of each span that has ended."""
    return [
        (
            span.name,
            span.start_time // 1_000_000,
            span.end_time // 1_000_000,
            span.status.status_code is StatusCode.ERROR,
        )
        for span in spans.get_finished_spans()
    ]


def test_a_join_ends_with_the_first_assignment_and_a_rebalance_with_the_next(members, spans):
    see(members, ("created", 10), ("assigned", 40), ("revoked", 100), ("assigned", 130))
    assert ended(spans) == [("join", 10, 40, False), ("rebalance", 100, 130, False)]
    join, _ = spans.get_finished_spans()
    assert dict(join.attributes) == {
        "messaging.system": "kafka",
        "messaging.client.id": "m",
        "messaging.consumer.group.name": "g",
        "groupquake.member.kind": "static",
        "groupquake.faults.open": ("broker.kill",),
        "groupquake.partitions.assigned": 2,
    }


@pytest.mark.parametrize(
    ("events", "rebalance"),
    [
        ((("assigned", 130),), ("rebalance", 130, 130, False)),  # it gave nothing up
        ((("revoked", 100), ("lost", 110), ("assigned", 130)), ("rebalance", 100, 130, False)),
    ],
)
def test_one_rebalance_has_one_span(members, spans, events, rebalance):
    see(members, ("created", 10), ("assigned", 40), *events)
    assert ended(spans)[1:] == [rebalance]


def test_a_clean_close_is_no_rebalance(members, spans):
    see(
        members, ("created", 10), ("assigned", 40), ("closing", 90), ("revoked", 91), ("closed", 95)
    )
    assert ended(spans) == [("join", 10, 40, False)]
    see(members, ("created", 200), ("assigned", 210), ("revoked", 220), ("assigned", 230))
    assert ended(spans)[1:] == [("join", 200, 210, False), ("rebalance", 220, 230, False)]


def test_a_join_without_an_assignment_has_failed(members, spans):
    for end in ("fenced", "killed", "closed"):
        see(members, ("created", 10), (end, 60))
    see(members, ("created", 10))
    members.close(99)
    assert ended(spans) == [("join", 10, 60, True)] * 3 + [("join", 10, 99, True)]


def test_producers_have_no_spans(members, spans):
    see(members, ("created", 10), ("closing", 20), ("closed", 30), kind="producer")
    assert ended(spans) == []


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "journal.jsonl"


@pytest.fixture
def faults(tracer, counters, journal):
    return FaultSpans(tracer, counters["fault"], {}, journal)


def entry(event, at_ms, **fields):
    return json.dumps({"at_ms": at_ms, "event": event, "fault_id": "f1", **fields}) + "\n"


INTENT = entry("intent", 10, fault="broker.pause", target="broker 1", group=None)
INJECTED = entry("injected", 20)
HEALED = entry("healed", 60, healed=True, how="resumed")
NOT_HEALED = entry("healed", 60, healed=False, how="gone")
VERIFIED = entry("verified", 70, verified=True, witness="no answer")


def test_a_fault_lasts_until_it_is_healed(faults, spans, journal):
    journal.write_text(entry("phase", 1, fault_id=None) + INTENT + INJECTED)
    assert faults.open() == ("broker.pause",)
    with journal.open("a") as file:
        file.write(HEALED[:30])
    assert faults.open() == ("broker.pause",), "half a line counts when it is whole"
    with journal.open("a") as file:
        file.write(HEALED[30:])
    assert faults.open() == ()
    with journal.open("a") as file:
        file.write(VERIFIED)
    faults.read()
    assert ended(spans) == [("broker.pause", 10, 60, False)]
    [span] = spans.get_finished_spans()
    assert [event.name for event in span.events] == ["injected", "healed"]
    assert dict(span.attributes) == {
        "groupquake.fault": "broker.pause",
        "groupquake.target": "broker 1",
        "groupquake.fault.verified": True,
        "groupquake.fault.witness": "no answer",
    }
    ((observed,),) = [tuple(faults.injected_at())]
    assert (observed.value, observed.attributes) == (
        20,
        {"fault": "broker.pause", "target": "broker 1"},
    )


def test_a_fault_that_is_not_healed_ends_when_it_was_carried_out(faults, spans, journal):
    journal.write_text(INTENT + INJECTED + VERIFIED)
    faults.read()
    assert ended(spans) == [("broker.pause", 10, 20, False)]


@pytest.mark.parametrize(
    ("rest", "end"),
    [
        (INJECTED + HEALED + entry("verified", 70, verified=False, witness="answered"), 60),
        (entry("failed", 30, error="no such broker"), 30),
        (
            INJECTED
            + entry("healed", 60, healed=False, how="gone")
            + entry("failed", 65, error="x"),
            65,
        ),
    ],
    ids=["not verified", "not injected", "not healed"],
)
def test_a_fault_that_went_wrong_has_failed(faults, spans, journal, rest, end):
    journal.write_text(INTENT + rest)
    faults.read()
    assert ended(spans) == [("broker.pause", 10, end, True)]


def test_a_load_that_ends_in_a_fault_ends_its_span(faults, spans, journal):
    journal.write_text(INTENT + INJECTED)
    faults.close()
    assert ended(spans) == [("broker.pause", 10, 20, False)]


def test_a_load_without_a_run_has_no_faults(faults):
    assert faults.open() == ()

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


class Ended(InMemorySpanExporter):
    """The spans that have ended."""

    def __init__(self):
        super().__init__()
        self._provider = TracerProvider()
        self._provider.add_span_processor(SimpleSpanProcessor(self))
        self.tracer = self._provider.get_tracer("test")
        meter = MeterProvider([InMemoryMetricReader()]).get_meter("test")
        self.counters = {
            name: meter.create_counter(name) for name in ("join", "rebalance", "fault")
        }

    def times(self):
        """Return name, begin, end and whether it failed, of each."""
        return [
            (
                span.name,
                span.start_time // 1_000_000,
                span.end_time // 1_000_000,
                span.status.status_code is StatusCode.ERROR,
            )
            for span in self.get_finished_spans()
        ]


@pytest.fixture
def ended():
    ended = Ended()
    yield ended
    ended._provider.shutdown()


@pytest.fixture
def members(ended):
    return MemberSpans(ended.tracer, ended.counters, {}, lambda: ("broker.kill",))


def see(members, *events, kind="static"):
    for event, at_ms in events:
        partitions = ["t-0", "t-1"] if event == "assigned" else []
        fields = {"member": "m", "group": "g", "kind": kind, "partitions": partitions}
        members.see({"event": event, "at_ms": at_ms, **fields})


JOINED = ("created", 10), ("assigned", 40)
JOIN = ("join", 10, 40, False)
LIVES = {
    "a rebalance": (
        [*JOINED, ("revoked", 100), ("assigned", 130)], [JOIN, ("rebalance", 100, 130, False)]
    ),
    "nothing is given up": ([*JOINED, ("assigned", 130)], [JOIN, ("rebalance", 130, 130, False)]),
    "all is given up and lost": (
        [*JOINED, ("revoked", 100), ("lost", 110), ("assigned", 130)],
        [JOIN, ("rebalance", 100, 130, False)],
    ),
    "a clean close": ([*JOINED, ("closing", 90), ("revoked", 91), ("closed", 95)], [JOIN]),
    "a life after a clean close": (
        [
            *(*JOINED, ("closing", 90), ("revoked", 91), ("closed", 95)),
            *(("created", 200), ("assigned", 210), ("revoked", 220), ("assigned", 230)),
        ],
        [JOIN, ("join", 200, 210, False), ("rebalance", 220, 230, False)],
    ),
    **{
        f"{end} before it joined": ([("created", 10), (end, 60)], [("join", 10, 60, True)])
        for end in ("fenced", "killed", "closed")
    },
    "the load ends before it joined": ([("created", 10)], [("join", 10, 99, True)]),
}  # fmt: skip
"""What happens to a member, and its spans."""


@pytest.mark.parametrize("life", LIVES)
def test_spans_of_a_member_last_until_its_assignment(members, ended, life):
    events, spans = LIVES[life]
    see(members, *events)
    members.close(99)
    assert ended.times() == spans


def test_a_span_tells_of_its_member(members, ended):
    see(members, *JOINED)
    [join] = ended.get_finished_spans()
    assert dict(join.attributes) == {
        "messaging.system": "kafka",
        "messaging.client.id": "m",
        "messaging.consumer.group.name": "g",
        "groupquake.member.kind": "static",
        "groupquake.faults.open": ("broker.kill",),
        "groupquake.partitions.assigned": 2,
    }


def test_producers_have_no_spans(members, ended):
    see(members, ("created", 10), ("closing", 20), ("closed", 30), kind="producer")
    assert ended.times() == []


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "journal.jsonl"


@pytest.fixture
def faults(ended, journal):
    return FaultSpans(ended.tracer, ended.counters["fault"], {}, journal)


def entry(event, at_ms, **fields):
    return json.dumps({"at_ms": at_ms, "event": event, "fault_id": "f1", **fields}) + "\n"


INTENT = entry("intent", 10, fault="broker.pause", target="broker 1", group=None)
INJECTED = entry("injected", 20)
HEALED = entry("healed", 60, healed=True, how="resumed")
NOT_HEALED = entry("healed", 60, healed=False, how="gone")
VERIFIED = entry("verified", 70, verified=True, witness="no answer")


def test_a_fault_lasts_until_it_is_healed(faults, ended, journal):
    assert faults.open() == (), "a load without a run has none"
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
    assert ended.times() == [("broker.pause", 10, 60, False)]
    [span] = ended.get_finished_spans()
    assert [event.name for event in span.events] == ["injected", "healed"]
    assert dict(span.attributes) == {
        "groupquake.fault": "broker.pause",
        "groupquake.target": "broker 1",
        "groupquake.fault.verified": True,
        "groupquake.fault.witness": "no answer",
    }
    [observed] = faults.injected_at()
    labels = {"fault": "broker.pause", "target": "broker 1"}
    assert (observed.value, observed.attributes) == (20, labels)


FAULTS = {
    "never healed": (INJECTED + VERIFIED, 20, False),
    "when the load ended": (INJECTED, 20, False),
    "not verified": (
        INJECTED + HEALED + entry("verified", 70, verified=False, witness="answered"), 60, True
    ),
    "not injected": (entry("failed", 30, error="no such broker"), 30, True),
    "not healed": (INJECTED + NOT_HEALED + entry("failed", 65, error="x"), 65, True),
}  # fmt: skip
"""What the journal has of a fault; when its span ends, and whether it failed."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_span_of_a_fault_ends_when_it_was_carried_out(faults, ended, journal, fault):
    entries, end_ms, failed = FAULTS[fault]
    journal.write_text(INTENT + entries)
    faults.close()
    assert ended.times() == [("broker.pause", 10, end_ms, failed)]

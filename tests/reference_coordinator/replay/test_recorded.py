"""Replays the recorded evidence of a real 4.3.0 run, read here without Spark."""

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reference_coordinator.replay import Evidence, Hint, HintKind, Observed, Serving, replay
from tests.reference_coordinator.replay.conftest import PROFILE, unexplained, wrong

RECORDED = Path(__file__).parents[2] / "recorded" / "kafka-4.3.0" / "brokers"
LINE = re.compile(r"^\d+ (\d+) (\d+) \S+ \w+ (.*) \(\S+\)$")
LOADS = re.compile(
    r"(Scheduling loading|Finished loading|Started unloading).*__consumer_offsets-(\d+)"
)
KINDS = {"Sch": "loading", "Fin": "loaded", "Sta": "unloaded"}
PARTITIONS = {"static": "4", "dynamic": "3"}
HINTS = (
    (HintKind.JOINED, r"joins group {group} in .*Created a new member id (\S+)"),
    (HintKind.JOINED, r"Pending dynamic member with id (\S+) joins group {group} "),
    (HintKind.SESSION_EXPIRED, r"Member (\S+) in group {group} has failed"),
)


def told() -> Iterator[tuple[str, int, float, str]]:
    """Read all lines: broker, line, time in ms, message."""
    for packed in sorted(RECORDED.glob("*/group.log.gz")):
        lines = gzip.decompress(packed.read_bytes()).decode().splitlines()
        found = [match for line in lines if (match := LINE.match(line))]
        offset = max(int(match[1]) - int(match[2]) / 1e6 for match in found)
        for number, match in enumerate(found, 1):
            yield packed.parent.name, number, int(match[2]) / 1e6 + offset, match[3]


def request(broker: str, number: int, now: float, text: str) -> Observed:
    line = json.loads(text.removeprefix("Completed request:"))
    header = line["requestHeader"]
    taken = now - line["totalTimeMs"] + line["requestQueueTimeMs"]
    done = taken + line["localTimeMs"]
    answered = done + line["remoteTimeMs"]
    return Observed(
        id=f"{broker}:{number}",
        broker=broker,
        api=header["requestApiKeyName"],
        api_version=header["requestApiVersion"],
        client_id=header["clientId"],
        connection=line["connection"],
        earliest_ms=taken - 5.0,
        at_ms=taken + line["localTimeMs"] / 2,
        latest_ms=min(answered, done + 50.0),
        answered_ms=answered,
        request=line["request"],
        response=line["response"],
    )


def evidence(group: str) -> Evidence:
    requests: list[Observed] = []
    hints: list[Hint] = []
    servings: list[Serving] = []
    for broker, number, now, text in told():
        if text.startswith("Completed request:"):
            seen = request(broker, number, now, text)
            requests += [seen] if seen.request["groupId"] == group else []
        elif (load := LOADS.search(text)) and load[2] == PARTITIONS[group]:
            servings.append(Serving(now, broker, KINDS[load[1][:3]]))
        for kind, regex in HINTS:
            if match := re.search(regex.format(group=group), text):
                hints.append(Hint(now, kind, match[1]))
    return Evidence(
        group,
        tuple(sorted(requests, key=lambda seen: seen.at_ms)),
        tuple(sorted(hints, key=lambda hint: hint.at_ms)),
        tuple(sorted(servings, key=lambda serving: serving.at_ms)),
    )


@pytest.fixture(scope="module", params=sorted(PARTITIONS))
def recorded(request: pytest.FixtureRequest) -> Evidence:
    return evidence(request.param)


def test_the_recorded_evidence_is_explained(recorded: Evidence) -> None:
    outcome = replay(recorded, PROFILE)
    assert outcome.violations == ()
    assert sorted(c.request for c in outcome.checked if c.explained) == sorted(
        seen.id for seen in recorded.requests
    )
    assert len(outcome.checked) == len(recorded.requests) > 100
    reasons = [row.reason for row in outcome.rows]
    assert (
        reasons
        == {
            "static": ["new_member", "new_member", "session_expired", "new_member"],
            "dynamic": ["new_member", "new_member", "leave", "new_member", "leave"],
        }[recorded.group]
    )


def test_any_one_altered_error_is_the_one_violation(recorded: Evidence) -> None:
    """Heartbeats, syncs and commits: a lie about one of them leads nowhere else."""
    apis = ("HEARTBEAT", "SYNC_GROUP")
    places = [i for i, seen in enumerate(recorded.requests) if seen.api in apis]
    for place in places[::7]:
        seen = recorded.requests[place]
        lie = replace(seen, response={**seen.response, "errorCode": 15})
        altered = (*recorded.requests[:place], lie, *recorded.requests[place + 1 :])
        outcome = replay(replace(recorded, requests=altered), PROFILE)
        assert wrong(outcome) == unexplained(outcome) == [seen.id]


@pytest.mark.parametrize("group", ["dynamic", "static"])
def test_the_recorded_evidence_is_explained_without_hints(group: str) -> None:
    assert replay(replace(evidence(group), hints=()), PROFILE).violations == ()

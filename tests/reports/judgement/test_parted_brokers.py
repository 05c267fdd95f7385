"""What the journal tells of brokers that a fault parted from the others."""

from math import inf
from pathlib import Path
from typing import Any

import pytest

from reports.judgement.run.faults import RunFaults, act_of
from reports.timing import CATCHING_UP_MS, REPLICATES_MS

FROM_MS, INJECTED_MS, HEALED_MS = 5_000, 5_300, 25_000
LASTED_MS = HEALED_MS - FROM_MS


def journal(
    fault: str, *, healed: bool | None = True, verified: bool = True
) -> list[dict[str, Any]]:
    intent = {
        "fault": fault, "kind": "recoverable", "target": "broker-2", "group": "static",
        "args": {"for_ms": LASTED_MS, "broker": 2},
    }  # fmt: skip
    entries = [
        {"at_ms": FROM_MS, "event": "intent", **intent},
        {"at_ms": INJECTED_MS, "event": "injected"},
        {"at_ms": HEALED_MS, "event": "verified", "verified": verified, "witness": ""},
        {"at_ms": HEALED_MS, "event": "healed", "healed": healed},
    ]
    return [{"fault_id": "f1.1", **one} for one in entries[: 3 + (healed is not None)]]


def faults_of(entries: list[dict[str, Any]]) -> RunFaults:
    run = RunFaults(Path())
    vars(run)["journal"] = tuple(entries)
    return run


@pytest.mark.parametrize("fault", ["broker.partition", "broker.slow-network"])
def test_a_broker_may_lack_packets_from_the_intent_on_and_has_as_long_again_to_catch_up(fault):
    found = faults_of(journal(fault))
    (one,) = found.partings
    assert (one.broker, one.earliest_ms) == ("2", FROM_MS - REPLICATES_MS)
    assert (one.healed_ms, one.until_ms) == (HEALED_MS, HEALED_MS + LASTED_MS + CATCHING_UP_MS)
    (outage,) = found.outages
    assert (outage.from_ms, outage.until_ms) == (FROM_MS, one.until_ms)


@pytest.mark.parametrize(
    ("fault", "verified", "is_lost"),
    [
        ("broker.partition", True, True),
        ("broker.partition", False, False),
        ("broker.slow-network", True, False),
    ],
    ids=["parted", "no witness saw it", "what passes slowly"],
)
def test_what_it_writes_once_it_is_parted_is_lost_for_who_takes_over(fault, verified, is_lost):
    (one,) = faults_of(journal(fault, verified=verified)).partings
    assert one.from_ms == (INJECTED_MS if is_lost else inf)
    times = (INJECTED_MS - 1, INJECTED_MS, HEALED_MS, HEALED_MS + 1)
    lost = [INJECTED_MS - 1, INJECTED_MS, INJECTED_MS, HEALED_MS + 1] if is_lost else [*times]
    assert [one.lost_from(over_ms) for over_ms in times] == lost


@pytest.mark.parametrize("healed", [False, None])
def test_one_that_was_not_healed_is_parted_to_the_end(healed):
    found = faults_of(journal("broker.partition", healed=healed))
    (one,), (outage,) = found.partings, found.outages
    assert {one.healed_ms, one.until_ms, outage.until_ms} == {float("inf")}


def test_it_works_on_and_clients_reach_it():
    found = faults_of(journal("broker.partition"))
    assert not [*found.stalls, *found.restarts]
    assert not any(act_of(fault, 0.0).excuses for fault in found.faults)


@pytest.mark.parametrize("fault", ["broker.pause", "broker.kill", "disk.slow", "net.partition"])
def test_no_other_fault_parts_a_broker(fault):
    assert not [*faults_of(journal(fault)).partings]
    if fault != "net.partition":
        (outage,) = faults_of(journal(fault)).outages
        assert outage.until_ms == HEALED_MS + CATCHING_UP_MS

"""What the journal tells of brokers that a fault parted from the others."""

from pathlib import Path
from typing import Any

import pytest

from reports.judgement.run.faults import RunFaults
from reports.timing import CATCHING_UP_MS, REPLICATES_MS

FROM_MS, INJECTED_MS, HEALED_MS = 5_000, 5_300, 25_000
LASTED_MS = HEALED_MS - FROM_MS


def journal(
    fault: str, *, healed: bool | None = True, verified: bool = True
) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = [
        {
            "at_ms": FROM_MS,
            "event": "intent",
            "fault_id": "f1.1",
            "fault": fault,
            "kind": "recoverable",
            "target": "broker-2",
            "group": "static",
            "args": {"for_ms": LASTED_MS, "broker": 2},
        },
        {"at_ms": INJECTED_MS, "event": "injected", "fault_id": "f1.1"},
        {"at_ms": HEALED_MS, "event": "verified", "fault_id": "f1.1", "verified": verified,
         "witness": ""},
    ]  # fmt: skip
    if healed is not None:
        entries.append(
            {"at_ms": HEALED_MS, "event": "healed", "fault_id": "f1.1", "healed": healed}
        )
    return entries


def faults_of(entries: list[dict[str, Any]]) -> RunFaults:
    run = RunFaults(Path())
    vars(run)["journal"] = tuple(entries)
    return run


@pytest.mark.parametrize("fault", ["broker.partition", "broker.slow-network"])
def test_a_broker_may_lack_packets_from_the_intent_on_and_has_as_long_again_to_catch_up(
    fault: str,
) -> None:
    found = faults_of(journal(fault))
    (one,) = found.partings
    assert (one.broker, one.earliest_ms) == ("2", FROM_MS - REPLICATES_MS)
    assert (one.healed_ms, one.until_ms) == (HEALED_MS, HEALED_MS + LASTED_MS + CATCHING_UP_MS)
    (outage,) = found.outages
    assert (outage.from_ms, outage.until_ms) == (FROM_MS, one.until_ms)


def test_what_it_writes_once_it_is_parted_is_lost_for_who_takes_over() -> None:
    (one,) = faults_of(journal("broker.partition")).partings
    assert one.from_ms == INJECTED_MS
    times = (INJECTED_MS - 1, INJECTED_MS, HEALED_MS, HEALED_MS + 1)
    lost = [one.lost_from(over_ms) for over_ms in times]
    assert lost == [INJECTED_MS - 1, INJECTED_MS, INJECTED_MS, HEALED_MS + 1]


def test_what_it_writes_may_be_kept_where_no_witness_saw_it_parted() -> None:
    (one,) = faults_of(journal("broker.partition", verified=False)).partings
    assert [one.lost_from(at) for at in (INJECTED_MS, HEALED_MS)] == [INJECTED_MS, HEALED_MS]


def test_what_only_passes_slowly_is_not_lost() -> None:
    (one,) = faults_of(journal("broker.slow-network")).partings
    assert [one.lost_from(at) for at in (INJECTED_MS, HEALED_MS)] == [INJECTED_MS, HEALED_MS]


@pytest.mark.parametrize("healed", [False, None])
def test_one_that_was_not_healed_is_parted_to_the_end(healed: bool | None) -> None:
    found = faults_of(journal("broker.partition", healed=healed))
    (one,), (outage,) = found.partings, found.outages
    assert {one.healed_ms, one.until_ms, outage.until_ms} == {float("inf")}


def test_it_works_on_and_clients_reach_it() -> None:
    found = faults_of(journal("broker.partition"))
    assert not [*found.stalls, *found.restarts, *found.broken_wires]


@pytest.mark.parametrize("fault", ["broker.pause", "broker.kill", "disk.slow", "net.partition"])
def test_no_other_fault_parts_a_broker(fault: str) -> None:
    assert not [*faults_of(journal(fault)).partings]
    if fault != "net.partition":
        (outage,) = faults_of(journal(fault)).outages
        assert outage.until_ms == HEALED_MS + CATCHING_UP_MS

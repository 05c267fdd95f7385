"""Commits of partitions that the coordinator stored for another member."""

from dataclasses import replace

import pytest

from kafka_protocol.errors import Error
from reports.judgement.clients.client_rules.findings import COMMITS_WHAT_IT_OWNS
from reports.judgement.clients.offsets import Offsets
from reports.judgement.run.disturbance import Act
from reports.timing import LEARNED_MS
from tests.recorded.logs import HISTORIES, RECORDINGS, TAPPED
from tests.reports.judgement.clients.test_assignments import blob
from tests.reports.judgement.clients.test_offsets import commit as commit_of
from tests.reports.judgement.contexts import compared, context

KNOWN_MS = 1_000.0 + LEARNED_MS + 10.0  # when the members know the generation of 1 s


def commit(at_ms, offset, client="a", generation=5, partition=0, error=0):
    seen = commit_of(int(at_ms), at_ms, offset, error)
    part = {"partitionIndex": partition, "committedOffset": offset}
    body = {
        "memberId": f"{client}-id", "generationId": generation,
        "topics": [{"name": "t", "partitions": [part]}],
    }  # fmt: skip
    answer = {"topics": [{"name": "t", "partitions": [{**part, "errorCode": error}]}]}
    return replace(seen, client_id=client, request=body, response=answer, id=f"1:{at_ms:.0f}")


def syncs(generation=5, at_ms=1_000.0, **shares):
    """The SyncGroups of a generation, whose leader is the last of the members."""
    whole = [
        {"memberId": f"{name}-id", "assignment": blob(*(("t", n) for n in share))}
        for name, share in shares.items()
    ]
    for name, share in shares.items():
        body = {"memberId": f"{name}-id", "generationId": generation, "assignments": whole}
        seen = replace(commit(at_ms, 0, name), api="SYNC_GROUP", request=body, answered_ms=at_ms)
        yield seen, frozenset(f"t-{n}" for n in share)
        whole = []


def found(*happened, **known):
    """Return the findings about commits and (SyncGroup, share)s, in their order."""
    offsets = Offsets(context(**known))
    for one in happened:
        if isinstance(one, tuple):
            offsets.assigned(*one)
        else:
            assert not [*offsets.committed(one)]
    return [*offsets.findings()]


BOTH = tuple(syncs(a=[1], b=[0]))


def test_it_names_partition_owner_and_the_offset_that_went_back():
    mine = commit(KNOWN_MS, 1_210, "b")
    (row,) = found(
        *BOTH, mine, commit(KNOWN_MS + 10, 1_300), commit(KNOWN_MS + 20, 988),
        commit(KNOWN_MS + 30, 987),
    )  # fmt: skip
    assert row["what"] == (
        "a commits t-0 3 times though b owns it in generation 5; the committed offset went back"
        " from 1,210 to 988 (222 records to read again)"
    )
    shown = (10, 20, 30)
    assert row["requests"] == ",".join(f"1:{KNOWN_MS + ms:.0f}" for ms in shown)
    assert (row["client_id"], row["rule"], row["on_time"]) == (
        "a",
        COMMITS_WHAT_IT_OWNS.name,
        False,
    )


def test_once_may_be_late_on_a_busy_machine():
    (row,) = found(*BOTH, commit(KNOWN_MS, 7))
    assert row["what"] == "a commits t-0 once though b owns it in generation 5"
    assert row["on_time"]


def test_other_partitions_are_named_after_it():
    (row,) = found(*syncs(a=[3], b=[0, 1]), commit(KNOWN_MS, 7), commit(KNOWN_MS, 7, partition=1))
    assert row["what"].endswith("; so it does with t-0")


def test_the_owner_is_that_of_the_generation():
    moved = syncs(6, 9_000.0, a=[0], b=[1])
    (row,) = found(*BOTH, *moved, commit(9_000.0 + KNOWN_MS, 7, "b", generation=6))
    assert "though a owns it in generation 6" in row["what"]


@pytest.mark.parametrize(
    "one",
    [
        commit(KNOWN_MS, 7, "b"),  # its own
        commit(KNOWN_MS - 20, 7),  # it may not know yet
        commit(KNOWN_MS, 7, error=Error.REBALANCE_IN_PROGRESS),  # it was not stored
        commit(KNOWN_MS, 7, generation=4),  # of a generation in which it had it
        commit(KNOWN_MS, 7, partition=2),  # given up, and not given to another (KIP-429)
        commit(KNOWN_MS, 7, "operator", generation=-1),
    ],
)
def test_what_a_member_may_commit(one):
    assert found(*syncs(4, 100.0, a=[0, 2], b=[1]), *BOTH, one) == []


@pytest.mark.parametrize(("until_ms", "excused"), [(900.0, True), (-9_000.0, False)])
def test_a_broken_wire_excuses(until_ms, excused):
    wire = Act("fault", "g", frozenset("a"), -9_999.0, until_ms, "", excuses=True)
    assert len(found(*BOTH, commit(KNOWN_MS, 7), acts=(wire,))) == (not excused)
    other = wire._replace(clients=frozenset("b"))
    assert len(found(*BOTH, commit(KNOWN_MS, 7), acts=(other,))) == 1


def test_the_owner_is_not_blamed_for_going_on_below_a_foreign_offset():
    found(
        *BOTH,
        commit(KNOWN_MS, 100, "b"),
        commit(KNOWN_MS + 9, 900),
        commit(KNOWN_MS + 19, 101, "b"),
    )


@pytest.mark.parametrize("recording", [*RECORDINGS.values(), *HISTORIES.values(), *TAPPED.values()])
def test_true_clients_commit_what_they_own(recording):
    for rows in recording.rows_by_group.values():
        _, heard = compared(rows)
        assert [*heard.offsets.findings()] == []

"""Fetched offsets: those of real runs over a failover, and such as nobody committed last."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from kafka_protocol.apis import OFFSET_FETCH
from kafka_protocol.errors import Error
from kafka_protocol.request_log import printed, typed_of
from reference_coordinator.replay import EpochEvent, ObservedRequest
from reports.judgement.breaches import Breach
from reports.judgement.clients.offsets import (
    KEPT,
    NO_OFFSET,
    Commit,
    Offsets,
    fetched,
    partitions_of,
)
from reports.judgement.coordinators.coordinator_epochs import CoordinatorEpochs
from reports.judgement.group import check_rows
from reports.judgement.log.parsing import LoggedRequest, parse_any, parse_request
from reports.judgement.logged import Chunk, Requests
from reports.judgement.recording import Recording
from reports.judgement.run.disturbance import deletions
from reports.timing import RETENTION_MS
from tests.recorded.logs import FETCHES, RECORDINGS
from tests.reports.judgement.contexts import context

GROUP = "static"
OVER_FAILOVERS = pytest.mark.parametrize("recording", FETCHES.values(), ids=FETCHES)
ALL = pytest.mark.parametrize(
    "recording", [*RECORDINGS.values(), *FETCHES.values()], ids=[*RECORDINGS, *FETCHES]
)
UNSTABLE_OFFSET_COMMIT = 88
OLDER, LAST, UNCOMMITTED, ABSENT = "older", "last", "uncommitted", "absent"
"""Which offset is fetched: one before the last that was committed, that one, one after it, none."""
NOTHING: list[tuple[str, bool]] = []
PROVEN, UNPROVEN = [(Breach.FETCHED_DIFFERS, True)], [(Breach.FETCHED_DIFFERS, False)]


@cache
def requests(recording: Recording) -> Sequence[ObservedRequest]:
    return Requests.of(Chunk.of(recording.rows_by_group[GROUP])).observed


def last_commit(recording: Recording) -> tuple[ObservedRequest, str, int, int]:
    """Find the last commit of a partition; return it, the offset before it, and its own."""
    offsets: dict[str, int] = {}
    found = None
    for seen in requests(recording):
        if seen.api == "OFFSET_COMMIT":
            for name, offset, error in partitions_of(seen):
                if error == 0:
                    if name in offsets:
                        found = seen, name, offsets[name], offset
                    offsets[name] = offset
    assert found is not None
    return found


def fetch(commit: ObservedRequest, name: str, offset: int, after_ms: float) -> ObservedRequest:
    """Return a request for an offset that arrives so long after a commit was answered."""
    topic, _, number = name.rpartition("-")
    partition = {"partitionIndex": int(number), "committedOffset": offset, "errorCode": 0}
    topics = [{"name": topic, "partitions": [partition]}]
    at_ms = commit.answered_ms + after_ms
    response = {"groups": [{"groupId": GROUP, "topics": topics, "errorCode": 0}]}
    return replace(
        commit, id=f"{commit.broker}:1000000", api=OFFSET_FETCH, connection="another",
        earliest_ms=at_ms, at_ms=at_ms, latest_ms=at_ms, answered_ms=at_ms + 1,
        request={}, response=response,
    )  # fmt: skip


def judged(
    recording: Recording, fetches: Sequence[ObservedRequest], seen: Sequence[ObservedRequest] = ()
) -> list[tuple[str, bool]]:
    """Return the kinds of breaches, and whether each is proven."""
    epochs = recording.context.epochs
    found = compared(epochs, seen or requests(recording), fetches, epochs.partition_of(GROUP))
    return [(row["kind"], row["proven"]) for row in found]


def compared(
    epochs: CoordinatorEpochs,
    seen: Sequence[ObservedRequest],
    fetches: Sequence[ObservedRequest],
    partition: int | None,
    **known: Any,
) -> Iterator[dict[str, Any]]:
    offsets = Offsets(context(epochs, **known))
    commit_all(offsets, seen, partition)
    yield from offsets.compare_fetches(fetches, partition)


def commit_all(
    offsets: Offsets, seen: Iterable[ObservedRequest], partition: int | None = None
) -> None:
    for one in seen:
        if one.api == "OFFSET_COMMIT":
            assert not [*offsets.committed(one, partition)]


def recorded_fetches(recording: Recording) -> Sequence[ObservedRequest]:
    return Chunk.of(recording.rows_by_group[GROUP]).fetches.observed


def answered(fetch: ObservedRequest, offset: int | None = None, **errors: int) -> ObservedRequest:
    """Answer a fetch with another offset, or with errors of the group or its partitions."""
    response = json.loads(json.dumps(fetch.response))
    (group,) = response["groups"]
    group["errorCode"] = errors.get("group", 0)
    for topic in group["topics"]:
        for one in topic["partitions"]:
            one["committedOffset"] = one["committedOffset"] if offset is None else offset
            one["errorCode"] = errors.get("partition", 0)
    return replace(fetch, response=response)


@OVER_FAILOVERS
def test_recorded_fetches_give_what_was_committed_last(recording):
    """Eight members begin, and one goes on with both its partitions at the next coordinator."""
    assert len(recorded_fetches(recording)) == 9
    tables = list(check_rows(recording.context, GROUP, recording.rows_by_group[GROUP]))
    assert not [row for name, row in tables if name in ("breaches", "unlogged", "violations")]
    counted = [
        row["count"] for name, row in tables if name == "clients" if row["name"] == "fetched"
    ]
    assert counted == [2]


@OVER_FAILOVERS
@pytest.mark.parametrize("offset", [NO_OFFSET, 0])
def test_a_fetch_after_a_failover_that_gives_less(recording, offset):
    *before, last = recorded_fetches(recording)
    assert judged(recording, [*before, answered(last, offset)]) == PROVEN * 2


@OVER_FAILOVERS
def test_a_killed_broker_may_have_stored_a_commit_that_no_log_has(recording):
    """Such a commit is not lower than those before it, and was made before the broker ended."""
    *_, last = recorded_fetches(recording)
    commits = [one for one in requests(recording) if one.broker != last.broker]
    newer = answered(last, 1_000_000)
    assert judged(recording, [newer], commits) == NOTHING
    assert judged(recording, [newer]) == UNPROVEN * 2
    assert judged(recording, [answered(last, 0)], commits) == PROVEN * 2


@OVER_FAILOVERS
@pytest.mark.parametrize("by_ms", [-5_000.0, -600.0, 600.0, 5_000.0])
def test_over_a_failover_clocks_need_not_agree(recording, by_ms):
    """The first coordinator's clock is off."""
    *_, last = recorded_fetches(recording)
    off = lambda one: {
        name: getattr(one, name) + by_ms for name in ("earliest_ms", "at_ms", "answered_ms")
    }
    seen = [
        one if one.broker == last.broker else replace(one, **off(one))
        for one in requests(recording)
    ]
    epochs = recording.context.epochs
    home = epochs.partition_of(GROUP)
    assert home is not None
    loads = [
        one if one.broker == last.broker else replace(one, at_ms=one.at_ms + by_ms)
        for one in epochs.loads[home]
    ]
    shifted = replace(epochs, loads={home: loads})
    assert not list(compared(shifted, seen, [last], home))
    assert len(list(compared(shifted, seen, [answered(last, 0)], home))) == 2


@ALL
@pytest.mark.parametrize(
    ("after_ms", "which", "errors", "found"),
    [
        (0.1, LAST, {}, NOTHING),
        (0.1, OLDER, {}, PROVEN),
        (0.1, UNCOMMITTED, {}, UNPROVEN),
        (-0.1, LAST, {}, NOTHING),
        (-0.1, OLDER, {}, NOTHING),
        (-0.1, UNCOMMITTED, {}, UNPROVEN),
        # offsets are deleted at the earliest a minute after the group is empty
        (1.0, ABSENT, {}, PROVEN),
        (RETENTION_MS - 1, ABSENT, {}, PROVEN),
        (RETENTION_MS + 1, ABSENT, {}, UNPROVEN),
        # a transaction that is open has UNSTABLE_OFFSET_COMMIT (KIP-447)
        (0.1, ABSENT, {"group": Error.COORDINATOR_LOAD_IN_PROGRESS}, NOTHING),
        (0.1, ABSENT, {"partition": UNSTABLE_OFFSET_COMMIT}, NOTHING),
    ],
)
def test_a_fetch_beside_the_last_commit(recording, after_ms, which, errors, found):
    commit, name, before, last = last_commit(recording)
    offset = {OLDER: before, LAST: last, UNCOMMITTED: 1_000_000, ABSENT: NO_OFFSET}[which]
    asked = answered(fetch(commit, name, offset, after_ms), **errors)
    seen = [one for one in requests(recording) if one.answered_ms <= commit.answered_ms]
    assert judged(recording, [asked], seen) == found


@ALL
@pytest.mark.parametrize(
    ("error", "is_open"),
    [
        (Error.NOT_COORDINATOR, True),
        (Error.REQUEST_TIMED_OUT, True),
        (Error.ILLEGAL_GENERATION, False),
        (Error.FENCED_INSTANCE_ID, False),
    ],
)
def test_a_commit_that_failed_leaves_both_open(recording, error, is_open):
    """One that was refused was never written."""
    commit, name, before, last = last_commit(recording)
    response = json.loads(json.dumps(commit.response))
    for topic in response["topics"]:
        for one in topic["partitions"]:
            one["errorCode"] = int(error)
    failed = replace(commit, response=response)
    seen = [failed if one is commit else one for one in requests(recording)]
    assert judged(recording, [fetch(commit, name, before, 0.1)], seen) == NOTHING
    expected = NOTHING if is_open else UNPROVEN
    assert judged(recording, [fetch(commit, name, last, 0.1)], seen) == expected


@ALL
def test_without_a_commit_before_it_a_fetch_may_give_anything(recording):
    commit, name, *_ = last_commit(recording)
    for offset in (NO_OFFSET, 0, 1_000_000):
        asked = fetch(commit, name, offset, 0.1)
        others = [one for one in requests(recording) if one.api != "OFFSET_COMMIT"]
        assert judged(recording, [asked], others) == NOTHING


FAILOVER = FETCHES["failover-4.3.0"]


def test_what_is_no_more_remembered_is_not_compared():
    commit, name, *_ = last_commit(FAILOVER)
    moved = {number: commit.at_ms + 10 * number for number in range(KEPT + 8)}
    seen = [
        replace(commit, earliest_ms=at_ms, at_ms=at_ms, answered_ms=at_ms + 1, serial=number)
        for number, at_ms in moved.items()
    ]
    asked, late = (fetch(one, name, NO_OFFSET, 1.0) for one in (seen[4], seen[-1]))
    offsets = Offsets(context())
    commit_all(offsets, seen)
    assert not list(offsets.compare_fetches([], None))
    assert len(list(offsets.compare_fetches([asked, late], None))) == 1


def test_a_fetch_waits_for_what_may_come_before_it():
    commit, name, before, _ = last_commit(FAILOVER)
    offsets = Offsets(context())
    asked = fetch(commit, name, before, 0.1)
    commit_all(offsets, [one for one in requests(FAILOVER) if one.at_ms < commit.at_ms])
    assert not list(offsets.compare_fetches([asked], None, asked.answered_ms))
    commit_all(offsets, [commit])
    assert len(list(offsets.compare_fetches([], None, asked.answered_ms + 1))) == 1


def test_an_end_counts_between_the_commit_and_the_fetch_alone():
    commit, name, *_ = last_commit(FAILOVER)
    asked = fetch(commit, name, 1_000_000, 1_000.0)
    for at_ms, found in ((commit.at_ms - 1, 1), (commit.at_ms + 1, 0), (asked.answered_ms + 1, 1)):
        epochs = CoordinatorEpochs(None, of_brokers=[EpochEvent(at_ms, "1", "ended")])
        assert len(list(compared(epochs, [commit], [asked], None))) == found


def test_commits_of_terms_that_no_line_tells_prove_nothing():
    commit, _, before, last = last_commit(FAILOVER)
    other = replace(commit, broker="another", connection="another")
    one = Commit(before, commit, 0, None)
    assert not one.before(other, 3)
    assert not one.after(other, 3)
    assert Commit(last, commit, 0, 2).before(other, 3)


def logged(recording: Recording) -> dict[str, Any]:
    line = next(line for line in recording.lines if line.row.get("api") == OFFSET_FETCH)
    assert line.request is not None
    return line.request


def read(content: dict[str, Any]) -> LoggedRequest:
    """Parse a request's line, fast and slowly."""
    body = printed(content)
    assert parse_request(body) == parse_any(body)
    assert typed_of(body) is not None
    return parse_any(body)


@OVER_FAILOVERS
def test_a_fetch_of_before_kip_709(recording):
    content = json.loads(json.dumps(logged(recording)))
    content["requestHeader"]["requestApiVersion"] = 7
    (group,) = content["request"].pop("groups")
    asked = {"groupId": group["groupId"], "topics": group["topics"]}
    content["request"] = asked | content["request"]
    (answer,) = content["response"].pop("groups")
    content["response"] |= {"topics": answer["topics"], "errorCode": answer["errorCode"]}
    found = read(content)
    assert (found.group, found.error_code, found.readable) == (GROUP, 0, True)
    seen = replace(recorded_fetches(recording)[0], response=json.loads(found.response or ""))
    expected = {
        f"{topic['name']}-{one['partitionIndex']}": one["committedOffset"]
        for topic in answer["topics"]
        for one in topic["partitions"]
    }
    assert dict(fetched(seen)) == expected != {}


@OVER_FAILOVERS
def test_a_fetch_of_several_groups_is_of_none_and_one_that_is_not_whole_is_not_read(recording):
    content = json.loads(json.dumps(logged(recording)))
    of_one = content["request"]["groups"][0]
    content["request"]["groups"] = [{**of_one, "groupId": name, "topics": None} for name in "ab"]
    found = read(content)
    assert (found.group, found.readable) == (None, True)
    body = printed(logged(recording)).replace("committedOffset", "offset")
    assert not parse_request(body).readable


@ALL
@pytest.mark.parametrize(
    ("meant_ms", "after_ms", "which", "found"),
    [
        (10.0, 8.0, ABSENT, PROVEN),
        (10.0, 8.0, LAST, NOTHING),
        (10.0, 11.0, ABSENT, NOTHING),
        (10.0, 11.0, LAST, NOTHING),
        (10.0, 11.0, UNCOMMITTED, UNPROVEN),
        (10.0, 1_100.0, LAST, NOTHING),
        (10.0, 1_120.0, LAST, UNPROVEN),
        (10.0, 1_120.0, ABSENT, NOTHING),
        # a topic that is made again has the offsets committed since
        (-5_000.0, 10.0, LAST, NOTHING),
        (-5_000.0, 10.0, ABSENT, PROVEN),
    ],
)
def test_the_offsets_of_a_topic_go_with_it(recording, meant_ms, after_ms, which, found):
    """A fault deletes it in 100 ms; a coordinator may learn of that 1,000 ms later."""
    commit, name, _, stored = last_commit(recording)
    times = {"meant_at_ms": commit.answered_ms + meant_ms}
    times["injected_at_ms"] = times["meant_at_ms"] + 100.0
    fault = {"name": "topic.delete", "target": name.rpartition("-")[0], **times}
    offset = {LAST: stored, UNCOMMITTED: stored + 1, ABSENT: NO_OFFSET}[which]
    asked = fetch(commit, name, offset, after_ms)
    before = [s for s in requests(recording) if s.answered_ms <= commit.answered_ms]
    epochs = recording.context.epochs

    def breaches(fault: dict[str, Any]) -> list[tuple[str, bool]]:
        deleted = deletions([fault])
        rows = compared(epochs, before, [asked], epochs.partition_of(GROUP), deleted=deleted)
        return [(row["kind"], row["proven"]) for row in rows]

    assert breaches(fault) == found
    of_another_topic = breaches(fault | {"target": f"{fault['target']}-other"})
    if which == LAST:
        assert of_another_topic == NOTHING
    else:
        assert of_another_topic, "as if it were still there"

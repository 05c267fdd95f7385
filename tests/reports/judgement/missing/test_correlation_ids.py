"""Requests that no log has, by the numbers of those that a connection sent before and after."""

import tracemalloc
from collections import defaultdict
from typing import Any

import pytest

from reports.judgement.logged import REQUEST, Chunk
from reports.judgement.missing.correlation_ids import CorrelationIds
from reports.judgement.recording import Recording
from reports.judgement.run.deliveries import COPY
from tests.recorded.logs import FETCHES, RECORDINGS
from tests.reports.judgement.contexts import context

of_wire = pytest.mark.parametrize("group", ["sessions", "fencing", "absent", "failover"])
AT, CLIENT, CONNECTION, API, NUMBER = map(
    REQUEST.index, ("at_ms", "client_id", "connection", "api", "correlation_id")
)
AGE_MS = 300_000.0
Requests = list[tuple[Any, ...]]


def requests(recording: Recording, group: str) -> Requests:
    return list(Chunk.of(recording.rows_by_group[group]).requests)


def longest(logged: Requests) -> Requests:
    """Return the requests of the connection that has the most."""
    by_connection = defaultdict(list)
    for row in logged:
        by_connection[row[CONNECTION]].append(row)
    return max(by_connection.values(), key=len)


def holes(recording: Recording, group: str, logged: Requests, age_ms: float = AGE_MS) -> list[str]:
    members = [one.name for one in recording.run.experiment.members()]
    names = {name: age_ms for one in members for name in (one, f"{one}.duplicate")}
    wire = frozenset() if group in ("static", "dynamic") else frozenset([group])
    ids = CorrelationIds(group, context(scripted=wire, metadata_age_ms=names))
    for row in logged:  # whatever chunks they come in
        ids.add([row])
    return [row["what"].partition(" requests")[0] for row in ids.rows()]


@pytest.mark.parametrize("recording", FETCHES.values(), ids=FETCHES)
@pytest.mark.parametrize("nth", [0, -1])
def test_where_requests_for_offsets_are_logged_none_may_be_missing(recording, nth):
    logged = requests(recording, "static")
    assert holes(recording, "static", logged) == []
    fetches = [row for row in logged[1:] if row[API] == "OFFSET_FETCH"][1:]
    rest = [row for row in logged if row is not fetches[nth]]
    assert holes(recording, "static", rest) == ["1"]


@of_wire
def test_what_a_wire_member_sent_is_missing(recording, group):
    """But for the last request of a connection, which shows no hole."""
    logged = requests(recording, group)
    mine = longest(logged)
    for gone, found in (([], []), (mine[1:2], ["1"]), (mine[1:4], ["3"]), (mine[-1:], [])):
        rest = [row for row in logged if row not in gone]
        assert holes(recording, group, rest) == found


@pytest.mark.parametrize("group", ["static", "sessions"])
def test_what_the_tap_sent_again_has_no_numbers_of_its_own(group):
    recording = RECORDINGS["kafka-4.3.0"]
    logged = requests(recording, group)
    again = [
        (*row[:CONNECTION], f"{row[CONNECTION]}{COPY}", *row[CONNECTION + 1 :])
        for row in longest(logged)[::3]
    ]
    both = sorted([*logged, *again], key=lambda row: row[AT])
    assert holes(recording, group, both) == []


@pytest.mark.parametrize("group", ["static", "dynamic"])
def test_each_request_in_the_midst_of_a_real_clients_connection_is_missing_or_could_be_its_own(
    recording, group
):
    """A client asks for offsets once after a SyncGroup; the second number is a logged request."""
    logged = requests(recording, group)
    assert holes(recording, group, logged) == []
    found, mine = 0, longest(logged)
    for gone in mine[1:-1]:
        found += holes(recording, group, [row for row in logged if row is not gone]) == ["1"]
    syncs = sum(row[API] in ("SYNC_GROUP", "JOIN_GROUP") for row in mine)
    assert found >= len(mine) - 2 - 2 * syncs
    in_a_row = mine[2:4]
    assert holes(recording, group, [row for row in logged if row not in in_a_row])


@pytest.mark.parametrize("group", ["static", "dynamic"])
@pytest.mark.parametrize(("share", "found"), [(0.5, ["1"]), (0.88, ["1"]), (0.92, []), (1.1, [])])
def test_a_real_client_asks_for_metadata_again_once_they_are_old(recording, group, share, found):
    """`share` of the interval has passed, where nine tenths have to."""
    logged = requests(recording, group)
    *_, gone, after, _ = longest(logged)
    first = next(row for row in logged if row[CLIENT] == gone[CLIENT])
    age_ms = (after[AT] - first[AT]) / share
    assert holes(recording, group, [row for row in logged if row is not gone], age_ms) == found


def test_numbers_that_come_out_of_order_are_no_hole(recording):
    logged = requests(recording, "sessions")
    first, second, third = longest(logged)[1:4]
    one, two = logged.index(first), logged.index(second)
    logged[one], logged[two] = second, first
    assert third in logged
    assert holes(recording, "sessions", logged) == []


def test_one_altered_number_costs_no_memory(recording):
    """The requests behind it come with lower numbers, as those do that were overtaken."""
    logged = requests(recording, "sessions")
    mine = longest(logged)
    second = mine[1]
    highest = 2**31 - 1
    altered = tuple(highest if i == NUMBER else value for i, value in enumerate(second))
    tracemalloc.start()
    found = holes(recording, "sessions", [altered if row == second else row for row in logged])
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()
    assert found == [str(highest - mine[0][NUMBER] - 1 - len(mine[2:]))]


def test_of_other_clients_nothing_is_known(recording):
    """Java's consumer numbers the requests of all its connections together."""
    logged = requests(recording, "sessions")[::2]
    ids = CorrelationIds("sessions", context(metadata_age_ms={"another": AGE_MS}))
    ids.add(logged)
    assert list(ids.rows()) == []

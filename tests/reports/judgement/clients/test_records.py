"""What the application saw, in made-up groups: loss, duplicates, disorder, and a true history."""

from collections import Counter
from math import inf
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.records import Records
from reports.judgement.run.disturbance import Deletion
from reports.judgement.run.history import EVENTS, ClientEvent
from tests.reports.judgement.contexts import context

POLL_MS = 5_000
LOST, AGAIN, ORDER, GIVEN_UP = (
    "loses-no-record", "begins-at-its-commit", "keeps-order", "stops-when-given-up",
)  # fmt: skip


class Group:
    """A group that reads partition o-0; each step is 2 s after the one before."""

    def __init__(self, **known: Any) -> None:
        self.now_ms = 0.0
        self.records = Records(context(**known), "g")

    def says(self, client: str, name: str, *ranges: tuple[int, int], **more: Any) -> "Group":
        """A client says something of o-0."""
        self.now_ms += 2_000
        noted = tuple(("o-0", *one) for one in ranges)
        partitions = frozenset({"o-0"} if name in ("assigned", "revoked", "lost") else ())
        event = ClientEvent(
            self.now_ms, EVENTS.index(name), client, partitions, ranges=noted, **more
        )
        self.records.add((), [event], -inf)
        return self

    def asks(self, client: str, api: str, error: int = 0, offset: int = 0) -> "Group":
        """A client sends a request, which is answered at once."""
        self.now_ms += 2_000
        one = {"partitionIndex": 0, "committedOffset": offset, "errorCode": error}
        body = {
            "memberId": "" if client == "operator" else f"{client}-id",
            "rebalanceTimeoutMs": POLL_MS,
            "topics": [{"name": "o", "partitions": [one]}],
        }
        at = (self.now_ms,) * 4
        seen = ObservedRequest(f"1:{self.now_ms:.0f}", "1", api, 5, client, "c", *at, body, body)
        self.records.add([(seen, error)], (), -inf)
        return self

    def takes(self, client: str, offset: int) -> "Group":
        """A client is assigned o-0, and begins at an offset; -1 if none is stored."""
        self.asks(client, "JOIN_GROUP").asks(client, "SYNC_GROUP").says(client, "assigned")
        return self.asks(client, "OFFSET_FETCH", offset=offset)

    def commits(self, client: str, offset: int) -> "Group":
        """A client commits o-0 and says so."""
        return self.asks(client, "OFFSET_COMMIT", offset=offset).says(client, "committed")

    def end(self) -> tuple[dict[str, int], dict[tuple[str, str], str]]:
        """Return the number of records by what became of them, and the findings."""
        counts, found = Counter[str](), dict[tuple[str, str], str]()
        for table, row in self.records.end():
            if table == "records":
                counts[row["what"]] += row["records"]
            else:
                found[row["client_id"], row["rule"]] = row["what"]
        return dict(counts), found


def moved(**known: Any) -> Group:
    """Member a processed 0 to 9 and committed 5 as o-0 went to b."""
    group = Group(**known).takes("a", -1).says("a", "processed", (0, 9)).commits("a", 5)
    return group.says("a", "revoked").takes("b", 5)


def test_records_since_the_last_commit_may_be_processed_twice():
    counts, found = moved().says("b", "processed", (5, 19)).commits("b", 20).end()
    assert (counts, found) == ({"processed": 25, "twice": 5}, {})


def test_records_before_the_offset_at_which_a_member_began_may_not():
    counts, found = moved().says("b", "processed", (2, 19)).end()
    assert counts == {"processed": 28, "twice": 5, "again": 3}
    assert found == {
        ("b", AGAIN): "b processes records 2 to 4 of o-0 again, though it began at the committed"
        " offset 5: 3 twice"
    }


def test_a_member_that_asks_for_no_offset_has_the_last_commit_to_begin_at():
    group = Group().takes("a", -1).says("a", "processed", (0, 9)).commits("a", 10)
    group.asks("b", "SYNC_GROUP").says("b", "assigned").says("b", "processed", (0, 9))
    counts, found = group.end()
    assert (counts["again"], [*found]) == (10, [("b", AGAIN)])


def test_a_member_that_asks_for_its_offset_later_did_not_begin_there():
    group = moved().asks("b", "OFFSET_FETCH", offset=10)
    assert group.says("b", "processed", (5, 9)).end()[1] == {}


def skipped() -> Group:
    """Member a committed 10, and processed 0 to 6; b went on from 10."""
    group = Group().takes("a", 0).says("a", "processed", (0, 6)).commits("a", 10)
    return group.says("a", "killed").takes("b", 10).says("b", "processed", (10, 19))


def test_what_was_committed_past_and_processed_by_nobody_is_lost():
    counts, found = skipped().commits("b", 20).end()
    assert counts == {"processed": 17, "lost": 3}
    assert found == {
        ("a", LOST): "a commits o-0 up to 10; no member processed records 7 to 9: 3 lost"
    }


@pytest.mark.parametrize("offset", [1_000, 20])
def test_no_record_is_lost_that_a_member_processed_later_or_that_nobody_knows(offset):
    counts, found = skipped().says("b", "processed", (7, 9)).commits("b", offset).end()
    assert ("lost" not in counts, found.keys() - {("b", ORDER)}) == (True, set())


def test_a_group_may_begin_at_the_end_of_its_topic():
    group = Group().takes("a", -1).says("a", "processed", (100, 109)).commits("a", 110)
    assert group.end() == ({"processed": 10}, {})


def test_an_operator_may_skip_records():
    group = moved().says("b", "processed", (5, 19)).asks("operator", "OFFSET_COMMIT", offset=50)
    group.takes("b", 50).says("b", "processed", (50, 59)).commits("b", 60)
    assert group.end()[1] == {}


def test_a_process_that_died_unseen_may_have_noted_less_than_it_did():
    group = Group().takes("a", -1).says("a", "processed", (0, 6))
    group.asks("a", "OFFSET_COMMIT", offset=10).says("a", "created")
    assert group.takes("a", 10).says("a", "processed", (10, 19)).end() == ({"processed": 17}, {})


def test_nobody_knows_what_a_member_without_notes_processed():
    group = moved().says("b", "revoked").takes("c", 10).commits("c", 15).says("c", "closed")
    counts, found = group.takes("b", 15).says("b", "processed", (15, 19)).end()
    assert (counts, found) == ({"processed": 15, "unnoted": 5}, {})


def test_what_a_member_without_notes_passed_is_one_range_however_often_it_commits():
    group = moved().says("b", "revoked").takes("c", 10)
    for offset in (11, 14, 15):
        group.commits("c", offset)
    group.takes("b", 15).says("b", "processed", (15, 19))
    rows = [row for table, row in group.records.end() if table == "records"]
    unnoted = [(row["first"], row["last"]) for row in rows if row["what"] == "unnoted"]
    assert unnoted == [(10, 14)]


def test_a_lower_offset_after_a_higher_one_is_out_of_order():
    group = Group().takes("a", -1).says("a", "processed", (0, 3), (6, 9))
    counts, found = group.says("a", "processed", (4, 5), (10, 12)).end()
    assert counts == {"processed": 13, "out_of_order": 2}
    assert found == {
        ("a", ORDER): "a processes records 4 to 5 of o-0 after 9, without a new assignment between"
    }


def test_an_application_may_seek_back_to_try_records_again():
    """As Spring's DefaultErrorHandler does, without a new assignment."""
    group = Group().takes("a", -1).says("a", "processed", (0, 9))
    counts, found = group.says("a", "processed", (7, 12)).end()
    assert (counts, found) == ({"processed": 16, "twice": 3}, {})


@pytest.mark.parametrize("anew", ["assigned", "created", "fetch"])
def test_a_member_that_begins_anew_may_go_back(anew):
    group = Group().takes("a", -1).says("a", "processed", (0, 3), (6, 9))
    if anew == "fetch":
        group.asks("a", "SYNC_GROUP").asks("a", "OFFSET_FETCH", offset=4)
    else:
        group.says("a", anew)
    assert group.says("a", "processed", (4, 12)).end()[1] == {}


@pytest.mark.parametrize(("event", "how"), [("revoked", "gave it up"), ("lost", "lost it")])
def test_no_record_is_processed_after_the_give_up(event, how):
    group = Group().takes("a", -1).says("a", "processed", (0, 9)).says("a", event)
    counts, found = group.says("a", "processed", (10, 11)).end()
    assert counts == {"processed": 12, "after_given_up": 2}
    what = f"a processes records 10 to 11 of o-0, though it {how} 2,000 ms before"
    assert found == {("a", GIVEN_UP): what}
    group = Group().takes("a", -1).says("a", event).says("a", "assigned")
    assert group.says("a", "processed", (0, 9)).end()[1] == {}


@pytest.mark.parametrize(
    ("wait_ms", "owner", "found"),
    [(POLL_MS, "b", True), (0, "b", False), (POLL_MS, "a", False)],
)
def test_a_member_that_is_out_stops_once_it_had_to_poll(wait_ms, owner, found):
    """It learns in its next poll that it was fenced; until then it processes what it has."""
    group = Group().takes("a", -1).says("a", "processed", (0, 9))
    group.says(owner, "assigned").asks("a", "HEARTBEAT", Error.FENCED_INSTANCE_ID)
    group.now_ms += wait_ms
    group.says("a", "processed", (10, 12))
    assert (("a", GIVEN_UP) in group.end()[1]) is found


def test_a_record_with_a_number_that_was_not_due_is_no_fault_of_its_reader():
    group = Group().says("a", "misnumbered", (40, 40))
    assert group.end() == ({"misnumbered": 1}, {})


def test_notes_of_one_instant_have_no_order():
    """The history's times of a program are whole ms, and its lines are sorted."""
    group = Group().takes("a", -1).says("a", "processed", (0, 5))
    group.says("a", "processed", (820, 820))
    group.now_ms -= 2_000
    group.says("a", "processed", (6, 818))
    assert group.end()[1] == {}
    group.says("a", "processed", (819, 821))
    assert [*group.end()[1]] == [("a", ORDER)]


def test_a_killed_member_may_have_noted_less_than_the_load_heard_of():
    """Of a lost worker's members the load says `killed`, as of when it heard of them last."""
    group = Group().takes("a", -1).says("a", "processed", (0, 6))
    group.asks("a", "OFFSET_COMMIT", offset=10).says("a", "killed").takes("b", 10)
    assert group.says("b", "processed", (10, 19)).end()[1] == {}


def test_a_deleted_topic_begins_anew():
    group = moved(deleted={"o": Deletion(0, inf)}).says("b", "processed", (0, 3), (0, 9))
    assert group.end() == ({}, {})


def test_a_line_that_stands_twice_counts_once():
    group = Group().takes("a", -1).says("a", "processed", (0, 9))
    group.now_ms -= 2_000
    assert group.says("a", "processed", (0, 9)).end() == ({"processed": 10}, {})

"""Chains of generations: what lines tell of a rebalance, where the logs have gaps."""

from collections.abc import Iterator
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.incident.group_incident import row_about
from reports.incident.lines.form import Form
from reports.incident.lines.reader import Line, Reader
from reports.incident.rebalances import (
    AGAIN,
    ASSIGNED,
    BEFORE,
    EMPTY,
    IN_GAP,
    OPEN,
    UNASSIGNED,
)  # fmt: skip

UUID = "-11111111-1111-4111-8111-11111111111{}"
OFFSETS = "(__consumer_offsets-49)"


def preparing(at: str, old: int, reason: str, broker: int = 1) -> str:
    state = "PreparingRebalance"
    what = f"Preparing to rebalance group g1 in state {state} with old generation {old} {OFFSETS}"
    return written(at, f"{what} (reason: {reason})", broker)


def stabilized(at: str, generation: int, broker: int = 1) -> str:
    return written(
        at, f"Stabilized group g1 generation {generation} {OFFSETS} with 2 members", broker
    )


def assigned(at: str, generation: int, static: int = 0, leader: str = "app") -> str:
    what = f"Assignment received from leader {leader}{UUID.format(1)} for group g1 for generation"
    return written(
        at, f"{what} {generation}. The group has 2 members, {static} of which are static."
    )


def written(at: str, message: str, broker: int = 1) -> str:
    logger = "kafka.coordinator.group.GroupCoordinator"
    return f"[2026-01-05 10:{at}] INFO [GroupCoordinator {broker}]: {message} ({logger})"


def joins(member: str) -> str:
    return f"Adding new member {member} with group instance id None; client reason: not provided"


def reported(texts: list[str]) -> dict[str, list[dict[str, object]] | dict[str, object]]:
    reader = Reader(Form(), ZoneInfo("UTC"))
    lines = [line for text in texts for line in reader.read(text).lines]
    assert len(lines) == len(texts)
    row = row_about("g1", lines, None)
    return row | {"incident": msgspec.json.decode(row["incident"])}


APP, APP_TOO = (f"app{UUID.format(number)}" for number in (1, 2))
FOUR = preparing("00:00,000", 4, joins(APP))
NEWCOMER = (
    f"Dynamic member with unknown member id joins group g1 in Stable state. Created a new member id"
    f" {APP_TOO} and request the member to rejoin with this id."
)
COMPLETING = f"Updating metadata for member {APP} during CompletingRebalance; client reason: x"
REJOINS = f"Leader {APP} re-joining group during Stable; client reason: during CompletingRebalance"
EXPIRED = f"removing member {APP} on heartbeat expiration"
JOINS = f"Adding new member {APP_TOO} with group instance id Some(two); client reason: not provided"
JOINS_COMPLETING = written(
    "00:09,000",
    "Static member with groupInstanceId=two and unknown member id joins group g1 in"
    f" CompletingRebalance state. Created a new member id {APP_TOO} for this member and add to the"
    " group.",
)
ASKS_COMPLETING = NEWCOMER.replace("Stable", "CompletingRebalance")
EMPTY_6 = written("02:00,000", f"Group g1 with generation 6 is now empty {OFFSETS}")
LOADED = "Loading group metadata for g1 with generation 4"
CASES = {
    "no assignment": ([FOUR, stabilized("00:03,000", 5)], [(None, UNASSIGNED, "new_member")]),
    "another broker at a higher generation": (
        [
            preparing("00:00,000", 69, f"Leader {APP} re-joining group during Stable"),
            written("05:00,000", NEWCOMER, 2), preparing("05:00,002", 70, joins(APP_TOO), 2),
        ],
        [(None, OPEN, "leader_rejoin"), (None, OPEN, "new_member")],
    ),
    "a later generation": (
        [FOUR, stabilized("10:03,000", 9), assigned("10:03,010", 9)],
        [(None, OPEN, "new_member"), (None, ASSIGNED, IN_GAP)],
    ),
    "the same from another broker": (
        [FOUR, stabilized("00:03,000", 5, 2)],
        [(None, OPEN, "new_member"), (None, UNASSIGNED, IN_GAP)],
    ),
    "the group is loaded in between": (
        [FOUR, written("00:01,000", LOADED), stabilized("00:03,000", 5)],
        [(None, OPEN, "new_member"), (None, UNASSIGNED, IN_GAP)],
    ),
    "no beginning": (
        [stabilized("00:03,000", 5), assigned("00:03,010", 5)], [(None, ASSIGNED, BEFORE)],
    ),
    "two assignments of one generation": (
        [FOUR, assigned("00:03,000", 5), assigned("00:04,000", 5)],
        [(3_000.0, ASSIGNED, "new_member")],
    ),
    "the group is empty later": (
        [FOUR, assigned("00:03,000", 5), EMPTY_6],
        [(3_000.0, ASSIGNED, "new_member"), (None, EMPTY, IN_GAP)],
    ),
    "a group of the same name, created after it was empty": (
        [FOUR, written("00:01,000", f"Group g1 with generation 5 is now empty {OFFSETS}"),
         stabilized("10:00,000", 5)],
        [(1_000.0, EMPTY, "new_member"), (None, UNASSIGNED, IN_GAP)],
    ),
    "and of which the first expired": (
        [EMPTY_6,
         written("03:00,000", "Group g1 transitioned to Dead in generation 6"),
         EMPTY_6.replace("02:00", "04:00")],
        [(None, EMPTY, BEFORE), (None, EMPTY, IN_GAP)],
    ),
    "its former coordinator finds it dead meanwhile": (
        [FOUR, written("00:01,000", LOADED, 2), preparing("00:02,000", 4, joins(APP), 2),
         written("00:03,000", "Group g1 is dead, skipping rebalance stage"),
         stabilized("00:04,000", 5, 2), preparing("00:05,000", 5, COMPLETING, 2)],
        [(None, OPEN, "new_member"), (3_000.0, AGAIN, "new_member"),
         (None, OPEN, "member_metadata")],
    ),
    "a member joins before its assignment": (
        [FOUR, stabilized("00:03,000", 5), JOINS_COMPLETING, preparing("00:09,001", 5, JOINS)],
        [(9_001.0, AGAIN, "new_member"), (None, OPEN, "new_member")],
    ),
    "nothing tells whether the assignment came before the next one": (
        [FOUR, stabilized("00:03,000", 5), preparing("09:00,000", 5, EXPIRED)],
        [(None, AGAIN, "new_member"), (None, OPEN, "session_expired")],
    ),
    "a member that asked for an id before its assignment joins after it, maybe": (
        [FOUR, stabilized("00:03,000", 5), written("00:09,000", ASKS_COMPLETING),
         preparing("00:09,001", 5, joins(APP_TOO))],
        [(None, AGAIN, "new_member"), (None, OPEN, "new_member")],
    ),
    "its assignment came, and is not in the logs": (
        [FOUR, stabilized("00:03,000", 5), preparing("09:00,000", 5, REJOINS)],
        [(None, UNASSIGNED, "new_member"), (None, OPEN, "leader_rejoin")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_rebalance_has_lines_of_its_generation_and_coordinator_alone(name: str) -> None:
    texts, expected = CASES[name]
    rows = reported(texts)["rebalances"]
    assert [(row["took_ms"], row["ending"], row["reason"]) for row in rows] == expected


def test_who_joins_at_the_next_coordinator_counts_for_its_rebalance() -> None:
    found = reported(CASES["another broker at a higher generation"][0])
    assert [row["came"] for row in found["rebalances"]] == [0, 1]
    assert [one["broker"] for one in found["incident"]["coordinators"]] == ["1", "2"]


def test_what_is_missing_is_counted_and_named() -> None:
    incident = reported(CASES["a later generation"][0])["incident"]
    (gap,) = incident["missing"]
    assert (gap["from_generation"], gap["until_generation"], gap["rebalances"]) == (5, 8, 3)
    assert gap["before_ms"] - gap["after_ms"] == 603_000.0
    assert (incident["rebalances"], incident["rebalances_missing"]) == (2, 3)
    assert gap["what"] == "generations 5 to 8 are not in the logs: 3 more rebalances within 10 min"
    assert incident["storms"] == []


def test_what_a_coordinator_began_that_ended_is_none_of_the_next_ones() -> None:
    """The next one loads generation 4, so that two rebalances led it to generation 6."""
    loads, again = written("01:00,000", LOADED, 2), preparing("05:00,000", 6, joins(APP_TOO), 2)
    assert reported([FOUR, loads, again])["incident"]["rebalances_missing"] == 2


def test_what_is_missing_counts_towards_a_storm() -> None:
    """Four rebalances are in the logs, and six must have begun between two of them."""
    texts = [
        preparing("00:00,000", 1689, joins(APP)), stabilized("00:00,005", 1690),
        preparing("00:10,000", 1690, joins(APP)), stabilized("00:10,005", 1691),
        preparing("00:20,000", 1697, joins(APP)), stabilized("00:20,005", 1698),
        preparing("00:22,000", 1698, joins(APP)),
    ]  # fmt: skip
    incident = reported(texts)["incident"]
    (gap,), (storm,) = incident["missing"], incident["storms"]
    assert storm["rebalances"] == 10
    assert storm["until_ms"] - storm["from_ms"] == 22_000.0
    assert gap["what"] == (
        "generations 1692 to 1697 are not in the logs: 10 rebalances in 22 s, a storm"
    )


def test_no_storm_that_may_not_have_been() -> None:
    """Six are missing in 9 min: no five of them need have begun in 5 min."""
    texts = [stabilized("00:00,000", 5), preparing("09:00,000", 11, joins(APP))]
    incident = reported(texts)["incident"]
    assert (incident["rebalances_missing"], incident["storms"]) == (6, [])


def test_a_group_that_is_created_again_begins_another_chain() -> None:
    incident = reported([stabilized("00:00,000", 9), preparing("09:00,000", 0, joins(APP))])
    (reset,) = incident["incident"]["resets"]
    assert (reset["from_generation"], reset["to_generation"]) == (9, 0)
    assert incident["incident"]["missing"] == []


FAILED_WRITE = (
    f"Error NOT_COORDINATOR when storing group assignment during SyncGroup (member: {APP})"
)
GONE = written("00:00,000", f"Member {APP} in group g1 has failed, removing it from the group")
KINDS = {
    "no line tells it": (
        [preparing("00:00,000", 3, EXPIRED), assigned("00:02,000", 4, 2, "b")], None,
    ),
    "all of its generation were static": (
        [assigned("00:00,000", 3, 2, "b"), preparing("00:10,000", 3, EXPIRED)], True,
    ),
    "none of its generation was": (
        [assigned("00:00,000", 3, 0, "b"), preparing("00:10,000", 3, EXPIRED)], False,
    ),
    "one of its generation was": (
        [assigned("00:00,000", 3, 1, "b"), preparing("00:10,000", 3, EXPIRED)], None,
    ),
    "all of another were": (
        [assigned("00:00,000", 3, 2, "b"), preparing("00:10,000", 5, EXPIRED)], None,
    ),
    "its client came as dynamic": (
        [GONE, preparing("00:10,000", 3, joins(APP_TOO))], False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_static_or_not_or_not_known(name: str) -> None:
    texts, expected = KINDS[name]
    found = reported(texts)
    (static,) = [row["static"] for row in found["members"] if row["client"] == "app"]
    assert static is expected
    assert found["incident"]["would_be_static"]["unknown"] == (expected is None)


def test_nobody_began_what_names_nobody() -> None:
    """A member whose session expired just before has nothing to do with a write that failed."""
    fields = {"generation": "9", "reason": "assignment_error", "group": "g1"}
    failed = Line(1.0, "1", 49, "preparing", "g1", fields, "")
    gone = Line(0.0, "1", 49, "session_expired", "g1", {"member": APP}, "")
    row = row_about("g1", [gone, failed], None)
    assert [one["clients"] for one in row["rebalances"]] == [""]


@st.composite
def chains(draw: st.DrawFn, brokers: int = 1) -> list[Line]:
    """All lines of a group about its rebalances, by coordinators one after another."""
    lines: list[Line] = []
    at_ms, generation = 0.0, draw(st.integers(0, 5))

    def write(template: str, broker: int) -> None:
        nonlocal at_ms
        at_ms += draw(st.sampled_from([10.0, 4_000.0, 900_000.0]))
        is_unassigned = bool(lines) and lines[-1].template == "stabilized"
        reason = draw(st.sampled_from(["leave", "static_replaced"])) if is_unassigned else "leave"
        fields = {"generation": str(generation), "reason": reason}
        lines.append(Line(at_ms, str(broker), 0, template, "g1", fields, ""))

    for broker in range(brokers):
        if broker:
            generation -= lines[-1].template == "stabilized"  # its record is not written
            write("group_loaded", broker)
        for _ in range(draw(st.integers(1, 6))):
            write("preparing", broker)
            if draw(st.booleans()) and brokers - 1 > broker:
                break  # the coordinator ends here
            generation += 1
            phases = draw(
                st.sampled_from([("stabilized", "assignment"), ("stabilized",), ("empty",)])
            )
            for phase in phases:
                write(phase, broker)
    return lines


def durations(lines: list[Line]) -> Iterator[tuple[float, float]]:
    """Yield when each rebalance began, and how long it took, from all of its lines."""
    for begun, *rest in (lines[place:] for place in range(len(lines))):
        if begun.template == "preparing":
            for line in rest:
                unassigned = line.fields["reason"] == "static_replaced"
                if line.template in ("assignment", "empty") or (
                    unassigned and line.template == "preparing"
                ):
                    yield begun.at_ms, line.at_ms - begun.at_ms
                if line.template != "stabilized":
                    break


def some(lines: list[Line], kept: list[bool]) -> list[Line]:
    return [line for line, keep in zip(lines, kept, strict=False) if keep]


KEPT = st.lists(st.booleans(), min_size=100, max_size=100).filter(any)


@given(chains(3), KEPT)
def test_no_rebalance_lasts_across_what_is_not_there(lines: list[Line], kept: list[bool]) -> None:
    if left := some(lines, kept):
        rows = row_about("g1", left, None)["rebalances"]
        took = {(row["at_ms"], row["took_ms"]) for row in rows if row["took_ms"] is not None}
        assert took <= {*durations(lines)}


@given(chains(), KEPT)
def test_what_is_there_and_what_is_missing_are_all(lines: list[Line], kept: list[bool]) -> None:
    if left := some(lines, kept):
        ends = (left[0], left[-1])
        first, last = (
            int(one.fields["generation"]) + (one.template == "preparing") for one in ends
        )
        incident = msgspec.json.decode(row_about("g1", left, None)["incident"])
        assert incident["rebalances"] + incident["rebalances_missing"] == last - first + 1


@given(chains(3))
def test_all_lines_give_all_rebalances(lines: list[Line]) -> None:
    row = row_about("g1", lines, None)
    begun = [line.at_ms for line in lines if line.template == "preparing"]
    assert [one["at_ms"] for one in row["rebalances"]] == begun
    took = {
        (one["at_ms"], one["took_ms"]) for one in row["rebalances"] if one["took_ms"] is not None
    }
    assert took == {*durations(lines)}
    assert msgspec.json.decode(row["incident"])["missing"] == []

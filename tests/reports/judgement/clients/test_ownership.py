"""Histories with known results: the owner of each partition, and the stops."""

import random
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest

from reports.judgement.clients import ownership
from reports.judgement.run.history import EVENTS, ClientEvent
from scenarios.setup import DUPLICATE
from tests.reports.judgement.contexts import compared

Row = dict[str, Any]


class Scenario(NamedTuple):
    """Events as (s, member, event, partitions), and what comes of them.

    Of each interval of ownership the columns `of` are given; of each stop its member, when it
    began in s, how long it lasted in ms, its partitions, and how it ended.
    """

    events: tuple[tuple[Any, ...], ...]
    of: str = "member"
    intervals: list[tuple[Any, ...]] | None = None
    stops: list[tuple[str, float, float, int, str]] | None = None


SCENARIOS = {
    "an eager group of three that one leaves": Scenario(
        (
            (0, "a", "created"), (0, "b", "created"), (0, "c", "created"),
            (1, "a", "assigned", 0, 1), (1, "b", "assigned", 2, 3), (1, "c", "assigned", 4, 5),
            (5, "c", "closing"), (5.001, "c", "revoked", 4, 5), (5.01, "c", "closed"),
            (5.1, "a", "revoked", 0, 1), (5.3, "b", "revoked", 2, 3),
            (5.5, "a", "assigned", 0, 1, 2), (5.6, "b", "assigned", 3, 4, 5),
            (9, "b", "closing"),
        ),
        "partition member from until ended_as moved unowned_ms overlap_ms",
        [
            ("o-0", "a", 1.0, 5.1, "revoked", False, 0.0, 0.0),
            ("o-0", "a", 5.5, 9.0, "open", False, 400.0, 0.0),
            ("o-1", "a", 1.0, 5.1, "revoked", False, 0.0, 0.0),
            ("o-1", "a", 5.5, 9.0, "open", False, 400.0, 0.0),
            ("o-2", "b", 1.0, 5.3, "revoked", False, 0.0, 0.0),
            ("o-2", "a", 5.5, 9.0, "open", True, 200.0, 0.0),
            ("o-3", "b", 1.0, 5.3, "revoked", False, 0.0, 0.0),
            ("o-3", "b", 5.6, 9.0, "closed", False, 300.0, 0.0),
            ("o-4", "c", 1.0, 5.0, "closed", False, 0.0, 0.0),
            ("o-4", "b", 5.6, 9.0, "closed", True, 600.0, 0.0),
            ("o-5", "c", 1.0, 5.0, "closed", False, 0.0, 0.0),
            ("o-5", "b", 5.6, 9.0, "closed", True, 600.0, 0.0),
        ],
        [("a", 5.1, 400.0, 2, "assigned"), ("b", 5.3, 300.0, 2, "assigned")],
    ),
    "a static member that comes back has moved nothing and stopped nobody": Scenario(
        (
            (0, "s", "created"), (1, "s", "assigned", 0),
            (5, "s", "closing"), (5, "s", "revoked", 0), (5.1, "s", "closed"),
            (7, "s", "created"), (7.2, "s", "assigned", 0), (9, "s", "closing"),
        ),
        "member moved unowned_ms ended_as",
        [("s", False, 0.0, "closed"), ("s", False, 2200.0, "closed")],
        [],
    ),
    "a cooperative member that keeps partitions does not stop": Scenario(
        (
            (0, "a", "created"), (1, "a", "assigned", 0, 1, 2, 3), (4, "b", "created"),
            (5, "a", "revoked", 2, 3), (5.2, "a", "assigned"), (5.4, "b", "assigned", 2, 3),
            (9, "b", "closing"),
        ),
        "partition member moved unowned_ms",
        [
            ("o-0", "a", False, 0.0), ("o-1", "a", False, 0.0),
            ("o-2", "a", False, 0.0), ("o-2", "b", True, 400.0),
            ("o-3", "a", False, 0.0), ("o-3", "b", True, 400.0),
        ],
        [],
    ),
    "a cooperative member that keeps nothing stops until its assignment": Scenario(
        (
            (0, "a", "created"), (1, "a", "assigned", 0), (2, "a", "assigned", 1),
            (5, "a", "revoked", 0), (6, "a", "revoked", 1), (6.5, "a", "assigned"),
            (7, "a", "revoked"), (8, "a", "assigned", 0),
        ),
        stops=[("a", 6.0, 500.0, 1, "assigned")],
    ),
    "two owners overlap, and an identity moves nothing to itself": Scenario(
        (
            (0, "s", "created"), (1, "s", "assigned", 0),
            (4, "s.duplicate", "created"), (5, "s.duplicate", "assigned", 0),
            (7, "s", "fenced", 0), (7, "s", "closing"), (7.1, "s", "closed"),
            (9, "s.duplicate", "killed", 0), (10, "s", "created"), (10.3, "s", "assigned", 0),
        ),
        "member moved overlap_ms overlaps unowned_ms ended_as",
        [
            ("s", False, 0.0, None, 0.0, "fenced"),
            ("s.duplicate", False, 2000.0, "s", 0.0, "killed"),
            ("s", False, 0.0, None, 1300.0, "open"),
        ],
        [],
    ),
    "an evicted member overlaps until it learns, and is stopped from then on": Scenario(
        (
            (0, "a", "created"), (1, "a", "assigned", 0), (1, "b", "assigned", 1),
            (8, "b", "assigned", 0), (9, "a", "lost", 0), (9.5, "a", "assigned", 2),
        ),
        "partition member moved overlap_ms overlaps",
        [
            ("o-0", "a", False, 0.0, None), ("o-0", "b", True, 1000.0, "a"),
            ("o-1", "b", False, 0.0, None), ("o-2", "a", False, 0.0, None),
        ],
        [("a", 9.0, 500.0, 1, "assigned")],
    ),
    "an overlap is with the member that still owns the partition": Scenario(
        (
            (1, "z", "assigned", 0), (2, "b", "assigned", 0), (3, "b", "revoked", 0),
            (4, "c", "assigned", 0), (9, "z", "lost", 0), (9, "c", "closing"),
        ),
        "member overlap_ms overlaps moved",
        [("z", 0.0, None, False), ("b", 1000.0, "z", True), ("c", 5000.0, "z", True)],
    ),
    "an interval has the way it ended": Scenario(
        (
            *((1, member, "assigned", number) for number, member in enumerate("abcdef")),
            (5, "a", "killed", 0), (5, "b", "fenced", 1), (5.1, "b", "closed"),
            (5, "c", "lost", 2), (5, "d", "closed", 3), (6, "e", "created"), (8, "a", "created"),
        ),
        "member until ended_as",
        [
            ("a", 5.0, "killed"), ("b", 5.0, "fenced"), ("c", 5.0, "lost"), ("d", 5.0, "closed"),
            ("e", 6.0, "vanished"), ("f", 8.0, "open"),
        ],
    ),
    "a stop lasts no longer than the client": Scenario(
        (
            (0, "a", "created"), (1, "a", "assigned", 0), (5, "a", "revoked", 0),
            (5.25, "a", "killed"), (7, "a", "created"), (8, "a", "assigned", 0),
            (8.5, "a", "revoked", 0), (9, "b", "created"),
        ),
        stops=[("a", 5.0, 250.0, 1, "killed"), ("a", 8.5, 500.0, 1, "open")],
    ),
    "a fenced response is no stop": Scenario(
        ((1, "a", "assigned", 0), (5, "a", "lost", 0), (5.1, "a", "fenced")),
        stops=[],
    ),
    "simultaneous events are in causal order": Scenario(
        (
            (1, "a", "assigned", 0), (5, "a", "assigned", 0), (5, "a", "created"),
            (5, "a", "closed"), (5, "a", "revoked", 0), (5, "a", "closing"), (8, "a", "closing"),
        ),
        "from until ended_as",
        [(1.0, 5.0, "closed"), (5.0, 8.0, "closed")],
        [],
    ),
    "what one member is given at one instant has an order": Scenario(
        ((5, "a", "assigned", 0, 1, 2), (6, "a", "revoked", 0, 1), (6, "a", "revoked", 2)),
        stops=[("a", 6.0, 0.0, 1, "open")],
    ),
    "what a member gives up and never had counts for nothing later": Scenario(
        (
            (1, "a", "revoked", 7), (1, "a", "assigned", 0, 1), (2, "a", "revoked", 0),
            (3, "a", "assigned"),
        ),
        stops=[("a", 1.0, 0.0, 1, "assigned")],
    ),
    "an event that stands twice in the history counts once": Scenario(
        2 * ((1, "a", "assigned", 0), (2, "a", "revoked", 0)),
        "member until ended_as",
        [("a", 2.0, "revoked")],
    ),
}  # fmt: skip


def rows_of(events: Iterable[ClientEvent]) -> dict[str, list[Row]]:
    """Return the rows of `ownership.TABLES` of a group without requests, times in s."""
    _, clients = compared((), events)
    found: dict[str, list[Row]] = {name: [] for name in ownership.TABLES}
    for name, row in clients.owners.rows():
        times = {at.removesuffix("_ms"): row[at] / 1_000 for at in ("from_ms", "until_ms", "at_ms")
                 if at in row}  # fmt: skip
        found[name].append(row | times)
    return found


def events_of(scenario: Scenario) -> list[ClientEvent]:
    return [
        ClientEvent(at_s * 1e3, EVENTS.index(event), member, frozenset(f"o-{n}" for n in numbers))
        for at_s, member, event, *numbers in scenario.events
    ]


def columns(rows: Iterable[Row], names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names.split()) for row in rows]


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_owners_and_stops_of_a_history(scenario):
    events = events_of(scenario)
    tables = rows_of(events)
    if scenario.intervals is not None:
        assert columns(tables["ownership"], scenario.of) == scenario.intervals
    if scenario.stops is not None:
        names = "member from stopped_ms partitions ended_as"
        assert columns(tables["stops"], names) == scenario.stops
    mixed = random.Random(7).sample(events, len(events))
    assert rows_of(mixed) == tables, "events may come in any order"


def test_partitions_are_handed_over_at_one_instant():
    """Of three that are assigned together two had the same member before, 0.4 s earlier."""
    tables = rows_of(events_of(SCENARIOS["an eager group of three that one leaves"]))
    assert columns(tables["handovers"], "at moved unowned_ms") == [
        (1.0, 0, 0.0), (5.5, 1, 400.0 + 400.0 + 200.0), (5.6, 2, 300.0 + 600.0 + 600.0),
    ]  # fmt: skip


def test_a_duplicate_is_called_as_the_load_calls_it():
    assert ownership.DUPLICATE == DUPLICATE

"""Lies about answers: an error that the coordinator had no reason for."""

from collections.abc import Callable, Iterator

from kafka_protocol.errors import Error
from selftest.lies.group_lines import GroupLines, Lie, Lines, middle, refused, rewritten

QUIET = ("batch-removal", "static")
"""Runs without an outage, and their group."""
FAULTY = ("coordinator-failover", "static")
"""Runs in which a broker is killed: writes of the others may fail while it is down."""
LONG_MS = 10_000.0

WRITES = (
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
    Error.UNKNOWN_SERVER_ERROR,
)
"""How a response shows that the write of a record failed."""
OF_HEARTBEATS = (
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.UNKNOWN_MEMBER_ID,
    Error.ILLEGAL_GENERATION,
    Error.REBALANCE_IN_PROGRESS,
    Error.FENCED_INSTANCE_ID,
    Error.REQUEST_TIMED_OUT,
)
OF_COMMITS = (*OF_HEARTBEATS, Error.INVALID_COMMIT_OFFSET_SIZE)
OF_JOINS = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.REBALANCE_IN_PROGRESS)
OF_SYNCS = (*OF_JOINS, Error.ILLEGAL_GENERATION)


def _refuses(api: str, error: Error, *, outage: bool) -> Callable[[GroupLines], Lines | None]:
    """Refuse one request in the middle of those that were answered without an error."""

    def tell(log: GroupLines) -> Lines | None:
        places = log.answered(api)
        place = middle(log.in_outage(places) if outage else places)
        if place is None:
            return None
        lines = log.lines
        lines[place] = rewritten(lines[place], lambda logged: refused(logged["response"], error))
        return lines

    return tell


def _refuses_all(api: str, error: Error) -> Callable[[GroupLines], Lines | None]:
    """Refuse every request of ten seconds within an outage."""

    def tell(log: GroupLines) -> Lines | None:
        places = log.in_outage(log.answered(api))
        if not places:
            return None
        lines, from_ms = log.lines, log.recorded[places[0]].at_ms
        for place in places:
            if log.recorded[place].at_ms <= from_ms + LONG_MS:
                change = lambda logged: refused(logged["response"], error)
                lines[place] = rewritten(lines[place], change)
        return lines

    return tell


def _named(api: str, error: Error, when: str) -> str:
    return f"{api.lower()}_{error.name.lower()}_{when}"


def _lies() -> Iterator[Lie]:
    quiet = {
        "HEARTBEAT": (*WRITES, *OF_HEARTBEATS),
        "OFFSET_COMMIT": (*WRITES, *OF_COMMITS),
        "JOIN_GROUP": (*WRITES, *OF_JOINS),
        "SYNC_GROUP": (*WRITES, *OF_SYNCS),
    }
    for api, errors in quiet.items():
        for error in errors:
            tell = _refuses(api, error, outage=False)
            yield Lie(_named(api, error, "without_a_fault"), "answers", *QUIET, tell)
    faulty = {
        "HEARTBEAT": (*WRITES, Error.REQUEST_TIMED_OUT),
        "OFFSET_COMMIT": (*WRITES, *OF_COMMITS),
    }
    for api, errors in faulty.items():
        for error in errors:
            tell = _refuses(api, error, outage=True)
            yield Lie(_named(api, error, "in_an_outage"), "write failures", *FAULTY, tell)
    for api in faulty:
        for error in WRITES:
            tell = _refuses_all(api, error)
            yield Lie(_named(api, error, "for_ten_seconds"), "write failures", *FAULTY, tell)


ANSWERS = tuple(_lies())

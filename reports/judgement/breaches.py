"""Breaches: what a group's clients were not given though its protocol promises it.

They do not come from the replay: each compares what clients and brokers say of themselves, so that
none follows from a difference in the replay, and no lateness of a broker excuses one, but for LATE.
"""

from enum import StrEnum

from reference_coordinator.replay import ObservedRequest
from reports.judgement.rows import Json

AboutClient = tuple[str, Json]
"""A client, and a row of `BREACHES` that shows what it does."""

BREACHES = """
    group STRING, kind STRING, at_ms DOUBLE, expected STRING, observed STRING, proven BOOLEAN,
    broker STRING, line LONG, history STRING, from_ms DOUBLE
"""
"""One row a breach. `broker` and `line` name the request that shows it, `history` the line of the
client history (its time in ms, member and event), as far as there is one. What is wrong at `at_ms`
may be due to something since `from_ms`, None where to nothing before."""


class Breach(StrEnum):
    """The kinds of breaches."""

    ASSIGNED_TWICE = "partition_assigned_twice"
    NOT_ASSIGNED = "partition_not_assigned"
    OWNED_TWICE = "partition_owned_twice"
    DISAGREE = "client_and_broker_disagree"
    BROKER_AND_WIRE = "broker_and_wire_disagree"
    SENT_WHILE_DOWN = "request_of_a_member_that_is_down"
    OFFSET_WENT_BACK = "offset_went_back"
    NEVER_ANSWERED = "request_never_answered"
    FETCHED_DIFFERS = "fetched_offset_differs"
    ENDED = "member_ended"
    ABSENT = "not_a_member"


LATE = frozenset({Breach.SENT_WHILE_DOWN})
"""Those that a broker, or the tap, may be late with on a machine without time for it."""
OF_CLIENTS = frozenset({Breach.DISAGREE, Breach.OWNED_TWICE, Breach.NEVER_ANSWERED})
"""Those that rest on what clients say of themselves in their history, or do not say."""


def breach(
    kind: Breach,
    at_ms: float,
    expected: str,
    observed: str,
    *,
    shown_by: ObservedRequest | None = None,
    history: str = "",
    proven: bool = True,
    from_ms: float | None = None,
) -> Json:
    """Return a row of `BREACHES` without its group."""
    broker, _, line = ("", "", 0) if shown_by is None else shown_by.id.rpartition(":")
    return {
        "kind": kind.value,
        "at_ms": at_ms,
        "expected": expected,
        "observed": observed,
        "proven": proven,
        "broker": broker,
        "line": int(line),
        "history": history,
        "from_ms": from_ms,
    }

"""What the page says in words: reasons, outcomes, bindings, limits."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

SIGNS: Mapping[str, str] = {"pass": "✓", "fail": "✗", "unknown": "?"}

REASONS: Mapping[str, str] = {
    "new_member": "a member joined that the group did not know",
    "leader_rejoin": "the leader joined again",
    "member_metadata": "a member joined again with other metadata",
    "static_replaced": "a static member came back",
    "protocol_change": "a static member came back and changed the group's protocol",
    "session_expired": "a member's session ran out",
    "leave": "a member left",
    "pending_sync": "a member did not ask for its assignment in time",
    "over_capacity": "the loaded group was larger than it may be",
    "assignment_error": "the assignment could not be stored",
}

ENDINGS: Mapping[str, str] = {
    "revoked": "revoked in a rebalance",
    "lost": "lost: the member was no longer in the group, or not in this generation",
    "closed": "its owner was closed",
    "killed": "its owner was killed",
    "fenced": "its owner learnt that it is fenced",
    "vanished": "its owner was gone without a word",
    "assigned": "given to the same owner once more",
    "open": "still owned when the history ends",
}
"""How a member's ownership of a partition ended."""

COSTS: Mapping[str, str] = {
    "stop-the-world": (
        "a member had partitions, lost all of them, in a rebalance or with its membership (its "
        "session ran out, or it heard of no coordinator), and waits for its next assignment. An "
        "eager assignor stops every member in every rebalance. A cooperative one takes only what "
        "moves: the member goes on with the rest and does not stop. Starting up, closing and "
        "being fenced are no stops."
    ),
    "moved": (
        "a partition's owner has another name than the one before. A static member that comes "
        "back to what was its own moves nothing, nor does a second process of its identity."
    ),
    "unowned": (
        "how long partitions had no owner, added up over them (partition-seconds): while a "
        "rebalance went on, and while the owner of a partition was down. This is what a static "
        "member's absence costs."
    ),
    "growth": (
        "the first rebalance that a client began because its metadata had changed, as it says "
        "(KIP-800), or that the leader began without a reason"
    ),
    "evictions": "members that the coordinator removed because their session ran out",
    "fences": "answers FENCED_INSTANCE_ID (82): the instance id belongs to another member id now",
    "two owners": (
        "as clients saw it: a member that was fenced or evicted goes on with its partitions until "
        "it is told. Shown, not judged."
    ),
}
"""How the costs are counted."""

OUTCOMES: Mapping[str, str] = {
    "match": "match",
    "early": "too early",
    "late": "too late",
    "missing": "missing",
    "unexpected": "not due",
    "wrong_reason": "wrong reason",
    "wrong_members": "wrong members",
    "wrong_generation": "wrong generation",
}

BOUND: Mapping[str, tuple[str, str]] = {
    "member_id": ("new member ids", "a broker makes up the id of a new member at random"),
    "leader": ("leader picks", "where no leader is left, any member may become it"),
    "protocol": ("tied protocols", "where assignors have equal votes, any of them may win"),
    "timer_instant": (
        "timer instants",
        "a line tells when a timer fired; it must lie within the timer's window",
    ),
    "record_write": (
        "record writes",
        "a write to the offsets topic succeeds unless the evidence shows an error",
    ),
    "order": (
        "orders",
        "requests that overlap in time; any order that their intervals allow, was searched for",
    ),
    "census": (
        "fresh starts",
        "after a difference, the group was taken from the answer that lists its members",
    ),
}

LIMITS: tuple[str, ...] = (
    "A request in flight when its broker dies is never logged: nothing is known of it.",
    (
        "The coordinator writes no line when a group goes from CompletingRebalance to Stable: "
        "the line of the leader's assignment stands in for it."
    ),
    (
        "The instant of a timer is taken from a line inside the window in which it is due: "
        "how late it is inside that window is not judged."
    ),
    "Times are put together from the brokers' clocks and the durations they log: to about 10 ms.",
    "A member's bar runs from answer to answer: one that died shows until it was last answered.",
)

UNNUMBERED = (
    "The brokers' lines carry no serial numbers: one that is missing inside a log shows only by "
    "what it breaks."
)
"""One limit more, of runs whose brokers do not number their lines."""

LENGTHS_ALONE = (
    "The brokers log the length of metadata and assignments alone: that an assignment is empty "
    "shows, whose partitions are in it does not."
)
"""One limit more, of runs whose brokers log requests as text."""

EVIDENCE: Mapping[str, str] = {
    "requests": "every group request with its answer, and the coordinator's own lines",
}


def offset(at_ms: float | None, zero_ms: float) -> str:
    """Write a time as seconds since `zero_ms`."""
    return "-" if at_ms is None else f"{(at_ms - zero_ms) / 1000:+.3f}"


def seconds(duration_ms: float | None, digits: int = 1) -> str:
    """Write a duration in seconds, without its unit."""
    return "-" if duration_ms is None else f"{duration_ms / 1000:.{digits}f}"


def utc(at_ms: float) -> str:
    """Write a time of day, UTC."""
    at = datetime.fromtimestamp(round(at_ms) / 1000, UTC)
    return f"{at:%H:%M:%S}.{at.microsecond // 1000:03d} UTC"


def day(at_ms: float) -> str:
    """Write a date, UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d}"


def counted(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def sentence(verdict: Mapping[str, Any]) -> str:
    """Say what a verdict means."""
    if verdict["verdict"] == "pass":
        return "Every rebalance that happened was due, and every one that was due happened."
    if verdict["verdict"] == "unknown":
        return "No proof either way: the evidence leaves room for doubt."
    if verdict["findings"]:
        return "What the brokers did is not what had to happen."
    return "The brokers kept to the protocol, but the experiment expected something else."

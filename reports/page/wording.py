"""The page's texts: reasons, outcomes, bound values, limits."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

SIGNS: Mapping[str, str] = {"pass": "✓", "fail": "✗", "unknown": "?"}

REASONS: Mapping[str, str] = {
    "new_member": "a new member joined",
    "leader_rejoin": "the leader rejoined",
    "member_metadata": "a member rejoined with other metadata",
    "static_replaced": "a static member rejoined with a new member id",
    "protocol_change": "a static member rejoined and changed the group's protocol",
    "session_expired": "a member's session expired",
    "leave": "a member left",
    "pending_sync": "a member did not send SyncGroup in time",
    "over_capacity": "the loaded group was larger than group.max.size",
    "assignment_error": "the assignment could not be stored",
}

ENDINGS: Mapping[str, str] = {
    "revoked": "revoked in a rebalance",
    "lost": "lost: the member was no longer in the group, or not in this generation",
    "closed": "its owner was closed",
    "killed": "its owner was killed",
    "fenced": "its owner was fenced",
    "vanished": "its owner ended without an event",
    "assigned": "assigned to the same owner again",
    "open": "still owned at the end of the history",
}
"""How a member's ownership of a partition ended."""

COSTS: Mapping[str, str] = {
    "stop-the-world": (
        "a member had partitions, lost all of them, in a rebalance or with its membership (its "
        "session expired, or it found no coordinator), and waits for its next assignment. An "
        "eager assignor stops every member in every rebalance. A cooperative one revokes only "
        "what moves: the member goes on with the rest and does not stop. Starting up, closing "
        "and being fenced are no stops."
    ),
    "moved": (
        "a partition's owner has another name than the owner before. A static member that gets its "
        "own partitions back moves nothing, nor does a second process of the same member."
    ),
    "unowned": (
        "how long partitions had no owner, summed over partitions (partition-seconds): during "
        "rebalances, and while the owner of a partition was down. This is what a static "
        "member's absence costs."
    ),
    "growth": (
        "the first rebalance that a client began because its metadata had changed, by the reason "
        "it gave (KIP-800), or that the leader began without a reason"
    ),
    "evictions": "members that the coordinator removed because their session expired",
    "fences": "responses FENCED_INSTANCE_ID (82): the instance id belongs to another member id now",
    "two owners": (
        "as clients saw it: a member that was fenced or evicted goes on with its partitions until "
        "a response says so. Two owners that no such member explains are a finding."
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
    "member_id": ("new member ids", "a broker generates the id of a new member at random"),
    "leader": ("leader picks", "where the leader has left, any member may become leader"),
    "protocol": ("tied protocols", "where protocols have equal votes, any of them may be selected"),
    "timer_instant": (
        "timer instants",
        "a line shows when a timer fired; it must be within the timer's window",
    ),
    "record_write": (
        "record writes",
        "a write to the offsets topic succeeds unless the evidence shows an error",
    ),
    "failed_write": (
        "failed writes",
        "a request was answered with the error of a write; below, what bears each of them out",
    ),
    "failed_write_timed_out": (
        "writes that timed out",
        "the request took the time-out of a write, and no later write was confirmed meanwhile",
    ),
    "failed_write_logged": (
        "failed writes in the log",
        "the broker printed the error while the request was under way",
    ),
    "failed_write_appended": (
        "failed writes that are stored",
        "the broker printed that too few replicas have the record",
    ),
    "failed_write_unloaded": (
        "writes of a former coordinator",
        "the broker gave the partition up, or another took it over",
    ),
    "failed_write_in_outage": (
        "failed writes without a line",
        "a broker was down, and there are no coordinator lines",
    ),
    "unlogged_return": (
        "rejoins that no log has",
        "a coordinator stored a new id, and was killed before it logged the JoinGroup",
    ),
    "not_authorized": (
        "refused by ACLs",
        "GROUP_ or TOPIC_AUTHORIZATION_FAILED: the coordinator did not see the request",
    ),
    "broker_error": (
        "errors of brokers",
        "quotas, unknown topics: the coordinator did not see the request",
    ),
    "partition_error": (
        "errors of partitions",
        "some partitions of a commit have errors of their own; the others are compared",
    ),
    "unloaded_meanwhile": (
        "groups unloaded meanwhile",
        "the broker was at a request as it gave the group up, and found it Dead (Scala)",
    ),
    "order": (
        "orders",
        "requests that overlap in time: every order that their intervals allow was tried",
    ),
    "census": (
        "fresh starts",
        "after a difference, the group's state was taken from the response that lists its members",
    ),
}

CLIENTS = "What clients saw is compared with what brokers answered them."
NO_CLIENTS = "There is no client history: what clients saw, and who owned what when, is not judged."
"""What is said of clients, with a history and without one."""

LIMITS: tuple[str, ...] = (
    "A request in flight when its broker dies is never logged: nothing is known of it.",
    (
        "The coordinator logs no line when a group changes from CompletingRebalance to Stable: "
        "the line of the leader's assignment is used instead."
    ),
    (
        "The instant of a timer is taken from a line within the window in which it is due: "
        "how late it is within that window is not judged."
    ),
    "Times are computed from the brokers' clocks and the durations they log, to about 10 ms.",
    "A member's bar ends with the last response to the member: one that died shows until then.",
)

UNNUMBERED = (
    "The brokers' lines have no serial numbers: a missing line within a log shows only by the "
    "differences it causes."
)
"""A further limit of runs whose brokers do not number their lines."""

LENGTHS_ALONE = (
    "The brokers log only the length of metadata and assignments: an empty assignment shows, the "
    "partitions in it do not."
)
"""A further limit of runs whose brokers log requests as text."""

EVIDENCE: Mapping[str, str] = {
    "requests": "every group request with its response, and the coordinator's own lines",
    "wire": (
        "every group request with its response, as a proxy before the brokers saw them; no line of "
        "a broker. What this verdict says holds as far as answers show it"
    ),
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
    """Return the sentence that explains a verdict."""
    if verdict["verdict"] == "pass":
        return "Every rebalance that happened was due, and every one that was due happened."
    if verdict["verdict"] == "unknown":
        return "No proof either way: the evidence is incomplete or in doubt."
    if verdict["findings"]:
        return "The brokers did something other than the protocol demands."
    return "The brokers kept to the protocol, but the experiment expected something else."

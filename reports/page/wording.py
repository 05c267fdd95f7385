"""Words that several pages, figures or commands have in common, and how they write numbers."""

from collections.abc import Mapping
from datetime import UTC, datetime

from reports.judgement import reasons

REASONS: Mapping[str, str] = reasons.REASONS

SIGNS: Mapping[str, str] = {"pass": "✓", "fail": "✗", "unknown": "?"}

BY: Mapping[str, str] = {
    "fault": "a fault of the plan",
    "load": "the load",
    "broker": "the broker",
    "client": "a client by itself",
    "unknown": "unknown",
}
"""Who caused a rebalance (`judgement.causes`)."""

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


RECORDS: Mapping[str, str] = {
    "twice": "twice, allowed: not committed when the member began",
    "again": "twice, though committed when the member began",
    "lost": "committed past, and processed by nobody",
    "out_of_order": "after a higher offset",
    "after_given_up": "after the member gave the partition up",
    "misnumbered": "with a number of its producer that was not due",
}
"""What became of records, by `what` of the table `records`."""


def records(of: Mapping[str, int | None] | None) -> str:
    """Write what a group's application saw (`records` of `verdict.json`)."""
    if of is None:
        return "unknown: no member says what it processed"
    twice, allowed = of["twice"] or 0, of["twice_allowed"] or 0
    how = " (as at-least-once allows)" if twice == allowed else f" ({allowed:,} allowed)"
    return ", ".join([
        f"{counted(of['processed'] or 0, 'record')} processed",
        "lost: unknown" if of["lost"] is None else f"{of['lost']:,} lost",
        f"{twice:,} twice{how if twice else ''}",
        f"{of['out_of_order']:,} out of order",
        f"{of['after_given_up']:,} after the partition was given up",
        f"{of['misnumbered']:,} with a wrong number",
    ])  # fmt: skip


def offset(at_ms: float | None, zero_ms: float) -> str:
    """Write a time as seconds since `zero_ms`."""
    return "-" if at_ms is None else f"{(at_ms - zero_ms) / 1000:+.3f}"


def seconds(duration_ms: float | None, digits: int = 1) -> str:
    """Write a duration in seconds, without its unit."""
    return "-" if duration_ms is None else f"{duration_ms / 1000:.{digits}f}"


def lasting(duration_ms: float) -> str:
    """Write a duration in the largest unit that it has two of."""
    units = (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))
    unit, ms = next((each for each in units if duration_ms >= 2 * each[1]), units[-1])
    return f"{duration_ms / ms:.0f} {unit}"


def utc(at_ms: float) -> str:
    """Write a time of day, UTC."""
    return f"{datetime.fromtimestamp(round(at_ms) / 1000, UTC):%H:%M:%S.%f}"[:-3] + " UTC"


def day(at_ms: float) -> str:
    """Write a date, UTC."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d}"


def counted(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"

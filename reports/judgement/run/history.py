"""The client history: lines of `history.jsonl` in; what clients saw, event by event, out."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from reports.judgement.log.split_rows import BLOCK, Blob, Packing, Rows, unpacked
from reports.judgement.run import commit_errors
from reports.judgement.run.commit_errors import ByError
from reports.judgement.run.journal import Account, span

if TYPE_CHECKING:
    from reports.judgement.run.run_folder import RunFolder

FILE = "history.jsonl"  # its name in the run folder
OF_RECORDS = ("processed", "misnumbered")  # the events about records that a member read
EVENTS = (
    *OF_RECORDS, "fenced", "closing", "revoked", "lost", "killed", "closed", "created", "assigned",
    "committed", "unanswered",
)  # fmt: skip
"""The events about members that are judged; those of one instant happen in this order."""
HUB_LAG = "hub_lag"  # the event that tells how late gevent's hub ran, in `max_ms`
ENDS = ("fenced", "closing", "closed", "killed")  # the events with which a process ends
_OF_OWNER = ("member", "group", "partitions")
NEEDED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("error", "produced", HUB_LAG, "leased", "worker_lost"), ()),
    **dict.fromkeys(("created", "closing", "closed"), ("member",)),  # a producer has no group
    **dict.fromkeys(("assigned", "revoked", "lost", "fenced", "killed"), _OF_OWNER),
    "ended": ("member",),
    "committed": ("member", "group", "offsets"),
    "unanswered": ("member", "group", "api", "sent_at_ms"),
    "processed": ("member", "group", "ranges"),
    "misnumbered": ("member", "group", "partition", "offset"),
}  # all events that `loadtest.history` writes, and what a line of each cannot be without
Time = Annotated[float, msgspec.Meta(ge=0.0, le=253_402_300_799_000)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Partition = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9._-]+-(0|[1-9][0-9]{0,9})\Z")]
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
Offset = Annotated[int, msgspec.Meta(ge=0, lt=(1 << 63) - 1)]


class Said(msgspec.Struct, frozen=True):
    """What a line says (`loadtest.history`), as far as it is read."""

    at_ms: Time
    event: str
    member: Name | None = None
    group: Name | None = None
    kind: str | None = None
    partitions: list[Partition] | None = None
    member_id: str | None = None
    offsets: Count | None = None
    instance_id: str | None = None
    api: str | None = None
    sent_at_ms: Time | None = None
    max_ms: Time | None = None
    ranges: dict[Partition, list[tuple[Offset, Offset]]] | None = None
    partition: Partition | None = None
    offset: Offset | None = None
    error: str | None = None
    left_out: Count | None = None


Read = Callable[[bytes], Said]
"""Reads a line; raises ValueError for one that is not understood."""


@dataclass(frozen=True, slots=True)
class ClientEvent:
    """What a client saw: `partitions` are written `topic-number`, `offsets` counts those stored.

    `api` and `sent_at_ms` are those of a request that was never answered. `kind` is the member's:
    `static` or `dynamic`. `ranges` are the records that it processed, each a partition with its
    first and its last offset, in the order of processing; or the record that is `misnumbered`.
    """

    at_ms: float
    order: int
    client: str
    partitions: frozenset[str] = frozenset()
    member_id: str | None = None
    offsets: int = 0
    instance_id: str | None = None
    api: str = ""
    sent_at_ms: float = inf
    kind: str | None = None
    ranges: tuple[tuple[str, int, int], ...] = ()

    @property
    def event(self) -> str:
        """The name of the event."""
        return EVENTS[self.order]

    @property
    def place(self) -> str:
        """Where it stands in the history."""
        return f"history.jsonl: {self.event} of {self.client} at {self.at_ms:.1f}"


def in_order(event: ClientEvent) -> tuple[Any, ...]:
    """Order events by time, and those of one instant by all that they tell."""
    texts = (event.member_id, event.instance_id, event.kind)
    return (
        *(event.at_ms, event.order, event.client, event.offsets, event.api, event.sent_at_ms),
        *(text or "" for text in texts),
        sorted(event.partitions),
        event.ranges,
    )


_decode = msgspec.json.Decoder(Said).decode


def said_in(line: bytes, within_ms: tuple[float, float] = (-inf, inf)) -> Said:
    """Return what a line says. Raises ValueError, in words, for what no client wrote in a time."""
    said = _decode(line.decode())
    needed = NEEDED.get(said.event)
    if needed is None or None in (getattr(said, name) for name in needed):
        raise ValueError(f"no client writes such a line of {said.event!r}")
    if any(first > last for mine in (said.ranges or {}).values() for first, last in mine):
        raise ValueError("a range ends before it begins")
    if not within_ms[0] <= said.at_ms <= within_ms[1]:
        raise ValueError("its time is not one of the run")
    return said


def reader_of(run: "RunFolder") -> Read:
    """Return what reads the lines of a run's history."""
    return partial(said_in, within_ms=span(run.journal, completed=run.completed))


def event_of(said: Said) -> ClientEvent | None:
    """Return the event that a line tells; None if it is about no member's group."""
    if said.event not in EVENTS or said.member is None or said.group is None:
        return None
    ranges = [(name, *one) for name, mine in (said.ranges or {}).items() for one in mine]
    if said.partition is not None:
        ranges = [(said.partition, said.offset or 0, said.offset or 0)]
    return ClientEvent(
        said.at_ms,
        EVENTS.index(said.event),
        said.member,
        frozenset(said.partitions or ()),
        said.member_id or None,
        said.offsets or 0,
        said.instance_id or None,
        said.api or "",
        inf if said.sent_at_ms is None else said.sent_at_ms,
        said.kind,
        tuple(ranges),
    )


def events_of(rows: Iterable[Iterable[Any]]) -> list[ClientEvent]:
    """Return the events that lines tell, as tuples of `Said`."""
    events = (event_of(Said(*row)) for row in rows)
    return [event for event in events if event is not None]


class HistorySummary(msgspec.Struct, array_like=True):
    """The account of a split's lines; `rows` and `large` as of a log's (`SplitSummary`)."""

    account: Account
    late_ms: dict[float, int] = {}  # how late gevent's hub ran, and how often so
    rows: dict[int, int] = {}
    large: list[str] = []
    commit_errors: ByError = {}

    @property
    def lines(self) -> int:
        """The number of lines."""
        return self.account.lines


def read(lines: Iterable[bytes], of_line: Read, buckets: int) -> Iterator[Blob | HistorySummary]:
    """Read the lines of a split: yield what they say of groups, and in the end the summary."""
    account, packing = Account(), Packing(buckets)
    late_ms, failed = Counter[float](), ByError()
    by_group: dict[str, Rows] = {}
    left = BLOCK // 500  # lines of about so many bytes
    for said in account.entries(lines, of_line):
        if said.event == HUB_LAG and said.max_ms is not None:
            late_ms[said.max_ms] += 1
        if said.event == "error":
            commit_errors.note(failed, said)
        if said.group is None or said.event not in EVENTS:
            continue
        if said.group not in by_group:
            by_group[said.group] = Rows.of(said.group)
        by_group[said.group].said.append(msgspec.structs.astuple(said))
        left -= 1
        if left < 0:
            yield from packing.blobs(by_group.values())
            by_group, left = {}, BLOCK // 500
    yield from packing.blobs(by_group.values())
    counts = dict(late_ms), dict(packing.counted)
    yield HistorySummary(account, *counts, sorted(packing.large), failed)


def events_by_group(
    lines: Iterable[bytes], of_line: Read, account: Account
) -> dict[str, list[ClientEvent]]:
    """Read lines; return the events of each group in order, and keep account of the lines."""
    events: dict[str, list[ClientEvent]] = defaultdict(list)
    for one in read(lines, of_line, 1):
        if isinstance(one, HistorySummary):
            account.merge(one.account)
            continue
        for rows in unpacked(one.data):
            events[rows.group or ""] += events_of(rows.said)
    return {group: sorted(found, key=in_order) for group, found in events.items()}
